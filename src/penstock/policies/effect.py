"""A guard against scaling that does not help: a slow sink, a hot partition, a full disk (PEERS: Flink, KEDA #7092)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation
from penstock.policies.calm import Guard, held
from penstock.policies.safety import noted

# Flink's autoscaler calls a scaling ineffective below a tenth of what it should have gained.
GAIN_LEAST = 0.1
# Another load is another question: what did not help then may help now.
LOAD_CHANGE = 0.2
KEEPS_UP = 0.95
# Waits of 2, 4, 8, 16, 16, … spans: 30 lead to the longest, and each scale-out takes some to come and to be judged.
DOUBLINGS_MAX = 4
MEMORY_SPANS = 48


@dataclass(frozen=True, slots=True)
class Stretch:
    """How a job fared over some time; rates are per second, from exact counters."""

    workers: float
    arriving: float
    processing: float
    backlog: float
    load: float

    @classmethod
    def of(cls, seen: Sequence[Observation]) -> Stretch | None:
        """Between the first observation and the last; nothing can be said of one alone."""
        span_s = sum(each.span_s for each in seen[1:])
        if not span_s:
            return None
        after, count = seen[1:], len(seen) - 1
        return cls(
            workers=sum(len(each.running.workers) for each in after) / count,
            arriving=(seen[-1].arrived - seen[0].arrived) / span_s,
            processing=(seen[-1].processed - seen[0].processed) / span_s,
            backlog=sum(each.backlog for each in after) / count,
            load=sum(each.workers.mean("cpu") for each in after) / count,
        )


def helped(before: Stretch, after: Stretch) -> bool:
    """Is more processed, does less wait, or, where the job keeps up, do workers bear less?

    Load alone does not count: behind a hot partition, more workers only idle more.

    >>> before = Stretch(workers=4, arriving=100.0, processing=80.0, backlog=5000.0, load=1.0)
    >>> helped(before, Stretch(5, 100.0, 81.9, 9000.0, 0.8)), helped(before, Stretch(5, 100.0, 82.1, 9000.0, 0.8))
    (False, True)
    """
    if after.workers <= before.workers or not before.workers:
        return True
    added = after.workers / before.workers - 1
    more_done = after.processing > before.processing * (1 + GAIN_LEAST * added)
    less_waits = after.backlog < before.backlog * (1 - GAIN_LEAST)
    relief = before.load * added / (1 + added)
    eased = after.processing >= KEEPS_UP * after.arriving and after.load <= before.load - GAIN_LEAST * relief
    return more_done or less_waits or eased


@dataclass(slots=True)
class _Trial:
    """A scale-out whose effect is awaited."""

    before: Stretch
    workers: int
    came_s: float | None = None


class Ineffective(Guard):
    """A scale-out without effect within this time is not repeated for a while, longer each time, until load changes."""

    def __init__(self, policy: Policy, span_s: float) -> None:
        super().__init__(policy, span_s)
        self.memory_s = policy.memory_s + MEMORY_SPANS * span_s
        self._window: deque[Observation] = deque()
        self._trial: _Trial | None = None
        self._in_vain = 0
        self._until_s = 0.0
        self._load = 0.0

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        self._watch(seen)
        self._remember(seen)
        if self._in_vain and abs(self._arriving() - self._load) > LOAD_CHANGE * self._load:
            self._in_vain = 0
        verdict = self._verdict(seen)
        rises = len(decision.target.workers) > len(seen.target.workers)
        # After one in vain, the next is made alone and judged before another.
        if rises and self._in_vain and (self._trial is not None or seen.time_s < self._until_s):
            decision = held(seen, decision, "the last scale-out did not help")
        return noted(decision, verdict) if verdict else decision

    def _watch(self, seen: Observation) -> None:
        """A trial begins with a target that rose, whoever raised it, and is given up when the target falls below."""
        asked = len(seen.target.workers)
        if self._trial is not None:
            if asked < self._trial.workers:
                self._trial = None
            elif self._trial.came_s is None and len(seen.running.workers) >= self._trial.workers:
                self._trial.came_s = seen.time_s
        elif self._window and asked > len(self._window[-1].target.workers):
            before = Stretch.of(tuple(self._window))
            # The target rose at the end of the interval before: what is seen now may run on the new workers already.
            came_s = seen.time_s - seen.span_s if len(seen.running.workers) >= asked else None
            self._trial = _Trial(before, asked, came_s) if before is not None else None

    def _remember(self, seen: Observation) -> None:
        """The last span, and one observation more: counters are compared with it."""
        self._window.append(seen)
        while len(self._window) > 2 and self._window[1].time_s <= seen.time_s - self._span_s:
            self._window.popleft()

    def _arriving(self) -> float:
        first, last = self._window[0], self._window[-1]
        span_s = sum(each.span_s for each in self._window) - first.span_s
        return (last.arrived - first.arrived) / span_s if span_s else self._load

    def _verdict(self, seen: Observation) -> str:
        trial = self._trial
        if trial is None or trial.came_s is None or seen.time_s < trial.came_s + self._span_s:
            return ""
        self._trial, after = None, Stretch.of(tuple(self._window))
        if after is None or helped(trial.before, after):
            self._in_vain = 0
            return ""
        self._in_vain += 1
        wait_s = self._span_s * 2 ** min(self._in_vain, DOUBLINGS_MAX)
        self._until_s, self._load = seen.time_s + wait_s, after.arriving
        rates = f"{after.processing:.4g}/s after {trial.before.processing:.4g}/s"
        return f"scaling out to {trial.workers} did not help, {rates}: not again for {wait_s:.0f} s at this load"
