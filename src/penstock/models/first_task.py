"""How long a new worker's first task takes: class loading, code generation, imports, none of it compiled yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from penstock.models.seen_batches import SeenBatch
from penstock.models.throughput_curves import Floats

# A batch that takes longer than it should by two standard deviations is held up; a few such may be accidents.
DEVIATIONS = 2.0
LEAST_S = 0.1
HELD_LEAST, HELD_SHARE = 2, 0.25


def learn_first(
    batches: Sequence[SeenBatch],
    taken_s: Callable[[Floats, Floats], Floats],
    speed: Callable[[float], float],
    spread: float,
) -> float:
    """The median of how long batches went on after their last new worker had come, of those that were held up by it.

    A new worker that came when all tasks were dealt out holds nobody up, which says nothing of how slow it is.
    `taken_s` is what workers would take for some rows, `speed` what one counts at its age.
    """
    found = []
    for batch in batches:
        settled = sum(map(speed, batch.crew.ages_s))
        # Where all are new, all are cold first, and then they work.
        workers = settled or len(batch.crew.fresh_s) * speed(0.0)
        alone_s = float(taken_s(np.array(workers), np.array(batch.rows)))
        if batch.execution_s > alone_s * math.exp(DEVIATIONS * spread) + LEAST_S:
            found.append(batch.execution_s - (max(batch.crew.fresh_s) if settled else alone_s))
    is_enough = len(found) >= max(HELD_LEAST, HELD_SHARE * len(batches))
    return round(float(np.median(found)), 3) if is_enough else 0.0
