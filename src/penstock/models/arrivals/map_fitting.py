"""The best MAPs for windows of gaps: by moments (`kpc`), by likelihood (`em`), or by the window's own queue."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.core.errors import BadInput, unknown
from penstock.models.arrivals.fitted import Candidate, FittedMap, best_of
from penstock.models.arrivals.hidden import Hidden, fit_hidden, spread_out
from penstock.models.arrivals.kpc_fitting import fit_composed
from penstock.models.arrivals.plain import fit_plain, fit_two_states
from penstock.models.arrivals.queue_calibrated import calibrate
from penstock.models.arrivals.window import Window

# Measured on packet traces and on samples of known MAPs (docs/arrivals.md).
DEFAULT = "calibrated"
# Rounds of EM by the number of hidden states: 50,000 gaps take 0.05, 0.15 and 0.4 s for them.
ROUNDS = {2: 20, 4: 36, 8: 64}
# Hidden states of a chain that is bent: 8 took four times as long and predicted no better.
BENT_STATES = 4


def fit_maps(
    iat: npt.ArrayLike | Sequence[npt.ArrayLike],
    method: str = DEFAULT,
    best: int = 5,
    states_max: int = 16,
    rng: np.random.Generator | None = None,
) -> list[FittedMap]:
    """The best MAPs of each window of gaps in seconds, best first; `iat` is one window or several.

    >>> from penstock.models.arrivals import Map
    >>> gaps = Map([[-3.05, 0.05], [0.02, -0.22]], [[3.0, 0.0], [0.0, 0.2]]).sample(20_000, np.random.default_rng(1))
    >>> found = fit_maps(gaps, method="kpc", best=1)[0]
    >>> found.method, round(found.rate * float(gaps.mean()), 6)
    ('kpc', 1.0)
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if best < 1 or states_max < 2:
        raise BadInput(f"fit_maps: best={best}, states_max={states_max}; at least 1 and 2 are needed")
    rng = rng or np.random.default_rng(0)
    found = []
    for position, gaps_s in enumerate(_windows(iat)):
        window = Window.of(gaps_s)
        candidates = fit_plain(window, states_max) or METHODS[method](window, states_max, rng)
        found += [one.finished(window, position) for one in best_of(candidates, window, best)]
    return found


def _windows(iat: npt.ArrayLike | Sequence[npt.ArrayLike]) -> list[Any]:
    """One window, or several: those are arrays in a list."""
    if isinstance(iat, list | tuple) and iat and not np.isscalar(iat[0]):
        return list(iat)
    return [iat]


def _kpc(window: Window, states_max: int, rng: np.random.Generator) -> list[Candidate]:
    # The blocks' correlations fade without changing sign; what alternates has a closed form of two states.
    if window.correlations[1] < -window.noise:
        return fit_two_states(window)
    most = 2 if window.is_modest else states_max
    found: list[Candidate] = []
    for fit in fit_composed(window, most, rng):
        others = [one.key for one in found if len(one.key) == len(fit.gammas)]
        if not any(np.allclose(fit.gammas, other, rtol=0.05) for other in others):
            found.append(Candidate(fit.map, "kpc", fit.cost, key=fit.gammas))
    return [one for one in found if one.score <= 1.5 * found[0].score]


def _em(window: Window, states_max: int, _rng: np.random.Generator) -> list[Candidate]:
    """Two, four and eight hidden states, while more are worth their parameters."""
    fits = hidden_fits(window, states_max, max(ROUNDS))
    return [Candidate(fit.map().with_rate(1.0), "em", fit.aic / len(window)) for fit in fits]


def _calibrated(window: Window, states_max: int, rng: np.random.Generator) -> list[Candidate]:
    found = []
    for fit in hidden_fits(window, states_max, BENT_STATES):
        bent = calibrate(window.gaps, fit, rng)
        found.append(Candidate(bent.map, "calibrated", bent.cost))
    return found


def hidden_fits(window: Window, states_max: int, hidden_max: int) -> list[Hidden]:
    """Chains of 2, 4, … hidden states, best first."""
    fits = [_two_states(window, states_max)]
    most = 2 if window.is_modest else min(hidden_max, states_max // fits[0].phases)
    for states in (n for n in ROUNDS if 2 < n <= most):
        begin = spread_out(states, fits[0].phases)
        fits.append(fit_hidden(window.gaps, begin, ROUNDS[states], _fastest(window, begin)))
        if fits[-1].aic > fits[-2].aic:
            break
    return [fit.closed(window.gaps).faded(window.gamma_max) for fit in sorted(fits, key=lambda fit: fit.aic)]


def _two_states(window: Window, states_max: int) -> Hidden:
    """With exponential gaps; where these are less variable than that, with as many Erlang phases as are likeliest."""
    best: Hidden | None = None
    for phases in range(1, max(1, states_max // 2) + 1):
        begin = spread_out(2, phases)
        fit = fit_hidden(window.gaps, begin, ROUNDS[2], _fastest(window, begin))
        if best and fit.aic > best.aic:
            return best
        best = fit
        if window.scv >= 1:
            break
    assert best is not None  # one phase at least
    return best


def _fastest(window: Window, begin: Hidden) -> float:
    """No state is faster than the clock can tell."""
    return begin.phases / window.step if window.step else math.inf


METHODS: dict[str, Callable[[Window, int, np.random.Generator], list[Candidate]]] = {
    "kpc": _kpc,
    "em": _em,
    "calibrated": _calibrated,
}
