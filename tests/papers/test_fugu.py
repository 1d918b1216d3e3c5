"""Paper 2 (Heinze et al.): one test for each equation, algorithm and figure that can be checked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from penstock.core.dataflow import Dataflow, Operator
from penstock.models.drift import Adwin, threshold
from penstock.policies.fugu_scaler import Layout
from penstock.policies.fugu_settings import SPACE, Settings
from penstock.policies.fugu_window import Outcome, Window
from penstock.solvers.bins import Host, Item
from penstock.solvers.packing import VARIANTS, subset_sum
from penstock.solvers.search import Tuning
from penstock.solvers.space import size


def test_there_are_eight_ways_of_packing() -> None:
    assert sorted(VARIANTS) == [
        "best-fit",
        "best-fit-decreasing",
        "best-fit-decreasing-neighbours",
        "best-fit-neighbours",
        "first-fit",
        "first-fit-decreasing",
        "first-fit-decreasing-neighbours",
        "first-fit-neighbours",
    ]


def test_table_1_has_720_000_configurations_if_the_thresholds_upper_ends_are_left_out() -> None:
    assert size(SPACE) == 720_000 == 50 * 8 * 15 * 3 * 5 * 8


def test_figure_3_scales_out_at_t1() -> None:
    # H1 holds S1 and A1, 0.5 + 0.5 > 0.8; 10 % below the threshold one of them stays, the first.
    assert subset_sum([0.5, 0.5], 0.9 * 0.8) == (0,)
    hosts, fresh = [Host("H1", 0.8), Host("H2", 0.8)], [Host("H3", 0.8)]
    items = [Item("S1", 0.5, stays_on="H1"), Item("D1", 0.4, stays_on="H2"), Item("A1", 0.5)]
    packed = VARIANTS["first-fit"].pack(items, hosts, fresh)
    # 0.4 + 0.5 is above 0.8 too: a third host.
    assert (packed.instances, packed.opened) == ({"S1": ("H1",), "D1": ("H2",), "A1": ("H3",)}, ("H3",))


def test_figure_3_scales_in_at_t3() -> None:
    items = [Item("S1", 0.3, stays_on="H1"), Item("D1", 0.3, stays_on="H2"), Item("A1", 0.3)]
    packed = VARIANTS["first-fit"].pack(items, [Host("H1", 0.8), Host("H2", 0.8)])
    assert packed.unplaced == ()
    assert packed.instances["A1"] == ("H1",)


def test_a_host_is_released_only_if_all_of_it_fits_elsewhere() -> None:
    items = [Item("S1", 0.6, stays_on="H1"), Item("A1", 0.2), Item("D1", 0.1)]
    packed = VARIANTS["first-fit"].pack(items, [Host("H1", 0.8)])
    assert [item.operator for item in packed.unplaced] == ["D1"]


def test_section_3_4_explores_44_points_and_shrinks_after_3_failures() -> None:
    # ln(0.01) / ln(0.9) = 43.7; ln(0.01) / ln(0.2) = 2.9.
    assert (Tuning().explorations, Tuning().failures) == (44, 3)


def test_section_4_threshold_as_printed_and_as_cited() -> None:
    # n₁ = 10, n₂ = 30: harmonic mean 2 / (1/10 + 1/30) = 15; δ′ = 0.2/40 = 0.005; ε = √(ln(800) / 30).
    assert threshold(10, 30, 0.2) == pytest.approx(math.sqrt(math.log(800) / 30))
    # The cited work's m is 1 / (1/10 + 1/30) = 7.5.
    assert threshold(10, 30, 0.2, as_cited=True) == pytest.approx(math.sqrt(math.log(800) / 15))


def test_section_4_the_load_is_summed_in_hosts_and_not_a_share_of_them() -> None:
    # One host more after 100 measurements: 4 · 1² · 100k/(100 + k) > ln(4 · (100 + k)/0.2) = 7.6 from k = 2 on.
    # As shares of twelve hosts, 4 · (1/12)² · 100k/(100 + k) never comes above 1.4 for k up to 100.
    summed = [4.0] * 100 + [5.0] * 100
    hosts, shares = Adwin(delta=0.2), Adwin(delta=0.2)
    triggers = [tick for tick, load in enumerate(summed) if hosts.add(load)]
    assert min(triggers) == 101
    assert not any(shares.add(load / 12) for load in summed)
    assert hosts.mean == pytest.approx(5.0, abs=0.1)
    assert shares.size == 200


def test_figure_3_costs_10_host_intervals() -> None:
    # H1 and H2 at all four points in time, H3 at t1 and t2: (4 + 4 + 2) · price.
    chosen = Settings(upper=0.8, lower=0.3, upper_ticks=1, lower_ticks=1, grace_ticks=1, packing="first-fit")
    assert Window.figure_3().plain(chosen) == Window.figure_3().fast(chosen) == Outcome(hosts=10, violations=0)


def test_figure_3_costs_11_if_underload_were_strictly_below_the_threshold() -> None:
    # 0.3 on average is not below 0.299: no host goes at t3, so that "below" must mean "at most".
    chosen = Settings(upper=0.8, lower=0.299, upper_ticks=1, lower_ticks=1, grace_ticks=1)
    assert Window.figure_3().plain(chosen).hosts == 11


def test_section_3_3_a_configuration_with_violations_costs_max_and_their_number() -> None:
    assert Outcome(hosts=10, violations=0).cost(most=100) == 10
    assert Outcome(hosts=10, violations=3).cost(most=100) == 103


def test_section_3_3_overload_alone_counts_only_if_every_query_is_touched() -> None:
    calm = Settings(upper=0.89, lower=0.0, upper_ticks=4)
    window = replace(Window.figure_3(), bound_ms=3000)
    # H1 is at 1.0 > 0.95 at t1. All operators are one query, whose latency is then just the bound.
    assert window.plain(calm).violations == 1
    apart = Layout.of(Dataflow(tuple(map(Operator, ("S1", "A1", "D1")))))
    seen = tuple(replace(each, latency_ms=(0, 0, 0)) for each in window.snapshots)
    three = replace(window, layout=apart, snapshots=seen)
    # As three queries two of them are slowed: (3 + 3 + 0) / 3 s is below 3 s.
    assert three.plain(calm).violations == 0
    assert replace(three, any_host=True).plain(calm).violations == 1


def test_section_3_3_the_largest_peak_of_the_moved_operators_counts_for_all_queries_that_move() -> None:
    apart = Layout.of(Dataflow(tuple(map(Operator, ("S1", "A1", "D1")))))
    window, quick = Window.figure_3(), Settings(0.8, 0.0, 1, 1, 1)
    # At t1 H1 is full, so S1 is at the bound of 3 s, and A1 moves: (3 + 6 + 0) / 3 s is the bound, less is below it.
    for peak, late in ((6000, 1), (5900, 0)):
        peaks = dict.fromkeys(("S1", "A1", "D1"), peak)
        seen = tuple(replace(each, latency_ms=(0, 0, 0), peaks_ms=peaks) for each in window.snapshots)
        three = replace(window, layout=apart, snapshots=seen, bound_ms=3000)
        assert three.plain(quick).violations == three.fast(quick).violations == late
