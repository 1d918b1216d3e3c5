"""How long a new worker's first task takes: class loading, code generation, imports, none of it compiled yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.models.curves import Floats
from penstock.models.served import SeenBatch

# One slow batch may be an accident, and a time that explains hardly more than none is none.
BATCHES_LEAST = 2
GAIN_LEAST = 0.05
LEAST_S = 0.1
TRIED_MOST = 200


def learn_first(
    batches: Sequence[SeenBatch], fixed_s: float, rate: Callable[[Floats], Floats], speed: Callable[[float], float]
) -> float:
    """The time that explains best what batches with new workers took; 0 where none is needed.

    `speed` is what a worker counts at its age. The sum of absolute errors is least where one batch is explained
    exactly, so only their own times are tried.
    """
    if len(batches) < BATCHES_LEAST:
        return 0.0
    execution_s = np.array([batch.execution_s for batch in batches])
    possible = np.unique(execution_s - [max(batch.crew.fresh_s) for batch in batches])
    tried = [0.0, *possible[:: max(1, len(possible) // TRIED_MOST)].tolist()]
    settled = np.array([sum(map(speed, batch.crew.ages_s)) for batch in batches], dtype=np.float64)
    every = settled + [len(batch.crew.fresh_s) * speed(0.0) for batch in batches]

    def loss(first_s: float) -> float:
        taken_s = _taken_s(batches, first_s, fixed_s, (rate(settled), rate(every)))
        return float(np.mean(np.minimum(np.abs(np.log(taken_s / execution_s)), 1.0)))

    losses = [loss(each_s) for each_s in tried]
    best = int(np.argmin(losses))
    is_better = losses[best] < losses[0] - GAIN_LEAST * max(losses[0], GAIN_LEAST)
    return round(tried[best], 3) if is_better and tried[best] >= LEAST_S else 0.0


def _taken_s(batches: Sequence[SeenBatch], first_s: float, fixed_s: float, rates: tuple[Floats, Floats]) -> Floats:
    """What they would take if a first task took so long: a new worker counts when it is done, and none ends before."""
    rows = np.array([batch.rows for batch in batches])
    dealt_s = np.array([max(batch.crew.fresh_s) for batch in batches])
    alone, together = rates
    without_s = fixed_s + rows / alone
    joined_s = np.maximum(dealt_s + first_s, fixed_s)
    left = np.maximum(rows - (joined_s - fixed_s) * alone, 0.0)
    with_s = np.maximum(np.where(left > 0, joined_s + left / together, without_s), dealt_s + first_s)
    # Where all tasks were dealt out before a worker came, nobody waits for it.
    return np.asarray(np.where(dealt_s < without_s, with_s, without_s), dtype=np.float64)
