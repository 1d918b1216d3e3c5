"""Levenberg and Marquardt's least squares from many starts at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.models.markov.chains import Floats

STEP = 1e-5


def descend(residuals: Callable[[Floats], Floats], starts: Floats, rounds: int) -> tuple[Floats, Floats]:
    """Where each start ends, and half of its squared residuals there.

    `residuals` takes one row of parameters for each start and gives one row of residuals. All starts go on together:
    numpy takes for 20 of them little more than for one.
    """
    x, damping = starts.copy(), np.full(len(starts), 1e-2)
    here = residuals(x)
    cost = 0.5 * (here**2).sum(axis=1)
    for _ in range(rounds):
        slopes = _slopes(residuals, x, here)
        normal = np.einsum("bmp,bmq->bpq", slopes, slopes)
        downhill = np.einsum("bmp,bm->bp", slopes, here)
        size = np.einsum("bpp->bp", normal) + 1e-9
        bent = normal + damping[:, np.newaxis, np.newaxis] * size[:, np.newaxis] * np.eye(x.shape[1])
        tried = x - np.clip(np.linalg.solve(bent, downhill[..., np.newaxis])[..., 0], -2.0, 2.0)
        there = residuals(tried)
        tried_cost = np.nan_to_num(0.5 * (there**2).sum(axis=1), nan=np.inf)
        better = tried_cost < cost
        x[better], here[better], cost[better] = tried[better], there[better], tried_cost[better]
        damping = np.where(better, damping * 0.3, damping * 4)
        if (damping > 1e8).all():
            break
    return x, cost


def _slopes(residuals: Callable[[Floats], Floats], x: Floats, here: Floats) -> Floats:
    starts, width = x.shape
    moved = np.repeat(x, width, axis=0) + STEP * np.tile(np.eye(width), (starts, 1))
    there = residuals(moved).reshape(starts, width, -1)
    return np.asarray(((there - here[:, np.newaxis]) / STEP).transpose(0, 2, 1), dtype=np.float64)
