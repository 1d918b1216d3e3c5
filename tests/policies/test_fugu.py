"""FUGU: who leaves a host, where to, when a host goes; and that both forms of its cost function agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.allocation import Allocation
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.objective import Limits
from penstock.core.observation import Observation, OperatorStats
from penstock.models.capacity import linear
from penstock.policies.fugu import Meter
from penstock.policies.fugu_kernel import evaluate
from penstock.policies.fugu_scaler import Layout, Measured, Scaler
from penstock.policies.fugu_settings import SPACE, TABLE_2, Settings
from penstock.policies.fugu_window import Window
from penstock.solvers.packing import VARIANTS

AT_ONCE = Settings(upper=0.8, lower=0.3, upper_ticks=1, lower_ticks=1, grace_ticks=1)


def queries(count: int) -> Layout:
    """Chains of three operators: a filter, an aggregation, a sink."""
    operators = []
    for number in range(count):
        first, then, last = f"f{number}", f"a{number}", f"s{number}"
        operators += [Operator(first), Operator(then, after=(first,)), Operator(last, after=(then,))]
    return Layout.of(Dataflow(tuple(operators)))


def random_window(seed: int) -> Window:
    """A few queries whose loads wander, so that hosts fill, empty, and run out of memory."""
    rng = np.random.default_rng(seed)
    layout, span = queries(int(rng.integers(1, 5))), int(rng.integers(2, 16))
    names, hosts = layout.operators, [f"h{number}" for number in range(int(rng.integers(1, 5)))]
    level = rng.uniform(0.2, 2.5, (span, 1)) * rng.uniform(20, 250, (1, len(names)))
    cpu = (level * rng.uniform(0.8, 1.2, level.shape)).astype(int).tolist()
    memory = (rng.integers(0, 2) * rng.integers(0, 300, len(names))).tolist()
    snapshots = tuple(
        Measured(
            {name: (row[at], memory[at], 0) for at, name in enumerate(names)},
            dict(zip(names, rng.integers(0, 3, len(names)).tolist(), strict=True)),
            {name: int(rng.integers(0, 6000)) for name in names},
            rng.integers(0, 1500, len(layout.sinks)).tolist(),
        )
        for row in cpu
    )
    places = {name: hosts[int(rng.integers(len(hosts)))] for name in names}
    limits = Limits(int(rng.integers(0, len(hosts) + 1)), int(rng.integers(len(hosts), 9)))
    bound = [None, 1000, 3000][int(rng.integers(3))]
    return Window(layout, snapshots, tuple(hosts), places, limits, bound, bool(rng.integers(2)))


def some_settings(seed: int) -> Settings:
    rng = np.random.default_rng(seed)
    ticks = (int(rng.integers(1, 4)), int(rng.integers(1, 6)), int(rng.integers(0, 4)))
    packing = list(VARIANTS)[int(rng.integers(8))]
    return Settings(round(rng.uniform(0.6, 1.0), 3), round(rng.uniform(0.0, 0.59), 3), *ticks, packing)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_compiled_cost_function_is_the_control_loop_to_the_last_digit(world: int, drawn: int) -> None:
    window, chosen = random_window(world), some_settings(drawn)
    assert window.fast(chosen) == window.plain(chosen)


def test_random_windows_scale_out_and_in_and_are_late_so_that_agreeing_means_something() -> None:
    found = [random_window(seed).plain(some_settings(seed)) for seed in range(60)]
    still = [len(random_window(seed).hosts) * len(random_window(seed).snapshots) for seed in range(60)]
    hosts = [outcome.hosts - before for outcome, before in zip(found, still, strict=True)]
    assert min(hosts) < -10
    assert max(hosts) > 10
    assert 5 < sum(outcome.violations > 0 for outcome in found) < 55


def test_many_configurations_in_one_call_are_each_what_they_are_alone() -> None:
    window, chosen = random_window(7), [some_settings(seed) for seed in range(40)]
    together = evaluate(np.array([each.row() for each in chosen], dtype=np.int64), window.arrays())
    assert together.tolist() == [[window.fast(each).hosts, window.fast(each).violations] for each in chosen]


class World:
    """A scaler at work: loads are given, what it wants is done at once."""

    def __init__(self, layout: Layout, places: Mapping[str, str], chosen: Settings) -> None:
        self.places, self.hosts = dict(places), sorted(set(places.values()))
        self._scaler = Scaler(layout, chosen, Limits(1, 9), bound_ms=3000)
        self._layout, self._given = layout, 0
        self.state_mb = dict.fromkeys(layout.operators, 0.0)
        self.peak_ms = 0

    def see(self, loads: Mapping[str, int], memory: Mapping[str, int] | None = None) -> str:
        """One measurement; returns what was said."""
        names = self._layout.operators
        each = {name: (loads.get(name, 0), (memory or {}).get(name, 0), 0) for name in names}
        measured = Measured(each, self.state_mb, dict.fromkeys(names, self.peak_ms), [0] * len(self._layout.sinks))
        fresh = [f"n{self._given + number}" for number in range(9 - len(self.hosts))]
        change = self._scaler.step(measured, self.hosts, self.places, fresh)
        self.places |= change.places
        self._given += len(change.opened)
        self.hosts = [host for host in (*self.hosts, *change.opened) if host != change.released]
        return change.why


ONE = queries(1)
TOGETHER = {"f0": "h1", "a0": "h1", "s0": "h1"}


def test_an_operator_leaves_only_after_so_many_measurements_in_a_row_above_the_threshold() -> None:
    world = World(ONE, TOGETHER, replace(AT_ONCE, upper_ticks=2))
    high, low = {"f0": 400, "a0": 300, "s0": 200}, {"f0": 300, "a0": 200, "s0": 200}
    for loads in (high, low, high):
        world.see(loads)
        assert world.hosts == ["h1"]
    world.see(high)
    assert len(world.hosts) == 2


def test_what_stays_is_at_least_a_tenth_below_the_threshold_and_as_much_as_fits() -> None:
    world = World(ONE, TOGETHER, AT_ONCE)
    world.see({"f0": 400, "a0": 310, "s0": 250})
    # 960 > 800; at most 720 may stay: 400 + 310 = 710 is the most of 400, 310, 250, 650, 560.
    assert {name for name, host in world.places.items() if host == "h1"} == {"f0", "a0"}


def test_of_sets_that_are_equally_large_the_one_with_large_state_stays() -> None:
    world = World(ONE, TOGETHER, AT_ONCE)
    world.state_mb = {"f0": 0.0, "a0": 500.0, "s0": 0.0}
    world.see({"f0": 450, "a0": 450, "s0": 0})
    assert world.places["a0"] == "h1"
    assert world.places["f0"] != "h1"


def test_an_operator_larger_than_any_host_stays_and_the_others_leave() -> None:
    world = World(ONE, TOGETHER, AT_ONCE)
    world.see({"f0": 900, "a0": 100, "s0": 50})
    assert world.places["f0"] == "h1"
    assert world.places["a0"] == world.places["s0"] == "n0"


def test_a_host_rests_for_its_grace_period() -> None:
    chosen = replace(AT_ONCE, grace_ticks=3, lower=0.0)
    world = World(ONE, TOGETHER, chosen)
    world.see({"f0": 500, "a0": 200, "s0": 200})
    assert len(world.hosts) == 2
    heavy = {"f0": 900, "a0": 400, "s0": 700}
    for _ in range(3):
        world.see(heavy)
        assert len(world.hosts) == 2, "the hosts that a move touched are left alone"
    world.see(heavy)
    assert len(world.hosts) > 2


def test_a_full_memory_moves_operators_too() -> None:
    world = World(ONE, TOGETHER, AT_ONCE)
    world.see({"f0": 300, "a0": 300}, memory={"f0": 500, "a0": 500})
    # 1,000 of 1,000 is above 900; at most 810 may stay.
    assert world.places["f0"] == "h1"
    assert world.places["a0"] == "n0"


def test_the_least_loaded_host_goes_only_if_all_of_it_fits_elsewhere() -> None:
    apart = {"f0": "h1", "a0": "h2", "s0": "h2"}
    world = World(ONE, apart, replace(AT_ONCE, lower=0.5))
    assert "not all of its operators fit" in world.see({"f0": 700, "a0": 150, "s0": 100})
    assert world.hosts == ["h1", "h2"]
    world.see({"f0": 500, "a0": 150, "s0": 100})
    assert world.hosts == ["h1"]


def test_a_host_is_released_after_so_many_low_measurements_and_then_counting_begins_anew() -> None:
    apart = {"f0": "h1", "a0": "h2", "s0": "h3"}
    world = World(ONE, apart, replace(AT_ONCE, lower_ticks=3, grace_ticks=0))
    counts = []
    for _ in range(7):
        world.see({"f0": 10, "a0": 10, "s0": 10})
        counts.append(len(world.hosts))
    assert counts == [3, 3, 2, 2, 2, 1, 1]


def test_a_scale_in_that_would_break_the_latency_bound_is_left_out() -> None:
    apart = {"f0": "h1", "a0": "h2", "s0": "h1"}
    world = World(ONE, apart, AT_ONCE)
    world.peak_ms = 3000
    assert "would take 3.0 s" in world.see({"f0": 100})
    assert world.hosts == ["h1", "h2"]
    world.peak_ms = 2999
    world.see({"f0": 100})
    assert world.hosts == ["h1"]


def test_a_scale_out_is_no_option_and_ignores_the_bound() -> None:
    world = World(ONE, TOGETHER, AT_ONCE)
    world.peak_ms = 9000
    world.see({"f0": 500, "a0": 500, "s0": 500})
    assert len(world.hosts) > 1


def test_nothing_moves_where_the_hosts_are_at_their_limit_and_that_is_said() -> None:
    still = dict.fromkeys(ONE.operators, 0)
    full = Measured(dict.fromkeys(ONE.operators, (400, 0, 0)), dict.fromkeys(still, 0.0), still, [0])
    change = Scaler(ONE, AT_ONCE, Limits(1, 1)).step(full, ["h1"], TOGETHER, [])
    assert change.places == {}
    assert "no room for" in change.why


class TestBadInput:
    @pytest.mark.parametrize(("upper", "lower"), [(0.5, 0.5), (0.4, 0.6), (1.1, 0.3), (0.8, -0.1)])
    def test_thresholds_that_cross_are_refused(self, upper: float, lower: float) -> None:
        with pytest.raises(BadInput, match="0 <= lower < upper <= 1"):
            Settings(upper, lower)

    def test_a_packing_that_does_not_exist_is_named_with_the_nearest(self) -> None:
        with pytest.raises(BadInput, match="did you mean 'first-fit'"):
            Settings(packing="first-fitt")

    def test_a_window_of_one_snapshot_is_refused(self) -> None:
        window = Window.figure_3()
        with pytest.raises(BadInput, match="a window of 1 snapshot"):
            replace(window, snapshots=window.snapshots[:1])

    def test_a_window_with_an_operator_on_no_host_is_refused(self) -> None:
        with pytest.raises(BadInput, match="operator 'A1' of a window is on no host"):
            replace(Window.figure_3(), places={"S1": "H1", "D1": "H2"})


def test_the_baselines_are_the_16_of_table_2_and_four_lie_outside_the_tuned_space() -> None:
    assert len(set(TABLE_2)) == 16
    assert [(each.upper, each.lower) for each in TABLE_2[:4]] == [(0.75, 0.2), (0.75, 0.25), (0.75, 0.3), (0.75, 0.35)]
    high = max(SPACE["upper"].values())
    assert sum(each.upper > float(high) for each in TABLE_2) == 4


def test_what_an_event_costs_is_learnt_where_nobody_declared_it_and_backlog_counts() -> None:
    """A full CPU shows 100 %, whatever waits: demand is what comes, and what waits within a minute, times the cost."""
    job = Job("live", Dataflow((Operator("q"),)), linear(1.0), Limits(1, 4), 10.0, (WorkerKind(cores=0.5),))
    meter = Meter(job, pause_s=1.0, move_mb_s=0.0)

    def load(at_s: float, rate: float, processed: float, backlog: float, cores: float) -> int:
        stats = {"q": OperatorStats(input_rate=rate, processed=processed, backlog=backlog, cores=cores)}
        one = Allocation.of(1)
        seen = Observation(at_s, 10.0, 0.0, 0.0, 0.0, 0.0, rate, backlog, 0.0, 0.0, one, one, operators=stats)
        measured = meter.read(seen)
        assert measured is not None
        return measured.loads["q"][0]

    assert load(10.0, 100.0, 1000.0, 0.0, 0.2) == 400  # measured alone: 0.2 of 0.5 cores
    assert load(20.0, 100.0, 2000.0, 0.0, 0.2) == 400  # 2 ms an event
    # 250 a second is all that half a core does; 400 come and 6000 wait: (400 + 6000/60) · 2 ms of 0.5 cores.
    assert load(30.0, 400.0, 4500.0, 6000.0, 0.5) == 2000


def test_a_window_of_one_snapshot_shows_no_scaling_and_is_refused() -> None:
    names = ONE.operators
    measured = Measured(dict.fromkeys(names, (100, 0, 0)), dict.fromkeys(names, 0.0), dict.fromkeys(names, 0), [0])
    with pytest.raises(BadInput, match="a window of 1 snapshot: it takes 2 to see a scaling"):
        Window(ONE, (measured,), ("h1",), TOGETHER, Limits(1, 9), 3000)


def test_who_is_hard_to_move_is_told_by_the_state_of_that_time_in_both_forms() -> None:
    # h1 has 1.0 and may keep 0.72: one of two equal ones, whose state is the larger now, and was the smaller before.
    layout = Layout.of(Dataflow(tuple(map(Operator, "abc"))))
    still, quiet = dict.fromkeys("abc", 0), {"a": (100, 0, 0), "b": (100, 0, 0), "c": (700, 0, 0)}
    full = {"a": (500, 0, 0), "b": (500, 0, 0), "c": (250, 0, 0)}
    before, after = {"a": 9.0, "b": 1.0, "c": 0.0}, {"a": 1.0, "b": 9.0, "c": 0.0}
    seen = [Measured(quiet, before, still, [0] * 3), Measured(full, after, {**still, "a": 9000}, [0] * 3)]
    window = Window(layout, tuple(seen), ("h1", "h2"), {"a": "h1", "b": "h1", "c": "h2"}, Limits(1, 9), 2000)
    # "a" goes: its peak of 9 s is 3 s on average of the three queries, above 2 s. Had "b" gone, nothing were late.
    assert window.plain(AT_ONCE).violations == window.fast(AT_ONCE).violations == 1


def test_a_window_that_begins_outside_the_limits_is_refused_as_the_control_loop_would() -> None:
    # Both forms would go on with two hosts too many or too few, each in its own way.
    for least, most in ((1, 3), (5, 9)):
        with pytest.raises(BadInput, match="a window that begins with 4 hosts does not fit the limits"):
            replace(random_window(11), hosts=("h0", "h1", "h2", "h3"), limits=Limits(least, most))
