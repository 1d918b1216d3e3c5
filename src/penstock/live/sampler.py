"""Takes one sample: batches of several sizes on warm executors, and the two numbers behind them."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.app import App, Transform
from penstock.core.errors import BadInput
from penstock.live.batches import BatchTime, Split, Use, flags, split, tells_rows
from penstock.live.executors import task_seconds
from penstock.live.feed import BatchPlan, Feed
from penstock.live.settling import MOST, WINDOW, after_settling
from penstock.models.samples import TOO_SHORT

SAMPLE_S = 20.0
LOOK_S = 1.0  # four looks a second would cost the driver 1 % of a core; batch times come from Spark, not from here
ALIVE_S = 5.0
SPEED_S = 8.0  # a speed is the mean of 20 looks at least: of five, a short batch's, it scatters by 10 %
# A long batch shows the capacity; one of a fifth of its rows the fixed time. The long one is near our default
# trigger, 10 s: what is measured is then hardly extrapolated. A third size in between takes 20 s more and adds
# little.
LONG_S = 8.0
QUICK_LONG_S = 3.0
SHORT = 0.2
NEAR = (0.6, 1.7)  # times as long as wanted: near enough


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample."""

    batches: int = 7
    long_s: float = LONG_S
    sample_s: float = SAMPLE_S
    settles: bool = True
    """Whether long batches are waited for until they drift no more."""

    @classmethod
    def quick(cls) -> Sampling:
        """Two sizes, five batches each, whether they have settled or not."""
        return cls(5, QUICK_LONG_S, 0.0, settles=False)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one worker count can do, and whether to believe it."""

    split: Split | None
    """As delivered: what batches really took. None: there were no batches."""
    corrected: Split | None
    """What they would have taken on the undisturbed machine."""
    flags: tuple[str, ...]
    speed: float = 1.0
    """Of the machine, as a share of what it can be."""


@dataclass(slots=True)
class Bench:
    """One app, its source and its Spark session."""

    spark: SparkSession
    app: App
    feed: Feed
    folder: Path
    beat: Callable[[], None]
    """Called once a second: tells that time goes by, and raises when the world has ended."""
    speed: Callable[[float], float] = lambda _: 1.0
    """How fast the machine was since a moment, as a share of what it can be."""
    lifted: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Executors write the input, too: on whole cores, as long as it lasts."""
    queries: int = 0

    def run(
        self, helping: BatchPlan, is_enough: Callable[[list[BatchTime]], bool], patience_s: float
    ) -> list[BatchTime]:
        """Batches of one size, until they are enough, the source is dry or patience is over."""
        seen: dict[int, BatchTime] = {}
        with self._query(helping) as query:
            looked = time.monotonic()
            deadline = looked + patience_s
            while query.isActive and len(seen) < helping.batches and time.monotonic() < deadline:
                time.sleep(LOOK_S)
                self.beat()
                news = _news(query, seen)
                if not news:
                    continue
                speed, looked = self.speed(min(looked, time.monotonic() - SPEED_S)), time.monotonic()
                seen |= {report["batchId"]: BatchTime.of(report, speed) for report in news}
                if is_enough(_ordered(seen)):
                    break
            self._need_no_failure(query)
        return _ordered(seen)

    @contextlib.contextmanager
    def _query(self, helping: BatchPlan) -> Iterator[StreamingQuery]:
        self.queries += 1
        name = f"query-{self.queries}"
        checkpoint = self.folder / f"{name}-checkpoint"
        query = None
        try:
            query = self._start(name, checkpoint, helping)
            yield query
        finally:
            if query is not None:
                with contextlib.suppress(PySparkException):
                    query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
            self.feed.drop(name)

    def _start(self, name: str, checkpoint: Path, helping: BatchPlan) -> StreamingQuery:
        self.spark.conf.set("spark.sql.shuffle.partitions", helping.partitions)
        self.spark.conf.set("spark.sql.files.minPartitionNum", helping.partitions)
        with self.lifted():
            stream = self.feed.stream(self.spark, name, helping)
        result = called(self.app, stream)
        if not getattr(result, "isStreaming", False):
            raise BadInput(f"app {self.app.name} is not streaming: return a DataFrame made of the one it was given")
        writer = result.writeStream.format("noop").outputMode(self.app.output_mode)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(processingTime="0 seconds")
        try:
            return writer.start()
        except PySparkException as error:
            raise BadInput(f"app {self.app.name} cannot be started: {_line(error)}") from None

    def _need_no_failure(self, query: StreamingQuery) -> None:
        failure = query.exception()
        if failure is not None:
            self.feed.need_alive()  # a dead broker is the cause, not the app
            raise BadInput(f"app {self.app.name} failed in Spark: {_cause(str(failure))}")


def sample(bench: Bench, sampling: Sampling, partitions: int, guess: Split) -> Sample:
    """Long batches and short ones, and the line through them."""
    before, begun = task_seconds(bench.spark), time.monotonic()
    long = _long(bench, sampling, partitions, guess)
    if not long:
        return Sample(None, None, ("source ran dry",))
    rows = max(partitions, round(SHORT * long[0].rows))
    short = _taken(bench, sampling, BatchPlan(rows, _most(sampling, 2.0), partitions))
    if not short:
        return Sample(None, None, ("source ran dry",))
    after, wall_s = task_seconds(bench.spark), time.monotonic() - begun
    busy = {name: (after[name] - seconds) / wall_s for name, seconds in before.items() if name in after}
    use = Use(busy, len(before.keys() - after.keys()))
    steady = after_settling(long) if sampling.settles else ()
    wrong = flags(use, sampling.batches, min(len(long), len(short)), bool(steady) if sampling.settles else None)
    sizes = [steady or long[-WINDOW:], short]
    if not tells_rows(*sizes):
        wrong.append(TOO_SHORT)
    corrected = split([[batch.corrected for batch in size] for size in sizes])
    return Sample(split(sizes), corrected, tuple(wrong), bench.speed(begun))


def _long(bench: Bench, sampling: Sampling, partitions: int, guess: Split) -> list[BatchTime]:
    """Batches of about the length that is wanted; a guess that is far off is seen after three of them."""
    rows = guess.rows_per_s * max(sampling.long_s - guess.fixed_s, sampling.long_s / 3)
    for last_try in (False, False, False, False, True):  # on a busy machine the guess was 1,000 times too small
        helping = BatchPlan(max(partitions, round(rows)), MOST + 1 if sampling.settles else _most(sampling), partitions)
        taken = _taken(bench, sampling, helping, True, None if last_try else sampling.long_s)
        if not taken or NEAR[0] < _median_s(taken) / sampling.long_s < NEAR[1]:
            return taken
        fixed_s = min(guess.fixed_s, _median_s(taken) / 2)
        rows *= min(8.0, (sampling.long_s - fixed_s) / (_median_s(taken) - fixed_s))
    return taken


def _most(sampling: Sampling, length_s: float = LONG_S) -> int:
    """Batches that a source must hold, where they need not settle."""
    if not sampling.settles:
        return sampling.batches + 1
    return round(1.5 * max(sampling.batches, SAMPLE_S / length_s)) + 2


def _taken(
    bench: Bench, sampling: Sampling, helping: BatchPlan, settles: bool = False, near_s: float | None = None
) -> list[BatchTime]:
    """Batches of one size but for the first, until they are enough, have settled, or are seen to be far too long."""

    def is_enough(batches: list[BatchTime]) -> bool:
        taken = batches[1:]
        if near_s and len(taken) == 2 and not NEAR[0] < _median_s(taken) / near_s < NEAR[1]:
            return True
        if len(taken) < sampling.batches or sum(batch.seconds for batch in taken) < sampling.sample_s:
            return False
        # Short batches scatter twice as much and tell the fixed time alone: they need not settle.
        return not sampling.settles or not settles or bool(after_settling(taken))

    patience_s = max(4 * sampling.batches, 2 * MOST) * sampling.long_s
    return bench.run(helping, is_enough, patience_s)[1:]


def _ordered(seen: dict[int, BatchTime]) -> list[BatchTime]:
    return [seen[number] for number in sorted(seen)]


def _median_s(batches: list[BatchTime]) -> float:
    return sorted(batch.seconds for batch in batches)[len(batches) // 2]


def _news(query: StreamingQuery, seen: Collection[int]) -> list[Mapping[str, Any]]:
    """Reports of batches not seen yet. All of them are asked for only when there are new ones: that takes a while."""
    last = query.lastProgress
    if last is None or not last["numInputRows"] or last["batchId"] in seen:
        return []
    reports = [last] if last["batchId"] == len(seen) else query.recentProgress
    return [report for report in reports if report["numInputRows"] and report["batchId"] not in seen]


def called(app: App, stream: DataFrame, transform: Transform | None = None) -> DataFrame:
    """The app, or one of its variants, on a stream. A user's own function may raise anything."""
    try:
        return (transform or app.transform)(stream)
    except Exception as error:
        raise BadInput(f"app {app.name} failed: {type(error).__name__}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _cause(text: str) -> str:
    """The line of a stack trace that tells most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Caused by" in line or "Error" in line]
    return (telling[-1] if telling else lines[0])[:300]
