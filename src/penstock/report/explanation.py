"""Why a step was taken, and what a run came to, read from its journal."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.journal import Header, Journal
from penstock.core.loop import Step
from penstock.core.score import Score, Scorer
from penstock.report import show
from penstock.runs.actions import Action, Watch

ACTIONS_LAST = 10
# What a person sees of an observation, and how it is written.
SEEN: Mapping[str, Callable[[float], str]] = {
    "input_rate": lambda value: f"{show.count(value)}/s",
    "capacity": lambda value: f"{show.count(value)}/s",
    "latency_s": show.duration,
    "backlog": show.count,
    "running": show.count,
    "asked": show.count,
    "load": show.share,
}
NAMES = {"input_rate": "input rate", "latency_s": "latency", "running": "workers running", "asked": "workers asked for"}


@dataclass(frozen=True, slots=True)
class Why:
    """One step, and the one before it where there is one."""

    header: Header
    number: int
    step: Step
    before: Step | None
    missed: bool | None
    """None: nobody can tell."""

    @property
    def seen(self) -> dict[str, float | None]:
        return seen_numbers(self.step)

    @property
    def changed(self) -> dict[str, tuple[float | None, float | None]]:
        """What is seen otherwise than a step ago."""
        if self.before is None:
            return {}
        was = seen_numbers(self.before)
        return {name: (was[name], value) for name, value in self.seen.items() if was.get(name, value) != value}

    @property
    def cut(self) -> bool:
        return len(self.step.decision.target.workers) != len(self.step.target.workers)


@dataclass(frozen=True, slots=True)
class Digest:
    """A run in short."""

    header: Header
    score: Score
    steps: int
    actions: tuple[Action, ...]
    """The last of them."""


def why(journal: Journal, number: int) -> Why:
    """What was seen, decided and changed at a step; the first step is 1."""
    if number < 1:
        raise BadInput(f"there is no step {number}: the first step is 1")
    before, arrived, count = None, 0.0, 0
    for count, step in enumerate(journal, start=1):
        if count == number:
            missed = journal.header.objective.missed(step.seen, step.seen.arrived - arrived, step.could)
            return Why(journal.header, number, step, before, missed)
        before, arrived = step, step.seen.arrived
    raise BadInput(f"there is no step {number}: {journal.path} has {f'steps 1 … {count}' if count else 'no steps'}")


def digest(journal: Journal) -> Digest:
    """The score, and the last scaling actions."""
    header = journal.header
    scorer, watch = Scorer(header.objective, header.price, header.kinds), Watch()
    actions: deque[Action] = deque(maxlen=ACTIONS_LAST)
    count = 0
    for count, step in enumerate(journal, start=1):
        scorer.add(step)
        action = watch.action(step, count)
        if action is not None:
            actions.append(action)
    if not count:
        raise BadInput(f"{journal.path} has no steps: the run wrote its header and nothing more")
    return Digest(header, scorer.result(), count, tuple(actions))


def shown(name: str, value: float | None) -> str:
    """A number of `SEEN` in words.

    >>> shown("input_rate", 1200.0), shown("backlog", None)
    ('1.2k/s', 'unknown')
    """
    return "unknown" if value is None else SEEN[name](value)


def change(before: Allocation, after: Allocation) -> str:
    """What an allocation became.

    >>> change(Allocation.of(2), Allocation.of(3)), change(Allocation.of(2), Allocation.of(2))
    ('2 → 3 workers', '2 workers, as before')
    >>> change(Allocation.of(2), Allocation(Allocation.of(2).workers, alternate={"visitors": "sampled"}))
    '2 workers, visitors by sampled'
    """
    if before == after:
        return f"{show.several(len(after.workers), 'worker')}, as before"
    switched = [f"{name} by {kind}" for name, kind in after.alternate.items() if kind != before.alternate.get(name, "")]
    if len(before.workers) != len(after.workers):
        resized = f"{len(before.workers)} → {show.several(len(after.workers), 'worker')}"
        return ", ".join([resized, *switched])
    moved = sorted(knob.value.removeprefix("the ") for knob in after.turned(before) - {Knob.ALTERNATE})
    other = [f"other {', '.join(moved)}"] if moved else []
    return ", ".join([show.several(len(after.workers), "worker"), *other, *switched])


def why_record(found: Why) -> dict[str, Any]:
    """A step for programs."""
    step = found.step
    return {
        "step": found.number,
        "time_s": step.seen.time_s,
        "time": show.moment(step.seen.time_s, found.header.origin_s),
        "policy": found.header.policy,
        "seen": found.seen,
        "objective": str(found.header.objective),
        "missed": found.missed,
        "decision": {
            "workers": len(step.decision.target.workers),
            "reason": step.decision.reason,
            "signals": dict(step.decision.signals),
        },
        "applied": {"workers": len(step.target.workers), "change": change(step.seen.target, step.target)},
        "cut": found.cut,
        "limits": asdict(found.header.limits),
        "changed": {name: {"before": was, "now": now} for name, (was, now) in found.changed.items()},
    }


def digest_record(found: Digest) -> dict[str, Any]:
    """A run for programs."""
    header = asdict(found.header) | {"objective": str(found.header.objective)}
    return {
        "header": header,
        "steps": found.steps,
        "score": asdict(found.score),
        "last_actions": [asdict(action) for action in found.actions],
    }


def seen_numbers(step: Step) -> dict[str, float | None]:
    """What a person sees of an observation, by the names of `SEEN`; None is unknown."""
    seen = step.seen
    values: dict[str, float | None] = {"input_rate": seen.input_rate, "capacity": seen.capacity}
    values |= {"latency_s": seen.latency_s, "backlog": seen.backlog}
    values |= {"running": len(seen.running.workers), "asked": len(seen.target.workers)}
    return values | ({"load": seen.workers.mean("cpu")} if seen.workers.columns else {})
