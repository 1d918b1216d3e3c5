"""What `penstock trace` is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from penstock.core.column_names import UNITS_S
from penstock.core.columns import KINDS as TABLE_KINDS
from penstock.core.columns import Asked
from penstock.core.dates import ORDERS
from penstock.core.errors import BadInput, unknown
from penstock.pipeline.formats import KINDS

SAMPLES = ("counter", "rate")


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A raw source, and the rate series wanted from it.

    >>> TraceRequest(Path("access.log"), Path("rates.parquet"), every_s=1.5).every_us
    1500000
    """

    source: Path
    output: Path
    every_s: float = 60.0
    kind: str | None = None
    column: str | None = None
    time_column: str | None = None
    unit: str | None = None
    dates: str | None = None
    step_s: float | None = None
    values: str | None = None
    gap_s: float = 3600.0
    stats: bool = False
    master: str | None = None
    quarantine: Path | None = None

    def __post_init__(self) -> None:
        for what, given, known in (
            ("kind", self.kind, KINDS),
            ("unit", self.unit, tuple(UNITS_S)),
            ("order of dates", self.dates, ORDERS),
            ("meaning of the values", self.values, SAMPLES),
        ):
            if given is not None and given not in known:
                raise unknown(what, given, known)
        for what, seconds in (("--every", self.every_s), ("--gap", self.gap_s), ("--step", self.step_s)):
            if seconds is not None and round(seconds * 1e6) < 1:
                raise BadInput(f"{what} must be longer than a microsecond, not {seconds:g} s")

    @property
    def asked(self) -> Asked:
        """What was said about a table."""
        kind = self.kind if self.kind in TABLE_KINDS else None
        return Asked(str(self.source), kind, self.column, self.time_column, self.unit, self.dates, self.step_s)

    @property
    def every_us(self) -> int:
        return round(self.every_s * 1e6)

    @property
    def gap_us(self) -> int:
        return round(self.gap_s * 1e6)

    @property
    def quarantine_path(self) -> Path:
        return self.quarantine or self.output.with_name(self.output.name + ".quarantine")


@dataclass(frozen=True, slots=True)
class ArrivalStats:
    """What the inter-arrival times look like; all but the mean have no unit."""

    count: int
    mean_s: float
    scv: float
    skewness: float
    autocorrelation: Mapping[int, float]
    # Var(sum of 100 successive inter-arrival times) / (100 mean²); None below two such sums.
    dispersion_of_intervals_100: float | None
    # Var(arrivals per interval of the output) / mean.
    dispersion_of_counts: float | None


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What was read, what was written, and what a reader should know about it."""

    source: Path
    kind: str
    output: Path
    every_s: float
    rows: int
    bad: Mapping[str, int]
    quarantine: Path | None
    intervals: int
    gaps: int
    gap_s: float
    first: datetime
    last: datetime
    arrivals: float
    mean_rate: float
    peak_rate: float
    bytes: float | None
    notes: tuple[str, ...] = ()
    stats: ArrivalStats | None = field(default=None)
