"""Fronts: which settings count, what each policy costs at equal violations, how the default stands."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.models.capacity import linear
from penstock.report.fronts_page import fronts_page
from penstock.report.fronts_table import as_record, sentence
from penstock.runs.contest import comparable, parted
from penstock.runs.fronts import Contest, Point, cheapest, points, tuned
from penstock.sim.derive import Given, World
from penstock.sim.specs import BatchSpec
from penstock.sim.toml import ScenarioFile
from penstock.sim.workloads import Load


def row(policy: str, cost: float, missed: float, **more: Any) -> dict[str, Any]:
    plain = {"world": "t", "error": None, "unknown_share": 0.0, "scaling_actions": 10.0, "duration_s": 43200.0}
    return {**plain, "policy": policy, "cost": cost, "violation_share": missed, **more}


def at(policy: str, cost: float, missed: float) -> Point:
    return Point(policy, cost, missed, 0.0)


def test_a_point_is_the_mean_of_its_seeds_and_failed_cells_are_none() -> None:
    rows = [row("hpa", 10.0, 0.02), row("hpa", 20.0, 0.0), row("keda", 1.0, 0.0, error="broke")]
    assert points(rows) == {"t": [Point("hpa", 15.0, 0.01, 20.0)]}  # 10 actions in half a day


def test_what_nobody_knows_counts_as_missed() -> None:
    assert points([row("hpa", 10.0, 0.02, unknown_share=0.03)])["t"][0].missed == pytest.approx(0.05)


def test_the_cheapest_is_that_which_keeps_within_what_is_allowed() -> None:
    known = [at("a", 1.0, 0.02), at("b", 2.0, 0.01), at("c", 3.0, 0.001)]
    assert [point and point.policy for point in (cheapest(known, 0.01), cheapest(known, 0.0001))] == ["b", None]


def test_settings_are_chosen_on_the_first_part_and_reported_on_the_rest() -> None:
    trained = [at("hpa:target=0.5", 5.0, 0.0), at("hpa:target=0.8", 3.0, 0.0), at("hpa:target=0.9", 2.0, 0.1)]
    reported = [at("hpa:target=0.5", 9.0, 0.0), at("hpa:target=0.8", 6.0, 0.2), at("hpa:target=0.9", 1.0, 0.0)]
    assert tuned(trained, reported, 0.001) == reported[1]
    # Where all miss too much before, that which missed least.
    assert tuned([at("hpa", 2.0, 0.3), at("hpa:target=0.5", 9.0, 0.2)], reported, 0.001) == reported[0]


CONTEST = Contest(
    "a trace",
    [
        at("hpa", 20.0, 0.0), at("hpa:target=0.5", 12.0, 0.0005), at("hpa:target=0.9", 8.0, 0.3),
        at("keda", 5.0, 0.5), at("static-peak", 4.0, 0.0), at("deadline", 9.0, 0.0), at("clairvoyant", 6.0, 0.0),
    ],
    [at("hpa", 3.0, 0.0), at("hpa:target=0.5", 4.0, 0.0), at("hpa:target=0.9", 1.0, 0.2), at("keda", 1.0, 0.0)],
    bound=6.0,
)  # fmt: skip


def test_the_default_stands_beside_peers_that_miss_no_more_than_a_thousandth() -> None:
    stands = CONTEST.standing()
    assert stands is not None
    # Tuned before: hpa as it comes (3 < 4) and keda, which then misses half of the time.
    assert stands.tuned == at("hpa", 20.0, 0.0)
    assert stands.hindsight == at("hpa:target=0.5", 12.0, 0.0005)
    assert stands.default == at("hpa", 20.0, 0.0)
    assert stands.ratio(stands.hindsight) == pytest.approx(0.75)  # static-peak knows the future, and is no peer
    assert "0.750 × the best peer in hindsight, hpa:target=0.5" in sentence(CONTEST)


def test_a_record_has_costs_at_equal_violations_and_to_the_bound() -> None:
    record = as_record(CONTEST)
    hpa = record["policies"][0]
    assert record["bound"] == 6.0
    assert hpa["at"]["0.001"]["to_bound"] == pytest.approx(2.0)
    assert hpa["front"] == ["hpa:target=0.9", "hpa:target=0.5", "hpa"]
    keda = record["policies"][1]
    assert (keda["at"]["0.01"], keda["tuned"]["policy"]) == (None, "keda")
    assert record["standing"]["default"]["ratio"] == pytest.approx(0.45)


def test_the_page_shows_every_setting_and_needs_nothing_else() -> None:
    page = fronts_page([CONTEST])
    assert page.count("<circle") == 6  # the one that knows the future is the line
    assert "<title>hpa:target=0.5: $12.00, missed 0.05 %</title>" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_loads_are_scaled_so_that_each_peak_takes_as_many_workers() -> None:
    series = Load.of(np.array([60.0, 600.0, 120.0]), 60.0)
    scenario = comparable(World("plain", series=series), 32).scenario()
    assert (scenario.load.peak, scenario.capacity.capacity(1), scenario.limits.workers_max) == (3200.0, 100.0, 64)
    file = ScenarioFile(batch=BatchSpec(10.0), capacity=linear(50.0, fixed_s=2.0))
    batches = comparable(World("batches", file=file, series=series), 8).scenario()
    assert batches.load.peak == pytest.approx(8 * 50.0 * 0.8)
    assert comparable(World("as it is", Given(), series=series), 0).scenario().load.peak == 10.0


def test_both_parts_of_a_trace_keep_its_scale_and_limits() -> None:
    series = Load.of(np.array([60.0, 120.0, 600.0, 60.0, 60.0, 60.0]), 60.0)
    first, rest = (each.scenario() for each in parted(comparable(World("t", series=series), 32), 1 / 3))
    assert (first.load.peak, rest.load.peak) == (640.0, 3200.0)
    assert first.limits == rest.limits
    assert rest.load.times_s.tolist() == [60.0, 120.0, 180.0, 240.0]


def test_each_policy_has_a_colour_of_its_own_and_what_is_dearer_than_the_axis_is_marked() -> None:
    known = [at(name, 10.0 * number, 0.0) for number, name in enumerate((*POLICIES, "deadline"), 1)]
    page = fronts_page([Contest("t", known, bound=9.0)])
    strokes = re.findall(r'h 18" fill="none" stroke="([^"]+)"', page)
    assert len(set(strokes)) == len(known)
    assert "dearer than shown" in page


def test_what_all_were_held_to_stands_on_the_page_and_in_the_record() -> None:
    contest = replace(CONTEST, setting=("objective latency<=120s", "peers as they are"))
    assert "Objective latency" in fronts_page([contest])
    assert as_record(contest)["setting"] == ["objective latency<=120s", "peers as they are"]


POLICIES = (
    "static-peak", "hpa", "keda", "flink", "ds2", "dhalion", "spark-dynamic", "spark-24815", "dstream",
    "elastic-scaling", "aws-flink", "dataflow",
)  # fmt: skip
