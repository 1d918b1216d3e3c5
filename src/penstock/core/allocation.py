"""What is wanted of a plant, and what it has: workers, and how the operators use them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.core.bounds import WORKERS_MOST
from penstock.core.errors import BadInput


class Knob(Enum):
    """What a policy may turn, if the plant can."""

    WORKERS = "the workers"
    PLACEMENT = "placement"
    CPU_SHARE = "CPU shares"
    ALTERNATE = "alternates"
    BATCH_SIZE = "batch sizes"


@dataclass(frozen=True, slots=True)
class Worker:
    """A slot for one rented unit; the plant maps it to an executor."""

    name: str
    kind: str = "worker"


@dataclass(frozen=True, slots=True)
class BatchRule:
    """How many rows the next micro-batch may read: the plant works it out as each batch begins.

    A batch may take half of what is left until its oldest row is too old: long ones while rows are fresh, short ones
    when they are late, so that the first row of a batch does not wait for too many others.

    >>> BatchRule(latency_s=120.0, fixed_s=2.0, rows_per_worker_s=50.0).rows(workers=4, oldest_s=20.0)
    9600.0
    """

    latency_s: float
    """The bound that rows must keep."""
    fixed_s: float
    """What a batch takes before its first row."""
    rows_per_worker_s: float
    """Rows a second that each of the workers does."""
    shortest_s: float = 10.0
    longest_s: float = 60.0

    def rows(self, workers: float, oldest_s: float) -> float:
        """The row limit of a batch that begins now on so many workers, with rows so old; at least one row."""
        lasts_s = min(self.longest_s, max(self.shortest_s, (self.latency_s - oldest_s) / 2))
        # However long its fixed time, a batch must get on.
        return max(1.0, max(lasts_s - self.fixed_s, self.fixed_s / 4) * self.rows_per_worker_s * workers)


@dataclass(frozen=True, slots=True)
class Allocation:
    """A complete wish. An empty mapping leaves that knob to the engine.

    >>> two = Allocation.of(2)
    >>> [worker.name for worker in two.resized(3).workers]
    ['w1', 'w2', 'w3']
    >>> [worker.name for worker in two.resized(1).resized(2).workers]
    ['w1', 'w3']
    """

    workers: tuple[Worker, ...]
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each operator, the worker of each of its instances: all of them rented."""
    cpu_share: Mapping[str, float] = field(default_factory=dict)
    """For each operator, the part of a core that each of its instances may use."""
    alternate: Mapping[str, str] = field(default_factory=dict)
    """For each operator, its active implementation."""
    batch: BatchRule | None = None
    """How many rows a micro-batch may read; None: as the job was started."""
    # A name is never used twice: a slot that was given up may still be draining under its old name.
    names_given: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if not self.instances:
            return
        rented = {worker.name for worker in self.workers}
        for operator, places in self.instances.items():
            if lost := set(places) - rented:
                where = ", ".join(sorted(lost))
                raise BadInput(f"operator '{operator}' is placed on {where}, which is not rented")

    @classmethod
    def of(cls, workers: int, kind: str = "worker") -> Allocation:
        """Some workers of one kind, all else left to the engine."""
        return cls(()).grown(workers, kind)

    def resized(self, workers: int, kind: str | None = None) -> Allocation:
        """The same wish with another number of workers: new slots get fresh names, the youngest go first.

        Refused while one that would go holds an instance: whoever placed it knows where it should live.
        """
        missing = workers - len(self.workers)
        if missing > 0:
            return self.grown(missing, kind or (self.workers[-1].kind if self.workers else "worker"))
        return self if missing == 0 else replace(self, workers=self.workers[: max(0, workers)])

    def grown(self, more: int, kind: str = "worker") -> Allocation:
        """The same wish with some more workers, under fresh names; at most as many as any limits allow."""
        # A policy that asked for 10⁹, to be cut to 64 by its limits, took all memory before it got there.
        more = max(0, min(more, WORKERS_MOST - len(self.workers)))
        given = max(self.names_given, len(self.workers))
        fresh = tuple(Worker(f"w{given + number}", kind) for number in range(1, more + 1))
        return replace(self, workers=self.workers + fresh, names_given=given + more)

    def only(self, names: Collection[str]) -> Allocation:
        """What is left of it on some of its workers: the others, and the instances on them, are not there."""
        kept = tuple(worker for worker in self.workers if worker.name in names)
        if not self.instances:
            return replace(self, workers=kept)
        there = {name: tuple(place for place in places if place in names) for name, places in self.instances.items()}
        return replace(self, workers=kept, instances=there)

    def turned(self, before: Allocation) -> frozenset[Knob]:
        """The knobs that differ between two wishes.

        >>> sorted(knob.name for knob in Allocation.of(3).turned(Allocation.of(2)))
        ['WORKERS']
        """
        if self is before:
            return frozenset()
        return frozenset(knob for knob, name in _FIELDS.items() if getattr(self, name) != getattr(before, name))


_FIELDS: Mapping[Knob, str] = {
    Knob.WORKERS: "workers",
    Knob.PLACEMENT: "instances",
    Knob.CPU_SHARE: "cpu_share",
    Knob.ALTERNATE: "alternate",
    Knob.BATCH_SIZE: "batch",
}
