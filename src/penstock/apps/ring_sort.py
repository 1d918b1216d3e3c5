"""Rolling sort (paper 1 §4.4): ring buffers of the last rows, sorted every few seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock.core.errors import BadInput
from penstock.pipeline.python import use_this_python

if TYPE_CHECKING:
    import pandas as pd

RINGS, RING = 16, 1000
EVERY_S = 5.0
# The rows of a ring, a line each, oldest first, and when it was sorted last: as much after a day as after a minute.
STATE = "rows binary, sorted_s double"
RESULT = "ring long, rows long, first string, last string"


def rolling_sort(rows: DataFrame) -> DataFrame:
    """The first and the last row of each of 16 rings in order, at most every 5 s of the rows' time."""
    if not rows.isStreaming:
        raise BadInput("rolling-sort keeps rings of a stream: give it rows of readStream")
    use_this_python(rows.sparkSession)
    ring = F.pmod(F.xxhash64("value"), F.lit(RINGS)).alias("ring")
    timed = rows.select(ring, "value", F.col("timestamp").cast("double").alias("at_s"))
    return timed.groupBy("ring").applyInPandasWithState(
        _sorted_when_due, RESULT, STATE, "update", GroupStateTimeout.NoTimeout
    )


def _sorted_when_due(key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    import pandas as pd

    kept, sorted_s = _restored(state)
    now_s = sorted_s
    for frame in frames:
        now_s = max(now_s, float(frame["at_s"].max()))
        kept = (kept + frame["value"].tolist()[-RING:])[-RING:]
    if now_s >= sorted_s + EVERY_S:
        sorted_s, in_order = now_s, sorted(kept)
        found: dict[str, list[Any]] = {"ring": [key[0]], "rows": [len(kept)]}
        yield pd.DataFrame(found | {"first": [in_order[0]], "last": [in_order[-1]]})
    state.update(("\n".join(kept).encode(), sorted_s))


def _restored(state: GroupState) -> tuple[list[str], float]:
    if not state.exists:
        return [], -EVERY_S  # a first batch is sorted
    content, sorted_s = state.get
    return bytes(content).decode().split("\n"), float(sorted_s)
