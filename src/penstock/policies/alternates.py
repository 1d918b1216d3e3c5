"""Cheaper implementations as a last resort: taken where all workers together are too few, left where there is room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.core.allocation import Allocation, Knob
from penstock.core.dataflow import Dataflow
from penstock.core.job import Job
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation
from penstock.models.alternate_capacity import AlternateCapacity

# A better implementation comes back when it would serve what is needed and a fifth more, for so long.
ROOM, ROOM_S, ROOM_TICKS = 0.2, 60.0, 4


def can_switch(job: Job) -> bool:
    """Can implementations be switched without placing them?"""
    has_some = any(len(each.alternates) > 1 for each in job.dataflow.operators)
    return has_some and Knob.ALTERNATE in job.knobs and Knob.PLACEMENT not in job.knobs


def knowing_alternates(job: Job) -> Job:
    """The job with a capacity that follows its alternates, where they can be switched."""
    if not can_switch(job) or isinstance(job.capacity, AlternateCapacity):
        return job
    return replace(job, capacity=AlternateCapacity(job.capacity, job.dataflow))


class Following:
    """Around any policy: the capacity that it counts on is that of the implementations that run."""

    def __init__(self, inside: Policy, capacity: AlternateCapacity) -> None:
        self.inside, self._capacity = inside, capacity
        self.needs, self.memory_s = inside.needs, inside.memory_s

    def decide(self, seen: Observation) -> Decision:
        self._capacity.follow(seen.running.alternate)
        return self.inside.decide(seen)


def ladder(flow: Dataflow) -> tuple[Mapping[str, str], ...]:
    """From the most valuable implementations to the cheapest, each time the switch that saves most for its value.

    >>> from penstock.core.dataflow import Alternate, Operator
    >>> full, half = Alternate("full", 1.0), Alternate("half", 0.5, value=0.9)
    >>> [dict(rung) for rung in ladder(Dataflow((Operator("count", alternates=(full, half)),)))]
    [{'count': 'full'}, {'count': 'half'}]
    """
    operators = [each for each in flow.operators if each.alternates]
    now = {each.name: max(each.alternates, key=lambda one: (one.value, -one.cost_s)).name for each in operators}
    rungs: list[Mapping[str, str]] = [dict(now)]
    while True:
        demand_s, best, most = flow.switched(now).demand_s, None, 0.0
        for operator in operators:
            value = operator.active(now[operator.name]).value
            for other in operator.alternates:
                saved = demand_s - flow.switched(now | {operator.name: other.name}).demand_s
                gain = saved / max(1e-9, value - other.value)
                if saved > 1e-12 and other.value <= value and gain > most:
                    best, most = now | {operator.name: other.name}, gain
        if best is None:
            return tuple(rungs)
        now = best
        rungs.append(dict(now))


class LastResort:
    """Which implementations run, for a policy that decides how many workers there are."""

    def __init__(self, job: Job, batch_s: float | None, is_used: bool = True) -> None:
        self._job, self._batch_s = job, batch_s
        is_known = is_used and can_switch(job) and isinstance(job.capacity, AlternateCapacity)
        self._rungs = ladder(job.dataflow) if is_known else ()
        self._room_s = 0.0

    @property
    def needs(self) -> frozenset[Knob]:
        return frozenset({Knob.ALTERNATE} if self._rungs else ())

    def applied(
        self, seen: Observation, target: Allocation, rates: tuple[float, float], ratio: float
    ) -> tuple[Allocation, str]:
        """The target with its implementations, and what there is to say of them.

        `rates`: events a second that must be served now, and that are to come: while nothing waits, little is due at
        once, and that is no room. Workers do `ratio` of what the model says.
        """
        needed = rates[0]
        if not self._rungs:
            return target, ""
        now = self._now(seen.target)
        most = self._job.limits.workers_max
        is_full = len(seen.running.workers) >= most <= len(target.workers)
        if is_full and needed > self._does(now, ratio):
            rung = next((each for each in range(now, len(self._rungs)) if self._does(each, ratio) >= needed), -1)
            rung = len(self._rungs) - 1 if rung < 0 else rung
        else:
            rung = self._raised(seen, now, max(rates), ratio)
        if rung == now == self._now(seen.running) == 0:
            return self._with(target, 0), ""
        # Value comes before cost: no worker is given up before what was degraded is as it was, and runs. How many the
        # better one needs is not known before: by the cheaper one's speed, five were cut to one with the switch.
        if rung == 0:
            more = f"; there is room: {self._names(0)} again"
            return self._with(self._full(seen, target), 0), more if now else ""
        short = f"{most} workers are too few" if rung > now else "degraded until there is room"
        return self._with(self._full(seen, target), rung), f"; {short}: {self._names(rung)}"

    def _full(self, seen: Observation, target: Allocation) -> Allocation:
        """With all workers that there may be, and with those that run among them.

        Of a target cut to two, five again are three others: asked for anew at each tick, they never came.
        """
        full = seen.target.resized(self._job.limits.workers_max)
        return replace(target, workers=full.workers, names_given=full.names_given)

    def _raised(self, seen: Observation, now: int, needed: float, ratio: float) -> int:
        """One rung up, where there has been room for it for a while."""
        has_room = now > 0 and self._does(now - 1, ratio) >= (1 + ROOM) * needed
        self._room_s = self._room_s + seen.span_s if has_room else 0.0
        if not has_room or self._room_s < max(ROOM_S, ROOM_TICKS * self._job.tick_s):
            return now
        self._room_s = 0.0
        return now - 1

    def _does(self, rung: int, ratio: float) -> float:
        """Events a second of all workers that there may be."""
        model = self._job.capacity
        assert isinstance(model, AlternateCapacity)
        return (
            model.sustainable_at(model.cost_of(self._rungs[rung]), self._job.limits.workers_max, self._batch_s) * ratio
        )

    def _now(self, asked: Allocation) -> int:
        first = {each.name: each.active().name for each in self._job.dataflow.operators if each.alternates}
        wanted = first | dict(asked.alternate)
        return next((place for place, rung in enumerate(self._rungs) if rung == wanted), 0)

    def _with(self, target: Allocation, rung: int) -> Allocation:
        wanted = self._rungs[rung]
        if not target.alternate and rung == 0:
            return target  # nobody asked for anything yet, and what runs by itself are the first ones
        return target if target.alternate == wanted else replace(target, alternate=wanted)

    def _names(self, rung: int) -> str:
        best = self._rungs[0]
        changed = {name: kind for name, kind in self._rungs[rung].items() if kind != best[name]}
        return ", ".join(f"{name} by {kind}" for name, kind in (changed or best).items())
