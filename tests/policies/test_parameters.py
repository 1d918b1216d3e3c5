"""Names that journals and commands of earlier versions carry still mean what they meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import BadInput
from penstock.policies.registry import Named


def test_earlier_names_of_guards_and_of_spare_capacity_are_understood() -> None:
    named = Named.parse("mst:over=20,late_s=5m,arrive_s=90")
    assert dict(named.parameters) == {"spare": 0.2, "hold_while_late_s": 300.0, "start_timeout_s": 90.0}


def test_a_parameter_of_ones_own_is_not_taken_for_an_earlier_name(tmp_path: Path) -> None:
    source = tmp_path / "mine.py"
    source.write_text("class Mine:\n    def __init__(self, job, over=1.0): ...\n")
    assert dict(Named.parse(f"{source}:Mine:over=20").parameters) == {"over": 20}


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("flink:restart_time_s=-9", "restart_time_s is -9: it must be at least 0"),
        ("filtered:every_s=-1m", "every_s"),
        ("spark-24815:executor_deallocation_timeout_s=true", "must be a number"),
    ],
)
def test_a_time_is_a_number_of_seconds_and_not_negative(policy: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Named.parse(policy)
