"""The seam for serving: how a job works through its events. The plant knows no engine's inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.allocation import Allocation, Knob
from penstock.core.digest import ArrivalDigest
from penstock.core.observation import Batch, BatchInWork, OperatorStats
from penstock.core.responses import Responses


# Neither is frozen: both are made anew for each stretch, and a frozen one of 17 fields takes twice as long to make.
@dataclass(slots=True)
class Segment:
    """A stretch of time in which the fleet does not change."""

    begin_s: float
    end_s: float
    workers: float
    """Running workers, each counted with its speed; 0 while the job pauses."""
    joined: float = 0.0
    """How many workers have joined so far, each counted with its first speed."""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Of each running worker, as a multiple of the first kind's; also while the job pauses."""


@dataclass(slots=True)
class Served:
    """What became of the events, up to now and since the last time it was asked."""

    arrived: float
    processed: float
    delivered: float
    deliverable: float
    backlog: float
    latency_s: float
    late_s: float | None
    """Seconds since the last time in which the oldest event was older than the bound; None: nobody keeps them."""
    throughput: float
    """Events a second since the last time."""
    load: float
    """Busy part of what the workers could have done since the last time, 0…1."""
    could: float
    """Events a second that the workers could have served since the last time."""
    operators: Mapping[str, OperatorStats]
    paths: Mapping[str, Responses]
    batch: Batch | None = None
    in_work: BatchInWork | None = None
    drained_s: Mapping[str, float] = field(default_factory=dict)
    """Of each worker that was given up and served on, for how long."""
    loads: Mapping[str, float] | None = None
    """Of each worker by itself; None: all bear the same."""
    arrivals: ArrivalDigest | None = None
    """How the events since the last time were spaced; None where they are a fluid."""


class Engine(Protocol):
    """Serves events. Time comes from segments and from `now_s`; an engine reads no clock."""

    knobs: frozenset[Knob]
    """What it can change beyond the number of workers."""

    def advance(self, segment: Segment, arriving: Mapping[str, float]) -> None:
        """One stretch further, while so many events a second arrive at each source."""
        ...

    def apply(self, target: Allocation) -> None:
        """Take over placement, shares and alternates; workers are the fleet's matter. BadInput if it cannot."""
        ...

    def take(self, now_s: float) -> Served:
        """What became of the events since the last call."""
        ...
