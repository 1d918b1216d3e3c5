"""From samples to a model: every curve fitted and judged, one selected, and what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.capacity import Capacity, Fixed
from penstock.models.samples import Measured
from penstock.models.throughput_curves import CURVES, Curve, Fittable, Floats, Table
from penstock.models.training import PAPER_MODELS, Samples, mape, rmse, validation_points

RESAMPLES = 200


@dataclass(frozen=True, slots=True)
class Fit:
    """One curve and its errors, all as shares of the truth but `rmse`."""

    curve: Curve
    rmse: float
    training: float
    """On the samples it was trained on."""
    validation: float | None
    """On each worker count in turn, trained on the others."""
    test: float | None
    """On worker counts that were kept apart."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """All that `penstock fit` finds."""

    model: Capacity
    fits: tuple[Fit, ...]
    measure_next: tuple[int, ...]


def fit_model(measured: Measured, train: Sequence[int] | None = None, seed: int = 0, most: int = 128) -> Fitted:
    """Fit all curves, select the best, and say which worker counts would tell more."""
    samples = measured.samples
    counts = tuple(train) if train else samples.counts
    training, test = samples.at(counts), samples.at(set(samples.counts) - set(counts))
    if len(training.counts) < 2:
        raise BadInput(f"samples of {len(training.counts)} worker count make no curve: measure at least two")
    fits = tuple(_fit(kind, training, test) for kind in CURVES.values() if kind is not Table)
    best = min(fits, key=lambda fit: fit.validation if fit.validation is not None else fit.training)
    kind = CURVES[best.curve.kind]
    fixed = fixed_of(training.workers, measured.fixed_s[np.isin(samples.workers, counts)])
    model = Capacity(best.curve, fixed, measured.about, resampled(kind, training, seed))
    return Fitted(model, fits, _next(training, most))


def _fit(kind: type[Fittable], training: Samples, test: Samples) -> Fit:
    curve = kind.fit(training.workers, training.rates)
    return Fit(
        curve,
        rmse(curve, training),
        mape(curve, training),
        _left_out(kind, training),
        mape(curve, test) if len(test.rates) else None,
    )


def _left_out(kind: type[Fittable], samples: Samples) -> float | None:
    """The mean error on a worker count that the fit has not seen; beyond the ends it extrapolates."""
    if len(samples.counts) < 3:
        return None
    errors = []
    for count in samples.counts:
        rest = samples.at(set(samples.counts) - {count})
        errors.append(mape(kind.fit(rest.workers, rest.rates), samples.at([count])))
    return float(np.mean(errors))


def fixed_of(workers: Floats, fixed_s: Floats) -> Fixed:
    """The fixed time as a base and a part for each worker, neither negative.

    Two counts that scatter by half a second would make 3 s more of it at 8 workers: a slope takes three.
    """
    if len(np.unique(workers)) < 3:
        return Fixed(float(np.mean(fixed_s)))
    slope, base = np.polyfit(workers, fixed_s, 1)
    if slope <= 0 or base < 0:
        return Fixed(float(np.mean(fixed_s)))
    return Fixed(float(base), float(slope))


def resampled(kind: type[Fittable], samples: Samples, seed: int) -> tuple[Curve, ...]:
    """The same curve through samples drawn with replacement, count by count (bootstrap)."""
    rng = np.random.default_rng(seed)
    rows = [np.flatnonzero(samples.workers == count) for count in samples.counts]
    curves = []
    for _ in range(RESAMPLES):
        drawn: Floats = np.concatenate([rng.choice(group, len(group)) for group in rows])
        curves.append(kind.fit(samples.workers[drawn], samples.rates[drawn]))
    return tuple(curves)


def _next(training: Samples, most: int) -> tuple[int, ...]:
    """Where the paper's two models part; else twice as far as was measured."""
    curves = [kind.fit(training.workers, training.rates) for kind in PAPER_MODELS]
    points = validation_points(curves, training.counts, most)
    return points or (min(most, 2 * max(training.counts)),)
