"""Feeds the queries of a fleet, and compares what they counted with what was fed, key by key."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

Key = tuple[object, ...]
EVERY_S = 1.0


@dataclass(slots=True)
class FedQuery:
    """One query: the folder that it reads, what is put there, and what each line has to be counted as."""

    name: str
    app: str
    parameters: dict[str, str | int]
    folder: Path
    out: Path
    lines: Sequence[str]
    """Without their time, which is that of the feeding."""
    share: float = 1.0
    """Of the rate."""
    fed: int = 0
    expected: Counter[Key] = field(default_factory=Counter)
    keys: list[list[Key]] = field(default_factory=list)
    files: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keys = [self._keys(line) for line in self.lines]

    def _keys(self, line: str) -> list[Key]:
        parts = line.split("\t")
        if self.app == "candlesticks":
            return [(parts[0],)] if parts[1] == self.parameters["sector"] else []
        if self.app == "meter-loads":
            return [(parts[1],)] if parts[0] == self.parameters["house"] else []
        tags = [word[1:] for word in parts[0].split() if word.startswith("#")]
        return [(tag,) for tag in tags if tag.startswith(str(self.parameters["prefix"]))]

    def put(self, rows: int) -> None:
        """The next rows, in one file that comes whole."""
        if not rows:
            return
        now_s = time.time()
        window_s = int(self.parameters["window_s"])
        begin = int(now_s // window_s * window_s)
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s))
        picked = [(self.fed + number) % len(self.lines) for number in range(rows)]
        scratch = self.folder / f".{self.files:06}"
        scratch.write_text("".join(f"{at}\t{self.lines[place]}\n" for place in picked), encoding="utf-8")
        self.expected.update((begin, *key) for place in picked for key in self.keys[place])
        scratch.replace(self.folder / f"{self.files:06}.txt")
        self.files += 1
        self.fed += rows

    def counted(self) -> Counter[Key]:
        """What the query put out: of each key, the row of its last batch."""
        column = {"candlesticks": "symbol", "meter-loads": "meter", "hashtags": "hashtag"}[self.app]
        found: dict[Key, tuple[int, int]] = {}
        for part in self.out.glob("batch=*/*.parquet"):
            batch = int(part.parent.name.partition("=")[2])
            try:
                table = pq.read_table(part, columns=["begin", column, "events"])
            except FileNotFoundError:  # a batch that is run again replaces its files
                continue
            for row in table.to_pylist():
                key = (int(row["begin"].timestamp()), row[column])
                found[key] = max(found.get(key, (-1, 0)), (batch, row["events"]))
        return Counter({key: events for key, (_, events) in found.items()})

    def toml(self) -> str:
        given = ", ".join(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
                          for key, value in self.parameters.items())  # fmt: skip
        return (
            f'[[query]]\nname = "{self.name}"\napp = "{self.app}"\nfiles = "{self.folder}"\nto = "{self.out}"\n'
            f"parameters = {{ {given} }}\n"
        )


class FleetFeeder:
    """Puts rows into all queries' folders, once a second, from a thread."""

    def __init__(self, queries: Sequence[FedQuery], rate: Callable[[float], float]) -> None:
        self.queries, self._rate = queries, rate
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        begun = last_s = time.monotonic()
        owed: dict[str, float] = defaultdict(float)
        while not self._stopped.wait(EVERY_S):
            now_s = time.monotonic()
            for query in self.queries:
                owed[query.name] += self._rate(now_s - begun) * query.share * (now_s - last_s)
                rows = int(owed[query.name])
                owed[query.name] -= rows
                query.put(rows)
            last_s = now_s
