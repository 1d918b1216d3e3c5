"""Guards around any policy, one small wrapper each, composed here. What was replayed with them is what runs.

As parameters of any policy: `threshold:cooldown_s=300,confirm_s=120,failures_max=5`. The live controller adds the
safety rules by itself (`safe`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.core.bounds import SPAN_MOST_S, WORKERS_MOST, between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Policy
from penstock.policies.ineffective import Ineffective
from penstock.policies.safety import FailsStatic, Paused, StartTimeout
from penstock.policies.timed_guards import Confirmed, Cooldown, DownWindow, HoldWhileLate, WarmUp

IsPaused = Callable[[str], bool]
"""Is the job paused? It is given the path of the pause file, empty where none was named."""


@dataclass(frozen=True, slots=True)
class Guards:
    """What stands around a policy, from the inside out. 0, or nothing, leaves a guard out."""

    failures_max: int = 0
    safe_workers: int | None = None
    hold_while_late_s: float = 0.0
    down_window_s: float = 0.0
    confirm_s: float = 0.0
    cooldown_s: float = 0.0
    warm_up_s: float = 0.0
    start_timeout_s: float = 0.0
    effect_s: float = 0.0
    pause_file: str = ""

    def __post_init__(self) -> None:
        for name in (*_TIMED, "hold_while_late_s"):
            between(name, getattr(self, name), 0)
        between("failures_max", self.failures_max, 0, 1_000_000)
        between("safe_workers", self.safe_workers or 0, 0, WORKERS_MOST)
        if self.safe_workers is not None and not self.failures_max:
            raise BadInput(f"safe_workers={self.safe_workers} is for after failures_max failures: give both")

    def around(self, policy: Policy, job: Job, paused: IsPaused | None = None) -> Policy:
        """The order matters.

        A policy that fails is caught first, so that every guard sees every tick and a pin is made calmly, too.
        Guards that wait stand within those that distrust, and a person's pause has the last word.
        """
        if self.failures_max:
            policy = FailsStatic(policy, job, self.failures_max, self.safe_workers)
        if self.hold_while_late_s:
            policy = HoldWhileLate(policy, self.hold_while_late_s, job)
        for name, guard in _TIMED.items():
            if span_s := getattr(self, name):
                policy = guard(policy, span_s, job)
        if paused is not None:
            by = f"{self.pause_file} until it is gone" if self.pause_file else "a signal until it comes again"
            policy = Paused(policy, lambda: paused(self.pause_file), by)
        elif self.pause_file:
            raise BadInput(f"pause_file={self.pause_file}: nobody here looks for files")
        return policy


_TIMED: Mapping[str, type[WarmUp | Cooldown | Confirmed | DownWindow | StartTimeout | Ineffective]] = {
    "down_window_s": DownWindow,
    "confirm_s": Confirmed,
    "cooldown_s": Cooldown,
    "warm_up_s": WarmUp,
    "start_timeout_s": StartTimeout,
    "effect_s": Ineffective,
}
GUARDS: Mapping[str, type] = {
    "failures_max": FailsStatic,
    "hold_while_late_s": HoldWhileLate,
    **_TIMED,
    "pause_file": Paused,
}
# Names and kinds of all that may be given, for whoever reads them as text.
OPTIONS: Mapping[str, str] = {option.name: str(option.type).removesuffix(" | None") for option in fields(Guards)}


def safe(policy: Policy, job: Job, given: Mapping[str, Any] | None = None, paused: IsPaused | None = None) -> Policy:
    """The policy as the live controller runs it: every safety rule, as given or by default; 0 leaves one out."""
    return Guards(**{**safety(job), **(given or {})}).around(policy, job, paused)


def safety(job: Job) -> dict[str, Any]:
    """Defaults of the safety rules.

    A worker of a quarter of a core takes 12 to 18 s to come, one of a cloud minutes: it is late after five times what
    is known, at least 5 minutes. A batch or tick alone tells nothing of an effect: five of them do, at least 2 minutes.
    A new one of a quarter of a core held batches for 35 to 75 s; what is late for five minutes is not late for that.
    """
    longest_s = max(job.tick_s, job.trigger_s or 0.0)
    return {
        "failures_max": 5,
        "hold_while_late_s": max(300.0, 5 * longest_s),
        "start_timeout_s": min(SPAN_MOST_S, max(300.0, 5 * max(kind.start_s or 0.0 for kind in job.kinds))),
        "effect_s": max(120.0, 5 * longest_s),
    }
