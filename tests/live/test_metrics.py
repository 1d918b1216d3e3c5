"""The controller's figures as Prometheus reads them."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.live.metrics import Metrics, serve_metrics
from penstock.policies.static import Static
from penstock.sim.replay import replay
from penstock.sim.scenario import Scenario


def steps(workers: int) -> list[Step]:
    scenario = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=1)
    return list(replay(scenario, Static(scenario.job(), workers=workers)))[:3]


def test_gauges_show_the_last_step_and_counters_all_of_them() -> None:
    metrics = Metrics('a "job"')
    for step in steps(workers=2):
        metrics.note(step)
    lines = dict(line.rsplit(" ", 1) for line in metrics.text().splitlines() if not line.startswith("#"))
    label = r'{job="a \"job\""}'
    assert lines[f"penstock_executors{label}"] == "2"
    assert lines[f"penstock_target_data_rate{label}"] == "30"
    # In the first minute one worker did 1,200 of 1,800 events; two then serve 600 a minute more than comes.
    assert lines[f"penstock_lag_records{label}"] == "0"
    assert lines[r'penstock_scalings_total{job="a \"job\"",direction="up",reason="decided"}'] == "1"
    assert lines[f"penstock_balanced_total{label}"] == "2"


def test_a_lag_that_nobody_knows_is_not_shown_as_0() -> None:
    metrics = Metrics("job")
    metrics.note(steps(workers=2)[0])
    assert "penstock_lag_records" in metrics.text()
    blind = steps(workers=2)[1]
    metrics.note(replace(blind, seen=replace(blind.seen, backlog=None, latency_s=None)))
    assert "penstock_lag" not in metrics.text()


def test_a_dry_run_scales_nothing() -> None:
    metrics = Metrics("job")
    metrics.note(steps(workers=2)[0], is_dry=True)
    assert 'direction="up",reason="decided"} 0' in metrics.text()


def test_thresholds_of_the_load_are_shown_as_rates() -> None:
    step = steps(workers=2)[2]
    signals = {"load": 0.75, "upper": 0.8, "lower": 0.45}
    metrics = Metrics("job")
    metrics.note(replace(step, decision=replace(step.decision, signals=signals)))
    lines = dict(line.rsplit(" ", 1) for line in metrics.text().splitlines() if not line.startswith("#"))
    # 30/s make a load of 75 %: 80 % are at 32/s, 45 % at 18/s; two workers of 20/s stay two.
    assert lines['penstock_scale_up_rate_threshold{job="job"}'] == "32"
    assert lines['penstock_scale_down_rate_threshold{job="job"}'] == "18"
    assert lines['penstock_expected_processing_rate{job="job"}'] == "40"


def test_metrics_are_served_on_loopback_and_nothing_else_is() -> None:
    server = serve_metrics(Metrics("job"), 0)
    try:
        host, port = server.server_address[:2]
        assert host == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            assert b"penstock_errors_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/secret", timeout=5)
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=rf"^metrics port {port} cannot be used: Address already in use$"):
            serve_metrics(Metrics("job"), port)
