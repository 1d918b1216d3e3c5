"""A tree that goes round between the batches of a streaming query, as files in a folder that all workers see."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
from pyspark import TaskContext
from pyspark.sql import SparkSession

from penstock.apps.hoeffding import Rules, Tree
from penstock.core.errors import BadInput
from penstock.core.files import whole

SETTING = "spark.penstock.vht.folder"
KEPT = 10  # a restart needs the last tree alone; the others are for going back by hand


@dataclass(frozen=True, slots=True)
class SharedTree:
    """Where the trees of a query's batches are; the query and the batch are those of the Spark task that asks.

    >>> SharedTree("/shared/trees", Rules()).folder
    '/shared/trees'
    """

    folder: str
    rules: Rules

    @classmethod
    def of(cls, spark: SparkSession, rules: Rules) -> SharedTree:
        """In the folder that is set, or in the warehouse: workers share it, and our sessions clear theirs."""
        given = spark.conf.get(SETTING, "") or f"{spark.conf.get('spark.sql.warehouse.dir')}/vht"
        address = urlparse(given)
        if address.scheme not in ("", "file"):
            raise BadInput(f"vht cannot keep its tree in {given}: set {SETTING} to a folder that every worker sees")
        return cls(address.path, rules)

    def before(self) -> Tree:
        """The tree as the batch before left it: all tasks of a batch see the same, however often they run."""
        if batch() == 0:
            return Tree.of_one_leaf(self.rules)
        path = self._path(batch() - 1)
        try:
            return _read(path)
        except FileNotFoundError:
            why = f"set {SETTING} to a folder that every worker sees and that outlives a restart"
            raise FileNotFoundError(f"the tree of batch {batch() - 1} is not at {path}: {why}") from None

    def publish(self, tree: Tree) -> None:
        """Leave the tree to the next batch."""
        path = self._path(batch())
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as scratch, scratch.open("wb") as file:
            np.savez(file, **asdict(tree))
        self._path(batch() - KEPT).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return Path(self.folder) / _said("sql.streaming.queryId") / f"{number}.npz"


def batch() -> int:
    """The number of the batch that this task belongs to."""
    return int(_said("streaming.sql.batchId"))


def _said(key: str) -> str:
    """What Spark tells each task of a streaming query."""
    task = TaskContext.get()
    value = task.getLocalProperty(key) if task else None
    if value is None:
        raise RuntimeError(f"Spark does not say {key}: this is no task of a streaming query")
    return value


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Tree:
    """Kept for the groups that one worker counts after another."""
    with np.load(path, allow_pickle=False) as parts:
        return Tree(**parts)
