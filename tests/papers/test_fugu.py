"""Paper 2 (Heinze et al.): one test for each equation, algorithm and figure that can be checked."""

from __future__ import annotations

import math

import pytest

from penstock.models.drift import Adwin, threshold
from penstock.solvers.bins import Host, Item
from penstock.solvers.packing import VARIANTS, subset_sum
from penstock.solvers.search import Tuning
from penstock.solvers.space import Choice, Range, Space, size


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
    space: Space = {
        "lower": Range(0.0, 0.49, 0.01),
        "lower_duration": Range(3, 10, 1),
        "upper": Range(0.75, 0.89, 0.01),
        "upper_duration": Range(2, 4, 1),
        "grace": Range(1, 5, 1),
        "packing": Choice(tuple(VARIANTS)),
    }
    assert size(space) == 720_000 == 50 * 8 * 15 * 3 * 5 * 8


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
