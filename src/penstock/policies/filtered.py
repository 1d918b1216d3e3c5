"""Thresholds on a filtered load, and how many workers at once (paper 5 §2.4, 3.3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.errors import BadInput, unknown
from penstock.core.job import Job
from penstock.core.journal import Journal
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.models.filters import (
    NOISE_LEAST,
    SYSTEM_LEAST,
    WINDOW_S,
    Bootstrap,
    Filter,
    Floats,
    Kalman,
    Pure,
    Weierstrass,
    driven,
)
from penstock.models.meter_lag import LAGS, MeterLag
from penstock.models.transition import HORIZON_S, Learner, Learnt
from penstock.policies.load_samples import COLUMNS, column, learnt_from, load_by_model, measured, sample_of
from penstock.solvers.space import Range, Space

FILTERS = ("pure", "gw", "ekf")
SIZINGS = ("sum", "eager", "step")
B_FROM = ("both", "line")
# The least system noise is given for 2 samples a second; a load that wanders does so in proportion to time.
PAPER_SPAN_S = 0.5


class Filtered:
    """Thresholds on the CPU through a filter (pure, gw or ekf); sizing by its sum (sum, eager) or by one (step).

    The filter's estimate, averaged over the workers, is held against two thresholds: up if any metric is above, down
    if all are below. `sizing=sum` asks at once for as many workers as bring the sum of the estimates to the middle,
    and counts those under way; `eager` sizes anew as each of them arrives; `step` adds or takes one a decision, also
    while workers start (the paper's baseline).
    `metrics=cpu+memory` minds both: not by default, because a JVM's heap fills whatever the load, and a live executor
    tells only the most that it ever used. a and b (how the CPU follows the rate for one worker, and its change), the
    noise of the meter and its `lag` in ticks are learnt while it runs, taken from an earlier run's `journal`, or given;
    where nothing is learnt yet, b is what the job's capacity model says (`b_from=line`: not even then, as in versions
    before). `share=false` leaves out that workers who stay
    take over what one that leaves carried: our addition to the paper.

    >>> from penstock.sim.scenario import Scenario
    >>> job = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=1).job()
    >>> Filtered(job, filter="gw", sizing="step").memory_s
    60.0
    """

    source: ClassVar[str] = "paper 5 §2.3, 3.3"
    space: ClassVar[Space] = {"upper": Range(0.4, 0.98, 0.02), "lower": Range(0.1, 0.9, 0.02)}
    needs = frozenset({Knob.WORKERS})

    def __init__(  # noqa: PLR0913  what can be set is what the paper sets
        self,
        job: Job,
        filter: str = "ekf",  # noqa: A002  the name that a person writes
        sizing: str = "sum",
        upper: float = 0.8,
        lower: float = 0.45,
        metrics: str = "cpu",
        every_s: float = 2.0,
        dead_s: float = 10.0,
        ease_s: float = 10.0,
        a: float | None = None,
        b: float | None = None,
        noise: float | None = None,
        lag: float | None = None,
        share: bool = True,
        b_from: str = "both",
        journal: str = "",
    ) -> None:
        _check(filter, sizing, upper, lower, lag)
        if b_from not in B_FROM:
            raise unknown("b_from", b_from, B_FROM)
        self._b_from = b_from
        self._job, self._sizing = job, sizing
        self._metrics = _metrics(metrics)
        # Work moves to the workers that stay; the memory that one needs for itself does not.
        self._moves = np.array([float(metric == "cpu") for metric in self._metrics])
        self._upper, self._lower, self._every_s = upper, lower, every_s
        # The geometric middle is as far, in workers, from growing as from shrinking.
        self._middle = math.sqrt(upper * lower)
        self._learnt = _earlier(journal, self._metrics, job, lag) if journal else None
        self._starts_at = round(self._learnt.instances) if self._learnt else None
        self._a, self._b = (self._given(value) for value in (a, b))
        self._passed_on = self._moves if share else 0 * self._moves
        self._lag = MeterLag(self._learnt.lag if self._learnt and lag is None else lag)
        self._filter = self._made(filter, Bootstrap(dead_s, ease_s, r=self._r(noise), least=_least(job.tick_s)))
        is_taught = self._learnt is not None and self._learnt.b[0] > 0
        self._learner = Learner(len(self._metrics)) if None in (a, b) and not is_taught else None
        self.memory_s = {"pure": every_s, "gw": WINDOW_S}.get(filter, HORIZON_S + dead_s + ease_s)
        self._decided_s: float | None = None
        self._rate: float | None = None

    def decide(self, seen: Observation) -> Decision:
        if self._starts_at is not None:
            workers, self._starts_at = self._job.limits.clamp(max(1, self._starts_at)), None
            return Decision(seen.target.resized(workers), f"warm start: {workers} workers, the last run's average")
        names, z = measured(seen, self._metrics, self._job)
        if not names:
            return self._kept(seen)
        estimates = self._estimates(seen, names, z)
        signals = self._signals(seen, estimates, float(z[:, 0].mean()))
        if not self._filter.is_ready:
            return Decision(seen.target, "the filter listens: too early to act on it", signals)
        if self._decided_s is not None and seen.time_s < self._decided_s + self._every_s - 1e-6:
            return Decision(seen.target, f"decides every {self._every_s:g} s", signals)
        self._decided_s = seen.time_s
        return self._judged(seen, estimates, signals)

    def _judged(self, seen: Observation, estimates: Floats, signals: dict[str, float]) -> Decision:
        loads, running, asked = estimates.mean(axis=0), len(seen.running.workers), len(seen.target.workers)
        most = int(np.argmax(loads))
        load, what = float(loads[most]), self._metrics[most]
        said = f"filtered {what} {load:.0%} of {running} workers"
        if self._lower <= load <= self._upper:
            within = f"within {self._lower:.0%} … {self._upper:.0%}"
            return Decision(seen.target, f"{said} {within}", signals)
        # Workers that run but whose meters are silent count at the others' mean.
        needed = max(1, math.ceil(running * load / self._middle - 1e-9))
        if load > self._upper:
            wanted, why = self._more(running * load, needed, asked), f"above {self._upper:.0%}"
        else:
            wanted, why = (asked - 1 if self._sizing == "step" else min(asked, needed)), f"below {self._lower:.0%}"
        wanted = self._job.limits.clamp(max(1, wanted))
        outcome = f"{asked} stay" if wanted == asked else f"{asked} become {wanted}"
        return Decision(seen.target.resized(wanted), f"{said} is {why}: {outcome}", signals)

    def _more(self, total: float, needed: int, asked: int) -> int:
        """Never fewer than asked for: while workers start, those that run are full and hide the rest of the load."""
        if self._sizing == "step":
            return asked + 1
        is_enough = self._sizing == "sum" and total <= self._upper * asked
        return asked if is_enough else max(asked, needed)

    def _estimates(self, seen: Observation, names: tuple[str, ...], z: Floats) -> Floats:
        sample = sample_of(seen, names, z, self._rate)
        self._rate = seen.input_rate
        if not isinstance(self._filter, Kalman):
            return self._filter.step(seen.time_s, names, z, sample.u)
        if self._learner is not None:
            worked_s = seen.span_s * max(1, len(seen.running.workers))
            self._learner.follow(seen.span_s, worked_s, z.mean(axis=0), seen.processed, seen.batch is not None)
            is_line = self._b_from == "line"
            b = self._moves * (self._learner.slope() if is_line else self._learner.believed(load_by_model(seen)))
            # At a steady rate a load stays as it is, so a is 0; memory does not follow the rate at all.
            self._steer(0 * self._moves, b)
        self._lag.follow(names, z, sample.u)
        return self._filter.step(seen.time_s, names, z + self._b_now * self._lag.ahead(), sample.u)

    def _steer(self, a: Floats, b: Floats) -> None:
        assert isinstance(self._filter, Kalman)
        a, self._b_now = self._coefficients(a, b)
        self._filter.motion = driven(a, self._b_now)

    def _kept(self, seen: Observation) -> Decision:
        asked = len(seen.target.workers)
        if seen.workers.names:
            lacking = [name for name in self._metrics if not np.isfinite(column(seen, name)).any()]
            return Decision(seen.target, f"the workers' {' and '.join(lacking)} is not known: kept at {asked}")
        if asked == 0 and (seen.backlog or seen.input_rate):
            return Decision(seen.target.resized(self._job.limits.clamp(1)), "no worker was asked for: one to begin")
        return Decision(seen.target, f"no worker runs yet: kept at {asked}")

    def _signals(self, seen: Observation, estimates: Floats, measured: float) -> dict[str, float]:
        load = float(estimates[:, 0].mean())
        signals = {"load": load, "measured": measured, "upper": self._upper, "lower": self._lower}
        signals["sum"] = load * len(seen.running.workers)
        if isinstance(self._filter, Kalman):
            signals |= {"b": float(self._b_now[0]), "lag": self._lag.lag}
        return signals

    def _made(self, name: str, bootstrap: Bootstrap) -> Filter:
        if name == "pure":
            return Pure()
        if name == "gw":
            return Weierstrass()
        nothing = np.zeros(len(self._metrics))
        known = (self._learnt.a, self._learnt.b) if self._learnt else (nothing, nothing)
        a, self._b_now = self._coefficients(*known)
        return Kalman(driven(a, self._b_now), bootstrap, self._passed_on)

    def _coefficients(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        return (a if self._a is None else self._a), (b if self._b is None else self._b)

    def _given(self, value: float | None) -> Floats | None:
        """A coefficient of the CPU; memory does not follow the rate."""
        return None if value is None else value * self._moves

    def _r(self, noise: float | None) -> Floats | None:
        if noise is None:
            return self._learnt.r if self._learnt else None
        return np.diag([max(noise**2, NOISE_LEAST) if metric == "cpu" else NOISE_LEAST for metric in self._metrics])


def _check(filter_name: str, sizing: str, upper: float, lower: float, lag: float | None) -> None:
    if filter_name not in FILTERS:
        raise unknown("filter", filter_name, FILTERS)
    if sizing not in SIZINGS:
        raise unknown("sizing", sizing, SIZINGS)
    if not 0 < lower < upper <= 1:
        raise BadInput(f"filtered:upper={upper:g},lower={lower:g}: it must be 0 < lower < upper <= 1")
    if lag is not None and not 0 <= lag <= LAGS:
        raise BadInput(f"filtered:lag={lag:g}: a meter is 0 to {LAGS} ticks late")


def _metrics(text: str) -> tuple[str, ...]:
    names = tuple(text.split("+"))
    for name in names:
        if name not in COLUMNS:
            raise unknown("metric", name, COLUMNS)
    return names


def _least(tick_s: float) -> float:
    return SYSTEM_LEAST * tick_s / PAPER_SPAN_S


def _earlier(path: str, metrics: tuple[str, ...], job: Job, lag: float | None) -> Learnt:
    learnt = learnt_from(Journal.open(Path(path)), metrics, job, lag)
    if learnt is None:
        raise BadInput(f"filtered:journal={path}: it shows no two steps with the workers' {' and '.join(metrics)}")
    return learnt
