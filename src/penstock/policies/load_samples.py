"""What a filter is told of a step: the workers' metrics, and the input for one of them (paper 5 §2.2, 2.3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from penstock.core.job import Job
from penstock.core.loop import Step
from penstock.core.observation import Observation
from penstock.models.filters import Floats
from penstock.models.transition import Learnt, Sample, learn

COLUMNS = {"cpu": "cpu", "memory": "memory_mb"}


def load_by_model(seen: Observation) -> float | None:
    """A worker's load for one event a second, by what is told of the workers that run."""
    return len(seen.running.workers) / seen.capacity if seen.capacity > 0 and seen.running.workers else None


def column(seen: Observation, metric: str) -> Floats:
    """What each worker's meter shows; not a number where it shows nothing."""
    shown = np.asarray(seen.workers.columns.get(COLUMNS[metric], np.nan), dtype=np.float64)
    return np.broadcast_to(shown, len(seen.workers.names))


def measured(seen: Observation, metrics: tuple[str, ...], job: Job) -> tuple[tuple[str, ...], Floats]:
    """The workers whose meters show something, and what: a row for each, a column for each metric, as shares."""
    z = np.empty((len(seen.workers.names), len(metrics)))
    for place, metric in enumerate(metrics):
        shares = column(seen, metric)
        z[:, place] = shares / job.kinds[0].memory_mb if metric == "memory" else shares
    shows = np.flatnonzero(np.isfinite(z).all(axis=1))
    if len(shows) == len(z):
        return seen.workers.names, z
    return tuple(seen.workers.names[row] for row in shows), z[shows]


def sample_of(seen: Observation, names: tuple[str, ...], z: Floats, rate_before: float | None) -> Sample:
    """What a filter is told. The rate and its change are both divided by the workers that run now.

    The difference of the quotients would take a worker that joins a full fleet for a fall of the load, and send it
    away: 24,000 late images in a run of paper 5's pyramid instead of 1,000.
    """
    rate, workers = seen.input_rate, max(1, len(seen.running.workers))
    return Sample(names, z, np.array([rate, 0.0 if rate_before is None else rate - rate_before]) / workers)


def learnt_from(steps: Iterable[Step], metrics: tuple[str, ...], job: Job, lag: float | None = None) -> Learnt | None:
    """What an earlier run teaches a filter: a journal, or a replay; None if it shows too little."""
    return learn(samples(steps, metrics, job), lag)


def samples(steps: Iterable[Step], metrics: tuple[str, ...], job: Job) -> Iterator[Sample]:
    """The steps of a run as a filter saw them."""
    rate: float | None = None
    for step in steps:
        names, z = measured(step.seen, metrics, job)
        if names:
            yield sample_of(step.seen, names, z, rate)
        rate = step.seen.input_rate
