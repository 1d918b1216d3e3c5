"""CPU shares without a model: fixed, or by thresholds on how much of its share an operator uses (paper 4 §VII)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.share_levels import Levels, by_operator


class StaticShare:
    """Each operator always has the same share of a core."""

    source: ClassVar[str] = "paper 4's static allocation"
    needs = frozenset({Knob.CPU_SHARE})
    memory_s = 0.0

    def __init__(self, job: Job, share: float = 1.0, shares: str = "") -> None:
        between("static-share: share", share, 1e-3, 1)
        own = by_operator(shares, job.dataflow.order, "static-share: shares")
        if any(each > 1 for each in own.values()):
            raise BadInput(f"static-share: shares={shares}: a share is at most 1")
        self._shares = {name: own.get(name, share) for name in job.dataflow.order}
        self._reason = "always " + ", ".join(f"{name} {each:.0%}" for name, each in self._shares.items())

    def decide(self, seen: Observation) -> Decision:
        target = seen.target
        if dict(target.cpu_share) != self._shares:
            target = replace(target, cpu_share=self._shares)
        return Decision(target, self._reason)


class ShareThreshold:
    """An operator that uses much of its share gets one level more, one that uses little one level less."""

    source: ClassVar[str] = "paper 4's threshold baseline"
    needs = frozenset({Knob.CPU_SHARE})

    def __init__(  # noqa: PLR0913  what can be set is what the paper gives
        self,
        job: Job,
        upper: float = 0.7,
        lower: float = 0.5,
        every_s: float = 10.0,
        levels: int = 5,
        least: float = 0.4,
    ) -> None:
        if not 0 < lower < upper <= 1:
            raise BadInput(f"share-threshold:upper={upper:g},lower={lower:g}: it must be 0 < lower < upper <= 1")
        between("share-threshold: every_s", every_s, 0)
        self._operators, self._levels = job.dataflow.order, Levels(levels, least)
        self._upper, self._lower, self._every_s = upper, lower, every_s
        self.memory_s = every_s
        self._last_s: float | None = None

    def decide(self, seen: Observation) -> Decision:
        before = self._levels.seen(seen.target, self._operators)
        if self._last_s is not None and seen.time_s - self._last_s < self._every_s - 1e-9:
            return Decision(self._levels.asked(seen.target, before), f"looked at every {self._every_s:g} s")
        self._last_s = seen.time_s
        loads = {name: stats.load for name in self._operators if (stats := seen.operators.get(name)) is not None}
        after = {name: self._moved(level, loads.get(name)) for name, level in before.items()}
        told = ", ".join(f"{name} {'?' if load is None else f'{load:.0%}'}" for name, load in loads.items())
        signals = {f"load {name}": load for name, load in loads.items() if load is not None}
        reason = f"used of the shares: {told or 'unknown'}; thresholds {self._lower:.0%} and {self._upper:.0%}"
        return Decision(self._levels.asked(seen.target, after), reason, signals)

    def _moved(self, level: int, load: float | None) -> int:
        if load is None:
            return level
        return min(self._levels.top, level + 1) if load > self._upper else max(0, level - (load < self._lower))
