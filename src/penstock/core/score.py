"""What a run cost, what it missed, and how often it scaled: computed from its steps alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.allocation import Allocation, Knob
from penstock.core.kinds import WorkerKind, kind_of
from penstock.core.loop import Step
from penstock.core.objective import Objective, Price
from penstock.core.observation import Observation
from penstock.core.responses import Responses


@dataclass(frozen=True, slots=True)
class Score:
    """A run in numbers. A comparison always shows cost, violations and scaling actions together."""

    cost: float
    violation_share: float
    """Of the time in which the objective was known to be missed."""
    violations: int
    """Stretches of time."""
    late_events: float
    scaling_actions: int
    """Ticks whose applied target differs from the one before, whatever its size."""
    workers_started: int
    workers_stopped: int
    latency_mean_s: float | None
    """None, like the percentiles, where the age of events was never known."""
    latency_p50_s: float | None
    latency_p95_s: float | None
    latency_p99_s: float | None
    load: float
    """What was processed, of what the running workers could have."""
    worker_hours: float
    arrived: float
    processed: float
    backlog: float | None
    duration_s: float
    unknown_share: float = 0.0
    """Of the time in which nobody could tell whether the objective held."""
    operators_moved: int = 0
    """Operators whose instances changed their workers, over all actions."""


def score(steps: Iterable[Step], objective: Objective, price: Price, kinds: Sequence[WorkerKind] = ()) -> Score:
    """The score of a finished run."""
    scorer = Scorer(objective, price, kinds)
    for step in steps:
        scorer.add(step)
    return scorer.result()


class Scorer:
    """Adds up steps as they come. Time is the sum of the spans, so a gap in a trace costs nothing."""

    def __init__(self, objective: Objective, price: Price, kinds: Sequence[WorkerKind] = ()) -> None:
        self._objective = objective
        self._price = price
        self._clock_s = 0.0
        self._bill = _Bill(price, kinds)
        self._target: Allocation | None = None
        self._last: Observation | None = None
        self._missed_s = self._unknown_s = self._late = self._could = 0.0
        self._stretches = self._actions = self._started = self._stopped = self._moved = 0
        self._missing = False
        self._count = self._sum_s = 0.0
        self._unit_s = 1.0
        self._bins: dict[int, float] = {}

    def add(self, step: Step) -> None:
        seen, last = step.seen, self._last
        if self._target is None:
            self._target = seen.target
            self._bill.change(seen.target, 0.0)
        self._clock_s += seen.span_s
        arrived = seen.arrived - (last.arrived if last else 0.0)
        processed = seen.processed - (last.processed if last else 0.0)
        could = seen.capacity if step.could is None else step.could
        self._judge(seen, arrived, processed, could)
        self._could += max(could * seen.span_s, processed)
        if last is None or seen.running is not last.running:
            self._bill.replaced(seen, self._clock_s)
        if seen.drained_s:
            self._bill.drained(seen.drained_s)
        if step.target is not self._target:
            self._scaled(step.target)
        self._last = seen

    def _judge(self, seen: Observation, arrived: float, processed: float, could: float) -> None:
        missed = self._objective.missed(seen, arrived, could)
        if missed is None:
            self._unknown_s += seen.span_s
        elif missed:
            self._missed_s += self._objective.missed_s(seen, missed)
            self._stretches += not self._missing
        self._missing = bool(missed)
        bound_s = self._objective.latency_s
        if bound_s is None and self._objective.throughput is None:
            self._late += max(0.0, arrived - could * seen.span_s) if missed else 0.0
        late = 0.0
        for path in _responses(seen, processed):
            self._note(path)
            # An event may end on several paths; it is late if it is on one of them.
            if bound_s is not None and (missed or len(path.bins) > 1 or path.sum_s > bound_s * path.count):
                late = max(late, path.later_than(bound_s))
        self._late += late

    def _note(self, path: Responses) -> None:
        self._count += path.count
        self._sum_s += path.sum_s
        self._unit_s = path.unit_s
        own = self._bins
        for number, events in path.bins.items():
            own[number] = own.get(number, 0.0) + events

    def _scaled(self, target: Allocation) -> None:
        before, after = self._target, target
        if before is None or before == after:
            return
        had, has = {worker.name for worker in before.workers}, {worker.name for worker in after.workers}
        # A batch size that follows the workers is no scaling of its own.
        self._actions += bool(after.turned(before) - {Knob.BATCH_SIZE})
        self._started += len(has - had)
        self._stopped += len(had - has)
        self._moved += _moved(before, after)
        self._bill.change(after, self._clock_s)
        self._target = after

    def result(self) -> Score:
        last, span = self._last, self._clock_s or 1.0
        responses = Responses(self._count, self._sum_s, self._bins, self._unit_s)
        cost, paid_s = self._bill.total(self._clock_s)
        # Events of which no age is known are no events without latency.
        told = responses if self._count or not self._unknown_s else None
        return Score(
            cost=cost,
            violation_share=self._missed_s / span,
            violations=self._stretches,
            late_events=self._late,
            scaling_actions=self._actions,
            workers_started=self._started,
            workers_stopped=self._stopped,
            latency_mean_s=told.mean if told else None,
            latency_p50_s=told.percentile(0.50) if told else None,
            latency_p95_s=told.percentile(0.95) if told else None,
            latency_p99_s=told.percentile(0.99) if told else None,
            load=(last.processed if last else 0.0) / (self._could or 1.0),
            worker_hours=paid_s / 3600.0,
            arrived=last.arrived if last else 0.0,
            processed=last.processed if last else 0.0,
            backlog=last.backlog if last else 0.0,
            duration_s=self._clock_s,
            unknown_share=self._unknown_s / span,
            operators_moved=self._moved,
        )


def _moved(before: Allocation, after: Allocation) -> int:
    """Operators that had a place and have another now."""
    places = after.instances
    return sum(name in places and set(places[name]) != set(was) for name, was in before.instances.items())


def _responses(seen: Observation, processed: float) -> Iterable[Responses]:
    """Without response times all that was served is taken to be as late as the oldest event, if its age is known."""
    if seen.paths:
        return seen.paths.values()
    return () if seen.latency_s is None else (Responses.spread(seen.latency_s, seen.latency_s, processed),)


class _Bill:
    """Rentals: a worker is paid from the request on, until it is given up (and has drained) or fails."""

    def __init__(self, price: Price, kinds: Sequence[WorkerKind]) -> None:
        self._price, self._kinds = price, kinds
        self._since: dict[str, float] = {}
        self._kind: dict[str, WorkerKind | None] = {}
        self._seen_since: dict[str, float] = {}
        self._cost = self._paid_s = 0.0
        self._closed: dict[str, tuple[float, WorkerKind | None]] = {}

    def change(self, target: Allocation, now_s: float) -> None:
        wanted = {worker.name: worker.kind for worker in target.workers}
        for name in [name for name in self._since if name not in wanted]:
            self._close(name, now_s)
        for name, kind in wanted.items():
            self._since.setdefault(name, now_s)
            self._kind[name] = kind_of(self._kinds, kind) if self._kinds else None

    def replaced(self, seen: Observation, now_s: float) -> None:
        """A worker that failed was paid until then, and its replacement from then on: `paid_since_s` has moved."""
        since = seen.workers.columns.get("paid_since_s", 0.0)
        for position, name in enumerate(seen.workers.names):
            begun = since if isinstance(since, (int, float)) else since[position]
            if self._seen_since.setdefault(name, begun) < begun and name in self._since:
                failed = max(self._since[name], now_s - (seen.time_s - begun))
                self._close(name, failed)
                self._since[name] = failed
            self._seen_since[name] = begun

    def drained(self, served_s: Mapping[str, float]) -> None:
        """A worker that was given up and serves until its batch has ended is paid until then."""
        for name, more_s in served_s.items():
            paid_s, kind = self._closed.get(name, (0.0, None))
            self._cost += self._price.of(paid_s + more_s, kind) - self._price.of(paid_s, kind)
            self._paid_s += more_s
            self._closed[name] = (paid_s + more_s, kind)

    def total(self, now_s: float) -> tuple[float, float]:
        """Cost and paid seconds, with what still runs billed until now."""
        open_s = {name: now_s - since for name, since in self._since.items()}
        owed = sum(self._price.of(paid_s, self._kind[name]) for name, paid_s in open_s.items())
        return self._cost + owed, self._paid_s + sum(open_s.values())

    def _close(self, name: str, now_s: float) -> None:
        paid_s = now_s - self._since.pop(name)
        self._closed[name] = (paid_s, self._kind[name])
        self._cost += self._price.of(paid_s, self._kind[name])
        self._paid_s += paid_s
