"""What batches take: a fixed time, rows by the capacity of the workers, and how slow young workers are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from penstock.models.capacity import Capacity, Fixed
from penstock.models.first_task import learn_first
from penstock.models.seen_batches import SeenBatch
from penstock.models.throughput_curves import Curve, Floats, Linear, Scalability, Table

Bools = npt.NDArray[np.bool_]
WARM_S = (5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 75.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0, 450.0, 600.0)
# A warm-up is believed if it explains this much of what is not explained without it, by at least so many batches.
WARM_GAIN, WARM_BATCHES = 0.05, 3
# And at least this share of a batch's time: less is rounding.
WARM_GAIN_LEAST = 0.002
# A worker count has a rate of its own from so many settled batches on; with fewer, the curve's.
OWN_BATCHES = 8
BATCHES_MOST = 4000
COUNTS_MOST = 128
# Errors of a batch beyond this share of its time count less and less: other tenants, collections, retries.
SCALE = 0.1
# How firmly the fixed time keeps to what the engine tells where the batches are all of one size.
PULL = 0.05
SPREAD_LEAST = 0.005


@dataclass(frozen=True, slots=True)
class Service:
    """A batch takes fixed(workers) + rows / capacity(workers); a young worker counts `warm_speed` for `warm_s`."""

    capacity: Capacity
    seen: dict[int, int]
    """Settled batches by worker count."""
    warm_s: float = 0.0
    warm_speed: float = 1.0
    warm_seen: int = 0
    first_s: float = 0.0
    """A new worker's first task takes so long, and its batch waits for it."""
    first_seen: int = 0
    busy: float = 0.0
    """The part of the fixed time that the engine does not tell: there, workers are busy launching tasks."""
    spread: float = 0.0
    """Standard deviation of log(taken / predicted), by its median: how unequal like batches are."""
    error: float = 0.0
    """Median of |predicted / taken − 1| over all batches."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """What is fitted."""

    fixed_s: float
    shared_s: float
    """Task-launch overhead: a topic's ten partitions are ten tasks, whoever does them."""
    per_worker: float
    contention: float
    warm_speed: float

    def fixed(self, workers: Floats) -> Floats:
        return self.fixed_s + self.shared_s / np.maximum(workers, 1e-9)

    def rate(self, workers: Floats) -> Floats:
        rates = self.per_worker * workers / (1 + self.contention * np.maximum(0.0, workers - 1))
        return np.maximum(rates, 1e-9)


def learn_service(batches: Sequence[SeenBatch], workers_max: int) -> Service | None:
    """A robust fit over all batches without new workers, once for each warm-up that may be; the best is kept."""
    usual = [batch for batch in batches if not batch.crew.fresh_s]
    if not usual:
        return None
    columns = _Columns.of(usual)
    warm_s, weights = _best(columns)
    young, errors = columns.young(warm_s) > 0, columns.errors(weights, warm_s)
    fixed_s = float(weights.fixed(np.array(np.median(columns.workers))))
    # 0.6745 standard deviations are the median of what is normal.
    spread = float(np.median(np.abs(np.log1p(errors)))) / 0.6745
    counts = {int(count): int((columns.workers[~young] == count).sum()) for count in np.unique(columns.workers)}
    first = [batch for batch in batches if batch.crew.fresh_s]
    speed = weights.warm_speed if warm_s else 1.0
    return Service(
        capacity=Capacity(
            _curve(columns, ~young, weights, workers_max),
            Fixed(round(weights.fixed_s, 4), shared_s=round(weights.shared_s, 4)),
        ),
        seen={count: seen for count, seen in counts.items() if seen},
        warm_s=warm_s,
        warm_speed=round(speed, 3),
        warm_seen=int(young.sum()),
        first_s=learn_first(
            first,
            lambda workers, rows: weights.fixed(workers) + rows / weights.rate(workers),
            lambda age_s: 1.0 if age_s >= warm_s else speed,
            spread,
        ),
        first_seen=len(first),
        busy=round(min(max(0.0, 1 - columns.told_s / fixed_s), 1.0), 3) if fixed_s > 0 else 0.0,
        spread=round(spread, 3) if spread >= SPREAD_LEAST else 0.0,
        error=float(np.median(np.abs(errors))),
    )


def _best(columns: _Columns) -> tuple[float, _Weights]:
    """The warm-up that explains most, if it explains much more than none."""
    possible = [warm_s for warm_s in WARM_S if (columns.young(warm_s) > 0).sum() >= WARM_BATCHES]
    fits = {warm_s: _fitted(columns, warm_s) for warm_s in (0.0, *possible)}
    losses = {warm_s: columns.loss(weights, warm_s) for warm_s, weights in fits.items()}
    best = min(losses, key=lambda warm_s: losses[warm_s])
    if losses[best] > losses[0.0] - max(WARM_GAIN * losses[0.0], WARM_GAIN_LEAST):
        best = 0.0
    return best, fits[best]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Batches as columns."""

    rows: Floats
    execution_s: Floats
    told_s: float
    """The fixed part as the engine tells it."""
    workers: Floats
    ages_s: Floats
    """A row for each batch, filled up with infinity: that is the age of a settled worker."""

    @classmethod
    def of(cls, batches: Sequence[SeenBatch]) -> _Columns:
        batches = batches[:: max(1, len(batches) // BATCHES_MOST)]
        ages = itertools.zip_longest(*(batch.crew.ages_s for batch in batches), fillvalue=math.inf)
        # zip_longest turns the table: a row for each batch needs it turned back.
        return cls(
            np.array([batch.rows for batch in batches]),
            np.array([batch.execution_s for batch in batches]),
            float(np.median([min(batch.fixed_s, batch.execution_s) for batch in batches])),
            np.array([batch.workers for batch in batches], dtype=np.float64),
            np.array(list(ages)).T,
        )

    def young(self, warm_s: float) -> Floats:
        """How many of a batch's workers were still warming up."""
        return np.asarray((self.ages_s < warm_s).sum(axis=1), dtype=np.float64)

    def errors(self, weights: _Weights, warm_s: float) -> Floats:
        """Predicted / taken − 1."""
        workers = self.workers - (1 - weights.warm_speed) * self.young(warm_s)
        predicted_s = weights.fixed(workers) + self.rows / weights.rate(workers)
        return np.asarray(predicted_s / self.execution_s - 1, dtype=np.float64)

    def loss(self, weights: _Weights, warm_s: float) -> float:
        return float(np.mean(np.minimum(np.abs(self.errors(weights, warm_s)), 1.0)))


def _fitted(columns: _Columns, warm_s: float) -> _Weights:
    """Least squares on relative errors, with less weight for outliers."""
    work_s = np.maximum(columns.execution_s - columns.told_s, 0.05 * columns.execution_s)
    pace = float(np.median(columns.rows / work_s / columns.workers))
    pull = PULL * math.sqrt(len(columns.rows)) / float(np.mean(columns.execution_s))

    def weights_of(values: Floats) -> _Weights:
        fixed_s, shared_s, share, contention, speed = values.tolist()
        return _Weights(fixed_s, shared_s, share * pace, contention, speed)

    def errors(values: Floats) -> Floats:
        told = pull * np.array([values[0] - columns.told_s, values[1]])
        return np.append(columns.errors(weights_of(values), warm_s), told)

    several = len(np.unique(columns.workers)) > 1
    # The engine tells planning and commits; launching tasks comes on top, so the fixed time is hardly less.
    low = np.array([0.9 * columns.told_s, 0.0, 0.05, 0.0, 0.0])
    short_s = float(np.quantile(columns.execution_s, 0.2))
    most_s = short_s * float(np.median(columns.workers)) if several else 0.0
    high = np.array([max(columns.told_s, short_s) + 1e-6, most_s + 1e-6, 20.0, float(several) + 1e-9, 1.0])
    begin = np.clip([columns.told_s, 0.0, 1.0, 0.05, 0.5], low + 1e-10, high - 1e-10)
    found = least_squares(errors, begin, bounds=(low, high), loss="soft_l1", f_scale=SCALE)
    return weights_of(np.asarray(found.x, dtype=np.float64))


def _curve(columns: _Columns, settled: Bools, weights: _Weights, workers_max: int) -> Curve:
    """A rate for each count: its own where enough batches show it, else that of the fitted curve."""
    counts = [int(count) for count in np.unique(columns.workers)]
    if len(counts) == 1:
        return Linear(round(weights.per_worker, 6))
    bent = Scalability(weights.per_worker, weights.contention)
    rates = {count: bent.rate(count) for count in range(1, min(COUNTS_MOST, max(workers_max, counts[-1])) + 1)}
    work_s = columns.execution_s - weights.fixed(columns.workers)
    for count in counts:
        # A batch that is mostly fixed time tells little of the rate.
        chosen = settled & (columns.workers == count) & (work_s > 0.4 * columns.execution_s)
        if chosen.sum() >= OWN_BATCHES:
            rates[count] = float(np.median(columns.rows[chosen] / work_s[chosen]))
    return Table(tuple(sorted(rates)), tuple(round(rates[count], 4) for count in sorted(rates)))
