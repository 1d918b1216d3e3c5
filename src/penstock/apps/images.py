"""The image job of paper 5 (§3.2) as one streaming query: cells are counted, and the last 1,000 images answer queries.

    rows ─paint, blur, split, find edges, count─► messages ─by region─► the last images' colours ─► counts, answers

A row holds what an image is painted from, not its pixels: painting stands for decoding, and rows stay small. What the
paper's network carried (1.3 MB an image) is therefore not measured. In a batch, images and queries take the order of
their numbers, however Spark cut it up, so that a batch that is run again answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock.apps.cell_images import Pixels, analysed, cells
from penstock.apps.inputs import SIDES
from penstock.apps.recent import GRID, POSITIONS, REGIONS, Ints, Recent, by_region, owner, position, sampled
from penstock.core.errors import BadInput
from penstock.pipeline.python import use_this_python

if TYPE_CHECKING:
    import pandas as pd

CELLS_MAX = 100_000

MESSAGE = "region long, numbers binary, values binary, counts binary, asked binary, skipped long"
STATE = "values binary"
RESULT = (
    "kind string, number long, objects array<int>, x int, y int, images int, mean array<double>,"
    " deviation array<double>, red array<int>, green array<int>, blue array<int>, skipped long"
)


def find_cells(rows: DataFrame) -> DataFrame:
    """Each image's cells by marker, and for each query the colours at its position in the last 1,000 images."""
    return _found(rows, _messages)


def find_cells_coarsely(rows: DataFrame) -> DataFrame:
    """The same on every other pixel of every other row: fewer cells are told apart. What is remembered is the same."""
    return _found(rows, _coarse_messages)


def _found(rows: DataFrame, messages_in: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> DataFrame:
    if not rows.isStreaming:
        raise BadInput("images remembers what a stream brought: give it rows of readStream")
    use_this_python(rows.sparkSession)
    messages = rows.select("value").mapInArrow(messages_in, MESSAGE)
    return messages.groupBy("region").applyInPandasWithState(
        _remembered, RESULT, STATE, "append", GroupStateTimeout.NoTimeout
    )


@dataclass(slots=True)
class Lines:
    """What some lines ask for: images to paint, queries, and how many lines are neither.

    >>> Lines.of(["image 7 128 12 99", "query 8 0 15", "image 9 128"])
    Lines(images=[(7, 128, 12, 99)], queries=[(8, 0, 15)], skipped=1)
    """

    images: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Number, side, cells, seed."""
    queries: list[tuple[int, int, int]] = field(default_factory=list)
    """Number, x, y."""
    skipped: int = 0

    @classmethod
    def of(cls, lines: Iterable[str | None]) -> Lines:
        found = cls()
        for line in lines:
            found._add(*(line or "").split(" "))
        return found

    def _add(self, kind: str, *rest: str) -> None:
        # No sign, no underscore, no digit of another script; what has 19 digits may not fit 64 bits.
        good = all(part.isascii() and part.isdigit() and len(part) < 19 for part in rest)
        numbers = tuple(map(int, rest)) if good else ()
        match kind, numbers:
            case "image", (number, side, count, seed) if side in SIDES and count <= CELLS_MAX:
                self.images.append((number, side, count, seed))
            case "query", (number, x, y) if x < GRID and y < GRID:
                self.queries.append((number, x, y))
            case _:
                self.skipped += 1


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Do the work on each image, and tell every region what it has to remember, to report and to answer."""
    for batch in batches:
        yield pa.RecordBatch.from_pylist(messages_of(Lines.of(batch.column(0).to_pylist())))


def _coarse_messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pylist(messages_of(Lines.of(batch.column(0).to_pylist()), every=2))


def messages_of(lines: Lines, every: int = 1) -> list[dict[str, Any]]:
    """One message a region; `every` second, third, … pixel is looked at."""
    samples, counts = np.zeros((len(lines.images), GRID, GRID, 3), np.uint8), []
    for at, (number, side, count, seed) in enumerate(lines.images):
        found, smooth = analysed(cells(side, count, seed)[::every, ::every])
        samples[at] = sampled(smooth)
        counts.append((number, *found))
    table = np.array(counts, np.int64).reshape(-1, 4)
    asked = np.array([(number, *owner(x, y)) for number, x, y in lines.queries], np.int64).reshape(-1, 3)
    return [
        {
            "region": region,
            "numbers": table[:, 0].tobytes(),
            "values": values.tobytes(),
            "counts": table[table[:, 0] % REGIONS == region].tobytes(),  # each image is reported by one region
            "asked": asked[asked[:, 1] == region].tobytes(),
            "skipped": 0 if region else lines.skipped,
        }
        for region, values in enumerate(by_region(samples))
    ]


def _remembered(key: tuple[int], messages: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Report a batch's images, answer its queries, and keep the last images for the next."""
    import pandas as pd

    came = pd.concat(messages)
    recent = Recent.restored(state.get[0]) if state.exists else Recent.none()
    images = in_order(_joined(came["numbers"]), came["values"])
    rows = [{"kind": "image", "number": row[0], "objects": row[1:]} for row in _table(came["counts"], 4)]
    rows += answers(recent, images, key[0], _table(came["asked"], 3))
    if skipped := int(came["skipped"].sum()):
        rows.append({"kind": "skipped", "skipped": skipped})
    state.update((recent.after(images[1]).values.tobytes(),))
    columns = [part.split()[0] for part in RESULT.split(", ")]
    # With objects pandas keeps what is absent as None; numbers would become NaN.
    yield pd.DataFrame([[row.get(name) for name in columns] for row in rows], columns=columns, dtype=object)


def in_order(numbers: Ints, parts: Iterable[bytes]) -> tuple[Ints, Pixels]:
    """Images by their numbers."""
    values = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, POSITIONS, 3)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], values[order]


def answers(recent: Recent, came: tuple[Ints, Pixels], region: int, asked: list[list[int]]) -> list[dict[str, Any]]:
    """For each query (number, region, place) the colours of the last images before it, and what they come to."""
    asked = sorted(asked)
    found = recent.answers(came, [(number, place) for number, _, place in asked])
    rows = []
    for (number, _, place), colours in zip(asked, found, strict=True):
        x, y = position(region, place)
        row = {"kind": "answer", "number": number, "x": x, "y": y, "images": len(colours)}
        if len(colours):
            row |= {"mean": colours.mean(axis=0).tolist(), "deviation": colours.std(axis=0).tolist()}
        row |= dict(zip(("red", "green", "blue"), colours.T.tolist(), strict=True))
        rows.append(row)
    return rows


def _joined(parts: Iterable[bytes]) -> Ints:
    return np.frombuffer(b"".join(parts), np.int64)


def _table(parts: Iterable[bytes], columns: int) -> list[list[int]]:
    rows: list[list[int]] = _joined(parts).reshape(-1, columns).tolist()
    return rows
