"""Windows that need no search: constant, Poisson, without correlation, or too short to tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from penstock.models.arrivals.fitted import Candidate
from penstock.models.arrivals.window import SHORT, Window
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map, poisson, renewal
from penstock.models.markov.map2 import map2
from penstock.models.markov.phase_type import PHASES_MAX, PhaseType, fitted_service
from penstock.models.queues.lindley import driven
from penstock.models.queues.qbd import map_ph_1

# What a short window's variability is raised by: its SCV has a standard error of about 2 SCV / √n, and correlation that
# cannot be seen adds to it.
SHORT_ERRORS = 4.0
SHORT_BLOCK = 10
# Exponentials of a mixture, points of the distribution that they are fitted to, and rounds.
MIXED, POINTS, MIXING = 4, 2000, 100
LOADS = (0.3, 0.7)


def fit_plain(window: Window, states_max: int) -> list[Candidate]:
    """What the window is, if it is that simple; else nothing."""
    if window.is_constant:
        constant = renewal(PhaseType.erlang(PHASES_MAX, 1.0))
        return [Candidate(constant, "constant", 0.0, (f"gaps are constant: Erlang of {PHASES_MAX} phases",))]
    if window.is_short:
        return [_short(window)]
    if window.is_poisson:
        return [Candidate(poisson(1.0), "poisson", 0.0, ("no sign of bursts: Poisson",))]
    if window.is_renewal:
        return _independent(window, states_max)
    return []


def fit_two_states(window: Window) -> list[Candidate]:
    """The MAP(2) with the window's moments and its first autocorrelation, or the nearest there is."""
    first = float(window.correlations[1])
    if abs(window.scv - 1) < 1e-3:
        return [_renewal(window.scv, window.third, 2)]
    gamma = max(min(2 * first / (1 - 1 / window.scv), window.gamma_max), -1.0)
    found = map2(1.0, 1 + window.scv, window.third, gamma)
    error = abs(float(found.map.autocorrelation([1])[0]) - first) if found.map.states > 1 else abs(first)
    return [Candidate(found.map, "kpc", error, found.notes)]


def _independent(window: Window, states_max: int) -> list[Candidate]:
    """By moments, or by the likelihood of a mixture: whichever queue is nearer to the window's own."""
    found = [_renewal(window.scv, window.third, states_max)]
    if window.scv > 1:
        notes = found[0].notes[:1]
        found.append(Candidate(renewal(mixture(window.gaps, min(MIXED, states_max))), "renewal", 0.0, notes))
    own = driven(window.gaps, LOADS, [np.random.default_rng(0)])
    return [replace(one, score=_distance(one.map, [each.mean for each in own])) for one in found]


def _distance(arrivals: Map, own: Sequence[float]) -> float:
    pairs = zip(LOADS, own, strict=True)
    return sum(
        abs(math.log(map_ph_1(arrivals, PhaseType.erlang(2, load)).mean_s / load / mean)) for load, mean in pairs
    )


def mixture(gaps: Floats, parts: int) -> PhaseType:
    """A hyperexponential of mean 1 by EM: what moments miss where few long gaps make them."""
    x = np.quantile(gaps, (np.arange(POINTS) + 0.5) / POINTS)
    rates, shares = 10 ** np.linspace(-1.5, 1.5, parts), np.full(parts, 1 / parts)
    for _ in range(MIXING):
        chances = shares * rates * np.exp(-np.outer(x, rates)) + 1e-300
        chances /= chances.sum(axis=1, keepdims=True)
        shares, rates = chances.mean(axis=0), chances.sum(axis=0) / np.maximum(x @ chances, 1e-300)
    law = PhaseType.hyperexponential(shares / shares.sum(), 1 / rates)
    return law.with_mean(1.0)


def _renewal(scv: float, third: float, states_max: int) -> Candidate:
    notes: tuple[str, ...] = ("no sign of correlation: independent gaps",)
    if scv > 1:
        found = map2(1.0, 1 + scv, third, 0.0)
        return Candidate(found.map, "renewal", 0.0, notes + found.notes)
    return Candidate(renewal(fitted_service(1.0, max(scv, 1 / max(states_max, 2)))), "renewal", 0.0, notes)


def _short(window: Window) -> Candidate:
    """Independent gaps of a variability that errs on the safe side."""
    seen = max(window.scv, window.dispersion(SHORT_BLOCK))
    raised = seen * (1 + SHORT_ERRORS / math.sqrt(len(window)))
    note = f"{len(window)} gaps, fewer than {SHORT}: independent gaps, SCV {window.scv:.2f} raised to {raised:.2f}"
    return Candidate(renewal(fitted_service(1.0, max(raised, 0.05))), "short", 0.0, (note,))
