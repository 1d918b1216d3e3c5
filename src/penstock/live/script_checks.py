"""`penstock doctor SCRIPT.py`: a user's job run up to where its queries start, and what keeps it from being scaled."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.core.errors import BadInput, PenstockError
from penstock.live.jars import kafka_jars
from penstock.live.job_checks import CONNECT, Finding, examine_room, examine_settings, examine_trigger, examine_width
from penstock.live.resources import Holding, hold
from penstock.pipeline.java import need_java
from penstock.pipeline.starting import last_words, say, say_after_s

LONGEST_S = 900.0
QUIET_S = 20.0  # after a query was noted: a script that waits in a way of its own


def examine_script(
    script: Path, words: Sequence[str] = (), settings: Mapping[str, str] | None = None, workers_max: int | None = None
) -> list[Finding]:
    """Run it without the right to write or to reach anybody, and say what its session and its queries lack.

    `settings` are what a spark-submit would be given beside it.
    """
    if not script.is_file():
        raise BadInput(f"no such script: {script}")
    need_java()
    with hold("doctor") as holding:
        given = {**(settings or {}), **_connector(script)}
        (holding.scratch / "given.json").write_text(json.dumps(given))
        noted, why = _probed(holding, script, words)
    return [*_findings(noted, why, workers_max), _looked_at(noted)]


def _connector(script: Path) -> dict[str, str]:
    """Kafka's jars for a script that speaks of Kafka: it has no network to fetch them."""
    if "kafka" not in script.read_text(encoding="utf-8", errors="replace").lower():
        return {}
    try:
        return {"spark.jars": kafka_jars().spark_jars}
    except PenstockError:
        return {}


def _probed(holding: Holding, script: Path, words: Sequence[str]) -> tuple[dict[str, Any], str]:
    """What was noted, and why the script was not followed to its end, if it was not."""
    scratch, log = holding.scratch, holding.scratch / "script.log"
    command = [sys.executable, "-m", "penstock.live.script_probe", str(scratch), str(script.resolve()), *words]
    settings = {"TMPDIR": str(scratch), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch)}
    process = holding.start(command, log, settings=settings)
    why = _wait(process, scratch / "probe.json")
    try:
        return json.loads((scratch / "probe.json").read_text()), why
    except (OSError, ValueError):
        return {}, why or last_words(log)


def _wait(process: subprocess.Popen[bytes], file: Path) -> str:
    """Until the script ends, or has started queries and waits; it is said when that takes long."""
    begun_s = changed_s = time.monotonic()
    seen, is_said = 0.0, False
    while process.poll() is None:
        now_s = time.monotonic()
        if file.exists() and (written := file.stat().st_mtime) != seen:
            seen, changed_s = written, now_s
        if now_s - changed_s > QUIET_S and seen and json.loads(file.read_text())["queries"]:
            return ""
        if now_s - begun_s > LONGEST_S:
            return f"it did not get there within {LONGEST_S:.0f} s"
        if now_s - begun_s > say_after_s() and not is_said:
            is_said = True
            say("running the script up to where its queries start")
        time.sleep(0.1)
    return ""


def _findings(noted: dict[str, Any], why: str, workers_max: int | None) -> Iterator[Finding]:
    failed = noted.get("failed") or why
    if noted.get("is_connect"):
        yield CONNECT
        return
    if failed or not noted.get("queries"):
        how = failed or "it ended, and started no streaming query"
        hint = "it has no network here, and its arguments are given by --arguments"
        yield Finding("script", f"not seen to its end: {how} ({hint})", not noted.get("queries"))
    if not noted.get("has_session"):
        return
    settings = noted["settings"]
    yield from _session(settings)
    for attached in noted["attached"]:
        if attached["error"]:
            yield Finding("attach", f"line {attached['line']}: {attached['error']}", True)
        else:
            workers_max = workers_max or attached["workers_max"]
    if workers_max:
        yield from examine_room(workers_max, settings)
    for number, query in enumerate(noted["queries"], 1):
        name = f"query {query.get('queryName') or number} (line {query['line']})"
        yield from _query(query, name, settings, workers_max)


def _session(settings: Mapping[str, str]) -> Iterator[Finding]:
    master = settings.get("spark.master", "")
    if not master:
        says = "the script names none, as is usual with spark-submit --master: it must not be local[…]"
        yield Finding("master", says)
    yield from examine_settings(master, settings)


def _query(query: dict[str, Any], name: str, settings: Mapping[str, str], workers_max: int | None) -> Iterator[Finding]:
    if query["error"]:
        yield Finding("query", f"{name} would not start: {query['error']}", True)
    if query.get("trigger"):
        yield from examine_trigger(query["trigger"][0], name)
    options = {option.lower() for option in query["options"]}
    if "checkpointlocation" not in options and "spark.sql.streaming.checkpointLocation" not in settings:
        yield Finding("checkpoint", f"{name} has no checkpointLocation: a restart begins anew")
    for source, given in query["sources"]:
        if "kafka" in source.lower() and "maxoffsetspertrigger" not in {option.lower() for option in given}:
            says = f"{name} reads Kafka without maxOffsetsPerTrigger: after a stop, all that waits is one long batch"
            yield Finding("batch size", says)
    if workers_max and query["is_stateful"]:
        slots = int(settings.get("spark.executor.cores") or 1)
        yield from examine_width(workers_max, slots, int(settings.get("spark.sql.shuffle.partitions") or 200))


def _looked_at(noted: dict[str, Any]) -> Finding:
    """What was looked at, and how: what is not in this list was not."""
    names = [f"{query.get('queryName') or number}" for number, query in enumerate(noted.get("queries", ()), 1)]
    parts = [f"{len(noted.get('settings', ()))} settings of the session", f"{len(names)} queries ({', '.join(names)})"]
    left = noted.get("left_out", ())
    parts += [f"left out: {', '.join(dict.fromkeys(left))}"] if left else []
    where = "on local[1], " if noted.get("has_session") else ""
    how = f"it ran {where}without a network and without the right to write; no query of it was started"
    return Finding("looked at", f"{'; '.join(parts)}; {how}")
