"""A plant that is real: three Spark applications, and what each may use of a core is what is turned."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from penstock.apps.logs import COUNTED, LINES, MATCHED, OPERATORS, PARSED
from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import ExternalError, PlantError
from penstock.core.job import Job
from penstock.core.observation import Observation, OperatorStats, WorkerTable
from penstock.core.responses import Responses
from penstock.live.line_account import LineAccount
from penstock.live.log_records import Records
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.models.markov.chains import Floats

SINK = "matcher"


class Fleet(Protocol):
    """What may be done to the applications."""

    def limit(self, name: str, share: float) -> None: ...

    def cpu_seconds(self) -> Mapping[str, float]: ...

    def need_alive(self) -> None: ...


class Reader(Protocol):
    """What tells of the lines: new records by the role of their topic."""

    def take(self) -> Mapping[str, Records]: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU seconds of each operator since its start, and when that was read."""

    time_s: float
    cpu_s: Mapping[str, float]


class SharePlant:
    """Observes lines on their way through the topics, and sets the CPU quota of each operator.

    All times of lines are told by the records themselves: when they were sent, and when the next operator had put
    them out. Lines go in their order, so the last one that came out tells which ones wait.
    """

    knobs = frozenset({Knob.CPU_SHARE})

    def __init__(self, fleet: Fleet, reader: Reader, job: Job, is_dry: bool = False) -> None:
        self._fleet, self._reader, self._job, self._is_dry = fleet, reader, job, is_dry
        self._bound_s = job.objective.latency_s
        unit_s = self._bound_s or 1.0
        self._lines = {name: LineAccount(unit_s) for name in OPERATORS}
        self._paths = {name: LineAccount(unit_s) for name in OPERATORS}
        """From the source to the end of each operator."""
        self._target = replace(Allocation.of(1), cpu_share=dict.fromkeys(OPERATORS, 1.0))
        self._reader.take()  # what came before is nobody's
        self._counts: dict[str, tuple[int, int]] = {}
        self._last_sent_s: float | None = None
        self._held: dict[str, Records] = {}
        for name in OPERATORS:
            self._limit(name, 1.0)
        self.origin_s = time.time()
        self._read = Reading(self.origin_s, fleet.cpu_seconds())
        self.responses: dict[str, Responses] = {}
        """Of the last interval, from the source to the end of each operator."""
        self._seen_any = False

    def observe(self) -> Observation | None:
        """None until a first line has been matched."""
        try:
            self._fleet.need_alive()
            now_s, cpu_s = time.time(), self._fleet.cpu_seconds()
        except (ExternalError, OSError) as error:
            raise PlantError(str(error)) from None
        new = self._until(now_s, self._reader.take())
        gaps_s = self._follow(new)
        self._seen_any = self._seen_any or bool(len(new[MATCHED].sent_s))
        if not self._seen_any:
            return None
        before, self._read = self._read, Reading(now_s, cpu_s)
        return self._observation(before, gaps_s)

    def apply(self, target: Allocation) -> None:
        """Quotas hold from now on; the kernel takes them at once."""
        if self._is_dry:
            return
        for name in OPERATORS:
            share = target.cpu_share.get(name, 1.0)
            if share != self._target.cpu_share[name]:
                self._limit(name, share)
                self._target = replace(self._target, cpu_share={**self._target.cpu_share, name: share})
        self._target = replace(target, cpu_share=self._target.cpu_share)

    def tend(self) -> None:
        """Nothing goes on between two ticks."""

    @property
    def target(self) -> Allocation:
        """The shares in force."""
        return self._target

    @property
    def awaited(self) -> list[str]:
        return [name for name, lines in self._lines.items() if not lines.processed]

    def take_notes(self) -> list[str]:
        return []

    def leave(self) -> None:
        """No quota below the whole share stays."""
        if not self._is_dry:
            for name in OPERATORS:
                self._limit(name, 1.0)

    def _limit(self, name: str, share: float) -> None:
        try:
            self._fleet.limit(name, share)
        except OSError as error:
            raise PlantError(f"the quota of {name} cannot be set: {error.strerror or error}") from None

    def _until(self, now_s: float, new: Mapping[str, Records]) -> Mapping[str, Records]:
        """To read topics takes a moment: what came meanwhile belongs to the next interval."""
        found = {}
        for role, records in new.items():
            held = self._held.get(role)
            time_s = np.concatenate([held.time_s, records.time_s]) if held else records.time_s
            sent_s = np.concatenate([held.sent_s, records.sent_s]) if held else records.sent_s
            # One with a time to come holds back itself alone: what lies behind it came before now all the same.
            rising_s = np.minimum.accumulate(time_s[::-1])[::-1]
            cut = int(np.searchsorted(rising_s, now_s, side="right")) if len(time_s) else 0
            found[role], self._held[role] = Records(time_s[:cut], sent_s[:cut]), Records(time_s[cut:], sent_s[cut:])
        return found

    def _follow(self, new: Mapping[str, Records]) -> Floats:
        """Take note of records that came; returns the gaps between the lines."""
        lines, parsed, counted, matched = (new[role] for role in (LINES, PARSED, COUNTED, MATCHED))
        for name, path in self._paths.items():
            path.sent(lines.sent_s)
            self._lines[name].sent(lines.sent_s if name == "parser" else parsed.sent_s)
        for account in (self._lines["parser"], self._paths["parser"]):
            account.answered(parsed.sent_s, parsed.time_s)
        for account in (self._lines[SINK], self._paths[SINK]):
            account.answered(matched.sent_s, matched.time_s)
        for account in (self._lines["counter"], self._paths["counter"]):
            account.answered_in_batches(counted.sent_s, counted.time_s)
        before = [] if self._last_sent_s is None else [self._last_sent_s]
        times_s = np.concatenate([before, lines.sent_s])
        if len(times_s):
            self._last_sent_s = float(times_s[-1])
        # A clock that was set back gives no negative gap.
        return np.maximum(0.0, np.diff(times_s))

    def _observation(self, before: Reading, gaps_s: Floats) -> Observation:
        now_s, begin_s = self._read.time_s, before.time_s
        span_s, path = now_s - begin_s, self._paths[SINK]
        late_s = path.late_s(self._bound_s, begin_s, now_s) if self._bound_s else None
        operators = {name: self._stats(name, before) for name in OPERATORS}
        self.responses = {name: each.take_responses() for name, each in self._paths.items()}
        for lines in self._lines.values():
            lines.take_responses()
        cores = sum(stats.cores for stats in operators.values())
        whole = sum(each.cores * self._target.cpu_share[each.name] for each in OPERATORS.values())
        return Observation(
            time_s=now_s - self.origin_s,
            span_s=span_s,
            arrived=path.arrived,
            processed=path.processed,
            delivered=path.processed,
            deliverable=path.arrived,
            input_rate=operators["parser"].input_rate,
            backlog=float(path.waiting),
            latency_s=0.0 if path.oldest_s is None else max(0.0, now_s - path.oldest_s),
            capacity=self._capacity(),
            running=self._target,
            target=self._target,
            workers=WorkerTable(("w1",), {"cpu": (cores / whole,), "paid_since_s": (0.0,), "runs_since_s": (0.0,)}),
            operators=operators,
            paths={SINK: self.responses[SINK]},
            late_s=late_s,
            arrivals=SpacedArrivals.of_gaps(gaps_s) if len(gaps_s) else None,
        )

    def _stats(self, name: str, before: Reading) -> OperatorStats:
        lines, span_s = self._lines[name], self._read.time_s - before.time_s
        cores = (self._read.cpu_s[name] - before.cpu_s[name]) / span_s
        oldest_s = lines.oldest_s
        arrived, processed = self._counts.get(name, (0, 0))
        self._counts[name] = (lines.arrived, lines.processed)
        return OperatorStats(
            input_rate=(lines.arrived - arrived) / span_s,
            output_rate=(lines.processed - processed) / span_s,
            cores=cores,
            backlog=float(lines.waiting),
            latency_s=0.0 if oldest_s is None else max(0.0, self._read.time_s - oldest_s),
            arrived=float(lines.arrived),
            processed=float(lines.processed),
            load=cores / (OPERATORS[name].cores * self._target.cpu_share[name]),
        )

    def _capacity(self) -> float:
        """Lines a second that the shares allow, by what a line costs each operator; counted in batches: not known."""
        flow, shares = self._job.dataflow, self._target.cpu_share
        found = [shares[name] / (cost_s * flow.visits[name]) for name, cost_s in flow.costs_s.items() if cost_s > 0]
        return min(found, default=0.0)
