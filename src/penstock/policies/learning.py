"""A policy beside the capacity model that it decides by, which learns from the same observations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from penstock.core.loop import Decision, Policy
from penstock.core.observation import Batch, Observation
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.learned import Learned

# What a restart shows again: sizes of batches that a job sees in the course of some hours.
MEMORY_S = 4 * 3600.0


class Learning:
    """Whatever was learnt came from what the policy saw: a restart that shows it again decides the same.

    >>> from penstock.policies.static import Static
    >>> from penstock.sim.scenario import Scenario
    >>> job = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()
    >>> Learning(Static(job, workers=3), Learned()).memory_s
    14400.0
    """

    def __init__(self, inside: Policy, model: Learned | AlternateCapacity) -> None:
        self.inside, self._model = inside, model
        self.needs, self.memory_s = inside.needs, max(MEMORY_S, inside.memory_s)
        self._ended: dict[str, float] = {}
        self._alternate: Mapping[str, str] | None = None

    def decide(self, seen: Observation) -> Decision:
        is_same, self._alternate = self._alternate in (None, seen.running.alternate), seen.running.alternate
        if isinstance(self._model, AlternateCapacity):
            self._model.follow(seen.running.alternate)
        self._model.mix({name: stats.input_rate for name, stats in seen.operators.items()})
        for query, batch in self._new_batches(seen):
            if not is_same:  # nobody tells which implementation did it
                continue
            ended_s = seen.time_s - batch.age_s
            crew = [f"{name}@{since_s}" for name, since_s in _running(seen) if since_s < ended_s]
            self._model.note(query, batch.rows, batch.execution_s - batch.fixed_s, batch.fixed_s, crew)
        decision = self.inside.decide(seen)
        return decision if self._model.is_known or not _has_work(seen) else _kept(decision, seen)

    def _new_batches(self, seen: Observation) -> Iterator[tuple[str, Batch]]:
        """The last batch of each query, if it is another than at the last look."""
        found = {name: (stats.batch, stats.processed) for name, stats in seen.operators.items()}
        if not any(batch for batch, _ in found.values()):
            found = {"": (seen.batch, seen.processed)}  # journals of earlier versions tell it of the job alone
        for query, (batch, processed) in found.items():
            if batch is None:
                continue
            mark = float(batch.number) if batch.number is not None else (processed or 0.0)
            if self._ended.get(query) != mark:
                self._ended[query] = mark
                yield query, batch


def _has_work(seen: Observation) -> bool:
    return seen.input_rate > 0 or bool(seen.backlog)


def _kept(decision: Decision, seen: Observation) -> Decision:
    """While nobody knows what workers do, none is given up: of four that had 227,000 rows to do, three once were."""
    if set(seen.target.workers) <= set(decision.target.workers):
        return decision
    return replace(decision, target=seen.target, reason=f"{decision.reason} (kept: no batch has told yet what they do)")


def _running(seen: Observation) -> Iterator[tuple[str, float]]:
    """Workers, and since when each runs: one that came back in its place is another."""
    for name, stats in seen.workers.items():
        yield name, stats.runs_since_s or 0.0
