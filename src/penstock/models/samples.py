"""Measured capacities on disk: one row for each worker count and repetition, as `penstock measure` writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from penstock.core.bounds import EVENTS_LEAST, EVENTS_MOST, WORKERS_MOST, between
from penstock.core.errors import BadInput
from penstock.core.files import whole
from penstock.core.typed import typed
from penstock.models.capacity import About
from penstock.models.throughput_curves import Floats
from penstock.models.training import Samples

SCHEMA = pa.schema(
    [
        ("app", pa.string()),
        ("source", pa.string()),
        ("workers", pa.int64()),
        ("repeat", pa.int64()),
        ("rows_per_s", pa.float64()),  # capacity as delivered: rows per second of one endless batch
        ("fixed_s", pa.float64()),  # what a batch took before its first row
        ("bytes_per_row", pa.float64()),
        ("cores", pa.float64()),
        ("partitions", pa.int64()),
        ("partitions_per_worker", pa.float64()),
        ("flags", pa.string()),  # why a sample is not to be trusted; empty when it is
        ("speed", pa.float64()),  # of the machine, as a share of its best
        ("setup", pa.string()),  # the app, Spark and the machine, as JSON
        # What it would have been on the undisturbed machine, to compare samples of unequal moments.
        ("rows_per_s_corrected", pa.float64()),
        ("fixed_s_corrected", pa.float64()),
        ("limited", pa.bool_()),  # whether a CPU limit held each worker to its cores
    ]
)
CORRECTED = ("rows_per_s_corrected", "fixed_s_corrected")
NEWER = (*CORRECTED, "limited")  # files written before have no such columns
NOT_SETTLED, NOT_TESTED = "did not settle", "settling not tested"
TOO_SHORT = "batches too short to tell"
CAUTIONS = {NOT_SETTLED, NOT_TESTED, TOO_SHORT}  # a sample used where its count has no better one, and that is said

RANGES = {
    "rows_per_s": (EVENTS_LEAST, EVENTS_MOST),
    "fixed_s": (0.0, 1e6),
    "rows_per_s_corrected": (EVENTS_LEAST, EVENTS_MOST),
    "fixed_s_corrected": (0.0, 1e6),
    "bytes_per_row": (1e-3, 1e12),
    "cores": (1e-3, 1024.0),
    "partitions": (1.0, 1e6),
    "partitions_per_worker": (1e-3, 1e6),
    "speed": (1e-3, 1e3),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples of one application on one kind of worker."""

    samples: Samples
    fixed_s: Floats
    about: About
    flagged: int
    """Samples that were left out, because something went wrong while they were taken."""
    corrected: Samples | None = None
    """The same on the undisturbed machine; None where its speed is not known of all."""


def sustained(row: Mapping[str, Any], trigger_s: float) -> float | None:
    """Rows per second that a trigger of so many seconds sustains; None where nothing was measured."""
    if row["rows_per_s"] is None or row["fixed_s"] is None:
        return None
    return float(row["rows_per_s"] * max(0.0, 1 - row["fixed_s"] / trigger_s))


def corrected(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sample as it would have been on the undisturbed machine."""
    return {**row, "rows_per_s": row["rows_per_s_corrected"], "fixed_s": row["fixed_s_corrected"]}


def write_samples(rows: list[dict[str, Any]], path: Path) -> None:
    with whole(path) as scratch:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), scratch)


def read_samples(path: Path) -> Measured:
    """The samples of a file; different applications or workers in one file do not make one model."""
    return samples_of(read_rows(path), path)


def samples_of(rows: list[dict[str, Any]], path: Path) -> Measured:
    """The samples of some rows of a file."""
    good = _best_of_each_count(rows)
    if not good:
        raise BadInput(f"{path} has no sample that can be trusted: {len(rows)} are flagged ({rows[0]['flags']})")
    for key in ("app", "source", "cores", "partitions", "partitions_per_worker", "limited"):
        values = {row[key] for row in good}
        if len(values) > 1:
            shown = ", ".join(sorted(map(str, values)))
            raise BadInput(f"{path} mixes samples of different {key} ({shown}): they do not make one model")
    for row in good:
        if row["setup"] != good[0]["setup"]:
            where = "; ".join(differences(good[0]["setup"], row["setup"]))
            raise BadInput(f"{path} mixes samples of different set-ups ({where}): they do not make one model")
    first = good[0]
    workers = np.array([row["workers"] for row in good], dtype=np.float64)
    about = About(
        first["app"],
        first["source"],
        float(np.mean([row["bytes_per_row"] for row in good])),
        first["cores"],
        first["partitions"],
        first["partitions_per_worker"],
        tuple(int(count) for count in np.unique(workers)),
        first["limited"],
        _counts_flagged(good, NOT_SETTLED, NOT_TESTED),
        _counts_flagged(good, TOO_SHORT),
    )
    rates = np.array([row["rows_per_s"] for row in good])
    fixed_s = np.array([row["fixed_s"] for row in good])
    return Measured(Samples(workers, rates), fixed_s, about, len(rows) - len(good), _as_corrected(workers, good))


def _counts_flagged(rows: list[dict[str, Any]], *flags: str) -> tuple[int, ...]:
    return tuple(sorted({row["workers"] for row in rows if any(flag in row["flags"] for flag in flags)}))


def _as_corrected(workers: Floats, rows: list[dict[str, Any]]) -> Samples | None:
    rates = [row["rows_per_s_corrected"] for row in rows]
    return None if None in rates else Samples(workers, np.array(rates))


def _best_of_each_count(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Samples without a flag; where a count has none, those of which it is only not known that they had settled."""
    settled = {row["workers"] for row in rows if not row["flags"]}
    usable = [row for row in rows if set(filter(None, row["flags"].split(", "))) <= CAUTIONS]
    return [row for row in usable if not row["flags"] or row["workers"] not in settled]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file, flagged ones too."""
    if not path.exists():
        raise BadInput(f"no such file: {path}")
    if not path.is_file():
        raise BadInput(f"{path} is not a file of samples: `penstock measure` writes one file")
    try:
        table = pyarrow.parquet.read_table(path)
        missing = [name for name in SCHEMA.names if name not in table.column_names]
        if set(missing) - set(NEWER):
            raise BadInput(f"{path} is not a file of samples: it has no column {missing[0]}")
        for name in missing:
            table = table.append_column(name, pa.nulls(len(table), SCHEMA.field(name).type))
        rows: list[dict[str, Any]] = table.select(SCHEMA.names).cast(SCHEMA).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(f"{path} is not a file of samples: {str(error).splitlines()[0]}") from None
    if not rows:
        raise BadInput(f"{path} is empty: measure at least two worker counts")
    for number, row in enumerate(rows, 1):
        try:
            _check(row)
            if set(CORRECTED) <= set(missing):
                _deliver(row)
                _check(row)
        except BadInput as error:
            raise BadInput(f"{path}, row {number}: {error}") from None
    return rows


def is_reconstructed(path: Path) -> bool:
    """Whether a file has corrected figures alone, so that what was delivered follows from the mean speed."""
    return not set(CORRECTED) & set(pyarrow.parquet.read_schema(path).names)


def _deliver(row: dict[str, Any]) -> None:
    """An earlier file has what the undisturbed machine would have done; its workers did so much less."""
    if row["speed"] is None:
        return
    for key, factor in (("rows_per_s", row["speed"]), ("fixed_s", 1 / row["speed"])):
        row[f"{key}_corrected"] = row[key]
        row[key] = row[key] and row[key] * factor


def _check(row: Mapping[str, Any]) -> None:
    """Refuse a row that no measurement gives; what is flagged may lack its figures."""
    for key in ("app", "source", "flags", "setup", "workers", "repeat"):
        if row[key] is None:
            raise BadInput(f"{key} is missing")
    between("workers", row["workers"], 1, WORKERS_MOST)
    for key, (low, high) in RANGES.items():
        if row[key] is not None:
            between(key, row[key], low, high)
        elif not row["flags"] and key in ("rows_per_s", "fixed_s", "bytes_per_row"):
            raise BadInput(f"{key} is missing")
    _setup(row["setup"])


def differences(one: str, other: str) -> list[str]:
    """Where two set-ups part, as `machine.cpus: 2, 8`."""
    left, right = _flat(_setup(one)), _flat(_setup(other))
    keys = sorted(left.keys() | right.keys())
    return [f"{key}: {left.get(key)}, {right.get(key)}" for key in keys if left.get(key) != right.get(key)]


def _setup(text: str) -> dict[str, Any]:
    try:
        return typed(json.loads(text), dict[str, Any], "setup")
    except (ValueError, RecursionError):
        raise BadInput("setup is not JSON") from None


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, each in value.items():
        flat |= _flat(each, f"{prefix}{key}.") if isinstance(each, dict) else {prefix + key: each}
    return flat
