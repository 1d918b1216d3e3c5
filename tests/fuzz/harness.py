"""Runs commands on spoilt inputs, in one process: one line, the right code, in time, and nothing lost."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from penstock.cli.main import main
from tests.fuzz import inputs, mutate

HANG_S = 20
PROGRESS = re.compile(r"^(?!penstock: ).* \([\d.]+ (?:s|min)\)\n", re.MULTILINE)
OUTPUTS = ("-o", "--plot", "--report")
MEMORY_BYTES = 2 << 30

# Commands with the files that they read; each word in capitals is a file that was spoilt.
COMMANDS: tuple[tuple[str, dict[str, inputs.Spoil]], ...] = (
    ("replay SERIES.csv --policy threshold --policy mst --max 8 --output json", {"SERIES.csv": inputs.series}),
    ("replay SERIES.parquet --policy threshold", {"SERIES.parquet": inputs.series}),
    (
        "replay --scenario WORLD.toml --policy threshold --policy filtered --output json",
        {"WORLD.toml": inputs.scenario},
    ),
    ("replay --scenario WORLD.toml --policy clairvoyant --report out.html", {"WORLD.toml": inputs.scenario}),
    ("replay good.csv --model MODEL.json --policy mst --journal out", {"MODEL.json": inputs.model}),
    ("advise MODEL.json --rate 90/s --output json", {"MODEL.json": inputs.model}),
    ("fit SAMPLES.parquet -o out.json --plot out.svg --output json", {"SAMPLES.parquet": inputs.samples}),
    ("plan-measurements SAMPLES.parquet --output json", {"SAMPLES.parquet": inputs.samples}),
    ("arrivals GAPS.csv --kind iat --output json", {"GAPS.csv": inputs.gaps}),
    ("arrivals GAPS.csv --kind times --method kpc", {"GAPS.csv": inputs.gaps}),
    ("tune SERIES.csv --policy threshold --budget 3 --output json", {"SERIES.csv": inputs.series}),
    ("forecast SERIES.csv --horizon 3m --output json", {"SERIES.csv": inputs.series}),
    ("forecast SERIES.parquet --horizon 2m", {"SERIES.parquet": inputs.series}),
    ("reproduce mst --claims CLAIMS.json --output json", {"CLAIMS.json": inputs.claims}),
    ("reproduce ekf --claims CLAIMS.json", {"CLAIMS.json": inputs.claims}),
    ("reproduce fugu --claims CLAIMS.json --output page", {"CLAIMS.json": inputs.claims}),
    ("reproduce mead --claims CLAIMS.json --output page", {"CLAIMS.json": inputs.claims}),
    # Refused at the latest by the policy's name: before a host, or Spark, is started.
    ("fleet FLEET.toml --policy none", {"FLEET.toml": inputs.fleet}),
    ("compare SERIES.csv --policy none", {"SERIES.csv": inputs.series}),
    ("compare good.csv --scenario BARE.toml --policy none", {"BARE.toml": inputs.bare}),
    ("explain RUN.jsonl --output json", {"RUN.jsonl": inputs.journal}),
    ("explain RUN.jsonl --step 5", {"RUN.jsonl": inputs.journal}),
    ("explain RUN.jsonl", {"RUN.jsonl": inputs.journal}),
    ("status RUN.jsonl", {"RUN.jsonl": inputs.journal}),
    ("status RUN.jsonl --output json", {"RUN.jsonl": inputs.journal}),
    ("calibrate RUN.jsonl -o out.toml --output json", {"RUN.jsonl": inputs.journal}),
)
OPTIONS = {
    "replay good.csv --policy threshold": "--policy --column --every --capacity-per-worker --scale --start --min --max "
    "--objective --price --billing --seed --output --journal --report --scenario --model",
    "advise good.json --rate 90/s": "--rate --trigger --confidence --max --price --output",
    "fit good.parquet -o out.json": "-o --train --plot --seed --output",
    "explain good.jsonl": "--step --output",
    "calibrate good.jsonl": "-o",
    "tune good.csv --policy threshold --budget 2": "--policy --violations --train --scenario --column --every --start "
    "--capacity-per-worker --scale --min --max --objective --price --seed --output --model",
    "forecast good.csv --horizon 3m": "--horizon --step --column --every --time --output",
    "reproduce mst --claims claims.json": "--claims --output --seeds",
    "fleet fleet.toml": "--tick --objective --price --journal --metrics-port --for",
    "compare good.csv": "--train --peak-workers --seeds --scenario --column --every --scale --start "
    "--capacity-per-worker --min --max --objective --price --seed --output --report --model -o",
}
# What would start Spark is refused in the end, however good its other options are.
STOPPED = {"fleet": ["--policy", "none"], "compare": ["--policy", "none"]}
HEAD = """\
from penstock import Decision, Knob
class Mine:
    needs, memory_s = frozenset({Knob.WORKERS}), 0.0
    def __init__(self, job): self.job = job
"""
POLICIES = {
    "fine": "return Decision(seen.target.resized(2), 'two')",
    "exits": "raise SystemExit(5)",
    "cancels": "raise GeneratorExit",
    "odd": "return Decision(seen.target, '\\udcff')",
    "none": "return None",
    "many": "return Decision(seen.target.resized(10**6), 'all')",
    "fails": "return 1 / 0",
}
PLAIN = """fine.py:Mine exits.py:Mine cancels.py:Mine odd.py:Mine none.py:Mine many.py:Mine fails.py:Mine
kept.toml dir/out.toml hard.csv fine.py 1_0 ٣
-1 0 1 2 1000000 99999999999999999999 0.95 5 1,2 1,1 1,2,99 , json table
0s 1s 100000d 10000d 1e400s -5s 0/s 1e300/s 0MB/s 50/s 0.1/h -1/h nan/h inf/h 1e300/h
rate latency<=0s latency<=1us latency<=1e9d latency<=1e3d
static static:workers=99999999 static:workers=2 static:workers=2,workers=3 mine.py:Mine no.py:Mine
threshold:upper=inf threshold:cooldown_s=inf threshold:cooldown_s=-1 threshold:upper=0.1,lower=0.9
threshold:down_window_s=1e308 threshold:failures_max=0 threshold:safe_workers=-1 mst:spare=-5 filtered:x=1
threshold:pause_file=/dev/zero clairvoyant threshold threshold:confirm_s=5,confirm_s=5
dir dir/.. . .. link /dev/null /proc/self/mem good.csv good.json good.parquet out/a/b/c.html dir/new.html
"""
GIVEN = (*mutate.WORDS, *PLAIN.split(), "1" * 5000, "x" * 300, "x" * 5000)


@dataclass(frozen=True)
class Case:
    """One call, and the folder it was made in."""

    words: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Verdict:
    """What was wrong; empty where nothing was."""

    wrong: str
    said: str
    code: object = None


class Fuzzer:
    """Makes cases from a seed; the same seed makes the same cases."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self._good = inputs.Good.made(folder)

    def case(self, number: int) -> Case:
        rng = random.Random(f"{self._seed} {number}")
        folder = self._folder / "case"
        shutil.rmtree(folder, ignore_errors=True)
        self._prepare(folder)
        if rng.random() < 0.35:
            start = rng.choice(list(OPTIONS))
            words = start.split()
            if words[0] in STOPPED:
                words += STOPPED[words[0]]
            for _ in range(rng.randint(1, 2)):
                words += [rng.choice(OPTIONS[start].split()), rng.choice(GIVEN)]
            return Case(tuple(words), folder)
        command, files = rng.choice(COMMANDS)
        for name, spoil in files.items():
            spoil(self._good, rng, folder / name)
        return Case(tuple(command.split()), folder)

    def _prepare(self, folder: Path) -> None:
        (folder / "dir" / "kept").mkdir(parents=True)
        (folder / "dir" / "kept" / "mine.txt").write_text("mine")
        (folder / "link").symlink_to("dir")
        lines = [row.rsplit(",", 1)[0] for row in inputs.SERIES.splitlines()]
        (folder / "good.csv").write_text("\n".join(lines) + "\n")
        (folder / "good.json").write_text(json.dumps(inputs.MODEL))
        (folder / "good.jsonl").write_text("\n".join(self._good.journal) + "\n")
        rows = [inputs.SAMPLE | {"workers": n, "rows_per_s": 90.0 * n} for n in (1, 2, 3)]
        inputs.write_table(rows, folder / "good.parquet")
        for name, does in POLICIES.items():
            (folder / f"{name}.py").write_text(f"{HEAD}    def decide(self, seen): {does}\n")
        (folder / "claims.json").write_text(json.dumps(inputs.CLAIMS))
        (folder / "in").mkdir()
        (folder / "fleet.toml").write_text(inputs.toml(inputs.FLEET))
        (folder / "kept.csv").write_text("mine")
        (folder / "dir" / "threshold.jsonl").write_text("mine")
        (folder / "hard.csv").hardlink_to(folder / "good.csv")


def judged(case: Case) -> Verdict:
    """Run a case, and say what is wrong with what it did."""
    before = _tree(case.folder)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(case.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _limits():
        try:
            code: object = main(case.words)
        except _Hang:  # long work is none, if it says that it goes on
            return Verdict("" if PROGRESS.search(err.getvalue()) else f"hangs for more than {HANG_S} s", err.getvalue())
        except SystemExit as end:
            code = f"SystemExit({end.code})"
        except BaseException:
            return Verdict("traceback", traceback.format_exc())
    said = err.getvalue()
    after = _tree(case.folder)
    given = [word for option, word in pairwise(case.words) if option in OUTPUTS]
    named = {(case.folder / word).resolve() for word in given if "\0" not in word}
    for path, content in before.items():
        if after.get(path) != content and path.resolve() not in named:
            return Verdict(f"removed or changed {path.relative_to(case.folder)}", said)
    return Verdict(_wrong(case, code, out.getvalue(), said), said, code)


def _wrong(case: Case, code: object, out: str, said: str) -> str:
    said = PROGRESS.sub("", said)
    if code not in (0, 2):
        return f"exit code {code}"
    if "internal error" in said:
        return "internal error"
    if "Warning" in said or "Traceback" in said:
        return "a warning"
    if any(not c.isprintable() for c in said.replace("\n", "")):
        return "control characters"
    if code == 2 and (said.count("\n") != 1 or not said.startswith("penstock: ") or len(said) > 2000):
        return "not one line"
    if code == 0 and "json" in case.words[-1:] and "--output" in case.words[-2:]:
        try:
            json.loads(out, parse_constant=lambda word: 1 / 0)
        except (ValueError, ZeroDivisionError):
            return "no JSON on stdout"
    return ""


class _Hang(BaseException):
    """The time is up."""


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    def up(*_: object) -> None:
        raise _Hang

    # CPU time: a busy machine is no hang. Wall time only for what waits for ever.
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, HANG_S), signal.SIGALRM: (signal.ITIMER_REAL, 15 * HANG_S)}
    old = {number: signal.signal(number, up) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + MEMORY_BYTES, limit[1]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        resource.setrlimit(resource.RLIMIT_AS, limit)
        for number, handler in old.items():
            signal.signal(number, handler)


def _tree(folder: Path) -> dict[Path, bytes]:
    """Every path with what it holds."""
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}
