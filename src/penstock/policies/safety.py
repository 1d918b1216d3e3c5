"""Guards that keep what runs when something is wrong: a policy that fails, workers that do not come, a person's pause.

Each says what is wrong once, in full; after that a short form without moving numbers, which journals and logs fold.
"""

from __future__ import annotations

import math
import reprlib
import traceback
from collections.abc import Callable, Coroutine, Mapping
from numbers import Real
from pathlib import Path

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput, PenstockError
from penstock.core.job import Job
from penstock.core.loop import Decision, Policy, permitted
from penstock.core.observation import Observation
from penstock.policies.timed_guards import Guard, held


class FailsStatic:
    """A policy that fails keeps the present target; after so many failures in a row, `safe_workers` if given."""

    def __init__(self, policy: Policy, job: Job, failures_max: int, safe_workers: int | None = None) -> None:
        if failures_max < 1 or (safe_workers is not None and safe_workers < 0):
            raise BadInput(f"failures_max={failures_max},safe_workers={safe_workers}: at least 1 and 0 are needed")
        self.inside, self.needs = policy, policy.needs
        # A pin ends after failures_max good decisions, and as many bad ones led to it.
        self.memory_s = policy.memory_s + 2 * failures_max * job.tick_s
        self._limits, self._failures_max = job.limits, failures_max
        self._safe = safe_workers if safe_workers is None else job.limits.clamp(safe_workers)
        self._failures = self._good = 0
        self._pinned = False

    def decide(self, seen: Observation) -> Decision:
        try:
            decision = self.inside.decide(seen)
            check_sense(decision)
            # What the loop would refuse is a failure here: it counts, and after some a safe number of workers follows.
            permitted(decision.target, seen.target, self.needs, self._limits)
        except (Exception, SystemExit) as error:  # one that calls sys.exit must not end the job, or a replay
            return self._failed(seen, describe(error))
        return self._worked(seen, decision)

    def _failed(self, seen: Observation, what: str) -> Decision:
        self._failures, self._good = self._failures + 1, 0
        pins = self._failures >= self._failures_max and not self._pinned
        self._pinned = self._pinned or pins
        kept = self._kept(seen)
        if pins:
            until = f"until the policy has worked {self._failures_max} times in a row"
            return Decision(kept, f"failed {self._failures} times in a row: pinned to {_workers(kept)} {until}: {what}")
        if self._pinned:
            return Decision(kept, f"pinned to {_workers(kept)}: the policy still fails")
        if self._failures > 1:
            return Decision(kept, f"the policy still fails: {_workers(kept)} stay")
        return Decision(kept, f"the policy failed, and is asked again every tick; {_workers(kept)} stay: {what}")

    def _worked(self, seen: Observation, decision: Decision) -> Decision:
        failures, self._good = self._failures, self._good + 1
        if self._pinned and self._good < self._failures_max:
            kept = self._kept(seen)
            why = f"pinned to {_workers(kept)} until the policy has worked {self._failures_max} times in a row"
            return Decision(kept, f"{decision.reason} (held: {why})", decision.signals)
        self._pinned, self._failures = False, 0
        return noted(decision, f"the policy works again after {failures} failures") if failures else decision

    def _kept(self, seen: Observation) -> Allocation:
        # A placement is not resized: operators would be left without a home.
        cannot = seen.target.instances or Knob.WORKERS not in self.needs
        if not self._pinned or self._safe is None or cannot:
            return seen.target
        return seen.target.resized(self._safe)


class StartTimeout(Guard):
    """Workers that have not come within this time: no more are asked for until one comes."""

    _short_since_s: float | None = None
    _most = 0
    _told = False

    def decide(self, seen: Observation) -> Decision:
        decision = self.inside.decide(seen)
        asked, came = len(seen.target.workers), len(seen.running.workers)
        if came >= asked:
            told, self._told, self._short_since_s = self._told, False, None
            return noted(decision, f"all {_workers(seen.target)} have come") if told else decision
        # The clock runs from the first one missing, or from the last that came, and not from the last wish:
        # a policy that wishes for more at every tick would never be late.
        if self._short_since_s is None or came > self._most:
            self._short_since_s, self._most, self._told = seen.time_s - seen.span_s, came, False
        if seen.time_s - self._short_since_s < self._span_s:
            return decision
        if not self._told:
            self._told = True
            late = f"{asked - came} of {_workers(seen.target)} did not come within {self._span_s:.0f} s"
            return noted(self._capped(seen, decision), f"{late}: no more are asked for until one comes")
        return self._capped(seen, decision)

    def _capped(self, seen: Observation, decision: Decision) -> Decision:
        rises = self.grows(seen, decision.target) > 0
        return held(seen, decision, "workers do not come") if rises else decision


class Paused:
    """While a pause file is there, or a flag is set, the target stays as it is."""

    def __init__(self, policy: Policy, paused: Callable[[], bool], by: str) -> None:
        self.inside, self.needs, self.memory_s = policy, policy.needs, policy.memory_s
        self._paused, self._by, self._told = paused, by, False

    def decide(self, seen: Observation) -> Decision:
        # It decides all the same, so that it is warm when the pause ends.
        decision = self.inside.decide(seen)
        told, self._told = self._told, self._paused()
        if not self._told:
            return noted(decision, "the pause is over") if told else decision
        why = "paused" if told else f"paused by {self._by}"
        return noted(Decision(seen.target, decision.reason, decision.signals), why)


def noted(decision: Decision, note: str) -> Decision:
    """The same decision, with something more to say."""
    return Decision(decision.target, f"{decision.reason} ({note})", decision.signals)


def check_sense(decision: object) -> None:
    """Refuse what no plant or journal could take."""
    if isinstance(decision, Coroutine):
        decision.close()  # else Python warns on stderr, after the one line
    if not isinstance(decision, Decision):
        raise BadInput(f"decided {reprlib.repr(decision)}: decide(seen) must return a Decision")
    if not isinstance(decision.target, Allocation) or not isinstance(decision.target.workers, tuple):
        raise BadInput(f"decided on a target {reprlib.repr(decision.target)}: it must be an Allocation")
    names = [worker.name for worker in decision.target.workers]
    if len(set(names)) < len(names):
        raise BadInput(f"decided on {len(names)} workers with {len(set(names))} names: each has a name of its own")
    if not isinstance(decision.reason, str) or not decision.reason or not _is_line(decision.reason):
        raise BadInput(f"gave the reason {reprlib.repr(decision.reason)}: a reason is one line")
    if not isinstance(decision.signals, Mapping):
        raise BadInput(f"gave the signals {reprlib.repr(decision.signals)}: they are numbers by name")
    for name, value in decision.signals.items():
        if not _is_finite(value):
            raise BadInput(f"gave the signal {name} = {value}: signals are finite numbers")


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_line(text: str) -> bool:
    """One line, and letters that a file can hold."""
    try:
        return b"\n" not in text.encode()
    except UnicodeEncodeError:
        return False


def said(error: BaseException) -> str:
    """What an error says, in one line; one whose own words fail says nothing."""
    try:
        return " ".join(str(error).split())
    except Exception:
        return "…"


def describe(error: BaseException) -> str:
    """What was raised, in one line that says where."""
    if isinstance(error, PenstockError):
        return str(error)
    frame, words = traceback.extract_tb(error.__traceback__)[-1], said(error)
    return f"{type(error).__name__}{words and ': '}{words} ({Path(frame.filename).name}, line {frame.lineno})"


def _workers(target: Allocation) -> str:
    count = len(target.workers)
    return f"{count} worker{'' if count == 1 else 's'}"
