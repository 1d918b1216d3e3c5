"""How many workers, and which implementations, in each of the next steps, where all workers serve one queue: exactly.

Dynamic programming over workers, implementations and what waits, so that an instance more, another implementation and
a worker launched ahead are weighed against each other at once, over all steps (paper 3 walks through them greedily).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# What waits is counted in so many parts of all that there is to serve, rounded up: a plan serves no less than it says.
PARTS = 240
# What changes cost, in the value of a step: a worker's first tasks are slow, and a query that is switched stands still
# for 2 to 7 seconds (seen on half a core). Without them, plans that are nearly alike took turns.
WORKER, SWITCH = 0.02, 0.15


@dataclass(frozen=True)
class Steps:
    """What is known of the next steps."""

    arriving: Floats
    """Events in each step."""
    backlog: float
    serves: Floats
    """Events in a step, by implementations (the most valuable first) and by workers, from 0."""
    values: Floats
    """Of the implementations, 0…1."""
    price: float
    """Of a worker for a step, in units of value."""
    workers: tuple[int, int]
    """The fewest and the most."""
    here: Floats
    """Workers that there can be at most in each step: a new one comes a start after it was asked for."""
    left: Floats
    """Events that may wait at the end of each step: in the last one alone, every plan would put off what it can."""
    now: tuple[int, int]
    """Workers and implementations of the step before."""


@dataclass(frozen=True)
class Stages:
    """A plan: workers and implementations of each step."""

    workers: tuple[int, ...]
    implementations: tuple[int, ...]
    waits: float
    """At most, in the end."""
    is_feasible: bool


def planned(steps: Steps) -> Stages:
    """The plan of the highest profit that lets no more wait than may; in a step where none does, those that let least.

    >>> import numpy as np
    >>> serves = np.array([[0.0, 10.0, 20.0], [0.0, 20.0, 40.0]])
    >>> rates, values = np.array([10.0, 18.0]), np.array([1.0, 0.7])
    >>> told = Steps(rates, 0.0, serves, values, 0.1, (1, 2), np.full(2, 2.0), np.zeros(2), (1, 0))
    >>> planned(told).workers, planned(told).implementations
    ((1, 2), (0, 0))

    Where a second worker comes too late, the cheaper implementation helps:

    >>> from dataclasses import replace
    >>> planned(replace(told, here=np.array([1.0, 1.0]))).implementations
    (0, 1)
    """
    unit = (steps.backlog + float(steps.arriving.sum())) / PARTS or 1.0
    options = [
        (workers, which)
        for which in range(len(steps.values))
        for workers in range(steps.workers[0], steps.workers[1] + 1)
    ]
    profit = np.array([steps.values[which] - steps.price * workers for workers, which in options])
    serves = np.array([steps.serves[which, workers] for workers, which in options])
    changes = _changes(options, options)
    worth = np.full((len(options), PARTS + 2), -np.inf)
    first = int(np.ceil(steps.backlog / unit - 1e-9))
    worth[:, min(first, PARTS + 1)] = -_changes([steps.now], options)[0]
    is_feasible = True
    picks: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for step, arriving in enumerate(steps.arriving):
        if step:
            # The best step before, for each option and each backlog.
            moved = worth[:, None, :] - changes[:, :, None]
            before, worth = moved.argmax(axis=0), moved.max(axis=0)
        else:
            before = np.tile(np.arange(len(options))[:, None], (1, PARTS + 2))
        fits = np.array([workers <= steps.here[step] + 1e-9 or workers == steps.workers[0] for workers, _ in options])
        worth = np.where(fits[:, None], worth + profit[:, None], -np.inf)
        worth, came = _served(worth, float(arriving) / unit, serves / unit)
        is_feasible = _cut(worth, steps.left[step] / unit, serves) and is_feasible
        picks.append((before, came))
    return _traced(options, worth, picks, unit, is_feasible)


def _cut(worth: Floats, left: float, serves: Floats) -> bool:
    """Leave out what lets too much wait; where all do, all but what serves most and lets least wait."""
    parts = np.flatnonzero(np.isfinite(worth).any(axis=0))
    allowed = int(np.floor(left + 1e-9))
    if parts[0] > allowed:
        # Options that serve alike but for a few events leave the same number of parts, which are rounded.
        there = np.isfinite(worth).any(axis=1)
        worth[serves < serves[there].max() * (1 - 1e-9)] = -np.inf
        parts = np.flatnonzero(np.isfinite(worth).any(axis=0))
    worth[:, max(allowed, int(parts[0])) + 1 :] = -np.inf
    return bool(parts[0] <= allowed)


def _changes(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> Floats:
    """What it costs to get from one option to another."""
    return np.array(
        [[WORKER * abs(to[0] - of[0]) + SWITCH * (to[1] != of[1]) for to in after] for of in before], dtype=np.float64
    )


def _served(worth: Floats, arriving: float, serves: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
    """What waits after a step, for each option, and which backlog it came from."""
    after = np.full_like(worth, -np.inf)
    came = np.zeros(worth.shape, dtype=np.int64)
    waits = np.arange(worth.shape[1])
    for option, capacity in enumerate(serves):
        left = np.minimum(np.ceil(np.maximum(0.0, waits + arriving - capacity) - 1e-9).astype(int), len(waits) - 1)
        for part in waits[np.isfinite(worth[option])]:
            if worth[option, part] > after[option, left[part]]:
                after[option, left[part]], came[option, left[part]] = worth[option, part], part
    return after, came


def _traced(
    options: list[tuple[int, int]],
    worth: Floats,
    picks: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    unit: float,
    is_feasible: bool,
) -> Stages:
    option, part = np.unravel_index(int(worth.argmax()), worth.shape)
    waits, chosen = float(part * unit), []
    for before, came in reversed(picks):
        chosen.append(options[int(option)])
        part = came[option, part]
        option = before[option, part]
    chosen.reverse()
    return Stages(tuple(w for w, _ in chosen), tuple(i for _, i in chosen), waits, is_feasible)
