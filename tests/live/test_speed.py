"""The machine's speed beside a measurement."""

from __future__ import annotations

import time

import pytest

from penstock.live import speed
from penstock.live.speed import SpeedProbe


def test_a_machine_that_slows_down_is_seen_against_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    taken_s = 0.001
    monkeypatch.setattr(speed, "EVERY_S", 0.002)
    monkeypatch.setattr(speed, "_work_s", lambda: taken_s)
    with SpeedProbe() as probe:
        begun = time.monotonic()
        time.sleep(0.1)
        assert probe.since(begun) == pytest.approx(1.0)
        taken_s = 0.002  # the lambda sees it
        time.sleep(0.02)  # one that was under way
        slowed = time.monotonic()
        time.sleep(0.1)
        assert probe.since(slowed) == pytest.approx(0.5)
        assert 0.5 < probe.since(begun) < 1.0


def test_nothing_known_is_taken_for_full_speed() -> None:
    assert SpeedProbe().since(0.0) == 1.0


def test_the_work_takes_cpu_time() -> None:
    assert 0 < speed._work_s() < 1
