"""Kronecker product composition of small MAPs, and its statistics in closed form (paper 4 §IV-B, MAP(2^J)).

A block of two states is (r, t, γ) with r = m2 / 2 and t = m3 / 6 at mean 1; r and t multiply over blocks, and so do
joint moments. Nothing here builds a matrix, so that a fit can ask for statistics thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammainc

from penstock.models.markov.chains import Floats, kron
from penstock.models.markov.map import Map, renewal
from penstock.models.markov.map2 import diagonal
from penstock.models.markov.phase_type import PhaseType


def compose(*parts: Map) -> Map:
    """D0 = ± D0¹ ⊗ … ⊗ D0ᴶ, D1 = D1¹ ⊗ … ⊗ D1ᴶ; at most one D0 may be more than its diagonal.

    >>> one = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]])
    >>> two = Map([[-0.4, 0.0], [0.0, -2.0]], [[0.385, 0.015], [0.025, 1.975]])
    >>> both = compose(one, two)
    >>> both.states, round(both.rate, 9), round((1 + both.scv) / 2 / ((1 + one.scv) / 2 * (1 + two.scv) / 2), 9)
    (4, 1.0, 1.0)
    """
    d0, d1 = parts[0].D0, parts[0].D1
    for part in parts[1:]:
        d0, d1 = -kron(d0, part.D0), kron(d1, part.D1)
    # Products of rounded rows: the diagonal takes what is missing to zero.
    off = d0 - np.diag(np.diag(d0))
    return Map(off - np.diag(off.sum(axis=1) + d1.sum(axis=1)), d1)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Many compositions at once: arrays of shape (compositions, blocks). An Erlang base of `shape` phases (1: none) has
    independent gaps; it makes SCVs below 1."""

    r: Floats
    t: Floats
    gamma: Floats
    shape: int = 1

    @property
    def total_r(self) -> Floats:
        return np.asarray(self.r.prod(axis=1) * (1 + 1 / self.shape) / 2, dtype=np.float64)

    @property
    def total_t(self) -> Floats:
        return np.asarray(self.t.prod(axis=1) * (1 + 1 / self.shape) * (1 + 2 / self.shape) / 6, dtype=np.float64)

    @property
    def scv(self) -> Floats:
        return np.asarray(2 * self.total_r - 1, dtype=np.float64)

    def correlation(self, lags: Floats) -> Floats:
        """SCV · ρ_k = ∏ (1 + (r_j − 1) γ_jᵏ) − 1; returns ρ, a row for each composition."""
        factors = 1 + (self.r - 1)[:, :, np.newaxis] * self.gamma[:, :, np.newaxis] ** lags
        return np.asarray((factors.prod(axis=1) - 1) / self.scv[:, np.newaxis], dtype=np.float64)

    def joint(self, i: Floats, further: Floats) -> Floats:
        """E[X_0 X_i X_{i+l}] at mean 1, for arrays of i and l."""
        g, r = self.gamma[:, :, np.newaxis], (self.r - 1)[:, :, np.newaxis]
        last = (self.t - 2 * self.r + 1)[:, :, np.newaxis]
        factors = 1 + r * (g**i + g**further) + g ** (i + further) * last
        return np.asarray(factors.prod(axis=1), dtype=np.float64)

    def distribution(self, x: Floats) -> Floats:
        """P(X ≤ x): the base's gap times one of two lengths from each block."""
        lengths, shares = np.ones((len(self.r), 1)), np.ones((len(self.r), 1))
        long, short, share = pairs(self.r, self.t)
        for j in range(self.r.shape[1]):
            both = np.stack([long[:, j], short[:, j]], axis=1)
            part = np.stack([share[:, j], 1 - share[:, j]], axis=1)
            lengths = (lengths[:, :, np.newaxis] * both[:, np.newaxis]).reshape(len(self.r), -1)
            shares = (shares[:, :, np.newaxis] * part[:, np.newaxis]).reshape(len(self.r), -1)
        scaled = self.shape * x[np.newaxis, np.newaxis] / lengths[:, :, np.newaxis]
        below = -np.expm1(-scaled) if self.shape == 1 else gammainc(self.shape, scaled)
        return np.asarray((shares[:, :, np.newaxis] * below).sum(axis=1), dtype=np.float64)

    def map(self, which: int) -> Map:
        """One composition as a process, mean 1."""
        row = zip(self.r[which], self.t[which], self.gamma[which], strict=True)
        parts = [Map(*diagonal(float(r), float(t), float(gamma))) for r, t, gamma in row]
        if self.shape > 1:
            parts.insert(0, renewal(PhaseType.erlang(self.shape, 1.0)))
        return compose(*parts).with_rate(1.0)


def pairs(r: Floats, t: Floats) -> tuple[Floats, Floats, Floats]:
    """As `two_exponentials`, for arrays: the long mean, the short one, and the share of the long."""
    s, q = (t - r) / (r - 1), (t - r * r) / (r - 1)
    a = (s + np.sqrt(np.maximum(s * s - 4 * q, 0.0))) / 2
    b = q / a
    return a, b, (1 - b) / (a - b)
