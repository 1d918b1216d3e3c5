"""A vertical Hoeffding tree (VHT; paper 1 §5.1; Kourtellis et al. 2016) as one streaming query: attributes are spread.

    rows ─sort into leaves─► messages ─by group of attributes─► counts n_ijk ─proposals─► one partition: split ─► tree

Streaming operators cannot feed back, so the tree goes round as a file: batch t writes tree t, and every task of batch
t + 1 reads it. A batch that is run again reads the same tree and writes the same one, so a failure changes nothing.
A leaf is tried once a batch, after all its rows; with batches of one row this is the plain Hoeffding tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock.apps.hoeffding import LEAF, Ints, Proposals, Rules, Split, Statistics, grown, merged
from penstock.apps.inputs import ATTRIBUTES, CLASSES, VALUES
from penstock.apps.shared_tree import SharedTree, batch
from penstock.core.errors import BadInput
from penstock.pipeline.python import use_this_python

if TYPE_CHECKING:
    import pandas as pd

RULES = Rules(ATTRIBUTES, VALUES, CLASSES)
GROUP_SIZE = 10
GROUPS = [range(first, first + GROUP_SIZE) for first in range(0, RULES.attributes, GROUP_SIZE)]
ROW_BYTES = RULES.attributes + 2

# A message holds the rows of an Arrow batch, 10,000 by default: one for each row and group would be 20 a row.
MESSAGE = "group long, x binary, leaf binary, class binary, right long, skipped long"
STATE = "leaf binary, n binary"
REPORT = (
    "group long, leaf binary, attribute binary, gain binary, second binary, branches binary, seen binary,"
    " rows long, right long, skipped long"
)
RESULT = (
    "batch long, rows long, right long, skipped long, leaves long,"
    " splits array<struct<leaf: long, attribute: long, gain: double, rows: long>>"
)
_SPLIT = [("leaf", pa.int64()), ("attribute", pa.int64()), ("gain", pa.float64()), ("rows", pa.int64())]
_TALLIES = [(name, pa.int64()) for name in ("batch", "rows", "right", "skipped", "leaves")]
_RESULT = pa.schema([*_TALLIES, ("splits", pa.list_(pa.struct(_SPLIT)))])  # RESULT, as Arrow has it


def vertical_hoeffding_tree(rows: DataFrame) -> DataFrame:
    """Each batch's rows, those whose class was foretold, lines skipped, the tree's leaves and the splits made."""
    if not rows.isStreaming:
        raise BadInput("vht learns from a stream: give it rows of readStream")
    use_this_python(rows.sparkSession)
    tree = SharedTree.of(rows.sparkSession, RULES)
    messages = rows.select("value").mapInArrow(partial(_messages, tree), MESSAGE)
    counted = messages.groupBy("group").applyInPandasWithState(
        partial(_counted, tree), REPORT, STATE, "append", GroupStateTimeout.NoTimeout
    )
    # Spark 4.2 hands Python's columns to the shuffle, which takes rows only; a projection makes rows of them.
    reports = counted.select(F.struct("*").alias("report"))
    return reports.repartition(1).mapInArrow(partial(_decided, tree), RESULT)


def parsed(lines: pa.Array) -> tuple[Ints, Ints]:
    """Attributes and classes of the lines that are rows: 200 digits from 0 to 4, a space, and the class's digit."""
    lines = lines.filter(pc.equal(pc.binary_length(lines), ROW_BYTES))
    text = np.frombuffer(b"".join(lines.cast(pa.binary()).to_pylist()), np.uint8).reshape(-1, ROW_BYTES)
    x, y = text[:, :-2] - ord("0"), text[:, -1] - ord("0")  # what is below "0" wraps to above 200
    good = (x < RULES.values).all(axis=1) & (y < RULES.classes) & (text[:, -2] == ord(" "))
    return x[good], y[good]


def _messages(shared: SharedTree, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sort rows into leaves, foretell their class, and cut them into a message for each group."""
    tree = shared.before()
    for lines in batches:
        x, y = parsed(lines.column(0))
        leaf = tree.leaf_of(x)
        right = np.count_nonzero(tree.class_at(leaf) == y)
        same = {"leaf": leaf.tobytes(), "class": y.tobytes(), "right": right, "skipped": lines.num_rows - len(x)}
        parts = [{"group": at, "x": x[:, group.start : group.stop].tobytes()} for at, group in enumerate(GROUPS)]
        yield pa.RecordBatch.from_pylist([part | same for part in parts])


def _counted(
    shared: SharedTree, key: tuple[int], messages: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Add a batch's rows to a group's counts, and propose the best splits of the leaves that are due."""
    import pandas as pd

    group, tree, came = GROUPS[key[0]], shared.before(), pd.concat(messages)
    leaf, y = _joined(came["leaf"], np.int32), _joined(came["class"], np.uint8)
    x = _joined(came["x"], np.uint8).reshape(-1, len(group))
    statistics = _restored(state, group).counted(tree, leaf, x, y)
    state.update((statistics.leaf.tobytes(), statistics.n.tobytes()))
    fed = tree.fed(leaf, y)
    best = statistics.proposals(fed, RULES.grace)
    proposed = {name: part.tobytes() for name, part in asdict(best).items()}
    tally = {"rows": len(y), "right": came["right"].sum(), "skipped": came["skipped"].sum()}
    yield pd.DataFrame([{"group": key[0], **proposed, "seen": fed.seen.tobytes(), **tally}])


def _decided(shared: SharedTree, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Merge what the groups propose, grow the tree, and leave it to the next batch."""
    reports = sorted((row for part in batches for row in part.column(0).to_pylist()), key=lambda row: row["group"])
    tree = shared.before()
    splits: list[Split] = []
    if reports:
        seen = np.frombuffer(reports[0]["seen"], np.int64).reshape(tree.seen.shape)
        tree, splits = grown(replace(tree, seen=seen), merged([_proposals(report) for report in reports]), RULES)
    shared.publish(tree)
    tally = {name: reports[0][name] if reports else 0 for name in ("rows", "right", "skipped")}
    leaves = np.count_nonzero(tree.attribute == LEAF)
    result = {"batch": batch(), **tally, "leaves": leaves, "splits": [asdict(split) for split in splits]}
    yield pa.RecordBatch.from_pylist([result], _RESULT)


def _proposals(report: dict[str, Any]) -> Proposals:
    leaf, attribute, branches = (np.frombuffer(report[name], np.int64) for name in ("leaf", "attribute", "branches"))
    gain, second = (np.frombuffer(report[name], np.float64) for name in ("gain", "second"))
    return Proposals(leaf, attribute, gain, second, branches.reshape(-1, RULES.values, RULES.classes))


def _joined(parts: Iterable[bytes], kind: type[np.integer[Any]]) -> Ints:
    return np.frombuffer(b"".join(parts), kind)


def _restored(state: GroupState, group: range) -> Statistics:
    """A group's counts as the batch before left them."""
    if not state.exists:
        return Statistics.none(group, RULES)
    leaf, n = (np.frombuffer(part, np.int64) for part in state.get)
    return Statistics(group.start, leaf, n.reshape(-1, len(group), RULES.values, RULES.classes))
