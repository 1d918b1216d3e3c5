"""What a look-ahead policy expects of the next steps: rates at the sources, and how fast each worker will be."""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.core.job import Job
from penstock.core.observation import Observation
from penstock.models.forecast import (
    OPTIMISTIC,
    PESSIMISTIC,
    Flat,
    Forecaster,
    Quantity,
    SeasonalNaive,
    WindowMean,
    average,
)
from penstock.models.forecast_oracle import Errors, KnownFuture, Spread
from penstock.models.holt_winters import HoltWinters

DAY_S = 86400.0
SEASON_MOST_S = 366 * DAY_S
ORACLES = ("oracle", "wpa", "wpo", "wpp")
"""Those that are told the truth, more or less; the other heuristics of paper 3 are told nothing."""
HEURISTICS = ("caf", "waaf", "wpa", "wpo", "wpp")
"""Those of paper 3 §V-B, which plan only when the throughput has left its band."""
SEEN: Mapping[str, Callable[[int], Forecaster]] = {
    "caf": lambda _: WindowMean(1),
    "waaf": lambda _: WindowMean(3),
    "seasonal-naive": SeasonalNaive,
    "holt-winters": HoltWinters,
}
"""Forecasters of what was seen, by the steps of a season."""
NAMES = (*ORACLES, *SEEN)
# Of a worker nothing but its last quarter of an hour is known: dips end within minutes, and have no season.
SPEED_STEPS = 3


@dataclass(frozen=True)
class Sight:
    """How far and how well is looked ahead."""

    forecast: str
    step_s: float
    errors: Errors
    seed: int = 0
    season_s: float = DAY_S

    def __post_init__(self) -> None:
        if self.forecast not in NAMES:
            raise unknown("forecast", self.forecast, NAMES)
        between("season_s", self.season_s, self.step_s, SEASON_MOST_S)


class Expectations:
    """Told every tick; asked at the ends of steps."""

    def __init__(self, job: Job, sight: Sight) -> None:
        self._job, self._sight = job, sight
        if sight.forecast in ORACLES and job.oracle is None:
            raise BadInput(f"forecast={sight.forecast} knows the future only in a replay: {', '.join(SEEN)} do not")
        self._sources = job.dataflow.sources
        self._truth = _step_rates(job, sight.step_s) if sight.forecast in ORACLES else {}
        make = SEEN.get(sight.forecast, SEEN["caf"])
        self._rates = {name: make(max(1, round(sight.season_s / sight.step_s))) for name in self._sources}
        self._speeds: dict[str, WindowMean] = {}
        self._kinds: dict[str, str] = {}
        self._ticks: list[dict[str, float]] = []
        self._noted = False
        self.clock_s = 0.0
        self.is_step_end = False
        """Has a step just ended?"""

    def note(self, seen: Observation) -> None:
        """One tick more."""
        before, self.clock_s = self.clock_s, self.clock_s + seen.span_s
        # Ticks of a live clock come a little early or late: a step ends with the tick that is nearest to its end.
        self.is_step_end = self._step(self.clock_s) > self._step(before)
        share = seen.input_rate / len(self._sources)
        found = {name: seen.operators[name].input_rate if name in seen.operators else share for name in self._sources}
        self._ticks.append(found)
        self._kinds = {worker.name: worker.kind for worker in seen.target.workers}
        if self.is_step_end:
            for name, forecaster in self._rates.items():
                forecaster.note(statistics.fmean(tick[name] for tick in self._ticks))
            self._ticks, self._noted = [], True
        self._note_speeds(seen)

    def _step(self, clock_s: float) -> int:
        """Steps that have ended, where a tick's half is as good as none."""
        return int((clock_s + min(self._job.tick_s, self._sight.step_s) / 2 - 1e-6) / self._sight.step_s)

    def rates(self, steps: int) -> dict[str, Sequence[float]]:
        """Messages a second at each source."""
        if self._truth:
            return {name: self._known(self._truth[name], steps, Quantity.RATE, name) for name in self._sources}
        if not self._noted:
            last = self._ticks[-1]
            return {name: (last[name],) * steps for name in self._sources}
        return {name: tuple(self._rates[name].ahead(steps)) for name in self._sources}

    def speeds(self, names: Sequence[str], steps: int) -> dict[str, Sequence[float]]:
        """Of each worker's cores, as a part of what its kind says; one not seen yet is as the others are."""
        oracle = self._job.oracle
        if self._sight.forecast in ORACLES and oracle is not None and oracle.speed is not None:
            return {name: self._known_speed(oracle.speed, name, steps) for name in names}
        usual = (self.usual_speed,) * steps
        return {name: tuple(self._speeds[name].ahead(steps)) if name in self._speeds else usual for name in names}

    @property
    def usual_speed(self) -> float:
        """The mean over the workers that are known; 1 before the first."""
        known = [each.ahead(1)[0] for each in self._speeds.values()]
        return statistics.fmean(known) if known else 1.0

    def _known_speed(self, speed: Callable[[str, float], float], name: str, steps: int) -> Sequence[float]:
        step_s, now_s = self._sight.step_s, self.clock_s
        truth = [speed(name, now_s + (step + 0.5) * step_s) for step in range(steps)]
        return self._read(KnownFuture(truth, self._sight.errors, self._seed(name)), steps, Quantity.SPEED)

    def _known(self, truth: Sequence[float], steps: int, quantity: Quantity, name: str) -> Sequence[float]:
        first = min(len(truth) - 1, int(self.clock_s / self._sight.step_s + 1e-6))
        # A bias on rates and speeds together would cancel: it is on the speeds alone.
        errors = Errors(self._sight.errors.mean, 0.0, self._sight.errors.spread)
        return self._read(KnownFuture(truth[first : first + steps], errors, self._seed(name)), steps, quantity)

    def _read(self, oracle: KnownFuture, steps: int, quantity: Quantity) -> Sequence[float]:
        readings = {"wpa": average, "wpo": OPTIMISTIC[quantity], "wpp": PESSIMISTIC[quantity]}
        reading = readings.get(self._sight.forecast)
        return tuple((Flat(oracle, reading) if reading else oracle).ahead(steps))

    def _seed(self, name: str) -> int:
        return self._sight.seed * 1_000_003 + zlib.crc32(f"{name} {self.clock_s:.0f}".encode())

    def _note_speeds(self, seen: Observation) -> None:
        first = self._job.kinds[0]
        for name, speed in zip(seen.workers.names, _column(seen, "speed"), strict=True):
            if speed is None:
                continue
            kind = self._job.kind(self._kinds.get(name, first.name))
            # A plant tells it as a multiple of the first kind's whole power.
            factor = speed * first.cores * first.speed / (kind.cores * kind.speed)
            self._speeds.setdefault(name, WindowMean(self._window)).note(factor)
        for name in [name for name in self._speeds if name not in self._kinds]:
            del self._speeds[name]

    @property
    def _window(self) -> int:
        ticks = max(1, round(self._sight.step_s / self._job.tick_s))
        return 1 if self._sight.forecast == "caf" else SPEED_STEPS * ticks


def _column(seen: Observation, name: str) -> Sequence[float | None]:
    values = seen.workers.columns.get(name)
    if values is None or isinstance(values, (int, float)):
        return (values,) * len(seen.workers.names)
    return values


def _step_rates(job: Job, step_s: float) -> dict[str, Sequence[float]]:
    """What will arrive at each source, a second, in each step."""
    assert job.oracle is not None
    sources, ticks = job.dataflow.sources, max(1, round(step_s / job.tick_s))
    share = np.asarray(job.oracle.arrivals, dtype=np.float64) / len(sources)
    found: dict[str, Sequence[float]] = {}
    for name in sources:
        counts = np.asarray(job.oracle.by_source.get(name, share), dtype=np.float64)
        # The last step may be short: it has the rate of what there is.
        firsts = np.arange(0, len(counts), ticks)
        lengths = np.minimum(ticks, len(counts) - firsts) * job.tick_s
        found[name] = (np.add.reduceat(counts, firsts) / lengths).tolist()
    return found


def spread_of(text: str) -> Spread:
    """How "variance e/2" of paper 3 is read: `variance`, as printed, or `deviation`."""
    names = {"variance": Spread.VARIANCE, "deviation": Spread.DEVIATION}
    if text not in names:
        raise unknown("spread", text, names)
    return names[text]
