"""A stream's arrivals in figures: statistics, the fitted MAP, how well it fits, and what bursts cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.models.arrivals.fitted import FittedMap
from penstock.models.arrivals.headroom import Headroom, headroom
from penstock.models.arrivals.map_fitting import fit_maps
from penstock.models.arrivals.window import Window
from penstock.models.markov.chains import Floats
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.lindley import driven
from penstock.models.queues.qbd import map_ph_1

LAGS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
BLOCKS = (1, 10, 100, 1000)
# A variance of fewer blocks is off by more than 20 %.
BLOCKS_LEAST = 50
LOADS = (0.3, 0.5, 0.7, 0.9)
# Without a bound: 95 of 100 rows within ten mean gaps.
BOUND_GAPS = 10.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a stream."""

    method: str = "calibrated"
    window: int = 50_000
    """The MAP is fitted to so many of the latest gaps."""
    bound_s: float | None = None
    percentile: float | None = 0.95
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Summary:
    """All gaps are described; the MAP is of the latest."""

    stream: Window
    fitted: FittedMap
    headroom: Headroom
    fits: dict[float, tuple[float, float]]
    """By utilisation: predicted over driven by the window itself, for the mean and the 95th percentile."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        lags = [lag for lag in LAGS if lag < len(self.stream.correlations)]
        blocks = [block for block in BLOCKS if len(self.stream) // block >= BLOCKS_LEAST]
        kept = self.headroom
        return {
            "arrivals": self.stream.count + 1,
            "rate": self.stream.rate,
            "scv": self.stream.scv,
            "skewness": self.stream.skewness,
            "autocorrelation": {str(lag): float(self.stream.correlations[lag]) for lag in lags},
            "dispersion": self.stream.dispersion(blocks[-1]),
            "dispersion_by_gaps": {str(block): self.stream.dispersion(block) for block in blocks},
            "map": {"D0": self.fitted.D0.tolist(), "D1": self.fitted.D1.tolist(), "method": self.fitted.method}
            | {"states": self.fitted.states, "arrivals": self.fitted.arrivals, "confidence": self.fitted.confidence}
            | {"dispersion": self.fitted.dispersion()}
            | {"autocorrelation": {str(lag): float(self.fitted.autocorrelation([lag])[0]) for lag in lags}},
            "fit": {str(load): {"mean": mean, "p95": p95} for load, (mean, p95) in self.fits.items()},
            "headroom": kept.ratio,
            "objective": {"bound_s": kept.bound_s, "percentile": kept.percentile},
            "capacity": {"needed": kept.capacity, "poisson": kept.poisson},
            "notes": list(dict.fromkeys((*self.stream.notes, *self.fitted.notes))),
        }


def summary(gaps_s: Floats, wanted: Wanted) -> Summary:
    """Statistics of all gaps, a MAP of the latest, its fit and the headroom."""
    stream = Window.as_seen(gaps_s)
    latest = gaps_s[-wanted.window :]
    fitted = fit_maps(latest, wanted.method, best=1, rng=np.random.default_rng(wanted.seed))[0]
    bound_s = wanted.bound_s or BOUND_GAPS * stream.mean_s
    fits = _fits(fitted, Window.as_seen(latest).gaps)
    return Summary(stream, fitted, headroom(fitted, bound_s, wanted.percentile), fits)


def _fits(fitted: FittedMap, gaps: Floats) -> dict[float, tuple[float, float]]:
    unit = fitted.with_rate(1.0)
    seen = driven(gaps, LOADS, [np.random.default_rng(seed) for seed in range(3)])
    found = {}
    for load, own in zip(LOADS, seen, strict=True):
        queue = map_ph_1(unit, PhaseType.erlang(2, load))
        found[load] = queue.mean_s / load / own.mean, queue.percentile_s(0.95) / load / own.p95
    return found
