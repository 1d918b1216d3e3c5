"""Takes one sample: batches of several sizes on warm executors, and the two numbers behind them."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.apps.app import App
from penstock.core.errors import BadInput
from penstock.live.batches import BatchTime, Split, Use, flags, has_settled, split
from penstock.live.executors import task_seconds
from penstock.live.feed import Feed, Helping

SETTLE_S = 90.0
SAMPLE_S = 20.0
LOOK_S = 0.5  # four looks a second would cost the driver 1 % of a core
ALIVE_S = 5.0
# How long batches should take: short ones show the fixed time, long ones the capacity. Between 1 s of rows and 4 s a
# line is known to 5 % from medians that scatter by 4 %; a third length in between takes 20 s and adds little.
LENGTHS_S = (5.0, 2.0)
QUICK_LENGTHS_S = (4.0, 1.5)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample."""

    batches: int = 7
    lengths_s: tuple[float, ...] = LENGTHS_S
    sample_s: float = SAMPLE_S
    settle_s: float = SETTLE_S

    @classmethod
    def quick(cls) -> Sampling:
        """Two sizes, five batches each."""
        return cls(5, QUICK_LENGTHS_S, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one worker count can do, and whether to believe it."""

    split: Split
    flags: tuple[str, ...]


@dataclass(slots=True)
class Bench:
    """One app, its source and its Spark session."""

    spark: SparkSession
    app: App
    feed: Feed
    folder: Path
    beat: Callable[[], None]
    """Called twice a second: tells that time goes by, and raises when the world has ended."""
    queries: int = 0

    def run(self, helping: Helping, is_enough: Callable[[list[BatchTime]], bool], patience_s: float) -> list[BatchTime]:
        """Batches of one size, until they are enough, the source is dry or patience is over."""
        seen: dict[int, BatchTime] = {}
        with self._query(helping) as query:
            deadline = time.monotonic() + patience_s
            while query.isActive and len(seen) < helping.batches and time.monotonic() < deadline:
                time.sleep(LOOK_S)
                self.beat()
                seen |= _news(query, seen)
                if is_enough(list(seen.values())):
                    break
            self._need_no_failure(query)
        return [seen[number] for number in sorted(seen)]

    @contextlib.contextmanager
    def _query(self, helping: Helping) -> Iterator[StreamingQuery]:
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

    def _start(self, name: str, checkpoint: Path, helping: Helping) -> StreamingQuery:
        self.spark.conf.set("spark.sql.shuffle.partitions", helping.partitions)
        self.spark.conf.set("spark.sql.files.minPartitionNum", helping.partitions)
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
    """Batches of each length; what a guess gets wrong is set right by the lengths before."""
    before, begun = task_seconds(bench.spark), time.monotonic()
    sizes: list[list[BatchTime]] = []
    settled = True
    for length_s in sampling.lengths_s:
        batches, is_steady = _sized(bench, sampling, partitions, (length_s, guess))
        if not sizes and batches and not 0.5 < _median_s(batches) / length_s < 2.0:
            guess = _rough(batches, guess)
            batches, is_steady = _sized(bench, sampling, partitions, (length_s, guess))
        # Only the long batches' speed must settle: the short ones tell the fixed time, and scatter twice as much.
        settled &= is_steady or bool(sizes)
        if not batches:
            return Sample(guess, ("source ran dry",))
        sizes.append(batches)
        guess = split(sizes) if len(sizes) > 1 else _rough(batches, guess)
    after, wall_s = task_seconds(bench.spark), time.monotonic() - begun
    busy = {name: (after[name] - seconds) / wall_s for name, seconds in before.items() if name in after}
    use = Use(busy, len(before.keys() - after.keys()))
    wrong = flags(use, sampling.batches, min(map(len, sizes)), settled)
    return Sample(split(sizes), tuple(wrong))


def _sized(
    bench: Bench, sampling: Sampling, partitions: int, wanted: tuple[float, Split]
) -> tuple[list[BatchTime], bool]:
    """Batches of about one length, the first of them thrown away; and whether their speed had settled."""
    length_s, guess = wanted
    rows = max(partitions, round(guess.rows_per_s * max(length_s - guess.fixed_s, length_s / 3)))
    least_s = max(sampling.sample_s, sampling.batches * length_s / 2)

    def is_enough(batches: list[BatchTime]) -> bool:
        taken = batches[1:]
        if len(taken) < sampling.batches or sum(batch.seconds for batch in taken) < least_s:
            return False
        return sampling.settle_s == 0 or has_settled(taken)

    patience_s = max(sampling.settle_s, 4 * sampling.batches * length_s)
    most = (
        sampling.batches + 1 if sampling.settle_s == 0 else round(1.5 * max(sampling.batches, SAMPLE_S / length_s)) + 2
    )
    taken = bench.run(Helping(rows, most, partitions), is_enough, patience_s)[1:]
    return taken, sampling.settle_s == 0 or has_settled(taken)


def _rough(batches: list[BatchTime], guess: Split) -> Split:
    """Capacity from one size of batches, if the guess at the fixed time is right."""
    seconds = _median_s(batches)
    return Split(min(guess.fixed_s, seconds / 2), batches[-1].rows / max(seconds - guess.fixed_s, seconds / 2))


def _median_s(batches: list[BatchTime]) -> float:
    return sorted(batch.seconds for batch in batches)[len(batches) // 2]


def _news(query: StreamingQuery, seen: dict[int, BatchTime]) -> dict[int, BatchTime]:
    """Batches not seen yet. All of them are asked for only when there are new ones: that takes a while."""
    last = query.lastProgress
    if last is None or not last["numInputRows"] or last["batchId"] in seen:
        return {}
    reports = [last] if last["batchId"] == len(seen) else query.recentProgress
    return {report["batchId"]: BatchTime.of(report) for report in reports if report["numInputRows"]}


def called(app: App, stream: DataFrame) -> DataFrame:
    """A user's own function may raise anything."""
    try:
        return app.transform(stream)
    except Exception as error:
        raise BadInput(f"app {app.name} failed: {type(error).__name__}: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def _cause(text: str) -> str:
    """The line of a stack trace that tells most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Caused by" in line or "Error" in line]
    return (telling[-1] if telling else lines[0])[:300]
