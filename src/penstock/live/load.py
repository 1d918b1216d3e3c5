"""How busy workers are where batches follow each other without a rest: slots then have tasks at any rate."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.job import CapacityModel, Job
from penstock.live.queue import QueryQueue
from penstock.models.learned_line import LearnedLine

Line = CapacityModel | LearnedLine

# Where the objective is not a latency, no batch should become longer than this.
LONGEST_S = 30.0
# A line through two batches may be wrong: it asks for no more than so many times the workers at once.
LOAD_MOST = 4.0
# While batches take less than this part of what they may, workers are not overloaded, whatever a line says that was
# drawn through the first, cold ones. Longer ones grow with the load.
SHORT = 0.25


def batch_length_s(job: Job) -> float:
    """How long a batch may take: its trigger, or, without one, half of what the objective allows an event, which may
    have to wait for the batch before its own."""
    if job.trigger_s:
        return job.trigger_s
    return job.objective.latency_s / 2 if job.objective.latency_s else LONGEST_S


def batch_load(queues: Iterable[tuple[QueryQueue, Line]], workers: int, job: Job) -> float | None:
    """Rows that come, and those beyond two batches that wait, against what the workers could do by the line through
    their batches, if these were as long as they may be.

    None before the line is known: one batch does not tell rows from the launch of tasks. Queries share the workers, so
    their loads add up.
    """
    total, longest_s = 0.0, batch_length_s(job)
    for queue, line in queues:
        if not queue.input_rate and not queue.backlog:
            continue  # without rows there is no batch, and nothing to launch
        last_s = queue.last.execution_s if queue.last is not None else 0.0
        waiting = max(0.0, (queue.backlog or 0.0) - 2 * last_s * queue.input_rate)
        needed = _needed(line, queue.input_rate + waiting / longest_s, workers, longest_s)
        if needed is None:
            return None
        total += needed / max(1, workers)
    return min(LOAD_MOST, total)


def _needed(line: Line, rate: float, workers: int, batch_s: float) -> float | None:
    if isinstance(line, LearnedLine):
        return line.needed(rate, batch_s)
    could = line.sustainable(workers, batch_s)
    return workers * rate / could if could > 0 else None


def bounded(load: float, slots: float, part: float) -> float:
    """A computed load, beside the time that slots had a task and the part that the last batch took of what it may.

    >>> bounded(1.3, slots=0.5, part=0.6), bounded(1.3, slots=0.5, part=0.1), bounded(0.1, slots=0.5, part=0.1)
    (1.3, 0.5, 0.1)
    """
    return load if part > SHORT else min(load, slots)
