"""Which worker counts to train on: the subset with the least error over all others (paper 1, §4.4, eq 6–8)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.throughput_curves import Floats, InverseTime, Quadratic
from penstock.models.training import PAPER_MODELS, Samples, rmse


@dataclass(frozen=True, slots=True)
class Subset:
    """Worker counts to train on, and the error over all other counts (eq 8)."""

    counts: tuple[int, ...]
    rmse: float


@dataclass(frozen=True, slots=True)
class Search:
    """Which subsets may be chosen, and how long to look for them."""

    sizes: tuple[int, ...] = (3, 4, 5)
    train_max: int = 32
    """The largest count that may be measured."""
    budget: int | None = None
    """The most workers in all, over the counts of a subset."""
    under_weight: float = 1.0
    """How much more a square error weighs where a model promises too much (§7)."""
    tries: int = 20_000


def best_subset(apps: Sequence[Samples], search: Search | None = None, seed: int = 0) -> Subset:
    """The counts that train models 1 and 2 best (eq 6–8).

    Exhaustive where there are at most `tries` subsets of a size; else that many are drawn at random and the
    best are improved by exchanging one count at a time.
    """
    how, counts = search or Search(), apps[0].counts
    if any(app.counts != counts for app in apps):
        raise BadInput("the applications were measured with different worker counts")
    errors = _Errors(apps, np.array(counts, dtype=np.float64), how.under_weight)
    found = [best for size in how.sizes if (best := _best_of_size(errors, size, how, seed))]
    if not found:
        within = f" and {how.budget} workers in all" if how.budget else ""
        sizes = " or ".join(map(str, how.sizes))
        raise BadInput(f"no {sizes} counts up to {how.train_max}{within} leave others to test with: measured {counts}")
    chosen, error = min(found, key=lambda pair: pair[1])
    return Subset(tuple(counts[number] for number in chosen), error)


def subset_error(apps: Sequence[Samples], counts: Iterable[int], under_weight: float = 1.0) -> float:
    """The error of one subset (eq 8), fit by fit."""
    squares = tested = 0.0
    for app in apps:
        scaled = Samples(app.workers, app.rates / app.rates.max())
        part, rest = scaled.at(counts), scaled.at(set(app.counts) - set(counts))
        for model in PAPER_MODELS:
            squares += rmse(model.fit(part.workers, part.rates), rest, under_weight) ** 2 * len(rest.rates)
            tested += len(rest.rates)
    return math.sqrt(squares / tested)


Chosen = tuple[int, ...]


def _best_of_size(errors: _Errors, size: int, how: Search, seed: int) -> tuple[Chosen, float] | None:
    counts = errors.counts.astype(int).tolist()
    candidates = [number for number, count in enumerate(counts) if count <= how.train_max]
    if not size <= len(candidates) or size >= len(counts):
        return None

    def affordable(subsets: Iterable[Chosen]) -> list[Chosen]:
        return [each for each in subsets if how.budget is None or sum(counts[n] for n in each) <= how.budget]

    if math.comb(len(candidates), size) <= how.tries:
        return errors.best(affordable(itertools.combinations(candidates, size)))
    rng = np.random.default_rng(seed)
    drawn = (tuple(sorted(rng.choice(candidates, size, replace=False).tolist())) for _ in range(how.tries // 2))
    found = errors.best(affordable([tuple(candidates[:size]), *drawn]))
    while found:
        best = found[0]
        exchanged = (
            tuple(sorted((set(best) - {old}) | {new})) for old in best for new in candidates if new not in best
        )
        better = errors.best(affordable(exchanged))
        if better is None or better[1] >= found[1] * (1 - 1e-12):
            break
        found = better
    return found


class _Errors:
    """Errors of many subsets at once: every fit is a least squares on a handful of sums."""

    def __init__(self, apps: Sequence[Samples], counts: Floats, under_weight: float) -> None:
        self.counts = counts
        self._under_weight = under_weight
        # Normalised by each application's largest sample, so that none outweighs the others.
        self._rates = [[app.rates[app.workers == count] / app.rates.max() for count in counts] for app in apps]

    def best(self, subsets: Sequence[Chosen]) -> tuple[Chosen, float] | None:
        if not subsets:
            return None
        chosen = np.zeros((len(subsets), len(self.counts)))
        for row, subset in enumerate(subsets):
            chosen[row, list(subset)] = 1.0
        squares, tested = np.zeros(len(subsets)), np.zeros(len(subsets))
        for rates in self._rates:
            for predicted in (self._inverse_time(chosen, rates), self._quadratic(chosen, rates)):
                for number, values in enumerate(rates):
                    squares += (1 - chosen[:, number]) * self._squares(predicted[:, number], values)
                    tested += (1 - chosen[:, number]) * len(values)
        roots = np.sqrt(squares / tested)
        at = int(np.argmin(roots))
        return subsets[at], float(roots[at])

    def _squares(self, predicted: Floats, values: Floats) -> Floats:
        errors = predicted[:, None] - values
        weights = np.where(errors > 0, self._under_weight, 1.0)
        return np.asarray((weights * errors**2).sum(axis=1), dtype=np.float64)

    def _inverse_time(self, chosen: Floats, rates: list[Floats]) -> Floats:
        m = self.counts
        weights = fit_many(_powers(m, (0, -1, 1, 2)).T, [1 / r for r in rates], chosen)
        for row, part, values in self._undetermined(chosen, rates, 4):
            one = InverseTime.fit(part, values)
            weights[row] = one.serial, one.parallel, one.distribution, one.communication
        return _flat(lambda g: 1 / np.maximum(weights @ _powers(g, (0, -1, 1, 2)), 1e-300), m)

    def _quadratic(self, chosen: Floats, rates: list[Floats]) -> Floats:
        m = self.counts
        signs = np.array([[1.0], [1.0], [-1.0]])
        weights = fit_many((signs * _powers(m, (0, 1, 2))).T, rates, chosen)
        for row, part, values in self._undetermined(chosen, rates, 3):
            one = Quadratic.fit(part, values)
            weights[row] = one.base, one.gain, one.loss
        return _flat(lambda g: np.maximum(weights @ (signs * _powers(g, (0, 1, 2))), 0.0), m)

    def _undetermined(self, chosen: Floats, rates: list[Floats], terms: int) -> Iterator[tuple[int, Floats, Floats]]:
        """Subsets of fewer counts than terms: many weights fit equally well, and the ones that `fit` takes count."""
        for row in np.flatnonzero(chosen.sum(axis=1) < terms).tolist():
            numbers = np.flatnonzero(chosen[row]).tolist()
            repeats = [len(rates[number]) for number in numbers]
            values: Floats = np.concatenate([rates[number] for number in numbers])
            yield row, np.repeat(self.counts[numbers], repeats), values


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
