"""Where models disagree, and which model to take (paper 1, §4.5, §7); which counts to train on: `subset_search`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.models.throughput_curves import Curve, Fittable, Floats, InverseTime, Quadratic

PAPER_MODELS: tuple[type[Fittable], ...] = (InverseTime, Quadratic)


@dataclass(frozen=True, slots=True)
class Samples:
    """Measured rates of one application: `rates[i]` with `workers[i]` workers."""

    workers: Floats
    rates: Floats

    @classmethod
    def of(cls, rates: Mapping[int, Sequence[float]]) -> Samples:
        pairs = [(float(count), rate) for count, several in rates.items() for rate in several]
        return cls(np.array([count for count, _ in pairs]), np.array([rate for _, rate in pairs]))

    def at(self, counts: Iterable[int]) -> Samples:
        """Only those of some worker counts."""
        kept = np.isin(self.workers, list(counts))
        return Samples(self.workers[kept], self.rates[kept])

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(int(count) for count in np.unique(self.workers))


def rmse(curve: Curve, samples: Samples, under_weight: float = 1.0) -> float:
    """Root of the mean square error; promises that were not kept may weigh more (§7)."""
    errors = _predicted(curve, samples) - samples.rates
    weights = np.where(errors > 0, under_weight, 1.0)
    return math.sqrt(float(np.mean(weights * errors**2)))


def mape(curve: Curve, samples: Samples, under_weight: float = 1.0) -> float:
    """Mean absolute error as a share of the truth (eq 10, 0…1); broken promises may weigh more, as in `rmse`."""
    errors = (_predicted(curve, samples) - samples.rates) / samples.rates
    return float(np.mean(np.abs(errors) * np.where(errors > 0, under_weight, 1.0)))


def _predicted(curve: Curve, samples: Samples) -> Floats:
    return np.array([curve.rate(count) for count in samples.workers.tolist()])


def duplication(workers: int, cores: float, units: int = 1) -> int:
    """Copies of each processing unit: d = max(1, ⌊m·γ/n⌋) (eq 1, as printed).

    Ours is `MeterPlan.partitions_for`, some partitions a worker: with workers of a quarter of a core, d stays at 1 up
    to seven of them, and one would work while six wait.
    """
    return max(1, math.floor(workers * cores / units + 1e-9))


def discrepancy(curves: Sequence[Curve], workers: int) -> float:
    """How far models disagree: the mean over pairs of their difference to the smaller one (eq 13)."""
    rates = [curve.rate(workers) for curve in curves]
    apart = [abs(a - b) / min(a, b) for a, b in itertools.combinations(rates, 2)]
    return sum(apart) / len(apart)


def validation_points(
    curves: Sequence[Curve], trained_on: Iterable[int], most: int = 128, threshold: float = 0.10
) -> tuple[int, ...]:
    """Where to measure once more to tell the models apart (Algorithm 1).

    As printed it finds nothing when every crossing lies within the training counts; the paper's own points
    follow when one search always starts right above them, and one more at each crossing beyond.
    """
    first = max(trained_on) + 1
    starts = [first, *(m for m in _crossings(curves, most) if m > first)]
    ends = [*(start - 1 for start in starts[1:]), most]
    points: list[int] = []
    for start, end in zip(starts, ends, strict=True):
        apart = (m for m in range(start, end + 1) if discrepancy(curves, m) > threshold)
        points.extend(itertools.islice(apart, 1))
    return tuple(points)


def _crossings(curves: Sequence[Curve], most: int) -> Iterator[int]:
    """Worker counts at which two models meet, or have just crossed: the ceilings of where they intersect."""
    for m in range(2, most + 1):
        if any(_meet(one, other, m) for one, other in itertools.combinations(curves, 2)):
            yield m


def _meet(one: Curve, other: Curve, workers: int) -> bool:
    before, after = (_apart(one.rate(m), other.rate(m)) for m in (workers - 1, workers))
    return before != 0 and before * after <= 0


def _apart(one: float, other: float) -> float:
    """Rates that are equal but for rounding are equal: else a crossing on a whole count is seen one late, or not."""
    return 0.0 if math.isclose(one, other, rel_tol=1e-9) else one - other


def select_model(
    curves: Sequence[Curve], training: Samples, validation: Samples | None = None, under_weight: float = 1.0
) -> Curve:
    """The model with the lowest validation error; training error where there is nothing to validate with."""
    judged = validation if validation is not None and len(validation.rates) else training
    return min(curves, key=lambda curve: rmse(curve, judged, under_weight))
