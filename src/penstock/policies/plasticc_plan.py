"""A plan as the look-ahead policy remembers it: what holds when, and under which names its workers were launched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.observation import Observation
from penstock.policies.expectations import HEURISTICS, Sight
from penstock.solvers.layout import Stage
from penstock.solvers.lookahead import Planned

# Three and a half days in steps of five minutes; an hour's replay with a million of them took a minute.
STEPS_MOST = 1000


@dataclass
class Plan:
    """What was planned, and when."""

    begin_s: float
    planned: Planned
    names: dict[str, str] = field(default_factory=dict)
    """The slots of workers that were launched, by the name that the plan gave them."""
    _used: dict[int, frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        stages = self.planned.stages
        self._used = {each.step: frozenset(n for where in each.instances.values() for n in where) for each in stages}

    def stage(self, step: float) -> Stage:
        """What holds at some step."""
        return [each for each in self.planned.stages if each.step <= step + 1e-6][-1]

    def real(self, stage: Stage) -> dict[str, tuple[str, ...]]:
        """Its instances, by the names of slots; those whose worker is not asked for yet keep the plan's name."""
        names = self.names
        return {name: tuple([names.get(each, each) for each in where]) for name, where in stage.instances.items()}

    def wanted(self, step: float) -> set[str]:
        """Workers that have something to do, from a step on."""
        now = self.stage(step).step
        return {self.names.get(name, name) for at, used in self._used.items() if at >= now for name in used}


def paid_since(seen: Observation) -> dict[str, float]:
    """Since when each worker is paid that runs or was asked for."""
    since = seen.workers.columns.get("paid_since_s", 0.0)
    each: Sequence[float] = [since] * len(seen.workers.names) if isinstance(since, (int, float)) else since
    found: Mapping[str, float] = dict(zip(seen.workers.names, each, strict=True))
    return {**found, **seen.pending}


def check_spans(job: Job, least: float, epsilon: float, spans_s: tuple[float, float, float]) -> None:
    between("plasticc:least", least, 0.01, 1)
    between("plasticc:epsilon", epsilon, 0.001, 0.5)
    interval_s, plan_s, step_s = spans_s
    for name, span_s in (("step_s", step_s), ("plan_s", plan_s), ("interval_s", interval_s)):
        unit_s = job.tick_s if name == "step_s" else step_s
        between(f"plasticc:{name}", span_s, unit_s)
        between(f"plasticc:{name}", span_s, unit_s, STEPS_MOST * unit_s)
        if abs(span_s / unit_s - round(span_s / unit_s)) > 1e-6:
            raise BadInput(f"plasticc:{name}={span_s:g}: it must be a multiple of {unit_s:g} s")


def steps_ahead(job: Job, sight: Sight, interval_s: float, plan_s: float) -> int:
    """Steps that are looked ahead; a worker must have come before the last of them, and the next plan be made."""
    steps = round(interval_s / sight.step_s)
    start_s = max(kind.start_s or 0.0 for kind in job.kinds)
    least = math.floor(start_s / sight.step_s + 1e-9) + 1
    if sight.forecast in HEURISTICS:
        return max(steps, least)  # one value for all steps: it can be held for longer
    if plan_s > interval_s:
        raise BadInput(
            f"plasticc:interval_s={interval_s:g}: the forecast ends before the next plan; "
            f"give at least plan_s, {plan_s:g}"
        )
    if steps < least:
        raise BadInput(
            f"plasticc:interval_s={interval_s:g}: a worker starts in {start_s:g} s, after the forecast's end; "
            f"give at least {least * sight.step_s:g}"
        )
    return steps
