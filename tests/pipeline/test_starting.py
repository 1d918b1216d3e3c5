"""Waiting for what starts: as long as it lives and gets on."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.core.errors import ExternalError
from penstock.pipeline.starting import Starting, cpu_s_of


class Machine:
    """A clock that the waiting itself moves, and a process on it."""

    def __init__(self, log: Path) -> None:
        self.now_s = 0.0
        self.cpu_share = 0.0
        self.log = log
        self.code: int | None = None
        self.then: list[tuple[float, Callable[[], object]]] = []

    def sleep(self, seconds: float) -> None:
        self.now_s += max(1.0, seconds)
        for at_s, happens in self.then:
            if at_s <= self.now_s < at_s + 1:
                happens()

    def start(self) -> Starting:
        return Starting("the master", self.log, lambda: [1], lambda: self.code, _begun_s=0.0, _moved_s=0.0, _say_s=10.0)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "master.log")
    clock = SimpleNamespace(monotonic=lambda: made.now_s, sleep=made.sleep)
    monkeypatch.setattr("penstock.pipeline.starting.time", clock)
    monkeypatch.setattr("penstock.pipeline.starting.cpu_s_of", lambda _: made.now_s * made.cpu_share)
    return made


def test_one_that_works_is_waited_for_ten_minutes_and_that_is_said(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.cpu_share = 0.05  # on a machine with twenty times the work it can do
    machine.start().wait(lambda: machine.now_s >= 600)
    assert capsys.readouterr().err.splitlines() == [
        "penstock: waiting for the master to start (11 s so far, 1 s of CPU used)",
        "penstock: waiting for the master to start (31 s so far, 2 s of CPU used)",
        "penstock: waiting for the master to start (91 s so far, 5 s of CPU used)",
        "penstock: waiting for the master to start (271 s so far, 14 s of CPU used)",
    ]


def test_one_that_says_something_now_and_then_is_waited_for(machine: Machine) -> None:
    def speak() -> None:
        with machine.log.open("a") as log:
            log.write("fetching\n")

    machine.then = [(100.0 * number, speak) for number in range(1, 6)]
    machine.start().wait(lambda: machine.now_s >= 600)


def test_one_that_stands_still_is_given_up_after_minutes_with_its_last_words(machine: Machine) -> None:
    machine.cpu_share = 0.001  # as a JVM that waits for ever
    machine.log.write_text("INFO starting\njava.net.BindException: taken\nINFO waiting\n")
    start = machine.start()
    with pytest.raises(
        ExternalError, match=r"^the master did not start: it has stood still for 3.* min: java.net.Bind"
    ):
        start.wait(lambda: False)
    assert machine.now_s < 200
    assert start.failure is not None


def test_one_that_works_for_ever_is_given_up_late(machine: Machine) -> None:
    machine.cpu_share = 1.0
    with pytest.raises(ExternalError, match="did not start within 30 min: it said nothing"):
        machine.start().wait(lambda: False)


def test_one_that_has_ended_is_not_waited_for(machine: Machine) -> None:
    machine.then = [(3.0, lambda: setattr(machine, "code", 1))]
    machine.log.write_text("Error: no such class\n")
    with pytest.raises(ExternalError, match=r"^the master did not start: Error: no such class$"):
        machine.start().wait(lambda: False)
    assert machine.now_s < 5


def test_a_call_that_cannot_be_watched_is_ended_when_it_stands_still(tmp_path: Path) -> None:
    ended = threading.Event()
    start = Starting("Spark", tmp_path / "log", lambda: [], lambda: 1)
    with start.beside(ended.set):
        assert ended.wait(60)
    assert str(start.failure) == "Spark did not start: it said nothing"


def test_cpu_of_a_process_is_what_the_kernel_counts() -> None:
    before_s, spent = cpu_s_of(os.getpid()), 0
    while cpu_s_of(os.getpid()) - before_s < 0.05:
        spent += sum(range(100_000))
    assert cpu_s_of(2**22 + 1) == 0.0  # beyond every process number
