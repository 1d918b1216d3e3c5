"""One query of a fleet as its controller sees it, on whatever host it is: its queue, what it costs, what waits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.core.observation import OperatorStats
from penstock.core.responses import Responses
from penstock.live.fleet_spec import QuerySpec
from penstock.live.folder_lag import FolderOfFiles
from penstock.live.query_progress import Report
from penstock.live.queue import QueryQueue


class FleetQuery:
    """Files that came are counted here and not by hosts: while a query moves, its queue grows and that is seen."""

    def __init__(self, spec: QuerySpec, begun_s: float, unit_s: float, window_s: float) -> None:
        self.spec = spec
        self.queue = QueryQueue(begun_s, unit_s, window_s)
        self._lag = FolderOfFiles(Path(spec.files), Path(spec.checkpoint) / "sources" / "0")
        self._new: list[Report] = []
        self._seen = -1
        self._is_busy = False
        self._told_s = 0.0
        self._used_s = 0.0

    def take_word(self, word: Mapping[str, Any]) -> None:
        """What its host says of it: batches that ended, and the CPU used since it was started there."""
        for progress in word["reports"]:
            report = Report.of(progress)
            if report.batch > self._seen:
                self._seen = report.batch
                self._new.append(report)
        self._is_busy = bool(word["busy"])
        self._used_s += max(0.0, word["cpu_s"] - self._told_s)
        self._told_s = float(word["cpu_s"])

    def left(self) -> None:
        """Its host has it no more: the next counts its CPU from 0."""
        self._told_s, self._is_busy = 0.0, False

    def go_on(self, before: OperatorStats, since_s: float | None) -> None:
        """Counters that an earlier controller kept; the batches that it has counted do not count again."""
        if before.arrived is not None and before.processed is not None:
            self.queue.go_on(before.arrived, before.processed, since_s)
        if before.batch is None or before.batch.number is None:
            return
        self._seen = before.batch.number
        if (entry := log_entry(Path(self.spec.checkpoint), self._seen)) is not None:
            self._lag.go_on(entry)

    def follow(self, now_s: float) -> None:
        reports, self._new = [self._whole(each) for each in self._new], []
        self.queue.advance(now_s, reports, lambda last: self._lag.after(last.sources[0]), self._is_busy)

    def _whole(self, report: Report) -> Report:
        """With the rows of batches before it whose reports nobody saw: a host that is killed takes them with it."""
        source = report.sources[0]
        unseen = sum(map(_lines, self._lag.unseen(source.entry))) if source.entry is not None else 0
        self._lag.note(replace(source, rows=source.rows + unseen))
        return replace(report, unseen=float(unseen))

    def take_cpu_s(self) -> float:
        """CPU seconds of its own since the last call."""
        used, self._used_s = self._used_s, 0.0
        return used

    @property
    def is_unknown(self) -> bool:
        """Nobody knows what waits: no batch has ended, and there are files, or their folder is gone."""
        try:
            return any(Path(self.spec.files).iterdir()) and self.queue.last is None
        except OSError:
            return True

    def stats(self, now_s: float, cores: float) -> OperatorStats:
        found = replace(self.queue.stats(now_s, self.spec.trigger_s), cores=round(cores, 4))
        found = replace(found, memory_mb=found.state_mb)
        return replace(found, backlog=None, latency_s=None) if self.is_unknown else found

    def take_late_s(self, now_s: float) -> float | None:
        """Seconds since the last call in which its oldest event was too old; None where nobody knows."""
        late_s = self.queue.take_late_s(now_s)
        return None if self.is_unknown else late_s

    def responses(self) -> Responses | None:
        return self.queue.take_responses()


def log_entry(checkpoint: Path, batch: int) -> int | None:
    """Up to which entry of its file log a batch had read; None where the checkpoint does not tell."""
    try:
        *_, told = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
        return int(json.loads(told)["logOffset"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _lines(path: Path) -> int:
    """Rows of a text file, as Spark counts them; 0 for one that is gone."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def shared_out(total: float | None, own: Mapping[str, float]) -> dict[str, float]:
    """A host's CPU among its queries, by what each used itself: compiling and collecting is done for them, too.

    >>> shared_out(3.0, {"a": 1.0, "b": 0.5})
    {'a': 2.0, 'b': 1.0}
    """
    known = sum(own.values())
    if total is None or known <= 0 or total <= known:
        return dict(own)
    return {query: each * total / known for query, each in own.items()}


def all_known(values: Sequence[float | None]) -> list[float] | None:
    """The values, or None where one of them is not known."""
    known = [each for each in values if each is not None]
    return known if len(known) == len(values) else None
