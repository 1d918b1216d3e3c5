"""Where an implementation begins: in the checkpoint of the one before, or in one of its own at the same offsets."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.errors import BadInput, PlantError
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
        """What ran last; nothing in particular at first, and where the checkpoint was removed to begin anew."""
        try:
            told = json.loads(_file(root).read_text(encoding="utf-8"))
            found = cls(root, str(told["alternate"]), int(told["number"]), told["offsets"])
        except (FileNotFoundError, NotADirectoryError):
            return cls(root)
        except (ValueError, KeyError, TypeError):
            raise PlantError(f"{_file(root)} cannot be read: remove it to begin with the first alternate") from None
        return found if root.exists() else cls(root)

    def need(self, offered: Collection[str]) -> None:
        """Refuse a state that nobody can go on with: another implementation would begin again, or be refused later."""
        if not self.number:
            return
        if self.alternate not in offered:
            raise BadInput(
                f"the job last ran as alternate '{self.alternate}' with a state of its own, and only "
                f"{', '.join(offered)} can run now: offer it again, or name another --checkpoint to begin anew"
            )
        if not self.checkpoint.exists():
            raise BadInput(
                f"{self.checkpoint}, in which the job last ran, is gone: bring it back, or name another --checkpoint"
            )

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
