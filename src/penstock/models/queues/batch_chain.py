"""The chain of (rows, arrival phase) at the starts of micro-batches.

Its transitions are counts of a MAP over a known time, by inverse Fourier transform of e^((D0 + z D1) t). The grid of
rows is fine where batches are short and coarser by octaves, so that bursts of hundreds of usual batches still fit.
Where its step is above one row, a Gaussian of 0.6 of the step keeps the transform from ringing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map

Complexes = npt.NDArray[np.complex128]
Spans = Callable[[Floats], Floats]
# Points of the grid in each octave but the first, which has twice as many; usual batches are within the first.
OCTAVE = 48
# Points times phases of the chain: solving it takes 0.1 s.
SIZE, OCTAVES_MOST = 1280, 9
SMOOTH = 0.6
# The transform is this many octaves of points long: what is left of 0 comes out at its end.
LENGTH = 16
# Chance of batches at the end of the grid at which it is long enough; else it is made coarser, at most so often.
BEYOND, COARSER = 1e-5, 4


@dataclass(frozen=True, eq=False)
class BatchChain:
    """Batches in the long run."""

    rows: Floats
    """The grid."""
    flows: Floats
    """How often a batch of these rows (first index) is followed by one of those (second), at once."""
    rested: float
    """How often the server is idle before a batch: that has a single row."""


def batch_chain(arrivals: Map, spans: Spans, usual: float, rests: bool) -> BatchChain:
    """`spans` tells the seconds from a start to the next by rows, `usual` rows are about a batch; a server that `rests`
    is idle until a row comes."""
    step = max(1, math.ceil(1.5 * usual / (2 * OCTAVE)))
    octaves = min(max(3, (SIZE // arrivals.states) // OCTAVE - 1), OCTAVES_MOST)
    for _ in range(COARSER):
        rows, steps = _grid(step, octaves)
        moves, idle = _transitions(arrivals, spans, rows, steps, rests)
        begins = _stationary(moves.reshape(len(rows) * arrivals.states, -1)).reshape(len(rows), -1)
        if begins[-OCTAVE // 4 :].sum() < BEYOND:
            break
        step *= 2
    flows = np.einsum("gi,gihj->gh", begins, moves)
    alone = (begins * idle).sum(axis=1)
    flows[:, 1] -= alone
    return BatchChain(rows, np.maximum(flows, 0.0), float(alone.sum()))


def _grid(step: int, octaves: int) -> tuple[Floats, Floats]:
    """Rows at each point, and the step of its octave."""
    steps = np.concatenate([np.full(2 * OCTAVE, step)] + [np.full(OCTAVE, step * 2**k) for k in range(1, octaves)])
    return np.append(0.0, np.cumsum(steps)[:-1]).astype(np.float64), steps.astype(np.float64)


def _transitions(arrivals: Map, spans: Spans, rows: Floats, steps: Floats, rests: bool) -> tuple[Floats, Floats]:
    """From (rows, phase) to (rows, phase), and the chance that nobody waits at the end."""
    points, n = len(rows), arrivals.states
    moves, idle = np.zeros((points, n, points, n)), np.zeros((points, n))
    seconds = spans(rows)
    for step in np.unique(steps):
        chosen = np.flatnonzero(steps == step)
        onto = _onto(rows, step)
        for g, counts in zip(chosen, _counts(arrivals, seconds[chosen], step), strict=True):
            kept = np.maximum(onto @ counts.reshape(len(counts), -1), 0.0).reshape(points, n, n)
            kept /= kept.sum(axis=(0, 2))[np.newaxis, :, np.newaxis]
            if rests and rows[1] == 1:
                idle[g] = kept[0].sum(axis=1)
                kept[1] += kept[0] @ arrivals.embedded
                kept[0] = 0.0
            moves[g] = kept.transpose(1, 0, 2)
    return moves, idle


def _counts(arrivals: Map, seconds: Floats, step: float) -> list[Floats]:
    """For each of these times: chances of 0, 1, 2, … steps of arrivals, by phases before and after."""
    length = LENGTH * OCTAVE
    angles = 2 * np.pi * np.arange(length // 2 + 1) / (length * step)
    rates = arrivals.D0 + np.exp(1j * angles)[:, np.newaxis, np.newaxis] * arrivals.D1
    smooth = np.exp(-((SMOOTH * step * angles) ** 2) / 2) if step > 1 else np.ones(len(angles))
    now, found = _exponentials(rates * seconds[0]), []
    gained, longer = np.diff(seconds, prepend=seconds[0]), _exponentials(rates * (seconds[-1] - seconds[-2]))
    for more in gained:
        if more > 0:
            is_usual = math.isclose(more, seconds[-1] - seconds[-2], rel_tol=1e-9)
            now = now @ (longer if is_usual else _exponentials(rates * more))
        found.append(np.fft.irfft(np.conj(now * smooth[:, np.newaxis, np.newaxis]), length, axis=0))
    return found


def _onto(rows: Floats, step: float) -> csr_matrix:
    """Shares of each count between its two neighbours on the grid; the transform's last quarter is left of 0."""
    length = LENGTH * OCTAVE
    counts = step * np.arange(length, dtype=np.float64)
    counts[-length // 4 :] = 0.0
    counts = np.minimum(counts, rows[-1])
    right = np.clip(np.searchsorted(rows, counts, side="left"), 1, len(rows) - 1)
    share = (counts - rows[right - 1]) / (rows[right] - rows[right - 1])
    places = np.concatenate([right - 1, right]), np.tile(np.arange(length), 2)
    return csr_matrix((np.append(1 - share, share), places), shape=(len(rows), length))


def _exponentials(matrices: Complexes) -> Complexes:
    """e^M of many matrices at once, by scaling, a series of 14 terms, and squaring."""
    norm = float(np.abs(matrices).sum(axis=2).max())
    squarings = max(0, math.ceil(math.log2(max(norm, 1e-300) / 0.5)))
    small = matrices / 2.0**squarings
    power = total = np.broadcast_to(np.eye(matrices.shape[1], dtype=np.complex128), matrices.shape)
    for k in range(1, 15):
        power = power @ small / k
        total = total + power
    for _ in range(squarings):
        total = total @ total
    return np.asarray(total)


def _stationary(moves: Floats) -> Floats:
    """By one solve: 1,300 states are too many for a loop in Python."""
    a = np.eye(len(moves)) - moves.T
    a[0] = 1.0
    right = np.zeros(len(moves))
    right[0] = 1.0
    return np.asarray(np.maximum(np.linalg.solve(a, right), 0.0), dtype=np.float64)
