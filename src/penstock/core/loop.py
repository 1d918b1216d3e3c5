"""The loop that joins a policy and a plant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput, PenstockError, PlantError
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.core.text import one_line


@dataclass(frozen=True, slots=True)
class Decision:
    """What is wanted, and why: one line for a person, with numbers."""

    target: Allocation
    reason: str
    signals: Mapping[str, float] = field(default_factory=dict)
    """Curves for the report; adopted parameters too."""


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the loop: a line of the journal."""

    seen: Observation
    decision: Decision
    target: Allocation
    """What was applied: the decision's target within the limits; where that was refused, what was asked for before."""
    could: float | None = None
    """Events per second that the workers could really have served in the interval; None where only a model knows.

    A simulator knows it; the score judges by it, and no policy sees it."""


class Policy(Protocol):
    """Decides. Built as `Mine(job, **parameters)`."""

    needs: frozenset[Knob]
    memory_s: float
    """How much of the past a restarted controller must replay."""
    # It may have `needs_lag = True`: then it is refused where nobody tells what waits.
    # It may have `recall(signals)`, for what it once chose and keeps for longer than `memory_s`: a restarted controller
    # tells it the signals of each past decision, just before that observation is shown again.

    def decide(self, seen: Observation) -> Decision: ...


class Plant(Protocol):
    """Is controlled: the simulator, a recorded run, or a Spark application."""

    knobs: frozenset[Knob]

    def observe(self) -> Observation | None:
        """What is to be seen now; `None` when nothing whole is. Raises PlantError when it is broken."""
        ...

    def apply(self, target: Allocation) -> None:
        """Ask for this. Idempotent, returns at once, may raise PlantError."""
        ...


@dataclass(slots=True)
class Faults:
    """A plant that breaks down: what runs stays, it is tried again at every tick, and the journal's reasons say so.

    A plant that cannot be seen yields no step, so whoever drives the ticks may read the counts meanwhile.
    """

    failures_max: int = 0
    """So many times in a row unseen, and `safe_workers` (within the limits) are asked for; 0: never."""
    safe_workers: int | None = None
    is_paused: Callable[[], bool] = lambda: False
    """A person's pause holds for a plant that is not seen, too."""
    awaited: int = 0
    """Times in a row that there was nothing whole to see, as before a first batch has ended."""
    unseen: int = 0
    """Times in a row that it could not be seen."""
    refused: int = 0
    """Times in a row that a target was refused, by the plant or before it got there."""
    why: str = ""
    """What the plant said last."""
    _asked: Allocation | None = None
    _notes: list[str] = field(default_factory=list)

    def observe(self, plant: Plant) -> Observation | None:
        """What is to be seen now, if anything is."""
        try:
            seen = plant.observe()
        except PlantError as error:
            self.unseen, self.why = self.unseen + 1, _line(error)
            self._pin(plant)
            return None
        self.awaited = self.awaited + 1 if seen is None else 0
        if seen is not None:
            if self.unseen:
                self._notes.append(f"not seen {self.unseen} times: {self.why}")
            self.unseen, self._asked = 0, seen.target
        return seen

    def apply(self, plant: Plant, target: Allocation, seen: Observation) -> Allocation:
        """What is asked for now: the target, or, where the plant refuses it, what was asked for before."""
        try:
            plant.apply(target)
        except PlantError as error:
            return self.refuse(error, seen)
        if self.refused:
            self._notes.append(f"applied, after {self.refused} refusals")
        self.refused, self._asked = 0, target
        return target

    def refuse(self, error: PenstockError, seen: Observation) -> Allocation:
        """What was asked for before stays; the reason is in the journal."""
        self.refused, self.why = self.refused + 1, _line(error)
        again = "still not applied" if self.refused > 1 else f"not applied, tried again every tick: {self.why}"
        self._notes.append(again)
        return seen.target

    def note(self, what: str) -> None:
        """Something of the plant that the next step's reason is to tell."""
        self._notes.append(what)

    def told(self, decision: Decision) -> Decision:
        """The decision with what there is to tell of the plant."""
        if not self._notes:
            return decision
        notes, self._notes = "; ".join(self._notes), []
        return replace(decision, reason=f"{decision.reason} ({notes})")

    def _pin(self, plant: Plant) -> None:
        blind = self.failures_max and self.unseen >= self.failures_max
        if not blind or self.safe_workers is None or self._asked is None or self._asked.instances or self.is_paused():
            return
        # Asked for at every blind tick: targets are idempotent, and this one may have been refused.
        with suppress(PlantError, BadInput):
            plant.apply(self._asked.resized(self.safe_workers))


def control(
    plant: Plant, policy: Policy, limits: Limits, ticks: Iterable[object], faults: Faults | None = None
) -> Iterator[Step]:
    """Observe, decide, limit, apply, once a tick. `ticks` is the clock: the simulator's own, or one that sleeps."""
    check_knobs(plant, policy)
    faults = faults or Faults()
    for _ in ticks:
        seen = faults.observe(plant)
        if seen is None:
            continue
        decision = policy.decide(seen)
        try:
            wanted = permitted(decision.target, seen.target, policy.needs, limits)
        except BadInput as error:
            target = faults.refuse(error, seen)
        else:
            target = faults.apply(plant, wanted, seen)
        yield Step(seen, faults.told(decision), target, getattr(plant, "could", None))


def permitted(target: Allocation, asked: Allocation, needs: frozenset[Knob], limits: Limits) -> Allocation:
    """The target within the limits. BadInput where it cannot be cut, or turns a knob that its policy does not declare.

    >>> permitted(Allocation.of(9), Allocation.of(1), frozenset({Knob.WORKERS}), Limits(1, 4)) == Allocation.of(4)
    True
    """
    if target is not asked and (undeclared := target.turned(asked) - needs):
        what = " and ".join(sorted(knob.value for knob in undeclared))
        raise BadInput(f"the decision changes {what}, which the policy does not declare in its needs")
    return limits.cut(target)


def check_knobs(plant: Plant, policy: Policy) -> None:
    """Refuse a policy that turns what this plant cannot change, before the first tick."""
    lacking = policy.needs - plant.knobs
    if lacking:
        while hasattr(policy, "inside"):  # guards need what the policy within them does
            policy = policy.inside
        what = " and ".join(sorted(knob.value for knob in lacking))
        raise BadInput(f"{type(policy).__name__} needs {what}, which this plant cannot change")


def needs_lag(policy: object) -> bool:
    """Can this policy, or the one within these guards, not do without the backlog?"""
    inside = getattr(policy, "inside", None)
    return bool(getattr(policy, "needs_lag", False)) or (inside is not None and needs_lag(inside))


def _line(error: PenstockError) -> str:
    return one_line(" ".join(str(error).split()))
