"""Paper 1 (Imai et al.): validation points, training subsets, and elastic scheduling on World Cup 98."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import Capacity
from penstock.models.subset_search import Search, best_subset, subset_error
from penstock.models.throughput_curves import Curve, Floats, InverseTime, Quadratic, Table
from penstock.models.training import Samples, validation_points
from penstock.reproduce.claims import Claim, near
from penstock.reproduce.mst_measured import claims as measured_claims
from penstock.sim.scenario import Scenario
from penstock.sim.workloads import Load

TRAINED = (3, 4, 6, 8, 24)
COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 80, 96, 128)  # eq 9
HOURS = 500
# Not stated in the paper; of all windows and exponents this one meets its 20 elastic costs within 1.6 %.
WINDOW = datetime(1998, 5, 18, 6, tzinfo=UTC)
EXPONENT = 0.6
OVERS = (0.0, 5.0, 10.0, 20.0)


@dataclass(frozen=True, slots=True)
class App:
    """One column of Tables 2 and 3. Costs are dollars an hour."""

    name: str
    models: tuple[InverseTime, Quadratic]
    chosen: int
    point: int | None
    """The first validation point of §5.2."""
    peak: float
    """MB/s: 0.9 × the largest sample."""
    static: tuple[int, int]
    """Workers for the peak and for the average, by the ground truth."""
    costs: tuple[float, float, float, float]
    """Elastic, 0, 5, 10 and 20 % over-provisioned."""
    average: float
    """Percent of the time that the static average misses."""
    over: int
    """Percent of over-provisioning that keeps violations within 1 %."""
    saving: int
    """Percent saved with it, against the static peak."""

    @property
    def model(self) -> Curve:
        return self.models[self.chosen - 1]


APPS = (
    App("grep", (InverseTime(0.01617, 1.04913), Quadratic(0.63117, 0.74233, 0.00063)), 1, 26, 32.0, (53, 24),
        (2.808, 2.998, 3.137, 3.410), 44.6, 1, 45),
    App("rolling-count", (InverseTime(0.11748, 2.75500), Quadratic(0.16593, 0.27683, 0.00322)), 1, 25, 10.0, (119, 28),
        (5.643, 5.815, 5.950, 6.200), 44.6, 1, 52),
    App("unique-visitor", (InverseTime(0.02050, 1.67805), Quadratic(0.01615, 0.56212, 0.00160)), 2, 25, 48.0, (114, 56),
        (5.876, 6.193, 6.451, 6.932), 44.8, 4, 46),
    App("page-view", (InverseTime(0.03512, 1.61983), Quadratic(0.27180, 0.49439, 0.00089)), 2, 25, 46.0, (115, 66),
        (5.716, 6.051, 6.333, 6.872), 45.6, 19, 41),
    App("data-clean", (InverseTime(0.11039, 1.62948, 0.0, 0.00004), Quadratic(0.12286, 0.49693, 0.01233)), 2, None, 5.0,
        (16, 8), (0.712, 0.813, 0.831, 0.896), 28.4, 34, 36),
    App("vht", (InverseTime(0.01958, 0.0, 0.00005), Quadratic(50.69306, 0.0, 0.00394)), 2, None, 49.0, (1, 1),
        (0.100, 0.200, 0.200, 0.200), 0.0, 0, 0),
)  # fmt: skip


def claims(series: Load | None) -> list[Claim]:
    """All claims; `series` is the World Cup trace: without it, Table 3 cannot be told."""
    found = [*_validation(), *_subsets(), *measured_claims()]
    if series is None:
        text = "elastic scheduling of six applications (Table 3)"
        return [*found, Claim("table3", text, "costs and savings", None, None, "give --trace: World Cup 98 per minute")]
    inferred, raw = (_hourly(_window(series), exponent) for exponent in (EXPONENT, 1.0))
    for app in APPS:
        found += [*_costs(app, "inferred", inferred), *_costs(app, "raw", raw), *_saving(app, inferred)]
    return [*found, _least_saving(found), _few_missed(inferred)]


def _few_missed(shape: Load) -> Claim:
    """20 % more miss nearly nothing, but for Data Clean (abstract and §6.3)."""
    few = 0
    for app in APPS:
        hours, truth = _hours(app, shape)
        few += missed_share(hours, scheduled(hours, app.model, 20.0), truth) < 0.001
    text = "applications of 6 that 20 % over-provisioning keeps below 0.1 % violations (abstract)"
    return Claim("abstract-missed", text, 5, few, few >= 5, _TRUTH)


def _least_saving(found: list[Claim]) -> Claim:
    """The abstract's saving, judged by what was just computed."""
    least = min(float(claim.ours) for claim in found if claim.id.endswith("-saving") and claim.ours is not None)
    text = "every application saves at least this many percent against the static peak (abstract)"
    # Savings are off by as much as the costs, 2 %: the paper's own 36 must not fail by a rounding.
    return Claim("abstract-saving", text, 36, least, least >= 34, "VHT needs one VM at any rate, so it saves nothing")


def _validation() -> Iterator[Claim]:
    for app in APPS:
        points = validation_points(app.models, TRAINED, most=128, threshold=0.10)
        first = points[0] if points else None
        text = f"first worker count at which {app.name}'s models part by 10 % (Algorithm 1)"
        yield Claim(f"validation-{app.name}", text, app.point or "none", first or "none", first == app.point)
    second = validation_points(APPS[1].models, TRAINED)[1]
    low, high = _second_points_within_rounding(APPS[1])
    why = f"cause unknown: weights that round to Table 2's give {low} to {high}; curves not made flat, 58"
    yield Claim("validation-rolling-count-second", "its second point", 72, second, second == 72, why)


def _second_points_within_rounding(app: App) -> tuple[int, int]:
    """Between what the second point lies, over all weights that are printed alike: every corner of their ranges."""
    one, two = app.models
    printed = (one.serial, one.parallel, two.base, two.gain, two.loss)
    seconds = []
    for signs in itertools.product((-5e-6, 5e-6), repeat=len(printed)):
        a, b, c, d, e = (weight + sign for weight, sign in zip(printed, signs, strict=True))
        seconds.append(validation_points((InverseTime(a, b), Quadratic(c, d, e)), TRAINED)[1])
    return min(seconds), max(seconds)


SEEDS = range(4)
SHAPES: tuple[Curve, ...] = (InverseTime(0.02, 1.2), Quadratic(0.5, 0.6, 0.001), InverseTime(0.05, 1.5, 0.0003))


def _subsets() -> Iterator[Claim]:
    """Table 1's use: counts chosen on three benchmarks train the models of six other applications.

    That a larger limit never makes the best subset worse is no claim: a minimum over more subsets cannot rise.
    """
    errors = np.array([_errors_elsewhere(seed) for seed in SEEDS]).mean(axis=0)
    why = f"curves of the paper's shapes, 5 % noise, means of {len(SEEDS)} draws: its samples are not published"
    text = "error of counts up to 24 over that of counts up to 5, on applications they were not chosen on; at most half"
    ratio = float(errors[1] / errors[0])
    yield Claim("table1-ratio", text, 0.284, ratio, ratio <= 0.5, why)
    text = "their error up to 24 is less than that of the five smallest counts"
    yield Claim("table1-smallest", text, None, f"{errors[1]:.3f} {errors[2]:.3f}", bool(errors[1] < errors[2]), why)


def _errors_elsewhere(seed: int) -> tuple[float, float, float]:
    """On Table 2's applications: of counts chosen on other curves, up to 5 and up to 24, and of the five smallest."""
    known, others = _noisy(SHAPES, 2 * seed), _noisy([app.model for app in APPS], 2 * seed + 1)
    few, many = (best_subset(known, Search(train_max=most)).counts for most in (5, 24))
    return subset_error(others, few), subset_error(others, many), subset_error(others, COUNTS[:5])


def _noisy(curves: Sequence[Curve], seed: int) -> list[Samples]:
    rng = np.random.default_rng(seed)
    return [
        Samples.of({m: (curve.rate(m) * (1 + 0.05 * rng.standard_normal(6))).tolist() for m in COUNTS})
        for curve in curves
    ]


def _hours(app: App, shape: Load) -> tuple[Floats, Table]:
    """The rate of each hour in MB/s, and a ground truth that goes with it."""
    load = replace(shape, arrivals=shape.arrivals / shape.peak * app.peak)
    return load.arrivals[::60] / load.tick_s, _truth(app, load)


def _costs(app: App, label: str, shape: Load) -> Iterator[Claim]:
    hours, _ = _hours(app, shape)
    about = "load's window and exponent fitted to these costs" if label == "inferred" else "requests as they are"
    flat = float(hours.mean() / hours.max())
    raw = f"requests as they are: mean/peak {flat:.2f}, where the paper's static rows imply 0.55"
    why = _INFERRED if label == "inferred" else raw
    for over, paper in zip(OVERS, app.costs, strict=True):
        cost = 0.1 * float(scheduled(hours, app.model, over).mean())
        text = f"{app.name}, {over:g} % over: dollars an hour ({about})"
        yield Claim(f"table3-{label}-{app.name}-cost-{over:g}", text, paper, cost, near(paper, cost, 0.02), why)


def _saving(app: App, shape: Load) -> Iterator[Claim]:
    hours, truth = _hours(app, shape)
    saving = 100 * (1 - float(scheduled(hours, app.model, app.over).mean()) / app.static[0])
    text = f"{app.name}: percent saved against the static peak, {app.over} % over (load fitted to the costs)"
    yield Claim(f"table3-{app.name}-saving", text, app.saving, saving, abs(saving - app.saving) <= 2, _INFERRED)
    if app.static[0] == app.static[1]:  # one count does it all: it cannot miss
        return
    average = np.full(len(hours), float(app.static[1]))
    missed = 100 * missed_share(hours, average, truth)
    text = f"{app.name}, static average of {app.static[1]}: percent of the time in violation"
    yield Claim(f"table3-{app.name}-static-average", text, app.average, missed, abs(missed - app.average) <= 2, _TRUTH)


_INFERRED = "load inferred: requests^0.6 from 18 May 1998 06:00 UTC"
_TRUTH = "ground truth inferred from Table 3's static rows, a line between two counts; its samples are not published"


def scheduled(hours: Floats, model: Curve, over: float) -> Floats:
    """Workers of each hour: the fewest that the model says suffice, and some percent more, 128 at most."""
    return np.minimum(np.ceil((1 + over / 100) * _fewest(model, hours) - 1e-9), 128.0)


def missed_share(hours: Floats, workers: Floats, truth: Curve) -> float:
    """Share of minutes in which the truth is below the rate; an hour's first minute has the last hour's workers."""
    able = np.array([truth.rate(count) for count in range(129)])[workers.astype(int)]
    able_before = np.concatenate([able[:1], able[:-1]])
    return float((59 * (able < hours) + (able_before < hours)).sum() / (60 * len(hours)))


def _fewest(curve: Curve, rates: Floats) -> Floats:
    able = np.array([curve.rate(count) for count in range(1, 129)])
    return np.asarray(np.minimum(np.searchsorted(able, rates * (1 - 1e-12)) + 1.0, 128.0), dtype=np.float64)


def scenario_of(app: App, load: Load) -> Scenario:
    """The same as a replay: a decision sees the new rate after a minute, which is the delay of §6.1, both ways."""
    return Scenario(
        name=app.name,
        load=load,
        dataflow=Dataflow((Operator(app.name, 0.0),)),
        capacity=Capacity(_truth(app, load)),
        believed=Capacity(app.model),
        limits=Limits(1, 128),
        objective=Objective(),
        price=Price(0.10),
    )


def _truth(app: App, load: Load) -> Table:
    """A ground truth that explains the static rows: so many workers just do the average, so many the peak."""
    mean = float(load.arrivals.mean()) / load.tick_s
    peak_workers, mean_workers = app.static
    if peak_workers == mean_workers:
        return Table((peak_workers,), (app.peak * 1.02,))
    return Table((mean_workers, peak_workers), (mean * 1.001, app.peak * 1.001))


def _window(series: Load) -> Load:
    begin = WINDOW.timestamp() - (series.origin_s or 0.0)
    first = int(np.searchsorted(series.times_s - series.tick_s, begin))
    steps = round(HOURS * 3600 / series.tick_s)
    arrivals = series.arrivals[first : first + steps]
    if series.origin_s is None or len(arrivals) < steps:
        raise BadInput("the trace does not hold 500 hours from 1998-05-18 06:00 UTC: give World Cup 98 per minute")
    return Load.of(arrivals, series.tick_s)


def _hourly(load: Load, exponent: float) -> Load:
    """Each hour at its own constant rate, in minutes; relative."""
    hours = load.arrivals.reshape(HOURS, -1).sum(axis=1)
    return Load.of(np.repeat((hours / hours.max()) ** exponent, 60) * 60.0, 60.0)
