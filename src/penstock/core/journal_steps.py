"""Steps from a journal's lines. Every value is typed as it is read: what does not fit costs its line."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from penstock.core.allocation import Allocation, BatchRule, Worker
from penstock.core.digest import ArrivalDigest
from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Step
from penstock.core.observation import Batch, BatchInWork, Observation, OperatorStats, WorkerStats, WorkerTable
from penstock.core.responses import Responses

# What is a plain number of an observation, in the order of a line.
PLAIN = Observation.__slots__[: Observation.__slots__.index("running")]
# So many values of an operator are always there; its counters, load and batch may be the job's.
OPERATOR_OWN = OperatorStats.__slots__.index("arrived")
UNKNOWN = ("backlog", "latency_s")  # null in a line: nobody knows it
# Where the first is not in a line, it is the second: most jobs put out one result an event.
RESULTS = (("delivered", "processed"), ("deliverable", "arrived"))

# Sums of some million numbers of this size are finite, and times of this size are dates.
Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
Moment = Annotated[float, Meta(ge=-1e10, le=1e10)]
Span = Annotated[float, Meta(ge=0, le=1e10)]
Positive = Annotated[float, Meta(gt=0, le=1e18)]
Bins = dict[Annotated[int, Meta(ge=-100_000, le=100_000)], Number]
_ALLOCATIONS = ("running", "asked", "target", "wanted")


@dataclass(frozen=True, slots=True)
class AllocationLine:
    """An allocation as it stands in a line."""

    workers: list[str]
    kinds: list[str] | None = None
    instances: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cpu_share: dict[str, Number] = field(default_factory=dict)
    alternate: dict[str, str] = field(default_factory=dict)
    batch: BatchRule | None = None
    names_given: Annotated[int, Meta(ge=0, le=10**15)] = 0

    @property
    def allocation(self) -> Allocation:
        kinds = self.kinds if self.kinds is not None else ["worker"] * len(self.workers)
        workers = tuple(Worker(name, kind) for name, kind in zip(self.workers, kinds, strict=True))
        return Allocation(workers, self.instances, self.cpu_share, self.alternate, self.batch, self.names_given)


_LINE = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ALLOCATION = msgspec.json.Decoder(AllocationLine)
_ANYTHING = msgspec.json.Decoder()
_KEYS = {
    **{name: msgspec.json.Decoder(Number | None) for name in PLAIN},
    "time_s": msgspec.json.Decoder(Moment),
    "span_s": msgspec.json.Decoder(Span),
    "whole": msgspec.json.Decoder(bool),
    "reason": msgspec.json.Decoder(str),
    "batch": msgspec.json.Decoder(list[Number | None] | None),
    "in_work": msgspec.json.Decoder(tuple[Moment, Number | None, Number, Number | None] | None),
    "pending": msgspec.json.Decoder(dict[str, Moment] | None),
    "drained_s": msgspec.json.Decoder(dict[str, Span] | None),
    "late_s": msgspec.json.Decoder(Span | None),
    "could": msgspec.json.Decoder(Number | None),
    "arrivals": msgspec.json.Decoder(
        tuple[Annotated[int, Meta(ge=0)], tuple[Number, Number, Number], tuple[int, ...], tuple[Number, ...]] | None
    ),
}
_GROUPS = {
    "signal": msgspec.json.Decoder(Number | None),
    "worker": msgspec.json.Decoder(Number | list[Number] | None),
    "operator": msgspec.json.Decoder(list[Number | list[Number | None] | None] | None),
    "path": msgspec.json.Decoder(tuple[Number, Number, Bins, Positive] | None),
}


Groups = dict[str, dict[str, Any]]
"""What a line says of each signal, worker column, operator and path, by group and name."""


class StepReader:
    """Makes steps of a journal's lines, one after the other; `damaged` counts the lines that were of no use."""

    def __init__(self) -> None:
        self._state: dict[str, Any] = {}
        self._groups: Groups = {}
        self._allocations = Allocations()
        self.damaged = 0

    def step(self, line: str) -> Step | None:
        """The step of the next line; `None` for a damaged one, and for those that lean on it."""
        read = _fields_of(line)
        if read is not None and (self._state or read[0].get("whole")):
            self._take(*read)
            with contextlib.suppress(KeyError, TypeError, ValueError, BadInput, msgspec.MsgspecError):
                return _step(self._state, self._groups, self._allocations)
        self._state, self._groups = {}, {}
        self.damaged += 1
        return None

    def _take(self, fields: dict[str, Any], groups: Groups) -> None:
        """What the line says comes over what stood; earlier steps keep the groups that they were given."""
        if fields.pop("whole", False):
            self._state, self._groups = fields, {group: {} for group in _GROUPS}
        else:
            self._state.update(fields)
        for group, said in groups.items():
            known = self._groups[group] | said
            gone = None in said.values()
            self._groups[group] = {name: each for name, each in known.items() if each is not None} if gone else known


def _fields_of(line: str) -> tuple[dict[str, Any], Groups] | None:
    """A line's fields, typed; `None` where one does not fit, or the line has no end."""
    if not line.endswith("\n"):
        return None
    fields: dict[str, Any] = {}
    groups: Groups = {}
    try:
        for key, raw in _LINE.decode(line).items():
            decoder = _KEYS.get(key)
            if decoder is not None:
                fields[key] = decoder.decode(raw)
            elif key in _ALLOCATIONS:
                fields[key] = bytes(raw)  # read when it is needed, and only once
            else:
                group, name = _grouped(key)
                value = _GROUPS.get(group, _ANYTHING).decode(raw)
                if group:  # a field of a later version is nothing to us
                    groups.setdefault(group, {})[name] = value
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return fields, groups


@lru_cache(4096)
def _grouped(key: str) -> tuple[str, str]:
    """The group of a key, and its name in it; no group for keys that stand alone, or that a later version wrote."""
    group, space, name = key.partition(" ")
    return (group, name) if space and group in _GROUPS else ("", key)


def _step(state: dict[str, Any], groups: Groups, allocations: Allocations) -> Step:
    running, asked, target = (allocations.of(state[key]) for key in _ALLOCATIONS[:3])
    wanted = state.get("wanted", b"null")
    seen = Observation(
        **_plain(state),
        running=running,
        target=asked,
        workers=_workers(allocations.names(running), groups["worker"]),
        operators=_operators(groups["operator"], state),
        paths={name: Responses(*values) for name, values in groups["path"].items()},
        batch=Batch(*state["batch"]) if state.get("batch") else None,
        in_work=BatchInWork(*state["in_work"]) if state.get("in_work") else None,
        pending=state.get("pending") or {},
        drained_s=state.get("drained_s") or {},
        late_s=state.get("late_s"),
        arrivals=ArrivalDigest(*state["arrivals"]) if state.get("arrivals") else None,
    )
    decided = target if wanted == b"null" else allocations.of(wanted)
    return Step(seen, Decision(decided, state["reason"], groups["signal"]), target, state.get("could"))


def _operators(told: dict[str, list[Any]], state: dict[str, Any]) -> dict[str, OperatorStats]:
    own: dict[str, Any] = {}
    if len(told) == 1:  # where its line does not say more, it has all events, and the job's batch
        batch = Batch(*state["batch"]) if state.get("batch") else None
        own = {"arrived": state["arrived"], "processed": state["processed"], "batch": batch}
    return {name: _operator(values, own) for name, values in told.items()}


def _operator(values: list[Any], own: dict[str, Any]) -> OperatorStats:
    if len(values) > len(OperatorStats.__slots__):
        raise ValueError("an operator has more values than there are")
    named = dict(zip(OperatorStats.__slots__, values, strict=False))
    batch = named.pop("batch", None)
    if any(isinstance(each, list) for each in named.values()):
        raise ValueError("an operator's values do not fit")
    if len(values) > OPERATOR_OWN:
        return OperatorStats(**named, batch=None if batch is None else Batch(*batch))
    return OperatorStats(**{**named, **own})


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {name: state.get(name) for name in PLAIN}
    for results, events in RESULTS:
        plain[results] = plain[events] if plain[results] is None else plain[results]
    if any(value is None and not (name in UNKNOWN and name in state) for name, value in plain.items()):
        raise ValueError("a step lacks a number")
    return plain


def _workers(names: tuple[str, ...], columns: dict[str, float | list[float]]) -> WorkerTable:
    for name, column in columns.items():
        if isinstance(column, list) and len(column) != len(names):
            raise ValueError(f"{len(names)} workers have {len(column)} values of {name}")
    # A column of a later version is nothing to us.
    return WorkerTable(names, {name: column for name, column in columns.items() if name in WorkerStats.__slots__})


class Allocations:
    """Those that a journal's lines have shown: most lines repeat one."""

    def __init__(self) -> None:
        self._known: dict[bytes, Allocation] = {}
        self._last: tuple[Allocation | None, tuple[str, ...]] = (None, ())

    def of(self, raw: bytes) -> Allocation:
        found = self._known.get(raw)
        if found is None:
            if len(self._known) > 64:
                self._known.clear()
            found = self._known[raw] = _ALLOCATION.decode(raw).allocation
        return found

    def names(self, allocation: Allocation) -> tuple[str, ...]:
        """Of its workers."""
        if allocation is not self._last[0]:
            self._last = (allocation, tuple(worker.name for worker in allocation.workers))
        return self._last[1]
