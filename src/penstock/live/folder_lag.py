"""What waits in a folder of files: by its bytes, and by Spark's own log of what was read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote

from penstock.live.query_progress import SourceReport

FORGETS = 0.9  # what a batch says of bytes a row counts less with each one after it
# More rows a byte than this, where an executor went meanwhile, and a stage has run again.
AGAIN = 1.1
_FOLDER = re.compile(r"FileStreamSource\[file:/*(/[^\]]*)\]")


def local_folder(source: str, options: Mapping[str, str]) -> Path | None:
    """The folder that a source reads, where it is one of this machine's."""
    told = _FOLDER.match(source)
    path = told[1] if told else options.get("path", "").removeprefix("file://") if not source else ""
    return Path(path) if path and Path(path).is_dir() else None


class FolderOfFiles:
    """Files that no batch has answered, with as many rows for their bytes as those before had.

    By files alone it would be wrong wherever their lengths change: when the rate fell to a twentieth, the waiting files
    of a job without any backlog looked like 100 s of it. Spark logs a batch's files when it begins; a report's offset
    is the number of its entry in that log.
    """

    def __init__(self, folder: Path, log: Path, options: Mapping[str, str] | None = None) -> None:
        self._folder, self._log = folder, log
        self._pattern = (options or {}).get("pathglobfilter", "*")
        self._is_deep = (options or {}).get("recursivefilelookup", "false") == "true"
        self._looked: set[str] = set()
        self._files: dict[int, set[str]] = {}
        self._answered: set[str] = set()
        self._sizes: dict[str, int] = {}
        self._counted = -1
        self._rows = self._bytes = 0.0

    def note(self, ended: SourceReport) -> None:
        if ended.entry is None:
            return
        if read := self._read(ended.entry):
            self._rows, self._bytes = FORGETS * self._rows + ended.rows, FORGETS * self._bytes + read
        for entry in [entry for entry in self._files if entry <= ended.entry]:
            self._answered |= self._files.pop(entry)
        self._counted = max(self._counted, ended.entry)

    def rows(self, ended: SourceReport) -> float:
        """Rows of a batch in which a stage may have run again and was counted twice: no more than its bytes hold."""
        if ended.entry is None or not self._bytes:
            return ended.rows
        expected = self._read(ended.entry) * self._rows / self._bytes
        return float(round(expected)) if 0 < expected < ended.rows / AGAIN else ended.rows

    def go_on(self, entry: int) -> None:
        """An earlier controller has counted up to this entry."""
        self._counted = max(self._counted, entry)

    def unseen(self, before: int) -> list[Path]:
        """Files in the log that were not counted, of batches before this entry: nobody saw their reports."""
        self._look()
        first = self._counted + 1 if self._counted >= 0 else before
        return [self._folder / name for entry in range(first, before) for name in self._files.get(entry, ())]

    def _read(self, until: int) -> int:
        """Bytes of the files in the log that were not counted yet."""
        self._look()
        first = self._counted + 1 if self._counted >= 0 else until
        names = [name for entry in range(first, until + 1) for name in self._files.get(entry, ())]
        return sum(map(self._size, names))

    def after(self, last: SourceReport) -> float | None:  # noqa: ARG002
        """Rows that wait; None where nobody knows: nothing was read yet, or the folder is gone."""
        try:
            there = set(self._there(self._folder))
        except OSError:
            return None
        self._answered &= there  # files may be archived once they were read
        waiting = there - self._answered
        self._sizes = {name: self._size(name) for name in waiting}
        if not waiting:
            return 0.0
        return sum(self._sizes.values()) * self._rows / self._bytes if self._bytes else None

    @property
    def rows_per_file(self) -> float | None:
        """Of those that wait; None before anything is known of them."""
        return (
            sum(self._sizes.values()) * self._rows / self._bytes / len(self._sizes)
            if self._bytes and self._sizes
            else None
        )

    def _there(self, folder: Path) -> Iterator[str]:
        """Names below the folder, as Spark takes them: folders only where they are partitions, or all are asked for."""
        for entry in os.scandir(folder):
            if entry.name[0] in "._":
                continue
            if entry.is_file():
                if fnmatchcase(entry.name, self._pattern):
                    yield os.path.relpath(entry.path, self._folder)
            elif self._is_deep or "=" in entry.name:
                yield from self._there(Path(entry.path))

    def _size(self, name: str) -> int:
        """As it was when it was seen first; 0 for a file that went before."""
        try:
            return self._sizes.get(name) or (self._folder / name).stat().st_size
        except OSError:
            return 0

    def _look(self) -> None:
        """What is new in the log; every tenth entry repeats all that were before it."""
        for path in self._log.glob("[0-9]*"):
            if path.name in self._looked:
                continue
            self._looked.add(path.name)
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line) if line.startswith("{") else None
                if entry is not None and entry["batchId"] > self._counted:
                    self._files.setdefault(entry["batchId"], set()).add(self._name(entry["path"]))

    def _name(self, address: str) -> str:
        """Below the folder; a log of another machine's folder keeps the file's own name."""
        path = unquote(address.removeprefix("file:")).replace("//", "/").replace("//", "/")
        below = f"{self._folder}/"
        return path.removeprefix(below) if path.startswith(below) else path.rpartition("/")[2]
