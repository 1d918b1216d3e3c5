"""Whatever is typed or stands in a file: one line that says what would be right, and exit code 2."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from penstock.cli.main import main
from tests.cli.worlds import World

SERIES = "t_s,arrivals\n" + "".join(f"{60 * n},{100 + n}\n" for n in range(30))
MODEL = {"curve": {"kind": "linear", "per_worker": 50}, "about": {"bytes_per_row": 100}}
WORLD = """\
duration_s = 600.0
limits = {workers_min = 1, workers_max = 4}
[capacity]
per_worker = 50.0
[[workload]]
shape = "constant"
rate = 60.0
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rates.csv").write_text(SERIES)
    (tmp_path / "model.json").write_text(json.dumps(MODEL))
    (tmp_path / "world.toml").write_text(WORLD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that is said."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("penstock: ")
    assert said[:-1].isprintable()
    return said


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("replay rates.csv --every 0s", "--every '0s' is out of range: it must be from 10 ms"),
        ("replay rates.csv --seed -1", "-1 is no whole number from 0"),
        ("replay rates.csv --max 1000000", "1000000 is no whole number from 0 to 10000"),
        ("replay rates.csv --start 100000d", "--start '100000d' is out of range"),
        ("replay rates.csv --scale nan", "nan is no number from"),
        ("replay rates.csv --objective latency<=0s", "from 1 ms"),
        ("replay rates.csv --capacity-per-worker 1e300/s", "is out of range"),
        ("advise model.json --rate 90/s --trigger 0s", "--trigger '0s' is out of range: it must be from 1 ms"),
        ("advise model.json --rate 0MB/s", "--rate '0MB/s' is out of range"),
        ("replay rates.csv --policy static:workers=99999999", "the limits allow from 1 to 64 workers"),
        ("replay rates.csv --policy static:workers=2,workers=3", "workers is given twice"),
        ("replay rates.csv --policy threshold:cooldown_s=inf", "cooldown_s is inf: it must be a finite number"),
        ("replay rates.csv --policy threshold:cooldown_s=1e12", "cooldown_s is 1e+12: it must be from 0 to 1e+09"),
        (f"replay {'x' * 300}", "File name too long"),
        (f"replay rates.csv --report {'x' * 300}.html", "File name too long"),
        (f"explain {'x' * 300}", "File name too long"),
        ("replay rates.csv --policy [/x]", "unknown policy '[/x]'"),
        ("replay rates.csv --policy a\nb\x1b[31m", "unknown policy 'a\\nb\\x1b[31m'"),
    ],
)
def test_options_have_ranges(here: Path, capsys: pytest.CaptureFixture[str], words: str, right: str) -> None:
    assert right in refused(capsys, *words.split(" "))


@pytest.mark.parametrize(
    ("change", "right"),
    [
        (("duration_s = 600.0", "duration_s = 1e12"), "duration_s is 1e+12: it must be from 60 to"),
        (("duration_s = 600.0", "duration_s = 600.0\ntick_s = 0.001"), "tick_s is 0.001: it must be at least 0.01"),
        (("[capacity]", "[[capacity]]\nper_worker = 1.0\n[[capacity]]"), "[[capacity]] is there 2 times"),
        (("workers_max = 4", "workers_max = 1000000"), "limits of 1 … 1000000 workers"),
        (("rate = 60.0", 'rate = "fast"'), "workload.rate is 'fast': it must be a number"),
        (("rate = 60.0", "rate = 1" + "0" * 400), "workload.rate: Number out of range"),
        (("rate = 60.0", "rate = " + "9" * 5000), "is not a TOML file: Exceeds the limit"),
        (('shape = "constant"', "shape = [1]"), "unknown workload.shape"),
        (("duration_s = 600.0", "duration_s = 600.0\nseed = -3"), "seed is -3: it must be at least 0"),
        (
            ("duration_s = 600.0", "duration_s = 600.0\nbatch = {trigger_s = 1e-3}\ntick_s = 300000"),
            "duration_s is 600",
        ),
    ],
)
def test_scenarios_name_the_key(
    here: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], right: str
) -> None:
    (here / "world.toml").write_text(WORLD.replace(*change))
    assert right in refused(capsys, "replay", "--scenario", "world.toml", "--policy", "threshold")


@pytest.mark.parametrize(
    ("content", "right"),
    [
        ({"curve": {"kind": "linear", "per_worker": 50}, "about": {"bytes_per_row": -1}}, "about.bytes_per_row is -1"),
        ({"curve": {"kind": "linear", "per_worker": 50}, "about": {"workers": "x"}}, "about.workers is 'x'"),
        ({"curve": {"kind": "linear", "per_worker": 50}, "others": 7}, "others is 7: it must be a list"),
        ({"curve": {"kind": ["linear"]}}, "unknown kind of curve"),
        ({"curve": {"kind": "linear", "per_worker": 50}, "fixed": [1]}, "fixed must be a table"),
    ],
)
def test_models_name_the_key(here: Path, capsys: pytest.CaptureFixture[str], content: Any, right: str) -> None:
    (here / "model.json").write_text(json.dumps(content))
    assert right in refused(capsys, "advise", "model.json", "--rate", "90/s")


def test_deep_nesting_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "model.json").write_text("[" * 100_000)
    assert "is not a model file" in refused(capsys, "advise", "model.json", "--rate", "90/s")


@pytest.mark.parametrize(
    ("table", "right"),
    [
        ({"t_s": [0, 60], "n": [[1], [2]]}, "n is a column of list"),
        ({"t_s": [0.0, 1e-9], "n": [1, 2]}, "its intervals are 1e-09 s long"),
        ({"t_s": [0, 60], "n": [1e300, 2]}, "n is too large"),
        ({"time": ["2024-05-01 00:00:00 Mars/Olympus", "2024-05-01 00:01:00 Mars/Olympus"], "n": [1, 2]}, "time"),
    ],
)
def test_series_of_odd_types_are_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], table: dict[str, list[Any]], right: str
) -> None:
    pyarrow.parquet.write_table(pa.table(table), here / "odd.parquet")
    assert right in refused(capsys, "replay", "odd.parquet", "--policy", "threshold")


def test_a_header_that_names_a_column_twice_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "twice.csv").write_text("t_s,n,n\n0,1,2\n60,1,2\n")
    assert "several columns named 'n'" in refused(capsys, "replay", "twice.csv")


def test_a_broken_gzip_is_bad_input(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "rates.csv.gz").write_bytes(gzip.compress(SERIES.encode())[:60])
    assert "rates.csv.gz" in refused(capsys, "replay", "rates.csv.gz")


def test_two_hundred_columns_are_not_all_listed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "wide.csv").write_text("t_s," + ",".join(f"c{n}" for n in range(200)) + "\n0" + ",1" * 200 + "\n")
    said = refused(capsys, "replay", "wide.csv")
    assert "c11 and 188 more" in said
    assert "c12," not in said


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (3, {"latency_s": "x"}),
        (3, {"worker cpu": [0.1] * 9}),
        (3, {"worker cpu": None, "running": {"workers": [1, 2]}}),
        (3, {"reason": None}),
        (3, {"time_s": 1e300}),
        (3, {"path job": [1, 2, {"x": 1}, 1]}),
        (3, {"batch": [1, 2, 3, 4, 5, 6, 7]}),
    ],
)
def test_a_line_of_a_journal_that_does_not_fit_costs_itself(
    here: Path, capsys: pytest.CaptureFixture[str], line: int, change: dict[str, Any]
) -> None:
    lines = World().journal(here / "run.jsonl", seed=1).read_text().splitlines()
    lines[line] = json.dumps(json.loads(lines[line]) | change)
    lines.insert(line, "[" * 100_000)
    (here / "run.jsonl").write_text("\n".join(lines) + "\n")
    for words in (["explain", "run.jsonl"], ["status", "run.jsonl"]):
        assert main(words) in (0, 2)
        assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize("facts", [[1], "x", {"rules": [1]}, {"rules": {"late_s": "x"}}, {"rules": {"nonsense": 1}}])
def test_odd_facts_of_a_header_are_no_traceback(here: Path, capsys: pytest.CaptureFixture[str], facts: Any) -> None:
    path = World().journal(here / "run.jsonl", seed=1, is_live=True)
    lines = path.read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"facts": facts, "rules": {}})
    path.write_text("\n".join(lines) + "\n")
    code = main(["calibrate", "run.jsonl", "-o", "world2.toml"])
    said = capsys.readouterr().err
    assert code == (0 if isinstance(facts, dict) else 2)
    assert "Traceback" not in said
    assert "facts" in said or "rules" in said


@pytest.mark.parametrize(
    ("code", "right"),
    [
        ("import sys\nsys.exit(4)", "SystemExit: 4 (line 2)"),
        ("class Mine:\n    def __init__(self, job): raise SystemExit(5)", "failed: SystemExit: 5"),
        ("class Mine:\n    needs = None\n    memory_s = 0\n    def decide(self, seen): ...", "needs is None"),
        (
            "class Mine:\n    needs = frozenset()\n    memory_s = 'x'\n    def decide(self, seen): ...",
            "memory_s is 'x'",
        ),
        ("DECIDE raise SystemExit(1)", "failed: SystemExit: 1"),
        ("DECIDE return None", "decided None: decide(seen) must return a Decision"),
        ("async def decide(self, seen): ...", "decided <coroutine"),
        ("DECIDE return Decision(None, 'x')", "decided on a target None"),
        ("DECIDE return Decision(seen.target, 7)", "gave the reason 7"),
        ("DECIDE return Decision(seen.target, 'x', {'a': 'b'})", "gave the signal a = b"),
    ],
)
def test_a_failing_policy_is_named(here: Path, capsys: pytest.CaptureFixture[str], code: str, right: str) -> None:
    if code.startswith("DECIDE "):
        code = (
            "from penstock import Decision, Knob\nclass Mine:\n    needs = frozenset({Knob.WORKERS})\n"
            "    memory_s = 0.0\n"
            f"    def __init__(self, job): pass\n    def decide(self, seen): {code.removeprefix('DECIDE ')}\n"
        )
    elif code.startswith("async "):
        code = (
            f"class Mine:\n    needs = frozenset()\n    memory_s = 0.0\n    def __init__(self, job): pass\n    {code}\n"
        )
    elif "class" in code and "__init__" not in code:
        code += "\n    def __init__(self, job): pass"
    (here / "mine.py").write_text(code)
    said = refused(capsys, "replay", "rates.csv", "--policy", "mine.py:Mine")
    assert right in said
    assert "mine.py" in said


def test_policies_whose_journals_would_share_a_file_get_one_each(here: Path) -> None:
    (here / "a").mkdir()
    source = Path(__file__).parents[2] / "examples" / "mine.py"
    for name in ("a/mine.py", "a-mine.py"):
        (here / name).write_text(source.read_text())
    words = ["replay", "rates.csv", "--journal", "out", "--policy", "a/mine.py:Mine", "--policy", "a-mine.py:Mine"]
    assert main(words) == 0
    headers = [json.loads(path.read_text().splitlines()[0])["policy"] for path in sorted((here / "out").iterdir())]
    assert sorted(headers) == ["a-mine.py:Mine", "a/mine.py:Mine"]


def test_calibrate_runs_no_code_that_a_journal_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = World().journal(here / "run.jsonl", seed=1)
    (here / "evil.py").write_text("open('ran', 'w')\n")
    lines = path.read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"policy": "evil.py:Mine"})
    path.write_text("\n".join(lines) + "\n")
    assert main(["calibrate", "run.jsonl", "-o", "world2.toml"]) == 0
    assert "--allow-code loads it" in capsys.readouterr().err
    assert not (here / "ran").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after_modules", [40, 150, 400])
def test_a_signal_while_modules_are_loaded_is_one_line(here: Path, number: signal.Signals, after_modules: int) -> None:
    """The signal comes when so many modules are there, wherever that is: at once, or halfway through SciPy."""
    script = (
        "import os, sys, builtins\n"
        "real = builtins.__import__\n"
        "def loading(*given, **named):\n"
        f"    if len(sys.modules) > len(before) + {after_modules}:\n"
        "        builtins.__import__ = real\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "    return real(*given, **named)\n"
        "from penstock.entry import run\n"
        "before = set(sys.modules)\n"
        "builtins.__import__ = loading\n"
        "run()\n"
    )
    command = [sys.executable, "-c", script, "replay", "rates.csv", "--policy", "threshold"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "penstock: interrupted\n")


def test_ctrl_c_at_any_moment_leaves_no_traceback(here: Path) -> None:
    for wait_s in (0.15, 0.4, 0.8):
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "replay", "rates.csv"], cwd=here, stderr=subprocess.PIPE, text=True
        )
        while "penstock" not in Path(f"/proc/{process.pid}/cmdline").read_text() or _modules(process.pid) < 1:
            time.sleep(0.005)
        time.sleep(wait_s)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=120)[1]
        assert process.returncode in (0, 130)
        assert "Traceback" not in said
        assert said in ("", "penstock: interrupted\n")


def _modules(pid: int) -> int:
    """Shared objects of NumPy that the process has loaded: then our own first lines have run."""
    try:
        return sum("numpy" in line for line in Path(f"/proc/{pid}/maps").read_text().splitlines())
    except OSError:
        return 1


def test_a_background_job_still_ignores_ctrl_c(here: Path) -> None:
    def ignoring() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    command = [sys.executable, "-m", "penstock", "replay", "rates.csv", "--policy", "threshold", "--output", "json"]
    process = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True, preexec_fn=ignoring)
    for _ in range(20):
        time.sleep(0.05)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
    assert json.loads(process.communicate(timeout=120)[0])["policies"]
    assert process.returncode == 0


def test_a_null_byte_in_a_word_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "rates.csv", "--journal", "\0"]) == 2
    assert "holds a null byte" in capsys.readouterr().err


def test_an_interrupt_within_an_exec_is_the_code_of_an_interrupt(here: Path) -> None:
    (here / "mine.py").write_text(
        "from penstock import Knob\n"
        "class Mine:\n"
        "    needs, memory_s = frozenset({Knob.WORKERS}), 0.0\n"
        "    def __init__(self, job): pass\n"
        "    def decide(self, seen): exec('raise KeyboardInterrupt')\n"
    )
    words = [sys.executable, "-m", "penstock", "replay", "rates.csv", "--no-bound", "--policy", "mine.py:Mine"]
    ended = subprocess.run(words, cwd=here, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "penstock: interrupted\n")


@pytest.mark.parametrize("words", ["mst --runs x.parquet", "fugu --seeds 2", "ekf --trace x.csv", "mead --traces x"])
def test_an_option_of_another_paper_is_refused_instead_of_ignored(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *words.split()]) == 2
    paper, option, _ = words.split()
    assert f"{paper} does not take it" in (said := capsys.readouterr().err)
    assert said.startswith(f"penstock: {option} is for ")
