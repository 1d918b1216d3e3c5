"""The short form of `scripts/chaos`: executors, the driver and the broker are killed, and nothing is lost."""

from __future__ import annotations

import pytest
from benchmarks.chaos import chaos, verdict

from tests.live.test_meter import kafka as kafka

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("kafka")
def test_every_event_is_counted_exactly_once() -> None:
    found = chaos(seconds=50.0)
    assert verdict(found, actions_least=3) == []


def test_a_verdict_fails_for_what_was_lost_and_for_what_did_not_happen() -> None:
    fine = {"fed": 5, "counted": 5, "wrong": {}, "actions": 20, "killed": {"executor": 1, "driver": 1, "broker": 1}}
    fine |= {"leaks": []}
    assert verdict(fine) == []
    assert verdict(fine | {"counted": 6}) == ["LOST OR COUNTED TWICE"]
    assert verdict(fine | {"wrong": {"k1": (2, 1)}}) == ["LOST OR COUNTED TWICE"]
    assert verdict(fine | {"leaks": ["driver.log"]}) == ["the password stands in driver.log"]
    assert verdict(fine | {"actions": 19}) == ["only 19 scaling actions: 20 are needed"]
    assert verdict(fine | {"killed": {"executor": 1, "driver": 1}}) == ["no broker was killed"]
