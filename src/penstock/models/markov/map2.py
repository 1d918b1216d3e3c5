"""MAPs of two states from four numbers (m1, m2, m3, γ), which say all about them; what cannot be is projected."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map
from penstock.models.markov.phase_type import two_exponentials

# The third moment is kept this far from its lower bound: at the bound one phase has no duration, which makes batches.
ABOVE = 1.05
GAMMA_MOST = 1 - 1e-9
# As close to SCV 1 as this, two states are one: the formulas divide by SCV − 1.
EXPONENTIAL = 1e-6


@dataclass(frozen=True, eq=False)
class Map2:
    """A MAP of two states, and what had to be moved to make one."""

    map: Map
    notes: tuple[str, ...] = ()


def map2(m1: float, m2: float, m3: float, gamma: float) -> Map2:
    """The MAP(2) with these moments and ρ_k = ½ (1 − 1/SCV) γᵏ, or the nearest there is.

    >>> found = map2(1.0, 3.5, 24.0, 0.95)
    >>> found.map.autocorrelation([1]).round(6).tolist(), found.notes  # 0.3 · 0.95
    ([0.285], ())
    """
    r, t = m2 / (2 * m1**2), m3 / (6 * m1**3)
    if not (m1 > 0 and r > 0.5):
        raise BadInput(f"moments {m1:g}, {m2:g}, {m3:g} are those of no random time")
    if abs(r - 1) < EXPONENTIAL:
        return Map2(Map([[-1 / m1]], [[1 / m1]]))
    found = _hyper(r, t, gamma) if r > 1 else _hypo(r, t, gamma)
    return Map2(found.map.with_rate(1 / m1), found.notes)


def diagonal(r: float, t: float, gamma: float) -> tuple[Floats, Floats]:
    """D0 and D1 of KPC's block of two states, mean 1: hyperexponential gaps that stay in their state (t > r² > 1)."""
    a, b, p = two_exponentials(r, t)
    rates = np.array([1 / a, 1 / b])
    moves = (1 - gamma) * np.array([[p, 1 - p], [p, 1 - p]]) + gamma * np.eye(2)
    return -np.diag(rates), rates[:, np.newaxis] * np.maximum(moves, 0.0)


def _hyper(r: float, t: float, gamma: float) -> Map2:
    notes = []
    if t < r**2 * ABOVE:
        t = r**2 * ABOVE
        notes.append("third moment raised to what two states can have")
    _, _, p = two_exponentials(r, t)
    lowest = -min(p / (1 - p), (1 - p) / p)
    if not lowest <= gamma <= GAMMA_MOST:
        gamma = min(max(gamma, lowest), GAMMA_MOST)
        notes.append(f"autocorrelation moved to what two states can have (decay {gamma:.4g})")
    return Map2(Map(*_rows(*diagonal(r, t, gamma))), tuple(notes))


def _hypo(r: float, t: float, gamma: float) -> Map2:
    """SCV below 1 by the canonical forms of Bodrog, Heindl, Horváth and Telek; below ½ the least is taken."""
    notes = []
    h2, h3 = max(r - 1, -0.25), t - r**2
    if r < 0.75:
        notes.append("SCV raised to 0.5, the least of two states")
    low, high = h2 * (1 - h2 - 2 * math.sqrt(-h2)), -(h2**2)
    if not low <= h3 <= high:
        h3 = min(max(h3, low), high)
        notes.append("third moment moved to what two states can have")
    least, most = -(h3 + h2**2) / h2, -((h2 + math.sqrt(-h3)) ** 2) / h2
    if not least <= gamma <= most:
        gamma = min(max(gamma, min(least, most)), most)
        notes.append(f"autocorrelation moved to what two states can have (decay {gamma:.4g})")
    return Map2(_canonical(1 + h2, h3 + (1 + h2) ** 2, gamma), tuple(notes))


def _canonical(r: float, t: float, gamma: float) -> Map:
    total, product = (t - r) / (r - 1), (t - r * r) / (r - 1)
    root = math.sqrt(max(total**2 - 4 * product, 0.0))
    x1, x2 = (total + root) / 2, (total - root) / 2
    ratio, p = x2 / x1, (1 - x2) / x1
    if gamma >= 0:
        u = 1 + ratio * gamma - p * (1 - gamma)
        root = math.sqrt(max(u * u - 4 * ratio * gamma, 0.0))
        a, b = _share((u - root) / (2 * ratio)), _share((u + root) / 2)
        d1 = [[a / x1, 0.0], [(1 - b) / x2, b / x2]]
    else:
        b = _share(p * (1 - gamma) - ratio * gamma)
        a = _share(-gamma / b) if b else 0.0
        d1 = [[0.0, a / x1], [b / x2, (1 - b) / x2]]
    return Map(*_rows(np.array([[0.0, (1 - a) / x1], [0.0, 0.0]]), np.array(d1)))


def _rows(d0: Floats, d1: Floats) -> tuple[Floats, Floats]:
    d0 = d0 - np.diag(np.diag(d0))
    return d0 - np.diag(d0.sum(axis=1) + d1.sum(axis=1)), d1


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
