"""What the default would save: against whom, at which violations, and what a fair reader must know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from penstock.policies.registry import Named
from penstock.runs.compare import notes
from penstock.runs.comparison import Comparison, Run
from penstock.runs.saving import saving_of


def run(name: str, cost: float, missed: float, knows: bool = False) -> Run:
    score = SimpleNamespace(cost=cost, violation_share=missed, unknown_share=0.0)
    return cast(Run, SimpleNamespace(name=name, score=score, knows_future=knows))


def comparison(*others: Run, missed: float = 0.0) -> Comparison:
    return Comparison("t", "latency<=120s", (run("deadline", 10.0, missed), *others))


def test_the_default_is_held_against_the_cheapest_within_a_thousandth() -> None:
    found = saving_of(comparison(run("static-peak", 100.0, 0.0), run("hpa", 12.0, 0.0009), run("keda", 11.0, 0.002)))
    assert found is not None
    assert (found.other.name, found.cheaper) == ("hpa", None)
    assert found.cost == pytest.approx(2.0)
    assert found.sentence == (
        "deadline would save $2.00 (16.7%) against the cheapest of the others that misses at most 0.100% of the time, "
        "hpa ($12.00, missed 0.090%), and misses 0.000% itself."
    )


def test_what_is_cheaper_and_misses_up_to_a_hundredth_is_named() -> None:
    found = saving_of(comparison(run("static-peak", 100.0, 0.0), run("keda", 9.0, 0.002), run("hpa", 8.0, 0.02)))
    assert found is not None
    assert found.other.name == "static-peak"
    assert found.sentence.endswith(" At up to 1%: keda ($9.00, missed 0.200%).")


def test_who_misses_more_than_all_that_is_allowed_is_said_so() -> None:
    found = saving_of(comparison(run("hpa", 8.0, 0.02), run("clairvoyant", 1.0, 0.0, knows=True)))
    assert found is not None
    assert "would cost $2.00 (25.0%) more than hpa ($8.00, missed 2.000%), though each of the others" in found.sentence


def test_rules_that_count_events_are_named_where_nobody_said_what_a_worker_does() -> None:
    policies = [Named.parse(name) for name in ("hpa", "keda", "flink", "deadline")]
    assert notes(policies, is_capacity_assumed=True)[0].startswith("keda, flink decide by numbers of events")
    assert notes(policies, is_capacity_assumed=False) == ["as they are, without our safety rules: hpa, keda, flink"]
    assert notes(policies, is_capacity_assumed=False, bare=True) == []
