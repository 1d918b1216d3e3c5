"""What is wanted of a plant, and what it has: workers, and how the operators use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum


class Knob(Enum):
    """What a policy may turn, if the plant can."""

    WORKERS = "the number of workers"
    PARALLELISM = "parallelism"
    PLACEMENT = "placement"
    CPU_SHARE = "CPU shares"
    ALTERNATE = "alternates"


@dataclass(frozen=True, slots=True)
class Worker:
    """A slot for one rented unit; the plant maps it to an executor."""

    name: str
    kind: str = "worker"


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
    parallelism: Mapping[str, int] = field(default_factory=dict)
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cpu_share: Mapping[str, float] = field(default_factory=dict)
    alternate: Mapping[str, str] = field(default_factory=dict)
    # A name is never used twice: a slot that was given up may still be draining under its old name.
    names_given: int = field(default=0, compare=False)

    @classmethod
    def of(cls, workers: int, kind: str = "worker") -> Allocation:
        """Some workers of one kind, all else left to the engine."""
        return cls((), names_given=0)._grown(workers, kind)

    def resized(self, workers: int) -> Allocation:
        """The same wish with another number of workers: new slots get fresh names, the youngest go first."""
        if workers == len(self.workers):
            return self
        if workers < len(self.workers):
            return replace(self, workers=self.workers[: max(0, workers)])
        return self._grown(workers, self.workers[-1].kind if self.workers else "worker")

    def _grown(self, workers: int, kind: str) -> Allocation:
        missing = workers - len(self.workers)
        given = max(self.names_given, len(self.workers))
        fresh = tuple(Worker(f"w{given + number}", kind) for number in range(1, missing + 1))
        return replace(self, workers=self.workers + fresh, names_given=given + missing)
