"""Calibration on journals as the live plant writes them: its queue, its slots, its idea of latency."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.sim.toml import read_scenario
from tests.live.emulated import BUSY, FIRST_S, IDLE, PLAN_S, TASK_S, TASKS, TRUTH, emulated_journal

# A run of ten minutes is one draw of many: alone it may lie 5 points from the mean. Nine of them tell a bias from luck.
POLICIES = ("filtered", "filtered:filter=pure,sizing=step", "filtered") * 3


def test_live_runs_are_met_in_cost_and_violations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journals = [
        emulated_journal(tmp_path / f"{seed}.jsonl", policy, seed, bound_s=15.0) for seed, policy in enumerate(POLICIES)
    ]
    out = tmp_path / "scenario.toml"
    assert main(["calibrate", *map(str, journals), "-o", str(out), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    file = read_scenario(out)
    assert file.capacity is not None
    assert file.batch is not None
    assert list(file.worker.start_range_s) == pytest.approx([12.0, 18.0], abs=1.5)
    for workers in range(1, 6):
        assert file.capacity.fixed_s(workers) == pytest.approx(PLAN_S + TASKS * TASK_S / workers, abs=0.15)
        assert file.capacity.capacity(workers) == pytest.approx(TRUTH.rate(workers), rel=0.10)
    assert file.batch.first_s == pytest.approx(FIRST_S, abs=1.0)
    assert file.batch.tasks == TASKS
    assert file.batch.spread == pytest.approx(0.07, abs=0.02)
    assert [file.noise.cpu_idle, file.noise.cpu_busy] == pytest.approx([IDLE, BUSY], abs=0.03)
    assert file.noise.rate_over_s == 10.0  # the live queue's window of a tick takes in the one before
    assert file.batch.drains
    assert not file.batch.latency_includes_service
    off = found["total"]["off"]
    assert found["total"]["measured"]["violation_share"] > 0.01
    assert abs(off["cost"]) < 0.10
    assert abs(off["violation_share"]) < 0.02
