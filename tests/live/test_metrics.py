"""The controller's figures as Prometheus reads them."""

from __future__ import annotations

import http.client
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.core.errors import BadInput
from penstock.core.loop import Step
from penstock.live.metrics import HELP, Metrics
from penstock.live.metrics_server import MetricsServer
from penstock.policies.static import Static
from penstock.runs.replayed import replay
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


def test_the_real_client_library_reads_every_metric_with_its_help() -> None:
    metrics = Metrics('a "job"\\ in\ntwo lines')
    every = {"load": 0.75, "upper": 0.8, "lower": 0.45}
    for step in steps(workers=2):
        metrics.note(replace(step, decision=replace(step.decision, signals=every)))
    families = {family.name: family for family in text_string_to_metric_families(metrics.text())}
    # The library names a counter without its ending.
    assert set(families) == {f"penstock_{name.removesuffix('_total')}" for name in HELP}
    for family in families.values():
        assert family.documentation.endswith(".")
        assert family.type in ("gauge", "counter")
        assert all(sample.labels["job"] == 'a "job"\\ in\ntwo lines' for sample in family.samples)
    scalings = {
        (each.labels["direction"], each.labels["reason"]): each.value for each in families["penstock_scalings"].samples
    }
    assert scalings == {("up", "decided"): 1, ("up", "limited"): 0, ("down", "decided"): 0, ("down", "limited"): 0}


def test_before_the_first_step_only_counters_are_there() -> None:
    families = list(text_string_to_metric_families(Metrics("job").text()))
    assert {family.type for family in families} == {"counter"}
    assert all(sample.value == 0 for family in families for sample in family.samples)


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


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer(Metrics("job"), 0) as started:
        yield started


def asked(server: MetricsServer, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_metrics_are_served_on_loopback_and_nothing_else_is(server: MetricsServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, body = asked(server, "/metrics")
    assert status == 200
    assert b"penstock_errors_total" in body
    assert asked(server, "/secret")[0] == 404
    assert asked(server, "/metrics", "POST")[0] == 405
    with urllib.request.urlopen(f"{server.url}metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_a_foreign_name_that_leads_here_is_refused(server: MetricsServer) -> None:
    status, body = asked(server, "/metrics", host=f"evil.example:{server.server_port}")
    assert (status, b"penstock_errors" in body) == (403, False)


def test_what_is_no_address_is_a_bad_request(server: MetricsServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert asked(server, "http://[")[0] == 400
    assert asked(server, "/metrics")[0] == 200
    assert capfd.readouterr().err == ""


def test_one_that_connects_and_says_nothing_is_hung_up_on(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.core.loopback.LoopbackAnswer.timeout", 0.2)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as silent:
        assert silent.recv(1) == b""


def test_a_port_in_use_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            BadInput, match=rf"^metrics port {port} is in use: give another, or 0 for any that is free$"
        ):
            MetricsServer(Metrics("job"), port)
