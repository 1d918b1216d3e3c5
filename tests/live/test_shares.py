"""The log analysis on a real broker: quotas that really change, and as many lines out as came in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from penstock.apps.logs import OPERATORS, SENT, log_lines
from penstock.core.observation import Observation
from penstock.live.cgroup import find_groups
from penstock.live.kafka import Broker
from penstock.live.log_fleet import LogFleet
from penstock.live.share_plant import SharePlant
from penstock.live.share_run import SharesWanted, warm_fleet

LINES = 400
WAIT_S = 180.0


@pytest.mark.spark
@pytest.mark.skipif(not find_groups(), reason="no cgroups here")
def test_the_quota_of_each_process_changes_and_every_line_comes_out() -> None:
    with Broker.start() as broker:
        broker.create_topic("lines")
        with warm_fleet(broker.source("lines"), 1.0) as (fleet, reader):
            job = SharesWanted().job({"parser": 0.004, "matcher": 0.004})
            plant = SharePlant(fleet, reader, job)
            whole = quotas(fleet)
            plant.apply(replace(plant.target, cpu_share=dict.fromkeys(OPERATORS, 0.6)))
            # A quota and its period, in whole microseconds, may both change: what a second gives is what counts.
            less = quotas(fleet)
            assert less == {name: pytest.approx(0.6 * cores, rel=1e-3) for name, cores in whole.items()}
            feed(broker.address)
            seen, answered = observed(plant)
    assert seen.arrived == LINES
    assert seen.processed == LINES
    # The matcher put out one line for each that the parser kept; cut ones are dropped.
    kept = sum(line.endswith(tuple("0123456789")) and '" ' in line for line in log_lines(LINES))
    assert seen.operators["matcher"].processed == kept == seen.operators["counter"].processed
    assert answered == kept


def quotas(fleet: LogFleet) -> Mapping[str, float]:
    """Cores, as the kernel has them."""
    found = {}
    for name, each in fleet._running.items():
        folder = each.group.folders[0]
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{what}_us").read_text() for what in ("quota", "period"))
        found[name] = int(quota) / int(period)
    return found


def feed(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for line in log_lines(LINES):
        producer.produce("lines", line.encode(), headers={SENT: str(time.time_ns() // 1000)})
    assert producer.flush(60) == 0


def observed(plant: SharePlant) -> tuple[Observation, float]:
    """What is seen when nothing waits any more, and how many response times were told until then."""
    until_s, answered = time.monotonic() + WAIT_S, 0.0
    while time.monotonic() < until_s:
        seen = plant.observe()
        answered += seen.paths["matcher"].count if seen is not None else 0.0
        if seen is not None and not seen.backlog and not seen.operators["counter"].backlog and seen.arrived >= LINES:
            return seen, answered
        time.sleep(1.0)
    raise AssertionError(f"lines still wait after {WAIT_S:.0f} s")
