"""Which worker counts to measure, where models disagree, and which model to take (paper 1, §4.4–4.5, §7)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
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


def mape(curve: Curve, samples: Samples) -> float:
    """Mean absolute error as a share of the truth (eq 10, 0…1)."""
    return float(np.mean(np.abs(_predicted(curve, samples) - samples.rates) / samples.rates))


def _predicted(curve: Curve, samples: Samples) -> Floats:
    return np.array([curve.rate(count) for count in samples.workers.tolist()])


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
    """Worker counts at which one model has just overtaken another."""
    for m in range(2, most + 1):
        for one, other in itertools.combinations(curves, 2):
            before, after = one.rate(m - 1) - other.rate(m - 1), one.rate(m) - other.rate(m)
            if before * after < 0:
                yield m
                break


def select_model(
    curves: Sequence[Curve], training: Samples, validation: Samples | None = None, under_weight: float = 1.0
) -> Curve:
    """The model with the lowest validation error; training error where there is nothing to validate with."""
    judged = validation if validation is not None and len(validation.rates) else training
    return min(curves, key=lambda curve: rmse(curve, judged, under_weight))


@dataclass(frozen=True, slots=True)
class Subset:
    """Worker counts to train on, and the error over all other counts (eq 8)."""

    counts: tuple[int, ...]
    rmse: float


def best_subset(
    apps: Sequence[Samples], sizes: Iterable[int] = (3, 4, 5), train_max: int = 32, tries: int = 20_000, seed: int = 0
) -> Subset:
    """The counts up to `train_max` that train models 1 and 2 best (eq 6–8).

    Exhaustive where there are at most `tries` subsets of a size; else that many are drawn at random and the
    best are improved by exchanging one count at a time.
    """
    counts = apps[0].counts
    if any(app.counts != counts for app in apps):
        raise BadInput("the applications were measured with different worker counts")
    candidates = [number for number, count in enumerate(counts) if count <= train_max]
    errors = _Errors(apps, np.array(counts, dtype=np.float64))
    found = [_best_of_size(errors, candidates, size, (tries, seed)) for size in sizes if size <= len(candidates)]
    if not found:
        raise BadInput(f"fewer worker counts up to {train_max} than a training set needs")
    chosen, error = min(found, key=lambda pair: pair[1])
    return Subset(tuple(counts[number] for number in chosen), error)


Chosen = tuple[int, ...]


def _best_of_size(errors: _Errors, candidates: list[int], size: int, effort: tuple[int, int]) -> tuple[Chosen, float]:
    tries, seed = effort
    if math.comb(len(candidates), size) <= tries:
        return errors.best(list(itertools.combinations(candidates, size)))
    rng = np.random.default_rng(seed)
    drawn = [tuple(sorted(rng.choice(candidates, size, replace=False).tolist())) for _ in range(tries // 2)]
    best, error = errors.best(drawn)
    while True:
        exchanged = [
            tuple(sorted((set(best) - {old}) | {new})) for old in best for new in candidates if new not in best
        ]
        better, less = errors.best(exchanged)
        if less >= error * (1 - 1e-12):
            return best, error
        best, error = better, less


class _Errors:
    """Errors of many subsets at once: every fit is a least squares on a handful of sums."""

    def __init__(self, apps: Sequence[Samples], counts: Floats) -> None:
        self._counts = counts
        self._repeats = [np.array([np.sum(app.workers == count) for count in counts]) for app in apps]
        # Normalised by each application's largest sample, so that none outweighs the others.
        self._rates = [[app.rates[app.workers == count] / app.rates.max() for count in counts] for app in apps]

    def best(self, subsets: Sequence[Chosen]) -> tuple[Chosen, float]:
        chosen = np.zeros((len(subsets), len(self._counts)))
        for row, subset in enumerate(subsets):
            chosen[row, list(subset)] = 1.0
        squares = np.zeros(len(subsets))
        tested = np.zeros(len(subsets))
        for repeats, rates in zip(self._repeats, self._rates, strict=True):
            for predicted in (self._inverse_time(chosen, rates), self._quadratic(chosen, rates)):
                means, sums = np.array([r.mean() for r in rates]), np.array([(r**2).sum() for r in rates])
                # Σ (y − p)² = Σ y² − 2 p Σ y + n p², for each count.
                errors = sums - 2 * predicted * means * repeats + repeats * predicted**2
                squares += ((1 - chosen) * errors).sum(axis=1)
                tested += ((1 - chosen) * repeats).sum(axis=1)
        roots = np.sqrt(np.maximum(squares, 0.0) / np.maximum(tested, 1))
        at = int(np.argmin(roots))
        return subsets[at], float(roots[at])

    def _inverse_time(self, chosen: Floats, rates: list[Floats]) -> Floats:
        m = self._counts
        weights = fit_many(_powers(m, (0, -1, 1, 2)).T, [1 / r for r in rates], chosen)
        return _flat(lambda g: 1 / np.maximum(weights @ _powers(g, (0, -1, 1, 2)), 1e-300), m)

    def _quadratic(self, chosen: Floats, rates: list[Floats]) -> Floats:
        m = self._counts
        signs = np.array([[1.0], [1.0], [-1.0]])
        weights = fit_many((signs * _powers(m, (0, 1, 2))).T, rates, chosen)
        return _flat(lambda g: np.maximum(weights @ (signs * _powers(g, (0, 1, 2))), 0.0), m)


def fit_many(terms: Floats, targets: Sequence[Floats], chosen: Floats) -> Floats:
    """Non-negative least squares for many choices of rows at once, exact.

    The optimum is the plain least squares on the terms that it uses; with at most four terms all 15 sets
    of them can be tried, for thousands of choices in one go.
    """
    sizes = np.array([len(values) for values in targets], dtype=np.float64)
    sums = np.array([values.sum() for values in targets])
    gram = np.einsum("sv,v,vi,vj->sij", chosen, sizes, terms, terms)
    moment = np.einsum("sv,v,vi->si", chosen, sums, terms)
    best = np.zeros((len(chosen), terms.shape[1]))
    least = np.zeros(len(chosen))  # of wᵀGw − 2wᵀb; using no term at all gives 0
    for used in _subsets(terms.shape[1]):
        weights = _solved(gram, moment, used)
        loss = np.einsum("si,sij,sj->s", weights, gram, weights) - 2 * np.einsum("si,si->s", weights, moment)
        better = (weights.min(axis=1) >= 0) & (loss < least)
        best[better], least[better] = weights[better], loss[better]
    return best


def _subsets(size: int) -> Iterator[list[int]]:
    for count in range(1, size + 1):
        yield from map(list, itertools.combinations(range(size), count))


def _solved(gram: Floats, moment: Floats, used: list[int]) -> Floats:
    # Terms of m² and 1/m differ by 10⁵: scaled to a unit diagonal, the solution keeps its digits.
    scale = 1 / np.sqrt(np.einsum("sii->si", gram)[:, used])
    small = gram[np.ix_(range(len(gram)), used, used)] * scale[:, :, None] * scale[:, None, :]
    small = small + 1e-13 * np.eye(len(used))
    found = np.linalg.solve(small, (moment[:, used] * scale)[:, :, None])[:, :, 0] * scale
    weights = np.zeros_like(moment)
    weights[:, used] = found
    return weights


def _powers(m: Floats, exponents: tuple[int, ...]) -> Floats:
    return np.stack([m**exponent for exponent in map(float, exponents)])


def _flat(rates: Callable[[Floats], Floats], counts: Floats) -> Floats:
    """Rates at some counts, flat after the peak; the peak is looked for between the counts, too."""
    fine = np.unique(np.concatenate([counts, np.linspace(counts[0], counts[-1], 4 * int(counts[-1]))]))
    highest = np.maximum.accumulate(rates(fine), axis=1)
    return np.asarray(highest[:, np.searchsorted(fine, counts)], dtype=np.float64)
