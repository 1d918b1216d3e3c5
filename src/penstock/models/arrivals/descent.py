"""Levenberg and Marquardt's least squares: from many starts at once, or with few evaluations from one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.models.markov.chains import Floats

STEP = 1e-5
# A step that lowers the squares by less than the first is poor: its slopes were; by less than the second, the last.
ENOUGH, DONE = 0.03, 1e-3


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


def descend_thriftily(residuals: Callable[[Floats], Floats], start: Floats, evaluations: int) -> tuple[Floats, float]:
    """For dear residuals are dear: slopes are corrected by each step (Broyden), and taken anew when one fails."""
    x, here, damping = start, residuals(start), 1e-2
    slopes, is_fresh, spent = _slopes_of(residuals, x, here), True, 1 + len(start)
    while spent < evaluations and damping < 1e8:
        normal = slopes.T @ slopes
        bent = normal + damping * np.diag(np.diag(normal) + 1e-9)
        step = np.clip(np.linalg.solve(bent, -slopes.T @ here), -2.0, 2.0)
        there, spent = residuals(x + step), spent + 1
        slopes = slopes + np.outer(there - here - slopes @ step, step) / max(float(step @ step), 1e-300)
        gain = 1 - float(there @ there) / max(float(here @ here), 1e-300)
        if gain > 0:
            x, here, damping = x + step, there, damping * 0.3
        else:
            damping *= 4
        if gain > ENOUGH:
            is_fresh = False
        elif is_fresh:
            if 0 <= gain < DONE:
                break
        else:
            slopes, is_fresh, spent = _slopes_of(residuals, x, here), True, spent + len(x)
    return x, 0.5 * float(here @ here)


def _slopes_of(residuals: Callable[[Floats], Floats], x: Floats, here: Floats) -> Floats:
    return np.stack([(residuals(x + STEP * one) - here) / STEP for one in np.eye(len(x))], axis=1)
