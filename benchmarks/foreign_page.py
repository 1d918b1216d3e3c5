"""What was found of a foreign job, as rows of one table: fed, seen, answered, and who ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.feeding import Feeder
from benchmarks.foreign_output import last_table
from penstock.core.loop import Step

WORKERS, CORES, TICK_S = 4, 0.5, 5.0
STEPS = ((300.0, 75.0), (3000.0, 60.0), (10_000.0, 75.0), (2000.0, 60.0), (200.0, 60.0))
SHORT = ((200.0, 35.0), (2000.0, 45.0), (200.0, 45.0))
LIGHT = ((100.0, 35.0), (500.0, 40.0), (100.0, 40.0))
WORDS = tuple(f"w{number}" for number in range(18))  # a console shows 20 rows of a table, and all are to be counted
LINES = tuple(" ".join(WORDS[(7 * line + 13 * word) % 18] for word in range(40)) for line in range(200))


@dataclass(frozen=True, slots=True)
class Foreign:
    """One job, and how it is fed: rates and how long each is held."""

    name: str
    script: Path
    feeds: str = "kafka"
    words: tuple[str, ...] = ()
    load: tuple[tuple[float, float], ...] = SHORT
    lines: Sequence[str] = field(default=WORDS, repr=False)
    reads: int = 1
    """How many times a row is read: twice, where two streams of one topic are joined."""
    output: Callable[[Path], int] = last_table
    """Counts what the job itself put out."""
    puts: int = 1
    """How much it puts out for each row."""
    workers: int = WORKERS
    partitions: int = 200
    """As by default."""

    def rate(self, at_s: float) -> float:
        for rate, held_s in self.load:
            if at_s < held_s:
                return rate
            at_s -= held_s
        return 0.0

    @property
    def seconds(self) -> float:
        return sum(held_s for _, held_s in self.load)


@dataclass(slots=True)
class Outcome:
    """What was found out of one job."""

    job: Foreign
    steps: list[Step]
    feeder: Feeder
    origin_s: float
    log: str
    exact: bool = False
    """Did all that was fed come to be counted as processed, and no more?"""
    output: int = 0
    """What the job itself put out."""

    def phases(self) -> Iterator[tuple[float, float, float, int]]:
        """Of each rate: what was fed a second, what was seen, the most that the backlog was off by, in batches, and
        the executors at its end. The first 15 s belong to the rate before."""
        begin_s = self.feeder.begun_s
        for _, held_s in self.job.load:
            inside = [step for step in self.steps if begin_s + 15 < self._at(step) <= begin_s + held_s]
            begin_s += held_s
            if len(inside) > 1:
                first, last = inside[0], inside[-1]
                fed = self._fed_at(last) - self._fed_at(first)
                span_s = last.seen.time_s - first.seen.time_s
                came = last.seen.arrived - first.seen.arrived
                off = max(self._off(step) for step in inside)
                yield fed / span_s, came / span_s, off, len(last.seen.running.workers)

    def _at(self, step: Step) -> float:
        return self.origin_s + step.seen.time_s

    def _fed_at(self, step: Step) -> int:
        return self.job.reads * self.feeder.fed_at(self._at(step))

    def _off(self, step: Step) -> float:
        """How far the backlog was off what was fed and not answered, in batches."""
        seen = step.seen
        if seen.backlog is None:
            return float("nan")
        truth = self._fed_at(step) - (seen.processed - self.steps[0].seen.processed)
        rows = max(seen.batch.rows if seen.batch else 0.0, seen.input_rate * TICK_S, 1.0)
        return abs(seen.backlog - truth) / rows

    @property
    def executors(self) -> str:
        """Each count that ran, in the order of time."""
        counts = [len(step.seen.running.workers) for step in self.steps]
        kept = [count for place, count in enumerate(counts) if place == 0 or counts[place - 1] != count]
        return " ".join(map(str, kept))

    @property
    def expected(self) -> int:
        """What the job must put out."""
        return self.job.puts * self.feeder.fed


def rows(found: Outcome, code: str) -> list[str]:
    last, first = found.steps[-1].seen, found.steps[0].seen
    counted = "exact" if found.exact else f"{last.processed - first.processed:,.0f} of {_due(found):,}"
    put = "exact" if found.output == found.expected else f"{found.output:,} of {found.expected:,}"
    lines = []
    for number, (fed, seen, off, count) in enumerate(found.phases()):
        name = f"{found.job.name} | {code} | {found.feeder.fed:,} | {counted} | {put} | {found.executors}"
        backlog = "unknown" if off != off else f"{off:.2f}"
        head = name if number == 0 else " | | | | | "
        lines.append(f"| {head} | {fed:,.0f}/s | {seen:,.0f}/s | {seen / fed - 1:+.1%} | {backlog} | {count} |")
    return lines


def _due(found: Outcome) -> int:
    return found.job.reads * found.feeder.fed


HEAD = (
    "# Jobs that nobody here wrote",
    "",
    "Made by `scripts/bench foreign` (*after*), and by the same script with `PENSTOCK_BEFORE` set to the `src` of",
    "commit fdf0a65 (*before*: feeder, cluster and jobs are the same; the job imports the old `penstock`). Spark's own",
    "example jobs, taken from the installed package with one line put in,",
    '`penstock.attach(spark, query, limits=(1, 4), tick="5s", journal=…)`, and three of our own for what they lack.',
    "Nobody told it where the lag is, how often a batch is due, or what the job can do.",
    "",
    f"A cluster of 1 to {WORKERS} executors of {CORES:g} core on a machine of 2 cores. *Counted* is *exact* where",
    "Penstock's own count of answered rows equals what was fed once the load had gone; *output* where what the job",
    "itself had put out by then, counted without it, is what it had to be. *Off* is the rate seen by the rate fed;",
    "*backlog off* the most that the backlog seen differed from what was fed and not yet answered, in batches;",
    "*executors* those that ran, in the order of time, and at the end of each rate.",
    "",
    "| job | code | fed | counted | output | executors | fed at | seen | off | backlog off | executors then |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)
FAULTS = (
    "",
    "## Disturbed",
    "",
    "Made by `scripts/bench faults`: the job *a service of 0.2 ms a row* with `attach`, disturbed in one way after the",
    "other. *Answered* is what the job itself put out meanwhile, *executors* what Spark's master counted at begin and",
    "end, *said* what stands in the job's log, as it stands there.",
    "",
    "| what was done | fed at | answered | executors | said |",
    "|---|---|---|---|---|",
)
