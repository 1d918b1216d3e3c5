"""What a probed script meets in PySpark's place: a small session, queries that are noted, writers that do nothing."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.core.errors import PenstockError
from penstock.live import attach as attaching
from penstock.live.control_options import Wanted
from penstock.live.script_plan import look_at
from penstock.live.script_probe import Enough, Noted

SLEEPS = 50  # of a script that waits for its queries in a loop of its own
SLEEP_S = 0.1
WRITERS = {
    "pyspark.sql.readwriter:DataFrameWriter": "save saveAsTable insertInto parquet json csv text orc jdbc xml",
    "pyspark.sql.readwriter:DataFrameWriterV2": "create replace createOrReplace append overwrite overwritePartitions",
    "pyspark.sql.classic.dataframe:DataFrame": "foreach foreachPartition",
    "pyspark:RDD": "foreach foreachPartition saveAsTextFile saveAsPickleFile saveAsHadoopFile saveAsSequenceFile "
    "saveAsNewAPIHadoopFile saveAsHadoopDataset saveAsNewAPIHadoopDataset",
}
_WRITES = re.compile(
    r"\s*(insert|merge|update|delete|truncate|drop|alter|load|replace|create(?!\s+(or\s+replace\s+)?(global\s+)?temp))\b",
    re.IGNORECASE,
)


class Unstarted:
    """What `start()` and `attach()` return here: it has not begun, and whatever else it is asked does nothing."""

    def __init__(self, name: str | None = None) -> None:
        none = "00000000-0000-0000-0000-000000000000"
        status = {"message": "not started", "isDataAvailable": False, "isTriggerActive": False}
        vars(self).update(name=name, id=none, runId=none, status=status)
        vars(self).update(isActive=True, lastProgress=None, recentProgress=[])

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: ARG002, N802  as PySpark has it
        raise Enough

    def __getattr__(self, _: str) -> Callable[..., None]:
        return lambda *_, **__: None


def install(noted: Noted, given: dict[str, str]) -> None:
    """Put the hooks in place; `given` are settings that a spark-submit would have been given."""
    _hook_session(noted, given)
    _hook_connect(noted)
    _hook_queries(noted)
    _hook_writers(noted)

    def attach(_spark: Any, *_queries: Any, limits: object = None, **more: Any) -> Unstarted:
        noted.attached.append(_attached(limits, more))
        noted.save()
        return Unstarted()

    def wait(*_: Any, **__: Any) -> bool:
        raise Enough

    _put(attaching, "attach", attach)
    _put(StreamingQueryManager, "awaitAnyTermination", wait)
    sleep, slept = time.sleep, [0]

    def nap(seconds: float) -> None:
        slept[0] += bool(noted.queries)
        if slept[0] > SLEEPS:
            raise Enough
        sleep(min(seconds, SLEEP_S))

    _put(time, "sleep", nap)


def _put(owner: Any, name: str, value: object) -> None:
    setattr(owner, name, value)


def _hook_session(noted: Noted, given: dict[str, str]) -> None:
    begin = SparkContext.__init__
    small = _small(noted.file.parent)

    @functools.wraps(begin)
    def probed(self: SparkContext, *words: Any, **named: Any) -> None:
        bound = inspect.signature(begin).bind(self, *words, **named)
        named_here = {
            "spark.master": bound.arguments.pop("master", None),
            "spark.app.name": bound.arguments.get("appName"),
        }
        conf = bound.arguments.get("conf")
        asked = {
            **given,
            **dict(conf.getAll() if conf else ()),
            **{key: text for key, text in named_here.items() if text},
        }
        bound.arguments["conf"] = SparkConf().setAll([*{**asked, **small, **_jars(given, asked)}.items()])
        begin(*bound.args, **bound.kwargs)
        noted.has_session = True
        noted.settings = {**{key: text for key, text in self.getConf().getAll() if key not in small}, **asked}
        noted.save()

    _put(SparkContext, "__init__", probed)


def _hook_connect(noted: Noted) -> None:
    create = SparkSession.Builder.getOrCreate

    @functools.wraps(create)
    def created(self: Any) -> SparkSession:
        mode = str(self._options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))).lower()
        noted.is_connect = "spark.remote" in self._options or "SPARK_REMOTE" in os.environ or mode == "connect"
        if noted.is_connect:
            raise Enough
        return create(self)

    _put(SparkSession.Builder, "getOrCreate", created)


def _small(scratch: Path) -> dict[str, str]:
    """A session on this machine that writes nowhere else."""
    return {
        "spark.master": "local[1]",
        "spark.submit.deployMode": "client",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f'-Djava.io.tmpdir="{scratch}" -XX:-UsePerfData',
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.jars.ivy": str(scratch / "ivy"),
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.extraListeners": "",
    }


def _jars(given: dict[str, str], asked: dict[str, str]) -> dict[str, str]:
    """Kafka's connector was brought along: without a network, it cannot be fetched."""
    packages = [each for each in asked.get("spark.jars.packages", "").split(",") if each and "kafka" not in each]
    jars = [each for each in (asked.get("spark.jars", ""), given.get("spark.jars", "")) if each]
    return {"spark.jars.packages": ",".join(packages), "spark.jars": ",".join(dict.fromkeys(jars))}


def _hook_queries(noted: Noted) -> None:
    for name in ("format", "outputMode", "queryName", "trigger", "option", "options", "foreach", "foreachBatch"):
        _put(DataStreamWriter, name, _noting(name, getattr(DataStreamWriter, name)))

    def start(self: Any, path: str | None = None, **more: Any) -> Unstarted:
        wish = {**_wish(self), "line": _line()}
        told = {key: more.pop(key, None) for key in ("format", "outputMode", "queryName", "partitionBy")}
        wish |= {key: value for key, value in told.items() if value is not None}
        wish["options"] = sorted({*wish.get("options", ()), *more, *(["path"] if path else [])})
        noted.queries.append({**wish, **look_at(self._df, str(wish.get("outputMode", "append")))})
        noted.save()
        return Unstarted(wish.get("queryName"))

    _put(DataStreamWriter, "start", start)
    _put(DataStreamWriter, "toTable", lambda self, _name, *_, **more: start(self, **more))


def _noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def noting(self: Any, *words: Any, **named: Any) -> Any:
        wish = _wish(self)
        if name in ("option", "options"):
            wish["options"] = [*wish.get("options", ()), *(words[:1] if name == "option" else named)]
        elif name == "trigger":
            wish["trigger"] = next(((key, value) for key, value in named.items() if value is not None), None)
        elif name.startswith("foreach"):  # its function is never called
            wish["format"] = name
            return self
        else:
            wish[name] = words[0] if words else next(iter(named.values()), None)
        return original(self, *words, **named)

    return noting


def _wish(writer: Any) -> dict[str, Any]:
    found: dict[str, Any] = writer.__dict__.setdefault("_penstock_wish", {})
    return found


def _hook_writers(noted: Noted) -> None:
    for place, names in WRITERS.items():
        module, _, kind = place.partition(":")
        for name in names.split():
            _put(getattr(importlib.import_module(module), kind), name, _doing_nothing(noted, f"{kind}.{name}"))
    run = SparkSession.sql

    def sql(self: SparkSession, text: str, *words: Any, **named: Any) -> Any:
        if _WRITES.match(text):
            _doing_nothing(noted, f"sql {text.split()[0].upper()}")()
            return self.range(0)
        return run(self, text, *words, **named)

    _put(SparkSession, "sql", sql)


def _doing_nothing(noted: Noted, what: str) -> Callable[..., None]:
    def nothing(*_: Any, **__: Any) -> None:
        noted.left_out.append(f"{what} (line {_line()})")
        noted.save()

    return nothing


def _line() -> int:
    """Of the script, from wherever it got here."""
    frames = [frame for frame in inspect.stack(0) if frame.frame.f_globals.get("__name__") == "__main__"]
    return frames[0].lineno if frames else 0


def _attached(limits: object, more: dict[str, Any]) -> dict[str, Any]:
    try:
        wanted = Wanted.given(limits, more)
        wanted.policy_for(wanted.job("script"))
    except PenstockError as error:
        return {"error": str(error), "line": _line()}
    return {"error": "", "workers_max": wanted.limits.workers_max, "line": _line()}
