"""What `penstock.attach` is given, and what it says: one line for a mistake, and nothing raised into the job."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.core.errors import BadInput
from penstock.core.objective import Limits
from penstock.live import policy_thread
from penstock.live.control_options import Wanted
from penstock.live.pause import Pause

NO_SPARK = cast(SparkSession, None)


@pytest.fixture
def usr1() -> Iterator[None]:
    """SIGUSR1 as a process has it at first."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limits": 3}, "limits=3: write the fewest and the most executors, such as limits=(1, 8)"),
        ({"limits": (1, 2, 3)}, "limits=(1, 2, 3): write the fewest and the most executors"),
        ({"limits": "18"}, "limits='18': write the fewest"),
        ({"limits": (1, "8")}, "limits=(1, '8'): write the fewest"),
        ({}, "no limits: write the fewest and the most executors, such as limits=(1, 8)"),
        ({"limits": (3, 1)}, "the least number of workers (3) is above the most (1)"),
        ({"limits": (1, 8), "tick": 5}, 'tick=5: write a duration with its unit, such as "15s"'),
        ({"limits": (1, 8), "trigger": 5}, "trigger=5: write a duration with its unit"),
        ({"limits": (1, 8), "tick": None}, "tick=None: write a duration"),
        ({"limits": (1, 8), "polcy": "mst"}, "unknown parameter of attach 'polcy': did you mean 'policy'?"),
        ({"limits": (1, 8), "policy": len}, "policy=<built-in function len>: write a policy's name"),
        ({"limits": (1, 8), "metrics_port": "9464"}, "metrics_port='9464': write a port, such as 9464"),
        ({"limits": (1, 8), "dry_run": "no"}, "dry_run='no': write True or False"),
        ({"limits": (1, 8), "journal": 7}, "journal=7: write a path"),
        ({"limits": (1, 8), "safe_workers": 1.5}, "safe_workers=1.5: write a number of executors"),
        ({"limits": (1, 8), "places": {}}, "places={}: write penstock.live.lag_source.Places(…)"),
        ({"limits": (1, 8)}, "attach needs at least one streaming query"),
    ],
)
def test_what_attach_cannot_take_is_one_line_that_says_what_would_be_right(
    given: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    assert penstock.attach(NO_SPARK, **given) is None
    (line,) = caplog.messages
    assert line.startswith(f"not attached: {said}")
    assert "\n" not in line


def test_what_is_no_running_query_is_named(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    queries: Any = [object()]
    assert penstock.attach(NO_SPARK, queries, limits=(1, 8)) is None
    assert "a list is not a streaming query that runs: write attach(spark, query, limits=(1, 8))" in caplog.text


def test_what_attach_can_take_is_what_the_job_gets(tmp_path: Path) -> None:
    wanted = Wanted.given([1, 8], {"tick": "5s", "pause_file": tmp_path / "pause", "model": None, "cores": 2})
    assert (wanted.limits, wanted.pause_file, wanted.cores) == (Limits(1, 8), str(tmp_path / "pause"), 2)
    assert wanted.job("clicks").tick_s == 5.0


def test_the_policy_is_asked_in_a_thread_of_its_own_within_all_its_rules() -> None:
    wanted, pause = Wanted(policy="static:workers=2"), Pause()
    policy, asked = wanted.asked_policy(wanted.job("clicks"), pause)
    chain: list[Any] = [policy]
    while hasattr(chain[-1], "inside"):
        chain.append(chain[-1].inside)
    # What it learns of the workers it learns within its thread.
    assert [type(each).__name__ for each in (*chain[:1], *chain[-4:])] == [
        "Paused",
        "FailsStatic",
        "PolicyThread",
        "Learning",
        "Static",
    ]
    assert chain[-3] is asked


@pytest.mark.parametrize("where", ["module", "constructor"])
def test_a_policy_that_hangs_while_it_is_built_is_left_behind(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_thread, "BUILD_S", 0.2)
    waits = "import threading; threading.Event().wait()"
    at_once, later = (waits, "pass") if where == "module" else ("pass", waits)
    file = tmp_path / "hangs.py"
    file.write_text(f"{at_once}\nclass Hangs:\n    def __init__(self, job):\n        {later}\n")
    wanted = Wanted(policy=f"{file}:Hangs")
    with pytest.raises(BadInput, match=r"was not built within 0.2 s: its module or its constructor hangs"):
        wanted.asked_policy(wanted.job("clicks"), Pause())


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(3)"])
def test_what_a_policy_raises_while_it_is_built_is_one_line(error: str, tmp_path: Path) -> None:
    file = tmp_path / "fails.py"
    file.write_text(f"class Fails:\n    def __init__(self, job):\n        raise {error}\n")
    wanted = Wanted(policy=f"{file}:Fails")
    with pytest.raises(BadInput, match=f"failed: {error[:6]}"):
        wanted.asked_policy(wanted.job("clicks"), Pause())


@pytest.mark.usefixtures("usr1")
def test_sigusr1_pauses_and_again_lets_go_on(capfd: pytest.CaptureFixture[str]) -> None:
    pause = Pause()
    assert pause.listen() == ""
    os.kill(os.getpid(), signal.SIGUSR1)
    assert pause.is_on()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert not pause.is_on()
    pause.end()  # the controller has stopped: the job must not die of a signal that it used to take
    os.kill(os.getpid(), signal.SIGUSR1)
    assert capfd.readouterr().err.splitlines() == [
        "penstock: paused, nothing is changed until SIGUSR1 comes again",
        "penstock: the pause is over",
        "penstock: nothing is controlled here any more",
    ]


@pytest.mark.usefixtures("usr1")
def test_a_pause_file_and_sigusr1_are_one_pause(tmp_path: Path) -> None:
    file = tmp_path / "pause"
    pause = Pause(str(file))
    assert pause.listen() == ""
    os.kill(os.getpid(), signal.SIGUSR1)
    assert (file.exists(), pause.is_on()) == (True, True)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert (file.exists(), pause.is_on()) == (False, False)
    nowhere = Pause(str(tmp_path / "none" / "pause"))  # cannot be made: the pause holds all the same
    nowhere.set(True)
    assert nowhere.is_on()
    nowhere.set(False)
    assert not nowhere.is_on()


@pytest.mark.usefixtures("usr1")
def test_where_sigusr1_cannot_be_taken_it_is_said_why() -> None:
    why: list[str] = []
    thread = threading.Thread(target=lambda: why.append(Pause().listen()))
    thread.start()
    thread.join()
    assert "not called in the main thread" in why[0]
    own: Callable[..., None] = lambda *_: None  # noqa: E731
    signal.signal(signal.SIGUSR1, own)
    assert Pause().listen() == "the job takes it itself"
    assert signal.getsignal(signal.SIGUSR1) is own


SAYS = """
import logging
{configured}
from penstock.live.control_log import be_heard
be_heard(); be_heard()
logging.getLogger("penstock").info("scaling executors=1->2")
logging.getLogger("other").info("not ours")
"""


@pytest.mark.parametrize(
    ("configured", "lines"),
    [
        ("", 1),
        ("logging.basicConfig()", 1),
        ("logging.basicConfig(level=logging.ERROR)", 0),
        ("logging.getLogger('penstock').setLevel(logging.WARNING)", 0),
        ("logging.getLogger('penstock').addHandler(logging.NullHandler())", 0),
    ],
)
def test_what_is_said_is_heard_once_where_nobody_asked_for_less(configured: str, lines: int) -> None:
    script = SAYS.format(configured=configured)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert len(done.stderr.splitlines()) == lines, done.stderr
    assert done.stderr.count("scaling executors=1->2") == lines
