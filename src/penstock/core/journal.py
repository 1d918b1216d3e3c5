"""The journal: JSON lines, one step a line. What did not change since the line before is left out.

Line 1 is a header. Every `WHOLE_EVERY`-th step is written whole, so that a reader can begin there: a line that
a crash cut short costs itself, a damaged one in the middle costs what lies before the next whole one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from penstock.core.allocation import Allocation, Worker
from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Batch, Observation, OperatorStats, WorkerTable
from penstock.core.responses import Responses

SCHEMA = 1
WHOLE_EVERY = 1000
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
# What is a plain number of an observation, in the order of a line.
_PLAIN = Observation.__slots__[: Observation.__slots__.index("running")]
_RESULTS = (("delivered", "processed"), ("deliverable", "arrived"))
_UNKNOWN = ("backlog", "latency_s")  # null in a line: nobody knows it


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


class JournalWriter:
    """Appends steps to a file; `flush` after each where a crash may come."""

    def __init__(self, file: TextIO, header: Header | None, flush: bool = False) -> None:
        """Without a header, the file goes on: it has one already."""
        self._file = file
        self._flush = flush
        self._before: dict[str, Any] = {}
        self._allocations: dict[int, tuple[Allocation, object]] = {}
        self._lines = 0
        if header is not None:
            content = asdict(header) | {"objective": str(header.objective)}
            file.write(_encode({"penstock_journal": SCHEMA} | content) + "\n")
            if flush:
                file.flush()

    @classmethod
    def at(cls, path: Path, header: Header, flush: bool = False) -> Self:
        return cls(path.open("w", encoding="utf-8"), header, flush)

    def write(self, step: Step) -> None:
        fields = self._fields(step)
        before = self._before
        if self._lines % WHOLE_EVERY:
            changed = {key: value for key, value in fields.items() if before.get(key) != value}
            # A key that vanished must be said, or the reader would keep the old value.
            changed.update({key: None for key in before if key not in fields and before[key] is not None})
        else:
            changed = {"whole": True} | fields
        self._file.write(_encode(changed) + "\n")
        if self._flush:
            self._file.flush()
        self._before = fields
        self._lines += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _fields(self, step: Step) -> dict[str, Any]:
        seen, decision = step.seen, step.decision
        fields: dict[str, Any] = {name: getattr(seen, name) for name in _PLAIN}
        # Most jobs put out one result an event: then these two say nothing new.
        for results, events in _RESULTS:
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
            fields[f"worker {name}"] = column if isinstance(column, (int, float)) else list(column)
        for name, stats in seen.operators.items():
            fields[f"operator {name}"] = [getattr(stats, slot) for slot in OperatorStats.__slots__]
        for name, path in seen.paths.items():
            fields[f"path {name}"] = [path.count, path.sum_s, {str(k): v for k, v in path.bins.items()}, path.unit_s]
        if seen.batch is not None:
            fields["batch"] = [getattr(seen.batch, slot) for slot in Batch.__slots__]
        return fields

    def _allocation(self, allocation: Allocation) -> object:
        known = self._allocations.get(id(allocation))
        if known is None or known[0] is not allocation:
            if len(self._allocations) > 64:
                self._allocations.clear()
            known = (allocation, _plain_allocation(allocation))
            self._allocations[id(allocation)] = known
        return known[1]


def _plain_allocation(allocation: Allocation) -> object:
    content: dict[str, Any] = {"workers": [worker.name for worker in allocation.workers]}
    kinds = [worker.kind for worker in allocation.workers]
    if any(kind != "worker" for kind in kinds):
        content["kinds"] = kinds
    for knob in ("parallelism", "instances", "cpu_share", "alternate", "names_given"):
        if value := getattr(allocation, knob):
            content[knob] = dict(value) if isinstance(value, Mapping) else value
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
            with path.open(encoding="utf-8") as file:
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


class StepReader:
    """Makes steps of a journal's lines, one after the other; `damaged` counts the lines that were of no use."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {}
        self._allocations: dict[str, Allocation] = {}
        self.damaged = 0

    def step(self, line: str) -> Step | None:
        """The step of the next line; `None` for a damaged one, and for those that lean on it."""
        fields = _fields_of(line)
        if fields is not None and (self._state or fields.get("whole")):
            self._state = fields if fields.pop("whole", False) else self._state | fields
            with contextlib.suppress(AttributeError, IndexError, KeyError, TypeError, ValueError):
                return _step(self._state, self._allocations)
        self._state = {}
        self.damaged += 1
        return None


def _fields_of(line: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except json.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) and line.endswith("\n") else None


def read_header(line: str, path: Path) -> Header:
    """What a journal's first line says; BadInput where it is no header."""
    fields = _fields_of(line) or {}
    schema = fields.pop("penstock_journal", None)
    if schema is None:
        raise BadInput(f"{path} is not a journal: its first line should be a header")
    if schema != SCHEMA:
        raise BadInput(f"{path} has journal schema {schema}; this version of penstock reads {SCHEMA}")
    try:
        fields["objective"] = Objective.parse(fields["objective"])
        return Header(**fields | {"limits": Limits(**fields["limits"]), "price": Price(**fields["price"])})
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path} has a header that cannot be read: {error}") from None


def _step(state: dict[str, Any], allocations: dict[str, Allocation]) -> Step:
    running, asked = (_allocation(state[key], allocations) for key in ("running", "asked"))
    target = _allocation(state["target"], allocations)
    wanted = state.get("wanted")
    grouped: dict[str, dict[str, Any]] = {"signal": {}, "worker": {}, "operator": {}, "path": {}}
    for key, value in state.items():
        group, space, name = key.partition(" ")
        if space and value is not None:
            grouped[group][name] = value
    plain: dict[str, Any] = {name: state.get(name) for name in _PLAIN}
    for results, events in _RESULTS:
        plain[results] = plain[events] if plain[results] is None else plain[results]
    if any(value is None and not (name in _UNKNOWN and name in state) for name, value in plain.items()):
        raise ValueError("a step lacks a number")
    seen = Observation(
        **plain,
        running=running,
        target=asked,
        workers=WorkerTable(tuple(worker.name for worker in running.workers), grouped["worker"]),
        operators={name: OperatorStats(*values) for name, values in grouped["operator"].items()},
        paths={name: _responses(values) for name, values in grouped["path"].items()},
        batch=Batch(*state["batch"]) if state.get("batch") else None,
    )
    decided = target if wanted is None else _allocation(wanted, allocations)
    return Step(seen, Decision(decided, state["reason"], grouped["signal"]), target)


def _responses(values: list[Any]) -> Responses:
    count, sum_s, bins, unit_s = values
    return Responses(count, sum_s, {int(number): events for number, events in bins.items()}, unit_s)


def _allocation(content: dict[str, Any], known: dict[str, Allocation]) -> Allocation:
    key = repr(content)
    if key not in known:
        if len(known) > 64:
            known.clear()
        fields = dict(content)
        names = fields.pop("workers")
        kinds = fields.pop("kinds", ["worker"] * len(names))
        if "instances" in fields:
            fields["instances"] = {name: tuple(hosts) for name, hosts in fields["instances"].items()}
        known[key] = Allocation(tuple(map(Worker, names, kinds)), **fields)
    return known[key]
