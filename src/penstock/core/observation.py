"""What is seen of a plant at the end of an interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.allocation import Allocation
from penstock.core.digest import ArrivalDigest
from penstock.core.responses import Responses


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """One running worker over the interval."""

    cpu: float = 0.0
    """Busy part of its cores, 0…1; above 1 where it is computed, and more comes than the workers could do."""
    memory_mb: float = 0.0
    network_mb_s: float = 0.0
    speed: float | None = None
    """Work done per second of CPU, relative to a worker as it should be; None where nobody measures it."""
    input_rate: float = 0.0
    paid_since_s: float = 0.0
    """When it was asked for; of a worker that was there before, when it began to run."""
    runs_since_s: float | None = None
    """When it began to run; None in journals of earlier versions."""


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """One operator over the interval; rates are per second."""

    input_rate: float = 0.0
    output_rate: float = 0.0
    cores: float = 0.0
    memory_mb: float = 0.0
    network_mb_s: float = 0.0
    backlog: float | None = 0.0
    latency_s: float | None = 0.0
    state_mb: float = 0.0
    arrived: float | None = None
    """Events since the beginning; None in journals of earlier versions."""
    processed: float | None = None
    """Events since the beginning; None in journals of earlier versions."""
    load: float | None = None
    """Busy part of what its instances may use, 0…1; None where it shares the workers with others."""
    batch: Batch | None = None
    """Its last micro-batch, where it has batches of its own."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The last micro-batch that ended."""

    rows: float
    trigger_s: float
    execution_s: float
    fixed_s: float
    age_s: float
    """How long ago it ended."""
    number: int | None = None
    """As the engine counts them; None in journals of earlier versions."""

    @property
    def overran(self) -> bool:
        """Did it take longer than its trigger? Then the next one began at once."""
        return 0 < self.trigger_s < self.execution_s


@dataclass(frozen=True, slots=True)
class BatchInWork:
    """The micro-batch that runs now."""

    begun_s: float
    """On the observation's clock."""
    rows: float | None
    """What it reads; None where the engine does not tell before it ends."""
    workers: float
    """Workers that it began with."""
    rows_max: float | None = None
    """The row limit in force when it began; None: no limit."""


class WorkerTable(Mapping[str, WorkerStats]):
    """Workers' statistics kept by column: 64 workers cost a replay no more than one does.

    A column is a sequence with a value a worker, or one number that holds for all of them.

    >>> table = WorkerTable(("w1", "w2"), {"cpu": (0.4, 0.6), "memory_mb": 512.0})
    >>> table["w2"].cpu, table["w2"].memory_mb, table.mean("cpu")
    (0.6, 512.0, 0.5)
    """

    __slots__ = ("_index", "columns", "names")

    def __init__(self, names: tuple[str, ...], columns: Mapping[str, float | Sequence[float]]) -> None:
        self.names = names
        self.columns = columns
        self._index: dict[str, int] | None = None

    @classmethod
    def of(cls, workers: Mapping[str, WorkerStats]) -> WorkerTable:
        """The same statistics, by column."""
        if isinstance(workers, cls):
            return workers
        fields = WorkerStats.__slots__
        columns = {name: tuple(getattr(stats, name) for stats in workers.values()) for name in fields}
        return cls(tuple(workers), columns)

    def mean(self, column: str) -> float:
        """The average of one column over the workers, 0 without workers."""
        values = self.columns.get(column, 0.0)
        if isinstance(values, (int, float)):
            return values if self.names else 0.0
        return sum(values) / len(values) if values else 0.0

    def __getitem__(self, name: str) -> WorkerStats:
        if self._index is None:
            self._index = {known: position for position, known in enumerate(self.names)}
        row = self._index[name]
        return WorkerStats(**{k: v if isinstance(v, (int, float)) else v[row] for k, v in self.columns.items()})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


NO_WORKERS = WorkerTable((), {})


@dataclass(frozen=True, slots=True)
class Observation:
    """What is seen at `time_s`, the end of an interval of `span_s`. Counters are exact; gauges may be noisy."""

    time_s: float
    span_s: float
    arrived: float
    """Events since the beginning, exact; with `processed`, what the score reads."""
    processed: float
    delivered: float
    """Results put out since the beginning."""
    deliverable: float
    """Results that would have been put out had nothing waited."""
    input_rate: float
    """Arrivals per second, not what was processed."""
    backlog: float | None
    """Events waiting or in work; None where a source does not tell."""
    latency_s: float | None
    """Age of the oldest event not yet served, plus its service; None where the backlog is not known."""
    capacity: float
    """Events per second that what ran in the interval could do, by the model that the policy is told."""
    running: Allocation
    """What exists."""
    target: Allocation
    """What was asked for last; a start takes time, so these differ."""
    workers: WorkerTable = field(default_factory=lambda: NO_WORKERS)
    """The workers that run."""
    operators: Mapping[str, OperatorStats] = field(default_factory=dict)
    paths: Mapping[str, Responses] = field(default_factory=dict)
    """Response times of the interval, by the sink at the end of the path."""
    batch: Batch | None = None
    in_work: BatchInWork | None = None
    """The micro-batch that runs now."""
    pending: Mapping[str, float] = field(default_factory=dict)
    """Workers that were asked for and do not run yet: when each was asked for."""
    drained_s: Mapping[str, float] = field(default_factory=dict)
    """Workers that were given up and still served: each for how many seconds of the interval. They are paid."""
    late_s: float | None = None
    """Seconds of the interval in which the oldest event was older than the bound; None: judged by `latency_s`."""
    arrivals: ArrivalDigest | None = None
    """How the events of the interval were spaced."""
