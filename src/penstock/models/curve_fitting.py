"""From samples to a model: every curve fitted and judged, one selected, and what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.capacity import About, Capacity, Fixed
from penstock.models.samples import Measured
from penstock.models.throughput_curves import CURVES, Curve, Fittable, Floats, Table
from penstock.models.training import Samples, mape, rmse, select_model, validation_points

RESAMPLES = 200
REPEATS_MIN = 2  # of each count: a single sample says nothing about how far samples scatter
KINDS = tuple(kind for kind, curve in CURVES.items() if curve is not Table)
LEAVE_ONE_OUT, VALIDATION = "leave-one-out", "validation"


@dataclass(frozen=True, slots=True)
class Selection:
    """How one of several curves is chosen."""

    by: str = LEAVE_ONE_OUT
    """`leave-one-out`: by counts left out in turn; `validation`: by further counts, as in paper 1 (Algorithm 1)."""
    under_weight: float = 1.0
    """How much more an error weighs where a curve promises more than was measured (paper 1 §7)."""
    kinds: tuple[str, ...] = KINDS
    most: int = 128


@dataclass(frozen=True, slots=True)
class Errors:
    """How far a curve is off, as shares of the truth but `rmse`."""

    rmse: float
    training: float
    """On the samples it was trained on."""
    left_out: float | None
    """On each worker count in turn, trained on the others."""
    validation: float | None
    """On the worker counts at which the models part."""
    test: float | None
    """On worker counts that were kept apart."""


@dataclass(frozen=True, slots=True)
class Fit:
    """One curve and its errors."""

    curve: Curve
    errors: Errors
    corrected: Errors | None
    """Of the same kind of curve on samples corrected for the machine's speed."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """All that `penstock fit` finds."""

    model: Capacity
    fits: tuple[Fit, ...]
    measure_next: tuple[int, ...]
    validated_on: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Parts:
    """Worker counts to train on, to validate with, and the rest to test with."""

    training: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


def fit_model(
    measured: Measured, train: Sequence[int] | None = None, seed: int = 0, selection: Selection | None = None
) -> Fitted:
    """Fit all curves, select the best, and say which worker counts would tell more."""
    samples, how = measured.samples, selection or Selection()
    training = samples.at(train or samples.counts)
    if len(training.counts) < 2:
        raise BadInput(f"samples of {len(training.counts)} worker count make no curve: measure at least two")
    curves = [CURVES[kind].fit(training.workers, training.rates) for kind in how.kinds]
    points = validation_points(curves, training.counts, how.most) if len(curves) > 1 else ()
    parts = _parted(samples, training.counts, points if how.by == VALIDATION else ())
    fits = tuple(
        Fit(curve, _errors(curve, samples, parts), _corrected_errors(curve, measured, parts)) for curve in curves
    )
    curve = _selected(fits, samples, parts, how)
    fixed = fixed_of(training.workers, measured.fixed_s[np.isin(samples.workers, training.counts)])
    others = resampled(CURVES[curve.kind], training, seed)
    about = _about(measured.about, training.counts)
    further = tuple(point for point in points if point not in samples.counts)
    measure_next = further or (min(how.most, 2 * max(samples.counts)),)
    return Fitted(Capacity(curve, fixed, about, others), fits, measure_next, parts.validation)


def _about(about: About, trained_on: tuple[int, ...]) -> About:
    """What is doubtful of the samples that were trained on."""
    unsettled, short = (tuple(m for m in counts if m in trained_on) for counts in (about.unsettled, about.short))
    return replace(about, unsettled=unsettled, short=short)


def _parted(samples: Samples, training: tuple[int, ...], points: tuple[int, ...]) -> _Parts:
    validation = tuple(point for point in points if point in samples.counts)
    if points and not validation:
        trained, wanted = (",".join(map(str, counts)) for counts in (training, points))
        raise BadInput(
            f"--select validation: trained on {trained}, the models part at {wanted} workers, which were not measured: "
            f"measure them (penstock measure --workers {wanted}) and fit with --train {trained}"
        )
    return _Parts(training, validation, tuple(sorted(set(samples.counts) - {*training, *validation})))


def _selected(fits: Sequence[Fit], samples: Samples, parts: _Parts, how: Selection) -> Curve:
    """By the lowest error on what was not trained on; by the training error where there is nothing else."""
    training = samples.at(parts.training)
    if how.by == VALIDATION:
        return select_model([fit.curve for fit in fits], training, samples.at(parts.validation), how.under_weight)

    def judged(fit: Fit) -> float:
        left_out = _left_out(CURVES[fit.curve.kind], training, how.under_weight)
        return left_out if left_out is not None else mape(fit.curve, training, how.under_weight)

    return min(fits, key=judged).curve


def _errors(curve: Curve, samples: Samples, parts: _Parts) -> Errors:
    training, validation, test = map(samples.at, (parts.training, parts.validation, parts.test))
    return Errors(
        rmse(curve, training),
        mape(curve, training),
        _left_out(CURVES[curve.kind], training),
        mape(curve, validation) if len(validation.rates) else None,
        mape(curve, test) if len(test.rates) else None,
    )


def _corrected_errors(curve: Curve, measured: Measured, parts: _Parts) -> Errors | None:
    """What the errors would have been had the machine been equally fast for all samples."""
    if measured.corrected is None:
        return None
    training = measured.corrected.at(parts.training)
    return _errors(CURVES[curve.kind].fit(training.workers, training.rates), measured.corrected, parts)


def _left_out(kind: type[Fittable], samples: Samples, under_weight: float = 1.0) -> float | None:
    """The mean error on a worker count that the fit has not seen; beyond the ends it extrapolates."""
    if len(samples.counts) < 3:
        return None
    errors = []
    for count in samples.counts:
        rest = samples.at(set(samples.counts) - {count})
        errors.append(mape(kind.fit(rest.workers, rest.rates), samples.at([count]), under_weight))
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
    """The same curve through samples that scatter as the repeats do (bootstrap); none where a count has no repeat.

    Drawing anew from the two or three samples of a count would make them scatter too little, by √(n/(n − 1)): that is
    put back, and all counts share what they tell.
    """
    rng = np.random.default_rng(seed)
    logs = [np.log(samples.rates[samples.workers == count]) for count in samples.counts]
    if min(map(len, logs)) < REPEATS_MIN:
        return ()
    pool: Floats = np.concatenate([(each - each.mean()) * (len(each) / (len(each) - 1)) ** 0.5 for each in logs])
    workers = np.repeat(np.array(samples.counts, dtype=np.float64), [len(each) for each in logs])
    means = np.repeat([each.mean() for each in logs], [len(each) for each in logs])
    return tuple(kind.fit(workers, np.exp(means + rng.choice(pool, len(means)))) for _ in range(RESAMPLES))
