"""Packing operators on hosts, and choosing those that stay."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.solvers.bins import Host, Item
from penstock.solvers.packing import (
    VARIANTS,
    Packed,
    Packing,
    neighbours_of,
    subset_sum,
    subset_sum_bits,
    subset_sum_plain,
    variant,
)

every_variant = pytest.mark.parametrize("packing", VARIANTS.values(), ids=VARIANTS)
amounts = st.floats(0, 1)
Case = tuple[list[Item], list[Host], list[Host]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Hosts, some of them overloaded by what stays, and operators of one to three instances."""
    limits = draw(st.lists(st.tuples(amounts, amounts, amounts), max_size=8))
    hosts = [Host(f"w{number}", *limit) for number, limit in enumerate(limits)]
    running = draw(st.integers(0, len(hosts)))
    places = st.sampled_from([None, *(host.name for host in hosts[:running])])
    items = draw(
        st.lists(st.builds(Item, st.sampled_from("abcdefgh"), amounts, amounts, amounts, places), max_size=15),
    )
    return items, hosts[:running], hosts[running:]


def loads(packed: Packed, host: Host, only_staying: bool = False) -> tuple[float, ...]:
    pairs = zip(packed.items, packed.places, strict=True)
    here = [item for item, place in pairs if place == host.name and (item.stays_on or not only_staying)]
    return tuple(sum(item.needs[resource] for item in here) for resource in range(3))


def beside(*pairs: tuple[str, str]) -> dict[str, list[str]]:
    near: dict[str, list[str]] = {}
    for one, other in pairs:
        near.setdefault(one, []).append(other)
        near.setdefault(other, []).append(one)
    return near


RING = beside(*itertools.pairwise("abcdefgh"))


@every_variant
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_a_host_is_never_loaded_above_its_limit(packing: Packing, case: Case) -> None:
    items, hosts, fresh = case
    packed = packing.pack(items, hosts, fresh, RING)
    for host in (*hosts, *fresh):
        before, after = loads(packed, host, only_staying=True), loads(packed, host)
        fits = all(load <= limit * (1 + 1e-8) for load, limit in zip(after, host.limits, strict=True))
        came = [item for item, place in zip(items, packed.places, strict=True) if place == host.name != item.stays_on]
        # What stays may be too much by itself: then nothing comes.
        assert fits or (before == after and not came)


@every_variant
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_each_item_is_placed_once_or_said_to_fit_nowhere(packing: Packing, case: Case) -> None:
    items, hosts, fresh = case
    packed = packing.pack(items, hosts, fresh, RING)
    assert packed.items == tuple(items)
    assert sum(map(len, packed.instances.values())) + len(packed.unplaced) == len(items)
    assert len(packed.problems()) == len(packed.unplaced)
    for item, place in zip(items, packed.places, strict=True):
        assert item.stays_on is None or place == item.stays_on
    for item in packed.unplaced:
        # Nothing was closed meanwhile, so at the end there is no room either, neither running nor fresh.
        for host in (*hosts, *fresh):
            pairs = zip(loads(packed, host), item.needs, host.limits, strict=True)
            assert any(load + need > limit for load, need, limit in pairs)


@every_variant
@given(case=cases())
@settings(max_examples=60, deadline=None)
def test_a_fresh_host_is_opened_only_for_what_fits_on_no_open_one(packing: Packing, case: Case) -> None:
    items, hosts, fresh = case
    packed = packing.pack(items, hosts, fresh, RING)
    used = {place for place in packed.places if place is not None}
    assert len(set(packed.opened)) == len(packed.opened)
    assert set(packed.opened) == used - {host.name for host in hosts}
    if not packing.decreasing and packed.opened:
        first = next(index for index, place in enumerate(packed.places) if place == packed.opened[0])
        came = {*range(first), *(index for index, item in enumerate(items) if item.stays_on)}
        until = (
            Packed(*zip(*((items[index], packed.places[index]) for index in sorted(came)), strict=True))
            if came
            else None
        )
        for host in hosts:
            filled = loads(until, host) if until else (0.0, 0.0, 0.0)
            pairs = zip(filled, items[first].needs, host.limits, strict=True)
            assert any(load + need > limit for load, need, limit in pairs)


def test_first_fit_takes_the_first_host_and_best_fit_the_fullest() -> None:
    hosts = [Host(name, 1.0) for name in ("w1", "w2", "w3")]
    # Loads 0.3, 0.7, 0.9; the new one needs 0.2: it fits on the first two, and the second is fuller.
    items = [
        Item("a", 0.3, stays_on="w1"),
        Item("b", 0.7, stays_on="w2"),
        Item("c", 0.9, stays_on="w3"),
        Item("d", 0.2),
    ]
    assert VARIANTS["first-fit"].pack(items, hosts).instances["d"] == ("w1",)
    assert VARIANTS["best-fit"].pack(items, hosts).instances["d"] == ("w2",)


def test_the_fullest_host_is_the_one_with_the_least_room_and_not_the_highest_load() -> None:
    # 0.2 of 0.5 leaves 0.3; 0.6 of 2.0 leaves 1.4.
    items = [Item("a", 0.2, stays_on="small"), Item("b", 0.6, stays_on="large"), Item("c", 0.1)]
    packed = VARIANTS["best-fit"].pack(items, [Host("large", 2.0), Host("small", 0.5)])
    assert packed.instances["c"] == ("small",)


def test_decreasing_order_saves_a_host() -> None:
    hosts = [Host(f"w{number}", 1.0) for number in range(1, 4)]
    items = [Item("a", 0.4), Item("b", 0.4), Item("c", 0.6), Item("d", 0.6)]
    # In order: 0.4 + 0.4, 0.6, 0.6. By size: 0.6 + 0.4 twice.
    assert VARIANTS["first-fit"].pack(items, [], hosts).opened == ("w1", "w2", "w3")
    decreasing = VARIANTS["first-fit-decreasing"].pack(items, [], hosts)
    assert decreasing.opened == ("w1", "w2")
    assert decreasing.places == ("w1", "w2", "w1", "w2")


def test_a_host_that_runs_a_neighbour_is_preferred_as_long_as_it_has_room() -> None:
    hosts = [Host("w1", 1.0), Host("w2", 1.0)]
    flow = Dataflow((Operator("read"), Operator("count", after=("read",)), Operator("sink", after=("count",))))
    read = Item("read", 0.5, stays_on="w2")
    near = neighbours_of(flow)
    assert near == {"read": ("count",), "count": ("read", "sink"), "sink": ("count",)}
    small = VARIANTS["first-fit-neighbours"].pack([read, Item("count", 0.4), Item("sink", 0.1)], hosts, beside=near)
    # The sink follows the count, which has only just been placed.
    assert small.instances == {"read": ("w2",), "count": ("w2",), "sink": ("w2",)}
    large = VARIANTS["best-fit-neighbours"].pack([read, Item("count", 0.6)], hosts, beside=near)
    assert large.instances["count"] == ("w1",)
    assert VARIANTS["first-fit"].pack([read, Item("count", 0.4)], hosts, beside=near).instances["count"] == ("w1",)


def test_of_several_hosts_that_run_a_neighbour_the_first_or_the_fullest_is_taken() -> None:
    hosts = [Host(name, 1.0) for name in ("w1", "w2", "w3", "w4")]
    read = [Item("read", load, stays_on=name) for name, load in (("w2", 0.3), ("w3", 0.6), ("w4", 0.2))]
    items = [*read, Item("count", 0.1)]
    near = beside(("read", "count"))
    assert VARIANTS["first-fit-neighbours"].pack(items, hosts, beside=near).instances["count"] == ("w2",)
    assert VARIANTS["best-fit-neighbours"].pack(items, hosts, beside=near).instances["count"] == ("w3",)


@pytest.mark.parametrize(("memory_mb", "network_mb_s"), [(600.0, 0.0), (0.0, 60.0)])
def test_memory_and_network_are_caps(memory_mb: float, network_mb_s: float) -> None:
    hosts = [Host(name, 1.0, memory_mb=1000.0, network_mb_s=100.0) for name in ("w1", "w2")]
    two = [Item(name, 0.1, memory_mb, network_mb_s) for name in "ab"]
    assert VARIANTS["first-fit"].pack(two, hosts).places == ("w1", "w2")


def test_what_fits_nowhere_is_said_with_what_it_needs() -> None:
    packed = VARIANTS["best-fit"].pack([Item("join", 1.5, 200.0), Item("sink", 0.2)], [], [Host("w1", 0.8)])
    assert packed.instances == {"join": (), "sink": ("w1",)}
    assert packed.problems() == [
        "operator 'join' fits on no host: it needs CPU 1.5, 200 MB of memory and 0 MB/s of network"
    ]


def test_a_packing_becomes_an_allocation_with_new_workers_under_their_own_names() -> None:
    now = Allocation.of(3).resized(2)
    wider = now.grown(4)
    # The slot w3 was given up, so the next is w4.
    hosts = [Host(worker.name, 0.8) for worker in wider.workers]
    items = [
        Item("count", 0.7, stays_on="w1"),
        Item("count", 0.7, stays_on="w2"),
        Item("count", 0.7),
        Item("sink", 0.1),
    ]
    packed = VARIANTS["first-fit"].pack(items, hosts[:2], hosts[2:])
    then = wider.only({"w1", "w2", *packed.opened})
    target = Allocation(then.workers, packed.instances)
    assert [worker.name for worker in target.workers] == ["w1", "w2", "w4"]
    assert target.instances == {"count": ("w1", "w2", "w4"), "sink": ("w1",)}


def test_three_tenths_fit_three_times_whatever_the_last_bit_says() -> None:
    items = [Item(name, 0.1) for name in "abc"]
    assert 0.1 + 0.1 + 0.1 > 0.3
    assert VARIANTS["first-fit"].pack(items, [Host("w1", 0.3)]).unplaced == ()


def test_bad_input_is_one_line() -> None:
    with pytest.raises(BadInput, match="unknown packing 'best-fitt': did you mean 'best-fit'"):
        variant("best-fitt")
    with pytest.raises(BadInput, match="unknown host of operator 'a' 'w9'"):
        VARIANTS["first-fit"].pack([Item("a", 0.1, stays_on="w9")], [Host("w1", 1.0)])
    with pytest.raises(BadInput, match="two hosts are named 'w1'"):
        VARIANTS["first-fit"].pack([], [Host("w1", 1.0)], [Host("w1", 1.0)])
    with pytest.raises(BadInput, match="operator 'a': cpu is -1"):
        Item("a", -1.0)
    with pytest.raises(BadInput, match="host 'w1': cpu is nan"):
        Host("w1", math.nan)


@given(weights=st.lists(st.integers(0, 60), max_size=12), limit=st.integers(0, 200))
@settings(deadline=None)
def test_both_subset_sums_find_the_largest_sum_and_the_same_set(weights: list[int], limit: int) -> None:
    sets = [chosen for size in range(len(weights) + 1) for chosen in itertools.combinations(range(len(weights)), size)]
    largest = max(total for chosen in sets if (total := sum(weights[index] for index in chosen)) <= limit)
    kept = subset_sum_bits(weights, limit)
    assert sum(weights[index] for index in kept) == largest
    assert kept == subset_sum_plain(weights, limit)


@given(weights=st.lists(st.integers(0, 500), max_size=60), limit=st.integers(0, 1000))
@settings(deadline=None)
def test_both_subset_sums_agree_on_as_many_operators_as_a_host_may_have(weights: list[int], limit: int) -> None:
    assert subset_sum_bits(weights, limit) == subset_sum_plain(weights, limit)


@given(loads=st.lists(st.floats(0, 2), max_size=10), limit=st.floats(0.01, 2))
@settings(deadline=None)
def test_loads_between_units_are_summed_exactly_too(loads: list[float], limit: float) -> None:
    stays = sum(loads[index] for index in subset_sum(loads, limit))
    assert stays <= limit + 1e-11
    sums = [sum(chosen) for size in range(len(loads) + 1) for chosen in itertools.combinations(loads, size)]
    assert stays >= max(total for total in sums if total <= limit) - 1e-11


@given(loads=st.lists(st.floats(0, 0.1), min_size=33, max_size=60), limit=st.floats(0.01, 2))
@settings(deadline=None, max_examples=30)
def test_of_many_loads_between_units_each_loses_a_unit_at_most(loads: list[float], limit: float) -> None:
    stays = sum(loads[index] for index in subset_sum(loads, limit))
    assert stays <= limit * (1 + 1e-9)
    # First come, first kept is a set that fits: it has at most what the best has.
    greedy = 0.0
    for load in loads:
        greedy += load if greedy + load <= limit - len(loads) * 1e-4 - 1e-4 else 0.0
    assert stays >= greedy - len(loads) * 1e-4


def test_of_32_loads_between_units_the_set_that_is_meant_is_found() -> None:
    rng = random.Random(32)
    loads = [rng.random() for _ in range(32)]
    meant = sorted(rng.sample(range(32), 14))
    found = subset_sum(loads, sum(loads[index] for index in meant))
    assert sum(loads[index] for index in found) == pytest.approx(sum(loads[index] for index in meant), abs=1e-9)
    assert subset_sum([1 / 3] * 5, 1.0) == (0, 1, 2)


def test_of_sets_with_the_same_load_the_one_with_the_earlier_operators_stays() -> None:
    assert subset_sum([0.4, 0.4, 0.4], 0.8) == (0, 1)
    # 0.5 alone and 0.2 + 0.3 are the same: whoever comes first stays.
    assert subset_sum([0.5, 0.2, 0.3], 0.5) == (0,)
    assert subset_sum([0.2, 0.5, 0.3], 0.5) == (0, 2)


@given(loads=st.lists(st.integers(0, 3000), max_size=10), limit=st.integers(0, 9000))
@settings(deadline=None)
def test_loads_in_whole_units_are_summed_exactly(loads: list[int], limit: int) -> None:
    assert subset_sum([load / 10_000 for load in loads], limit / 10_000) == subset_sum_plain(loads, limit)


def test_a_load_of_a_tenth_and_two_tenths_stays_below_three_whatever_the_last_bit_says() -> None:
    assert 0.1 + 0.2 > 0.3
    assert subset_sum([0.1 + 0.2], 0.3) == (0,)


def test_memory_is_summed_in_its_own_unit() -> None:
    assert subset_sum([3000.0, 2500.0, 1500.0], 4096.0, unit=1.0) == (1, 2)
    with pytest.raises(BadInput, match="limit of a subset sum is 4096: it must be from 0 to 100"):
        subset_sum([3000.0], 4096.0)


def test_an_operator_above_the_limit_goes_and_an_idle_one_stays() -> None:
    assert subset_sum([3.0, 0.0, 0.1], 0.72) == (1, 2)
    assert subset_sum([1e8], 0.5) == ()
    assert subset_sum([0.0, 0.1], 0.0) == (0,)
    assert subset_sum([], 0.5) == ()
    with pytest.raises(BadInput):
        subset_sum([math.nan], 0.5)
