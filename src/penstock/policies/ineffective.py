"""A guard against scaling that does not help: a slow sink, a hot partition, a full disk (PEERS: Flink, KEDA #7092)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.job import Job
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation
from penstock.policies.safety import noted
from penstock.policies.timed_guards import Guard, held

# Flink's autoscaler calls a scaling ineffective below a tenth of what it should have gained.
GAIN_LEAST = 0.1
# Another load is another question: what did not help then may help now.
LOAD_CHANGE = 0.2
KEEPS_UP = 0.95
# Waits of 2, 4, 8, 16, 16, … spans: 30 lead to the longest, and each scale-out takes some to come and to be judged.
DOUBLINGS_MAX = 4
MEMORY_SPANS = 48
# A batch may outlast a span; one that outlasts eight is no different from a job that stands still.
PATIENCE_SPANS = 8


@dataclass(slots=True)
class Lap:
    """From one rise of what was processed to the next: a batch, or a tick where there are none.

    Between two fixed times a batch more or less would fall, which with five of them is a fifth of the rate.
    """

    begin_s: float
    arrived_before: float
    span_s: float = 0.0
    arrived: float = 0.0
    processed: float = 0.0
    backlog: float | None = 0.0
    """Event-seconds waited; None where they are not known."""
    load: float = 0.0
    """Seconds of load."""
    workers: float = 0.0
    """Seconds of workers."""

    def add(self, seen: Observation, before: Observation) -> None:
        self.span_s += seen.span_s
        self.arrived += seen.arrived - before.arrived
        self.processed += seen.processed - before.processed
        known = self.backlog is not None and seen.backlog is not None
        self.backlog = (self.backlog or 0.0) + (seen.backlog or 0.0) * seen.span_s if known else None
        self.load += seen.workers.mean("cpu") * seen.span_s
        self.workers += len(seen.running.workers) * seen.span_s


@dataclass(frozen=True, slots=True)
class Stretch:
    """How a job fared over some time; rates are per second, from exact counters."""

    workers: float
    arriving: float
    processing: float
    backlog: float | None
    load: float

    @classmethod
    def of(cls, laps: Sequence[Lap]) -> Stretch | None:
        """Over whole laps; nothing can be said without one."""
        if not laps:
            return None
        span_s = sum(lap.span_s for lap in laps)
        workers, arrived, processed, load = (
            sum(getattr(lap, name) for lap in laps) / span_s for name in ("workers", "arrived", "processed", "load")
        )
        known = [lap.backlog for lap in laps if lap.backlog is not None]
        return cls(workers, arrived, processed, sum(known) / span_s if len(known) == len(laps) else None, load)


def helped(before: Stretch, after: Stretch) -> bool:
    """Is more processed, does less wait, or, where the job keeps up, do workers bear less?

    Load alone does not count: behind a hot partition, more workers only idle more. A job in batches does what arrived
    a trigger ago, which is less while load rises: it keeps up, too, if events wait no longer than before.

    >>> before = Stretch(workers=4, arriving=100.0, processing=80.0, backlog=5000.0, load=1.0)
    >>> helped(before, Stretch(5, 100.0, 81.9, 9000.0, 0.8)), helped(before, Stretch(5, 100.0, 82.1, 9000.0, 0.8))
    (False, True)
    """
    if after.workers <= before.workers or not before.workers:
        return True
    added = after.workers / before.workers - 1
    more_done = after.processing > before.processing * (1 + GAIN_LEAST * added)
    less_waits = no_longer = False
    if before.backlog is not None and after.backlog is not None:
        less_waits = after.backlog < before.backlog * (1 - GAIN_LEAST)
        no_longer = after.backlog * before.arriving <= before.backlog * after.arriving
    relief = before.load * added / (1 + added)
    keeps_up = no_longer or after.processing >= KEEPS_UP * after.arriving
    return more_done or less_waits or (keeps_up and after.load <= before.load - GAIN_LEAST * relief)


@dataclass(slots=True)
class _Trial:
    """A scale-out whose effect is awaited."""

    before: Stretch
    workers: int
    came_s: float | None = None


class Ineffective(Guard):
    """A scale-out without effect within this time is not repeated for a while, longer each time, until load changes."""

    def __init__(self, policy: Policy, span_s: float, job: Job) -> None:
        super().__init__(policy, span_s, job)
        self.memory_s = policy.memory_s + MEMORY_SPANS * span_s
        self._before: Observation | None = None
        self._laps: deque[Lap] = deque()
        self._lap: Lap | None = None
        self._trial: _Trial | None = None
        self._in_vain = 0
        self._until_s = 0.0
        self._load = 0.0

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        if self._before is not None:
            self._watch(seen, self._before)
            self._remember(seen, self._before)
        self._before = seen
        if self._in_vain and abs(self._arriving(seen) - self._load) > LOAD_CHANGE * self._load:
            self._in_vain = 0
        verdict = self._verdict(seen)
        rises = self.grows(seen, decision.target) > 0
        # After one in vain, the next is made alone and judged before another.
        if rises and self._in_vain and (self._trial is not None or seen.time_s < self._until_s):
            decision = held(seen, decision, "the last scale-out did not help")
        return noted(decision, verdict) if verdict else decision

    def _watch(self, seen: Observation, before: Observation) -> None:
        """A trial begins with a target that rose, whoever raised it, and is given up when the target falls below."""
        asked = len(seen.target.workers)
        if self._trial is not None:
            if asked < self._trial.workers:
                self._trial = None
            elif self._trial.came_s is None and len(seen.running.workers) >= self._trial.workers:
                self._trial.came_s = seen.time_s
        elif asked > len(before.target.workers):
            fared = Stretch.of(self._laps)
            # The target rose at the end of the interval before: what is seen now may run on the new workers already.
            came_s = before.time_s if len(seen.running.workers) >= asked else None
            # Where more ran a moment ago, this is a return and no trial.
            self._trial = _Trial(fared, asked, came_s) if fared is not None and fared.workers < asked else None

    def _remember(self, seen: Observation, before: Observation) -> None:
        """The laps of the last span; one that was under way when all began is not whole, and left out."""
        if self._lap is not None:
            self._lap.add(seen, before)
        if seen.processed > before.processed:
            if self._lap is not None:
                self._laps.append(self._lap)
            self._lap = Lap(seen.time_s, seen.arrived)
        while self._laps and sum(lap.span_s for lap in self._laps) - self._laps[0].span_s >= self._span_s:
            self._laps.popleft()

    def _arriving(self, seen: Observation) -> float:
        laps = [*self._laps, self._lap] if self._lap is not None else [*self._laps]
        span_s = sum(lap.span_s for lap in laps)
        return (seen.arrived - laps[0].arrived_before) / span_s if span_s else self._load

    def _verdict(self, seen: Observation) -> str:
        trial = self._trial
        if trial is None or trial.came_s is None or seen.time_s < trial.came_s + self._span_s:
            return ""
        # A batch that was seen to end when the workers were seen to have come may have been followed at once by one
        # that began without them, and waited for their first tasks.
        after = Stretch.of([lap for lap in self._laps if lap.begin_s > trial.came_s])
        if after is None and seen.time_s < trial.came_s + PATIENCE_SPANS * self._span_s:
            return ""
        self._trial = None
        if after is not None and helped(trial.before, after):
            self._in_vain = 0
            return ""
        self._in_vain += 1
        wait_s = self._span_s * 2 ** min(self._in_vain, DOUBLINGS_MAX)
        self._until_s, self._load = seen.time_s + wait_s, self._arriving(seen)
        done = f"{after.processing:.4g}/s" if after is not None else "no batch ended"
        rates = f"{done} after {trial.before.processing:.4g}/s"
        return f"scaling out to {trial.workers} did not help, {rates}: not again for {wait_s:.0f} s at this load"
