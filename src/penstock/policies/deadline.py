"""The fewest workers with which every event is answered before its deadline."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import ClassVar

from penstock.core.allocation import Allocation, Knob
from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.models.count_margin import CountMargin
from penstock.models.forecast_outlook import DEFAULT, outlook_by
from penstock.models.tracking import Stalls, StartTimes, TrackedCapacity
from penstock.policies.alternates import LastResort
from penstock.policies.batch_size import with_batches
from penstock.solvers.space import Range, Space

PARTS = ("allowance", "forecast", "margin", "patience", "tracking", "caution", "batches", "alternates")
# What more than expected may come: by how far off expectations were, or by a bursty process fitted to the counts.
MARGINS = ("residual", "arrivals")
# Batches of half a minute: what a plan counts on, between those of a job in time and those of a late one.
BATCH_S = 30.0
# An event that has just missed a batch waits for the next: so much of the bound is not the policy's to use.
BATCH_WAIT_S = 15.0
PHI_LEAST = 0.3
# Of the bound, of a tick, and of the bound where batches are served: what is kept back for what the rule does not see.
SPARE, SPARE_TICK, SPARE_BATCHES = 0.125, 0.25, 0.05
SOON_S = 10.0
SPARE_RATE = 0.2
# Workers that cannot be got back in time are kept for the upper path of late, for no more than this times what came:
# on a load that alternates between two rates that path went twice as high as any of it.
PEAK_SPARE = 1.1
# A bound of less than this part of a start leaves no time to get a worker once it is missed.
START_PART = 0.75
# While nobody has seen a worker start, one at a time is given up, and as long is waited for what that does.
CAUTION_S = 300.0
DAY_S = 86400.0
# Growth is learnt from the day before, so one day teaches none: on a square wave, restarts after one and a half and two
# days that were shown one of them decided 7 and 12 % of what followed otherwise.
MEMORY_S = 7 * DAY_S


class Deadline:
    """Counts deadlines, not loads: an event that arrived at t must be answered by t + φ · bound.

    Workers asked for now serve a start later. So as many are asked for as serve, from then until the next decision's
    workers come, all that is due by then: events that wait are known, those to come are taken on an upper path.
    Some are given up where fewer, from now on, still meet deadlines of two thirds of that.
    """

    source: ClassVar[str] = "Penstock's own"
    parts: ClassVar[tuple[str, ...]] = PARTS
    space: ClassVar[Space] = {
        "phi": Range(0.3, 1.0, 0.02),
        "kappa": Range(0.0, 3.0, 0.1),
        "release": Range(0.3, 1.0, 0.05),
    }

    def __init__(  # noqa: PLR0913  each is one number of the rule, and has a default
        self,
        job: Job,
        phi: float = 0.0,
        kappa: float = 1.5,
        release: float = 2 / 3,
        without: str = "",
        forecast: str = DEFAULT,
        margin: str = "residual",
    ) -> None:
        between("deadline:phi", phi, 0, 1)
        between("deadline:kappa", kappa, 0, 100)
        between("deadline:release", release, 0, 1)
        if margin not in MARGINS:
            raise unknown("deadline: margin", margin, MARGINS)
        off = frozenset(filter(None, without.split("+")))
        if off - set(PARTS):
            raise BadInput(f"deadline:without={without}: its parts are {', '.join(PARTS)}, joined by +")
        self._job, self._off, self._release = job, off, release
        self.memory_s = MEMORY_S
        bound_s = job.objective.latency_s or 0.0
        self._in_batches = job.trigger_s is not None
        self._bound_s = self._left_s()
        self._last_resort = LastResort(job, BATCH_S if self._in_batches else None, "alternates" not in off)
        knobs = {Knob.WORKERS, Knob.BATCH_SIZE} if self._limits_batches else {Knob.WORKERS}
        self.needs = self._last_resort.needs | knobs
        spare = SPARE + SPARE_TICK * job.tick_s / bound_s + SPARE_BATCHES * self._in_batches if bound_s else 0.0
        self._phi = self._phi_most = phi or max(PHI_LEAST, 1 - spare)
        self._starts = StartTimes(job.kinds[0].start_s)
        self._tracked, self._stalls = TrackedCapacity(), Stalls()
        self._released_s = -CAUTION_S
        self._peak = self._most_came = 0.0
        self._missed_s = -math.inf
        ahead_s = self._starts.expected_s + job.tick_s
        kappa, learns = 0.0 if "margin" in off else kappa, "forecast" not in off
        counts = CountMargin(job.tick_s, ahead_s) if margin == "arrivals" else None
        self._outlook = outlook_by(forecast, job.tick_s, ahead_s, kappa, learns, counts)
        self._clock_s = 0.0
        self._past: deque[tuple[float, float]] = deque()
        """When, by the sum of the intervals, how many had arrived."""

    def _left_s(self) -> float:
        """What is left of the bound for waiting; 0 without one."""
        bound_s = self._job.objective.latency_s or 0.0
        if not self._in_batches:
            return max(0.0, bound_s - self._job.dataflow.served_s)
        # Where nothing limits a batch, what waits becomes one, and its first event waits for its last.
        left_s = max(0.0, bound_s - BATCH_WAIT_S)
        return left_s if self._limits_batches else left_s / 2

    @property
    def _limits_batches(self) -> bool:
        return Knob.BATCH_SIZE in self._job.knobs and "batches" not in self._off and bool(self._job.objective.latency_s)

    def decide(self, seen: Observation) -> Decision:
        self._note(seen)
        asked, start_s = len(seen.target.workers), self._starts.expected_s
        if self._bound_s and seen.backlog is not None:
            within_s = 0.0 if "allowance" in self._off else self._phi * self._bound_s
            needed, kept = self._needed(seen, within_s, start_s), self._needed(seen, self._release * within_s, 0.0)
            why = f"what is due within {start_s + self._job.tick_s:.0f} s"
        else:
            # Without deadlines, or where nobody tells what waits, only the rate can be provided for.
            needed = kept = (1 + SPARE_RATE) * max(self._outlook.upper, seen.input_rate)
            why = f"the rate to come and {SPARE_RATE:.0%} more"
        grow = self._workers(needed)
        keep = max(grow, self._workers(kept))
        stay, held = self._given_up(asked, min(asked, keep))
        count = self._job.limits.clamp(grow if grow > asked else stay)
        reason = f"{why} takes {needed:.4g}/s: {grow} workers; to give some of {asked} up, {keep} must be left{held}"
        target, rates = self._target(seen, count), (needed, self._outlook.upper)
        target, more = self._last_resort.applied(seen, target, rates, self._tracked.ratio)
        return Decision(target, reason + more, self._signals(needed))

    def _given_up(self, asked: int, keep: int) -> tuple[int, str]:
        """How many stay, and why. One may not come back within the bound, or nobody knows yet how long it takes."""
        if keep >= asked or "caution" in self._off:
            return keep, ""
        why = ""
        if self._comes_too_late:
            keep = min(asked, max(keep, self._workers(min(self._peak, PEAK_SPARE * self._most_came))))
            why = f", but the bound leaves no time to get one back: {keep} stay for the most of late"
        elif not self._starts.were_seen:
            keep = asked if self._clock_s < self._released_s + CAUTION_S else asked - 1
            why = f", but no start has been seen yet: one goes every {CAUTION_S:g} s, and {keep} stay"
        if keep < asked:
            self._released_s = self._clock_s
        return keep, why

    @property
    def _comes_too_late(self) -> bool:
        """Would one that is asked for again serve too late? Where it holds a batch up, or a short bound was missed.

        Of 21 replays with a bound of 30 s and a start of 90 s, 16 then miss at most 0.1 % of the time, for 1.17 times
        the cost; 10 did, when what a miss had asked for was given up as soon as it was not needed.
        """
        held_s = self._stalls.expected_s + BATCH_WAIT_S
        was_missed = self._clock_s - self._missed_s < DAY_S and self._bound_s < START_PART * self._starts.expected_s
        return self._bound_s > 0 and (held_s > self._phi * self._bound_s or was_missed)

    def _signals(self, needed: float) -> dict[str, float]:
        outlook = self._outlook
        signals = {"expected": outlook.rate, "upper": outlook.upper, "needed": needed, "phi": self._phi}
        return signals | {"capacity ratio": self._tracked.ratio, "start": self._starts.expected_s}

    def _note(self, seen: Observation) -> None:
        if seen.batch is not None and not self._in_batches:  # Spark's default trigger has no length
            self._in_batches = True
            self._bound_s = self._left_s()
        # Of the first interval only the rate is known: counters may have run for months before it.
        came = seen.arrived - self._past[-1][1] if self._past else seen.input_rate * seen.span_s
        if not self._past:
            self._past.append((0.0, seen.arrived - came))
        self._clock_s += seen.span_s
        self._outlook.note(max(0.0, came))
        self._past.append((self._clock_s, seen.arrived))
        while len(self._past) > 2 and self._past[1][0] < self._clock_s - self._bound_s - self._job.tick_s:
            self._past.popleft()
        self._starts.note(seen)
        self._stalls.note(seen, self._job.capacity)
        faded = 0.5 ** (seen.span_s / DAY_S)
        self._peak = max(self._peak * faded, self._outlook.upper)
        self._most_came = max(self._most_came * faded, came / seen.span_s)
        if "tracking" not in self._off:
            self._tracked.note(seen, self._job.capacity)
        if "patience" not in self._off:
            self._adapt(seen)

    def _adapt(self, seen: Observation) -> None:
        """A bound that is missed takes some of the allowance back; it returns within hours."""
        if self._job.objective.missed(seen, seen.input_rate * seen.span_s):
            self._phi = max(PHI_LEAST, self._phi - 0.05)
            self._missed_s = self._clock_s
        else:
            self._phi = min(self._phi_most, self._phi + 0.05 * seen.span_s / 3600.0)

    def _modelled(self, workers: float) -> float:
        return self._job.capacity.sustainable(workers, BATCH_S if self._in_batches else None) if workers else 0.0

    def _workers(self, rate: float) -> int:
        """The fewest that do so many a second."""
        low, high = max(1, self._job.limits.workers_min), self._job.limits.workers_max
        rate /= self._tracked.ratio
        while low < high:
            middle = (low + high) // 2
            if self._modelled(middle) >= rate * (1 - 1e-12):
                high = middle
            else:
                low = middle + 1
        return low

    def _needed(self, seen: Observation, within_s: float, from_s: float) -> float:
        """Events a second that must be served from some time on, until the next decision's workers come.

        Arrivals are lines between ticks, and so is what a steady crew serves: what is due is most at the ends of lines.
        """
        now_s, tick_s = self._clock_s, self._job.tick_s
        begin_s, end_s = now_s + from_s, now_s + self._starts.expected_s + tick_s
        served = min(self._served(seen, from_s), seen.arrived + self._outlook.rate * from_s)
        # What is due before more workers come is not theirs to serve; a moment after is as good as at once.
        soon_s, most = min(tick_s, SOON_S), 0.0
        for time_s, total in self._due(end_s - within_s):
            left_s = time_s + within_s - begin_s
            if left_s > -tick_s:
                most = max(most, (total - served) / max(soon_s, left_s))
        return most

    def _due(self, until_s: float) -> Iterator[tuple[float, float]]:
        """Arrivals up to each tick of late, and up to a last moment, which may be to come: then on the upper path."""
        before_s, before = self._past[0]
        for time_s, total in self._past:
            if time_s >= until_s:
                part = (until_s - before_s) / (time_s - before_s) if time_s > before_s else 1.0
                yield until_s, before + part * (total - before)
                return
            yield time_s, total
            before_s, before = time_s, total
        yield until_s, before + self._outlook.upper * (until_s - before_s)

    def _served(self, seen: Observation, span_s: float) -> float:
        """Events that will have been served by what runs, and what is on its way, after so long."""
        done, at_s, running = seen.processed + self._in_work(seen), 0.0, len(seen.running.workers)
        start_s = self._starts.expected_s
        coming = sorted(max(0.0, since_s + start_s - seen.time_s) for since_s in seen.pending.values())
        for number, comes_s in enumerate((*coming, span_s)):
            until_s = min(comes_s, span_s)
            done += self._modelled(running + number) * self._tracked.ratio * (until_s - at_s)
            at_s = until_s
        return done

    def _in_work(self, seen: Observation) -> float:
        """What the batch in work has done already."""
        batch = seen.in_work
        if batch is None or not batch.rows:
            return 0.0
        job, workers = self._job, max(1.0, batch.workers)
        rate = job.capacity.capacity(workers) * self._tracked.ratio
        worked_s = seen.time_s - batch.begun_s - job.capacity.fixed_s(workers)
        return min(batch.rows, max(0.0, worked_s * rate))

    def _target(self, seen: Observation, count: int) -> Allocation:
        target = seen.target.resized(count)
        return with_batches(seen, target, self._job, self._tracked.ratio) if self._limits_batches else target
