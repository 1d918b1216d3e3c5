"""Arrivals as Kronecker products of two-state MAPs, fitted to moments and autocorrelations (paper 4 §IV-B).

All statistics are closed forms of the blocks, so a fit of 50,000 gaps takes a tenth of a second. The paper's toolbox
matches moments, autocorrelations and joint moments; here the distribution of the gaps is matched too: without it,
blocks near the bound of their third moment make batches that nobody saw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.models.arrivals.descent import descend
from penstock.models.arrivals.window import Window
from penstock.models.markov.chains import Floats
from penstock.models.markov.kpc import Blocks
from penstock.models.markov.map import Map

STARTS, ROUNDS = 16, 30
LAGS = 40
QUANTILES = np.concatenate([[0.01, 0.02], np.arange(0.05, 1.0, 0.05), [0.98, 0.99]])
# Weights of ln r, ln t (a sample's third moment is noisy), joint moments, and the distribution.
WEIGHT_R, WEIGHT_T, WEIGHT_JOINT, WEIGHT_QUANTILES = 3.0, 0.3, 0.3, 1.0
# Another block must lower the cost by this share: with 5 % three blocks were taken where two are the truth, and the
# response was 1.5 times the exact one.
GAIN = 0.3
# A block's ln(t / r²) is at least this: nearer to 0 it makes batches.
LEAST_V = 0.05


@dataclass(frozen=True, eq=False)
class Composed:
    """A fitted composition (mean 1) and its cost."""

    map: Map
    cost: float
    gammas: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Aim:
    """What is to be matched."""

    lags: Floats
    correlation: Floats
    weights: Floats
    r: float
    t: float
    i: Floats
    further: Floats
    joint: Floats
    x: Floats
    shape: int
    gamma_most: float


def fit_composed(window: Window, states_max: int, rng: np.random.Generator) -> list[Composed]:
    """All starts of one, two, … blocks, best first; blocks are added while each lowers the cost enough."""
    aim = _aim(window, states_max)
    found: list[Composed] = []
    best = math.inf
    for blocks in range(1, max(1, int(math.log2(states_max // aim.shape))) + 1):
        fits = _fit(aim, blocks, rng)
        if fits[0].cost > best * (1 - GAIN):
            break
        best = fits[0].cost
        found += fits
    return sorted(found, key=lambda fit: fit.cost)


def _aim(window: Window, states_max: int) -> _Aim:
    rho = window.correlations
    quiet = int(np.argmax(rho < window.noise)) if (rho < window.noise).any() else len(rho)
    longest = max(10, min(3 * quiet, len(window) // 20, len(rho) - 1))
    lags = np.unique(np.round(np.geomspace(1, longest, LAGS)).astype(int))
    sums = np.append(0.0, np.cumsum(rho))
    low, high = (
        np.maximum(1, np.floor(lags * 0.85)).astype(int),
        np.minimum(len(rho) - 1, np.ceil(lags * 1.15)).astype(int),
    )
    low[lags < 7], high[lags < 7] = lags[lags < 7], lags[lags < 7]
    smooth = (sums[high + 1] - sums[low]) / (high + 1 - low)
    grid = np.unique(np.round(np.geomspace(1, max(4, longest // 4), 4)).astype(int))
    i, further = (each.ravel() for each in np.meshgrid(grid, grid))
    shape = min(math.ceil(1 / window.scv) + 1, max(2, states_max // 2)) if window.scv < 1 else 1
    joint = np.array([_joint(window.gaps, int(a), int(b)) for a, b in zip(i, further, strict=True)])
    return _Aim(
        lags.astype(float), smooth, 1 / np.sqrt(np.maximum(np.abs(smooth), window.noise)),
        (1 + window.scv) / 2, window.third / 6, i.astype(float), further.astype(float), joint,
        np.quantile(window.gaps, QUANTILES), shape, min(1 - 1 / (2 * longest), window.gamma_max),
    )  # fmt: skip


def _joint(gaps: Floats, i: int, further: int) -> float:
    end = len(gaps) - i - further
    return float(np.mean(gaps[:end] * gaps[i : i + end] * gaps[i + further :]))


def _fit(aim: _Aim, blocks: int, rng: np.random.Generator) -> list[Composed]:
    """From random starts: the logs of ln r_j and ln(t_j / r_j²), and γ_j by its logit."""
    total = max(math.log(aim.r / ((1 + 1 / aim.shape) / 2)), 0.05)
    shares = rng.dirichlet(np.ones(blocks), STARTS)
    u = np.log(np.maximum(total * shares, 1e-2))
    v = np.log(rng.uniform(0.1, 0.6, (STARTS, blocks)))
    gamma = 1 - 10 ** rng.uniform(math.log10(1 - aim.gamma_most) * 0.9, -0.3, (STARTS, blocks))
    starts = np.hstack([u, v, np.log(gamma / (1 - gamma))])
    ends, costs = descend(lambda values: _residuals(aim, values), starts, ROUNDS)
    made = _blocks(aim, ends)
    best = [int(which) for which in np.argsort(costs) if np.isfinite(costs[which])]
    return [Composed(made.map(which), float(costs[which]), tuple(made.gamma[which].tolist())) for which in best[:5]]


def _blocks(aim: _Aim, values: Floats) -> Blocks:
    u, v, g = np.split(values, 3, axis=1)
    r = np.exp(np.exp(np.clip(u, -7, 2)))
    t = r**2 * np.exp(LEAST_V + np.exp(np.clip(v, -9, 2)))
    return Blocks(r, t, aim.gamma_most / (1 + np.exp(-np.clip(g, -30, 30))), aim.shape)


def _residuals(aim: _Aim, values: Floats) -> Floats:
    made = _blocks(aim, values)
    levels = QUANTILES
    parts = [
        (made.correlation(aim.lags) - aim.correlation) * aim.weights,
        WEIGHT_R * np.log(made.total_r / aim.r)[:, np.newaxis],
        WEIGHT_T * np.log(made.total_t / aim.t)[:, np.newaxis],
        WEIGHT_JOINT * np.log(made.joint(aim.i, aim.further) / aim.joint),
        WEIGHT_QUANTILES * (made.distribution(aim.x) - levels) / np.sqrt(levels * (1 - levels)),
    ]
    return np.hstack(parts)
