"""The contracts as checks: run them on a policy, a plant or a capacity model of your own.

>>> from penstock.models.capacity import linear
>>> check_capacity_model(linear(per_worker=50.0))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from penstock.core.allocation import Allocation
from penstock.core.job import CapacityModel, Job
from penstock.core.loop import Decision, Plant, Policy, needs_lag
from penstock.core.observation import Observation, WorkerTable
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.workloads import FlashCrowd, Sine, make_load

_ROUNDING = 1e-6


def check_policy(make: Callable[[Job], Policy]) -> None:
    """A policy decides alike when it sees alike, says why, and does not run away. Raises AssertionError."""
    scenario = _day()
    job = scenario.job()
    seen = [observation for observation, _ in _driven(scenario, make(job))]
    first = _decisions(make(job), seen)
    _check_form(make(job), first)
    needs = make(job).needs
    for observation, decision in zip(seen, first, strict=True):
        undeclared = decision.target.turned(observation.target) - needs
        assert not undeclared, f"it changes {', '.join(knob.value for knob in undeclared)}, and does not declare it"
    assert first == _decisions(make(job), seen), "two fresh policies that see the same must decide the same"
    shifted = [_later(observation, 1e6) for observation in seen]
    later = [len(decision.target.workers) for decision in _decisions(make(job), shifted)]
    assert later == _counts(first), "shifting all times must change no decision"
    _check_patience(make(job), job)
    if not needs_lag(make(job)):
        _check_blind(make(job), seen[:60])


def _later(seen: Observation, by_s: float) -> Observation:
    """The same at another time."""
    pending = {name: since_s + by_s for name, since_s in seen.pending.items()}
    in_work = replace(seen.in_work, begun_s=seen.in_work.begun_s + by_s) if seen.in_work else None
    return replace(seen, time_s=seen.time_s + by_s, pending=pending, in_work=in_work)


def _check_blind(policy: Policy, seen: list[Observation]) -> None:
    """On a live job it may be unknown what waits; a policy that cannot do without says `needs_lag = True`."""
    for observation in seen:
        try:
            policy.decide(replace(observation, backlog=None, latency_s=None))
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise AssertionError(f"without backlog and latency: {what}; set needs_lag = True, or mind None") from error


def _check_form(policy: Policy, decisions: list[Decision]) -> None:
    assert isinstance(policy.needs, frozenset), "`needs` is a frozenset of Knob"
    assert policy.memory_s >= 0, "`memory_s` is a number of seconds, at least 0"
    for decision in decisions:
        names = [worker.name for worker in decision.target.workers]
        assert len(set(names)) == len(names), f"each worker has a name of its own, not {names}"
        assert decision.reason, "every decision has a reason"
        assert "\n" not in decision.reason, f"a reason is one line: {decision.reason!r}"
        assert all(math.isfinite(value) for value in decision.signals.values()), "signals are finite numbers"


def _check_patience(policy: Policy, job: Job) -> None:
    """Workers that never arrive must not make a policy ask for more and more."""
    asked = Allocation.of(1)
    # One worker, as busy as can be, for ever.
    seen = Observation(0.0, 60.0, 0.0, 0.0, 0.0, 0.0, 1000.0, 0.0, 60.0, 50.0, Allocation.of(1), asked)
    counts = []
    for tick in range(1, 31):
        seen = replace(
            seen,
            time_s=60.0 * tick,
            arrived=60_000.0 * tick,
            processed=3_000.0 * tick,
            backlog=57_000.0 * tick,
            target=asked,
            workers=WorkerTable(("w1",), {"cpu": 1.0}),
        )
        asked = job.limits.cut(policy.decide(seen).target)
        counts.append(len(asked.workers))
    # A growing backlog may ask for more now and then; asking at every tick is running away.
    rises = sum(later > earlier for earlier, later in pairwise(counts[10:]))
    assert rises <= 5, f"asked for more in {rises} of 19 ticks while no worker came: {counts}"


def check_plant(plant: Plant, ticks: Iterable[object]) -> None:
    """A plant counts exactly, keeps time, and takes the same wish twice as once. Raises AssertionError."""
    last: Observation | None = None
    for number, _ in enumerate(ticks):
        seen = plant.observe()
        if seen is None:
            continue
        _check_observation(seen, last)
        target = seen.target.resized(1 + number % 3)
        plant.apply(target)
        plant.apply(target)
        last = seen
    assert last is not None, "a plant that never shows anything cannot be controlled"


def _check_observation(seen: Observation, last: Observation | None) -> None:
    assert seen.span_s > 0, "an interval has a length"
    assert (seen.backlog is None) == (seen.latency_s is None), "where the backlog is unknown, so is the latency"
    lost = 0.0 if seen.backlog is None else seen.arrived - seen.processed - seen.backlog
    assert abs(lost) <= _ROUNDING * max(1.0, seen.arrived), f"nothing is lost: {lost} events are"
    for name in ("arrived", "processed", "backlog", "input_rate", "latency_s", "capacity"):
        value = getattr(seen, name) or 0.0  # None is unknown
        assert math.isfinite(value), f"{name} is {value}"
        assert value >= 0, f"{name} is {value}: it must not be negative"
    if last is not None:
        assert seen.time_s > last.time_s, "time goes on"
        assert seen.arrived >= last.arrived, "a counter never falls"
        assert seen.processed >= last.processed, "a counter never falls"
    known = {worker.name for worker in seen.running.workers}
    assert set(seen.workers) <= known, "statistics are of workers that run"


def check_capacity_model(model: CapacityModel) -> None:
    """A capacity grows with the workers, and batches take their part of it. Raises AssertionError."""
    assert model.capacity(0) == 0, "no workers do nothing"
    before = 0.0
    for workers in range(1, 129):
        capacity = model.capacity(workers)
        assert math.isfinite(capacity), f"the capacity of {workers} workers is {capacity}"
        assert capacity >= before, f"{workers} workers do less than {workers - 1}: a capacity is flat after its peak"
        assert capacity > 0, "a worker does something"
        assert model.capacity(workers - 0.5) <= capacity, "a slow worker does not do more than a fast one"
        assert model.fixed_s(workers) >= 0, "a batch takes no negative time"
        _check_batches(model, workers)
        before = capacity


def _check_batches(model: CapacityModel, workers: int) -> None:
    capacity = model.capacity(workers)
    assert model.sustainable(workers, None) == capacity, "without batches all of the capacity is sustainable"
    longer = [model.sustainable(workers, trigger_s) for trigger_s in (1.0, 10.0, 100.0)]
    assert longer == sorted(longer), "a longer trigger sustains no less"
    assert longer[0] >= 0, "what is sustainable is not negative"
    assert longer[-1] <= capacity * (1 + _ROUNDING), "what is sustainable is at most the capacity"


def _day() -> Scenario:
    load = make_load((Sine(20.0, 200.0, 14400.0), FlashCrowd(300.0, 7200.0)), 14400.0, 60.0, seed=0)
    still = Scenario.constant(rate=1.0, capacity_per_worker=20.0)
    return replace(still, name="a day in four hours", load=load, worker=WorkerSpec(start_s=90.0))


def _driven(scenario: Scenario, policy: Policy) -> Iterator[tuple[Observation, Decision]]:
    plant = SimulatedPlant(scenario)
    for _ in plant.ticks():
        seen = plant.observe()
        assert seen is not None
        decision = policy.decide(seen)
        plant.apply(scenario.limits.cut(decision.target))
        yield seen, decision


def _decisions(policy: Policy, seen: Iterable[Observation]) -> list[Decision]:
    return [policy.decide(observation) for observation in seen]


def _counts(decisions: Iterable[Decision]) -> list[int]:
    return [len(decision.target.workers) for decision in decisions]
