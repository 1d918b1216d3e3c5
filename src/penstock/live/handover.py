"""Where an implementation begins: in the checkpoint of the one before, or in one of its own at the same offsets."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import PlantError
from penstock.core.files import whole
from penstock.live.query_plan import committed_offsets

FILE = "alternate.json"


@dataclass(frozen=True, slots=True)
class Handover:
    """A checkpoint, the implementation that runs in it, and for a new one, where its source begins.

    The first checkpoint is the job's; those of other states lie beside it, numbered. Which one is in force stands in a
    file beside them, so that a restarted job goes on with what ran last.
    """

    root: Path
    """The job's checkpoint, as it was named."""
    alternate: str = ""
    number: int = 0
    offsets: str | None = None
    """Of Kafka, as its source takes them."""

    @classmethod
    def found(cls, root: Path) -> Handover:
        """What ran last; at first, nothing in particular in the checkpoint itself."""
        try:
            told = json.loads(_file(root).read_text(encoding="utf-8"))
            return cls(root, str(told["alternate"]), int(told["number"]), told["offsets"])
        except (FileNotFoundError, NotADirectoryError):
            return cls(root)
        except (ValueError, KeyError, TypeError):
            raise PlantError(f"{_file(root)} cannot be read: remove it to begin with the first alternate") from None

    @property
    def checkpoint(self) -> Path:
        return self.root if not self.number else self.root.with_name(f"{self.root.name}.alternate-{self.number}")

    def same(self, alternate: str) -> Handover:
        """In the same checkpoint."""
        return replace(self, alternate=alternate)

    def apart(self, alternate: str, stopped: StreamingQuery) -> Handover:
        """In a new checkpoint, from where a stopped query has committed."""
        number = self.number + 1
        while (found := replace(self, alternate=alternate, number=number)).checkpoint.exists():
            number += 1
        return replace(found, offsets=committed_offsets(stopped))

    def keep(self) -> None:
        """It is in force: a restart begins here."""
        told = {"alternate": self.alternate, "number": self.number, "offsets": self.offsets}
        self.root.parent.mkdir(parents=True, exist_ok=True)
        with whole(_file(self.root)) as scratch:
            scratch.write_text(json.dumps(told), encoding="utf-8")


def _file(root: Path) -> Path:
    return root.with_name(f"{root.name}.{FILE}")
