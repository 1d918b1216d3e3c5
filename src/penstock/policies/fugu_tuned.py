"""FUGU that tunes itself: a change of the load, a search on what was recorded, adopted if cheaper (paper 2 §3, §4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.bounds import SEED_MOST, between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.models.drift import Adwin
from penstock.policies.fugu import Fugu, Meter, decided
from penstock.policies.fugu_kernel import evaluate
from penstock.policies.fugu_scaler import Measured, Scaler
from penstock.policies.fugu_settings import HOST, SPACE, Settings
from penstock.policies.fugu_window import Outcome, Window
from penstock.solvers.packing import VARIANTS
from penstock.solvers.search import recursive_random
from penstock.solvers.space import Point

GOALS = ("printed", "first")
# A window shorter than the longest duration of the lower threshold cannot show a scale-in.
SHORTEST = 12
# Ten minutes of 10 s: more of the past is seldom like now.
LONGEST = 60
# As many measurements as any configuration counts.
DURATIONS = sum(int(max(SPACE[key].values())) for key in ("upper_ticks", "lower_ticks", "grace_ticks"))


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One measurement, and where the operators were when it was made."""

    seen: Measured
    hosts: tuple[str, ...]
    places: dict[str, str]


class TunedFugu:
    """FUGU whose thresholds, durations and packing are searched anew whenever the load changes."""

    source: ClassVar[str] = "paper 2 (Heinze), §3 and §4"
    needs = frozenset({Knob.WORKERS, Knob.PLACEMENT})

    def __init__(  # noqa: PLR0913  what can be set is what the paper sets, and what it leaves open
        self,
        job: Job,
        budget: int = 500,
        delta: float = 0.2,
        goal: str = "first",
        any_host: bool = True,
        shortest: int = SHORTEST,
        longest: int = LONGEST,
        latency_s: float = 0.0,
        pause_s: float = 2.0,
        move_mb_s: float = 0.0,
        seed: int = 0,
    ) -> None:
        if goal not in GOALS:
            raise BadInput(f"fugu-tuned:goal={goal}: it must be one of {', '.join(GOALS)}")
        between("fugu-tuned:budget", budget, 1, 1_000_000)
        between("fugu-tuned:shortest", shortest, 2, longest)
        between("fugu-tuned:longest", longest, shortest, 100_000)
        between("fugu-tuned:seed", seed, 0, SEED_MOST)
        plain = Fugu(job, latency_s=latency_s, pause_s=pause_s, move_mb_s=move_mb_s)
        self._meter: Meter = plain.meter
        self._scaler: Scaler = plain.scaler
        self._kind, self._job = job.kinds[0].name, job
        self._budget, self._goal, self._any_host, self._seed = budget, goal, any_host, seed
        self._load = Adwin(delta, 1, longest)
        self._shortest = shortest
        self._history: deque[_Recorded] = deque(maxlen=longest)
        self._searches = self._adopted = 0
        self._recalled: Mapping[str, float] | None = None
        self.memory_s = longest * job.tick_s + DURATIONS * job.tick_s + self._meter.memory_s

    def recall(self, signals: Mapping[str, float]) -> None:
        """What was adopted may be hours old: a restart takes it from the journal, and repeats no search."""
        self._recalled = signals if {*self._signals()} <= {*signals} else None

    def decide(self, seen: Observation) -> Decision:
        measured = self._meter.read(seen)
        if self._recalled is not None:
            self._resume(self._recalled)
        note = self._profile(measured, seen) if measured is not None else ""
        decision = decided(self._scaler, measured, seen, self._kind)
        signals, self._recalled = {**decision.signals, **self._signals()}, None
        return Decision(decision.target, decision.reason + note, signals)

    def _profile(self, measured: Measured, seen: Observation) -> str:
        """Record a measurement; where the load has changed, search for a better configuration."""
        places = {name: there[0] for name, there in seen.target.instances.items() if there}
        if len(places) < len(self._scaler.layout.operators):
            return ""  # nothing is placed yet
        hosts = tuple(worker.name for worker in seen.target.workers)
        self._history.append(_Recorded(measured, hosts, places))
        # Summed over all hosts and not divided by them, as printed: divided, nothing ever changes.
        has_changed = self._add(sum(load[0] for load in measured.loads.values()) / HOST)
        kept = max(self._load.size, self._shortest)
        while len(self._history) > kept:
            self._history.popleft()
        return self._search() if has_changed and len(self._history) >= self._shortest else ""

    def _add(self, load: float) -> bool:
        """Has the load changed? In what is recalled that was answered."""
        if self._recalled is None:
            return self._load.add(load) > 0
        self._load.recall(load, int(self._recalled["window"]))
        return False

    def _resume(self, signals: Mapping[str, float]) -> None:
        """The configuration and the counts that the journal tells."""
        point: dict[str, Any] = {key: signals[key] for key in SPACE}
        self._scaler.settings = Settings.at({**point, "packing": list(VARIANTS)[int(signals["packing"])]})
        self._searches, self._adopted = int(signals["searches"]), int(signals["adopted"])

    def _search(self) -> str:
        window, settings = self.window(), self._scaler.settings
        arrays = window.arrays()

        def value(row: tuple[int, ...]) -> tuple[float, ...]:
            hosts, late = evaluate(np.array([row], dtype=np.int64), arrays)[0].tolist()
            return self._value(Outcome(hosts, late), window.most)

        self._searches += 1
        found = recursive_random(lambda point: value(_row(point)), SPACE, self._budget, self._seed + self._searches)
        now = value(settings.row())
        if found.value >= now:
            return ""
        self._adopted += 1
        self._scaler.settings = better = Settings.at(found.point)
        return f"; tuned on {len(self._history)} measurements: {better.text()}"

    def _value(self, outcome: Outcome, most: int) -> tuple[float, ...]:
        """What is minimised: as printed, MAX and the violations where there are any; or violations first, then cost."""
        return (outcome.cost(most),) if self._goal == "printed" else (outcome.violations, outcome.hosts)

    def window(self) -> Window:
        """What was recorded lately, from where the operators were then."""
        first = self._history[0]
        seen = tuple(each.seen for each in self._history)
        scaler, hosts = self._scaler, len(first.hosts)
        # A journal may begin with limits that were changed since.
        limits = Limits(min(hosts, scaler.limits.workers_min), max(hosts, scaler.limits.workers_max))
        return Window(scaler.layout, seen, first.hosts, first.places, limits, scaler.bound_ms, self._any_host)

    def _signals(self) -> dict[str, float]:
        """The adopted configuration, so that the journal has it."""
        chosen = self._scaler.settings
        numbers = {key: float(value) for key, value in chosen.items() if key != "packing"}
        counts = {"searches": self._searches, "adopted": self._adopted, "window": self._load.size}
        whole = {**counts, "packing": list(VARIANTS).index(chosen.packing)}
        return {**numbers, **{key: float(value) for key, value in whole.items()}}


def _row(point: Point) -> tuple[int, ...]:
    """A point of the space as the compiled form takes it, without the checks of `Settings`: 500 of them are tried."""
    way = VARIANTS[str(point["packing"])]
    ticks = (int(point["upper_ticks"]), int(point["lower_ticks"]), int(point["grace_ticks"]))
    thresholds = (round(float(point["upper"]) * HOST), round(float(point["lower"]) * HOST))
    return (*thresholds, *ticks, int(way.best), int(way.decreasing), int(way.neighbours))
