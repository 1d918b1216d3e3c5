"""Good inputs of every command, and how they are spoilt."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from penstock.models.samples import SCHEMA
from tests.cli.worlds import World
from tests.fuzz import mutate

SCENARIO: dict[str, Any] = {
    "name": "fuzz",
    "duration_s": 1800.0,
    "tick_s": 60.0,
    "seed": 3,
    "objective": "latency<=120s",
    "workers_at_start": 2,
    "price": {"per_hour": 0.2, "billing": "minute"},
    "limits": {"workers_min": 1, "workers_max": 6},
    "worker": {"cores": 2.0, "start_s": [60.0, 90.0], "warm_s": 30.0, "speed_spread": 0.1, "fails_every_s": 9000.0},
    "noise": {"cpu": 0.05, "correlation_s": 120.0},
    "pause": {"reconfigure_s": 2.0, "move_mb_s": 50.0},
    "batch": {"trigger_s": 10.0, "rows_max": 5000.0, "tasks": 8, "first_s": 3.0, "spread": 0.1},
    "operators": [{"name": "parse", "cost_s": 0.01}, {"name": "count", "cost_s": 0.005, "after": ["parse"]}],
    "capacity": {"per_worker": 90.0, "fixed_s": 1.0},
    "workload": [{"shape": "sine", "low": 20.0, "high": 200.0, "period_s": 1200.0}, {"shape": "noise", "size": 0.1}],
}
MODEL: dict[str, Any] = {
    "penstock_model": 1,
    "units": {"rate": "rows/s", "time": "s"},
    "curve": {"kind": "quadratic", "base": 10.0, "gain": 50.0, "loss": 0.1},
    "fixed": {"base_s": 1.0, "per_worker_s": 0.01, "shared_s": 0.0},
    "about": {"app": None, "source": "files", "bytes_per_row": 100.0, "cores": 1.0, "workers": [1, 2, 3]},
    "others": [{"kind": "linear", "per_worker": 48.0}, {"kind": "table", "workers": [1, 2], "rates": [50.0, 90.0]}],
}
BARE = {key: value for key, value in SCENARIO.items() if key not in ("workload", "duration_s", "tick_s")}
CLAIMS: list[dict[str, Any]] = [
    {"id": name, "text": name, "paper": paper, "ours": 12, "holds": holds, "why": "one load"}
    for name, paper, holds in (("kept-map", 15, False), ("SYNT-safety-0.5", None, None), ("rank-a", "0.5", True))
]
FLEET: dict[str, Any] = {
    "name": "fleet",
    "state": "fleet-state",
    "hosts": {"least": 1, "most": 3, "cores": 0.5, "memory_mb": 768, "threads": 2},
    "query": [
        {"name": name, "app": "candlesticks", "files": "in", "to": f"results/{name}", "trigger": "2s", "files_max": 10,
         "partitions": 2, "checkpoint": "", "parameters": {"sector": "tech", "window_s": 30}} for name in ("a", "b")
    ],
    "workload": [{"name": "energy", "files": "in", "count": 4}],
}  # fmt: skip
SAMPLE = dict.fromkeys(SCHEMA.names) | {
    "app": "wordcount", "source": "files", "repeat": 0, "fixed_s": 1.0, "bytes_per_row": 100.0, "cores": 0.25,
    "partitions_per_worker": 2.0, "flags": "", "speed": 0.9, "setup": '{"machine": {"cpus": 2}}',
}  # fmt: skip
SERIES = "timestamp,arrivals,bytes\n" + "".join(
    f"2024-05-01 {n // 60:02}:{n % 60:02}:00,{100 + 7 * (n % 13)},{1000 + n}\n" for n in range(90)
)


@dataclass(frozen=True)
class Good:
    """What is right, made once."""

    journal: list[str]

    @classmethod
    def made(cls, folder: Path) -> Good:
        lines = World().journal(folder / "good.jsonl", seed=1).read_text().splitlines()
        return cls(lines[:60])


def journal(good: Good, rng: random.Random, path: Path) -> None:
    lines = list(good.journal)
    if rng.random() < 0.2:
        path.write_bytes(mutate.text("\n".join(lines) + "\n", rng))
        return
    for _ in range(rng.randint(1, 3)):
        at = rng.choice((0, 1, rng.randrange(len(lines))))
        lines[at] = mutate.line(mutate.tree(json.loads(good.journal[at]), rng), rng)
    path.write_text("\n".join(lines) + "\n", errors="replace")


def model(_: Good, rng: random.Random, path: Path) -> None:
    path.write_text(mutate.line(mutate.tree(MODEL, rng), rng), errors="replace")


def scenario(_: Good, rng: random.Random, path: Path) -> None:
    content = SCENARIO if rng.random() < 0.5 else {k: v for k, v in SCENARIO.items() if rng.random() < 0.7}
    text = toml(mutate.tree(content, rng))
    path.write_bytes(text.encode(errors="replace") if rng.random() < 0.8 else mutate.text(text, rng))


def bare(_: Good, rng: random.Random, path: Path) -> None:
    """A scenario without a load."""
    path.write_text(toml(mutate.tree(BARE, rng)), errors="replace")


def claims(_: Good, rng: random.Random, path: Path) -> None:
    path.write_text(mutate.line(mutate.tree(CLAIMS, rng), rng), errors="replace")


def fleet(_: Good, rng: random.Random, path: Path) -> None:
    text = toml(mutate.tree(FLEET, rng))
    path.write_bytes(text.encode(errors="replace") if rng.random() < 0.8 else mutate.text(text, rng))


def samples(_: Good, rng: random.Random, path: Path) -> None:
    rows = [SAMPLE | {"workers": n, "rows_per_s": 90.0 * n} for n in (1, 1, 2, 3)]
    if rng.random() < 0.2:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
        path.write_bytes(mutate.text(path.read_bytes().decode("latin1"), rng))
        return
    write_table(mutate.tree(rows, rng), path)


def series(_: Good, rng: random.Random, path: Path) -> None:
    roll = rng.random()
    if path.suffix == ".parquet":
        write_table(mutate.tree([{"t_s": 60.0 * n, "arrivals": 100.0 + n} for n in range(20)], rng), path)
    elif roll < 0.25:
        rows = [row.split(",") for row in SERIES.splitlines()]
        for row in rng.sample(rows[1:], 3):
            row[1] = str(mutate.near(float(row[1]), rng))
        path.write_text("\n".join(",".join(row[:2]) for row in rows) + "\n")
    elif roll < 0.5:
        path.write_bytes(mutate.text(SERIES, rng))
    elif roll < 0.6:
        path.write_bytes(gzip.compress(SERIES.encode())[: rng.randrange(20, 300)])
    elif roll < 0.8:
        rows = mutate.tree([row.split(",")[:2] for row in SERIES.splitlines()[1:20]], rng)
        cells = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
        header = rng.choice(
            (["timestamp", "n"], ["t_s", "x"], ["a", "a"], ["time", "rate"], ["x"], ["t_ms", "n_per_s"])
        )
        path.write_text("\n".join(",".join(map(str, row)) for row in (header, *cells)), errors="replace")
    else:
        write_table([{"time": mutate.value(rng), "arrivals": mutate.value(rng)} for _ in range(3)], path)


def gaps(_: Good, rng: random.Random, path: Path) -> None:
    """Times between arrivals, one a line."""
    values = [rng.expovariate(1.0) * rng.choice((0.2, 3.0)) for _ in range(rng.choice((120, 700)))]
    for at in rng.sample(range(len(values)), rng.randint(1, 4)):
        values[at] = mutate.near(values[at], rng)
    written = "\n".join(map(repr, values))
    path.write_bytes(mutate.text(written, rng) if rng.random() < 0.3 else written.encode())


Spoil = Callable[[Good, random.Random, Path], None]


def write_table(rows: Any, path: Path) -> None:
    """As Parquet where Arrow can, in whatever types come of it; else as text."""
    try:
        table = pa.Table.from_pylist([row for row in rows if isinstance(row, dict)])
        pyarrow.parquet.write_table(table, path)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        path.write_text(str(rows), errors="replace")


def toml(content: Any) -> str:
    """Top-level keys as inline values: TOML of anything that JSON can hold, or nearly."""
    if not isinstance(content, dict):
        return str(content)
    return "\n".join(f"{json.dumps(str(key))} = {_inline(value)}" for key, value in content.items())


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value) if value is not None else "nothing"
