"""Kinds of workers: what each is made of, what it costs, how long it takes to start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.bounds import PRICE_MOST, between
from penstock.core.errors import unknown


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """What a worker is made of, and what it costs."""

    name: str = "worker"
    cores: float = 1.0
    memory_mb: float = 4096.0
    speed: float = 1.0
    """Of one core, relative to the core that an operator's cost is counted in."""
    per_hour: float | None = None
    """Its price; without one, the job's."""
    start_s: float | None = None
    """From the request until it serves, as somebody declared it; None: it must be learnt from what is seen."""

    def __post_init__(self) -> None:
        between(f"kind '{self.name}': cores", self.cores, 1e-3, 1024)
        between(f"kind '{self.name}': memory_mb", self.memory_mb, 1, 1e9)
        between(f"kind '{self.name}': speed", self.speed, 1e-3, 1e3)
        between(f"kind '{self.name}': per_hour", self.per_hour or 0.0, 0, PRICE_MOST)
        between(f"kind '{self.name}': start_s", self.start_s or 0.0, 0)


def kind_of(kinds: Sequence[WorkerKind], name: str) -> WorkerKind:
    """The kind of this name; where there is one kind alone, a worker is of that."""
    for kind in kinds:
        if kind.name == name or len(kinds) == 1:
            return kind
    raise unknown("kind of worker", name, [kind.name for kind in kinds])
