"""The journal: JSON lines, one step a line. What did not change since the line before is left out.

Line 1 is a header. Every `WHOLE_EVERY`-th step is written whole, so that a reader can begin there: a line that
a crash cut short costs itself, a damaged one in the middle costs what lies before the next whole one.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, TextIO

import msgspec

from penstock.core.allocation import Allocation
from penstock.core.digest import ArrivalDigest
from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.core.journal_steps import PLAIN, RESULTS, Moment, Positive, StepReader
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Batch, BatchInWork, OperatorStats, WorkerTable
from penstock.core.typed import typed

SCHEMA = 1
WHOLE_EVERY = 1000
# NumPy's numbers are numbers.
_encoder = msgspec.json.Encoder(enc_hook=float)


@dataclass(frozen=True, slots=True)
class Header:
    """What a journal is about."""

    job: str
    policy: str
    limits: Limits
    objective: Objective
    price: Price
    tick_s: float
    seed: int | None = None
    origin_s: float | None = None
    """Unix time of `time_s` = 0, where it is known."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else a person may want to know: capacity, start time, the trace."""
    kinds: tuple[WorkerKind, ...] = ()
    """What the workers were made of, and cost; nothing in journals of earlier versions."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """The safety rules around the policy; none: it was on its own."""


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """A header as it stands in a file, but for the objective, which is text there."""

    job: str
    policy: str
    limits: Limits
    price: Price
    tick_s: Positive
    seed: int | None = None
    origin_s: Moment | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    kinds: tuple[WorkerKind, ...] = ()
    rules: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


class JournalWriter:
    """Appends steps to a file; `flush` after each where a crash may come."""

    def __init__(self, file: TextIO, header: Header | None, flush: bool = False) -> None:
        """Without a header, the file goes on: it has one already."""
        self._file = file
        self._flush = flush
        self._before: dict[str, Any] = {}
        self._allocations: dict[int, tuple[Allocation, object]] = {}
        self._lines = 0
        self._wholes = 0
        if header is not None:
            content = asdict(header) | {"objective": str(header.objective)}
            file.write(_encoded({"penstock_journal": SCHEMA} | content))
            if flush:
                file.flush()

    @classmethod
    def at(cls, path: Path, header: Header, flush: bool = False) -> Self:
        return cls(path.open("w", encoding="utf-8"), header, flush)

    def write(self, step: Step) -> None:
        fields = self._fields(step)
        before = self._before
        if self._lines % WHOLE_EVERY and not self._wholes:
            changed = {key: value for key, value in fields.items() if before.get(key) != value}
            # A key that vanished must be said, or the reader would keep the old value.
            if not before.keys() <= fields.keys():
                changed.update({key: None for key in before if key not in fields and before[key] is not None})
        else:
            changed = {"whole": True} | fields
        try:
            self._file.write(_encoded(changed))
            if self._flush:
                self._file.flush()
        except OSError:
            # On a full disk nobody knows what of this line will stand there, so the next one must not lean on it; nor
            # the one after, if the next is written right behind half a line.
            self._wholes = 2
            raise
        self._before, self._wholes = fields, max(0, self._wholes - 1)
        self._lines += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _fields(self, step: Step) -> dict[str, Any]:
        seen, decision = step.seen, step.decision
        fields: dict[str, Any] = dict(zip(PLAIN, _plain(seen), strict=True))
        # Most jobs put out one result an event: then these two say nothing new.
        for results, events in RESULTS:
            if fields[results] == fields[events]:
                del fields[results]
        fields["running"] = self._allocation(seen.running)
        fields["asked"] = self._allocation(seen.target)
        fields["target"] = self._allocation(step.target)
        if decision.target is not step.target:
            fields["wanted"] = self._allocation(decision.target)
        fields["reason"] = decision.reason
        for name, value in decision.signals.items():
            fields[f"signal {name}"] = value
        for name, column in WorkerTable.of(seen.workers).columns.items():
            fields[f"worker {name}"] = column if isinstance(column, (int, float, tuple)) else list(column)
        for name, stats in seen.operators.items():
            # The counters and the batch of a job's only operator are the job's: then they say nothing new.
            is_only = len(seen.operators) == 1 and stats.batch == seen.batch and stats.load is None
            fields[f"operator {name}"] = _plain_operator(stats, is_only)
        for name, path in seen.paths.items():
            fields[f"path {name}"] = [path.count, path.sum_s, dict(path.bins), path.unit_s]
        fields.update(_where_there(step))
        return fields

    def _allocation(self, allocation: Allocation) -> object:
        known = self._allocations.get(id(allocation))
        if known is None or known[0] is not allocation:
            if len(self._allocations) > 64:
                self._allocations.clear()
            known = (allocation, _plain_allocation(allocation))
            self._allocations[id(allocation)] = known
        return known[1]


def _encoded(fields: Mapping[str, Any]) -> str:
    return _encoder.encode(fields).decode() + "\n"


def _where_there(step: Step) -> dict[str, Any]:
    """What most jobs have little of: what is not there is left out."""
    seen = step.seen
    found: dict[str, Any] = {}
    for name in ("batch", "in_work", "arrivals"):
        if (row := getattr(seen, name)) is not None:
            found[name] = _values(row)
    if seen.late_s is not None:
        found["late_s"] = seen.late_s
    if step.could is not None:
        found["could"] = step.could
    if seen.pending:
        found["pending"] = seen.pending
    if seen.drained_s:
        found["drained_s"] = seen.drained_s
    return found


def _values(row: Batch | BatchInWork | ArrivalDigest) -> list[Any]:
    return [getattr(row, slot) for slot in type(row).__slots__]


_plain = attrgetter(*PLAIN)
_of_only_operator = attrgetter(*OperatorStats.__slots__[: OperatorStats.__slots__.index("arrived")])
_of_operator = attrgetter(*OperatorStats.__slots__)


def _plain_operator(stats: OperatorStats, is_only: bool) -> Sequence[Any]:
    if is_only:
        only: tuple[Any, ...] = _of_only_operator(stats)
        return only
    values = list(_of_operator(stats))
    if stats.batch is not None:
        values[-1] = _values(stats.batch)
    return values


def _plain_allocation(allocation: Allocation) -> object:
    content: dict[str, Any] = {"workers": [worker.name for worker in allocation.workers]}
    kinds = [worker.kind for worker in allocation.workers]
    if any(kind != "worker" for kind in kinds):
        content["kinds"] = kinds
    for knob in ("instances", "cpu_share", "alternate", "names_given"):
        if value := getattr(allocation, knob):
            content[knob] = dict(value) if isinstance(value, Mapping) else value
    if allocation.batch is not None:
        content["batch"] = asdict(allocation.batch)
    return content


@dataclass(slots=True)
class Journal:
    """A journal on disk. Iterating reads it line by line; `damaged` then counts the lines that were of no use."""

    path: Path
    header: Header
    damaged: int = 0

    @classmethod
    def open(cls, path: Path) -> Journal:
        try:
            with reads(path).open(encoding="utf-8") as file:
                return cls(path, read_header(file.readline(), path))
        except FileNotFoundError:
            raise BadInput(f"no such journal: {path}") from None
        except (IsADirectoryError, UnicodeDecodeError):
            raise BadInput(f"{path} is not a journal: it should be a file of JSON lines") from None

    def __iter__(self) -> Iterator[Step]:
        self.damaged, reader = 0, StepReader()
        with self.path.open(encoding="utf-8", errors="replace") as file:
            file.readline()
            for line in file:
                step = reader.step(line)
                self.damaged = reader.damaged
                if step is not None:
                    yield step


def read_header(line: str, path: Path) -> Header:
    """What a journal's first line says; BadInput where it is no header."""
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        fields = {}
    schema = fields.pop("penstock_journal", None)
    if schema is None:
        raise BadInput(f"{path} is not a journal: its first line should be a header")
    if schema != SCHEMA:
        raise BadInput(f"{path} has journal schema {reprlib.repr(schema)}; this version of penstock reads {SCHEMA}")
    try:
        objective = Objective.parse(typed(fields.pop("objective", None), str, "objective"))
        told = typed(fields, HeaderLine, "header")
        return Header(objective=objective, **{key: getattr(told, key) for key in HeaderLine.__slots__})
    except BadInput as error:
        raise BadInput(f"{path} has a header that cannot be read: {error}") from None
