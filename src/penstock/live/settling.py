"""When throughput has settled: a test for drift with a stated error, where batches scatter by 8 %."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.live.batches import BatchTime
from penstock.models.throughput_curves import Floats

WINDOW = 12
MOST = 18  # batches that are waited for: each further look is one more chance to be wrong
DRIFT = math.log(1.04)
# One batch in ten meets a garbage collection or a commit that takes twice as long. Without the two farthest from the
# line, such series pass in 80 % of the cases; with all twelve, in 45 %.
LEFT_OUT = 2
# Standard errors between the slope and the limit. 4,000 simulated series of 18 batches: of those that drift by 4 % a
# batch, 3 % pass, whether batches scatter by 2, 8 or 12 %; of steady ones 97 % with a scatter of 8 %, 5 % with 20 %.
SURE = 5.5


def after_settling(batches: Sequence[BatchTime]) -> Sequence[BatchTime]:
    """What came from the first steady window on; empty if there is none. Speeds are corrected for the machine's."""
    rates = np.array([batch.corrected.rate for batch in batches])
    for begin in range(len(batches) - WINDOW + 1):
        first = steady_from(rates[begin : begin + WINDOW])
        if first is not None:
            return batches[begin + first :]
    return ()


def steady_from(rates: Floats) -> int | None:
    """The first rate from which they surely drift, up or down, by less than 4 % a batch; None if they do not.

    Where those left out stand at the beginning, they are the end of the warm-up.
    """
    if rates.min() <= 0:
        return None
    at, logs = np.arange(len(rates), dtype=np.float64), np.log(rates)
    for _ in range(LEFT_OUT):
        slope, base = np.polyfit(at, logs, 1)
        kept = np.delete(np.arange(len(at)), np.argmax(np.abs(logs - base - slope * at)))
        at, logs = at[kept], logs[kept]
    slope, base = np.polyfit(at, logs, 1)
    scatter = math.sqrt(float(((logs - base - slope * at) ** 2).sum()) / (len(at) - 2))
    error = scatter / math.sqrt(float(((at - at.mean()) ** 2).sum()))
    return int(at[0]) if abs(slope) + SURE * error < DRIFT else None
