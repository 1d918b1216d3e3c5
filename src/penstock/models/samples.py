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

from penstock.core.errors import BadInput
from penstock.core.files import whole
from penstock.models.capacity import About
from penstock.models.curves import Floats
from penstock.models.training import Samples

SCHEMA = pa.schema(
    [
        ("app", pa.string()),
        ("source", pa.string()),
        ("workers", pa.int64()),
        ("repeat", pa.int64()),
        ("rows_per_s", pa.float64()),  # capacity: rows per second of one endless batch
        ("fixed_s", pa.float64()),  # what a batch takes before its first row
        ("bytes_per_row", pa.float64()),
        ("cores", pa.float64()),
        ("partitions", pa.int64()),
        ("partitions_per_worker", pa.float64()),
        ("flags", pa.string()),  # why a sample is not to be trusted; empty when it is
        ("speed", pa.float64()),  # of the machine, as a share of its best; the two numbers are corrected for it
        ("setup", pa.string()),  # the app, Spark and the machine, as JSON
    ]
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples of one application on one kind of worker."""

    samples: Samples
    fixed_s: Floats
    about: About
    flagged: int
    """Samples that were left out, because something went wrong while they were taken."""


def write_samples(rows: list[dict[str, Any]], path: Path) -> None:
    with whole(path) as scratch:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows, SCHEMA), scratch)


def read_samples(path: Path) -> Measured:
    """The samples of a file; different applications or workers in one file do not make one model."""
    return samples_of(read_rows(path), path)


def samples_of(rows: list[dict[str, Any]], path: Path) -> Measured:
    """The samples of some rows of a file."""
    good = [row for row in rows if not row["flags"]]
    if not good:
        raise BadInput(f"{path} has no sample that can be trusted: {len(rows)} are flagged ({rows[0]['flags']})")
    for key in ("app", "source", "cores", "partitions", "partitions_per_worker"):
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
    )
    rates = np.array([row["rows_per_s"] for row in good])
    fixed_s = np.array([row["fixed_s"] for row in good])
    return Measured(Samples(workers, rates), fixed_s, about, len(rows) - len(good))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file, flagged ones too."""
    if not path.exists():
        raise BadInput(f"no such file: {path}")
    try:
        table = pyarrow.parquet.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path} is not a file of samples: {str(error).splitlines()[0]}") from None
    missing = [name for name in SCHEMA.names if name not in table.column_names]
    if missing:
        raise BadInput(f"{path} is not a file of samples: it has no column {missing[0]}")
    rows: list[dict[str, Any]] = table.to_pylist()
    if not rows:
        raise BadInput(f"{path} is empty: measure at least two worker counts")
    return rows


def differences(one: str, other: str) -> list[str]:
    """Where two set-ups part, as `machine.cpus: 2, 8`."""
    left, right = _flat(json.loads(one)), _flat(json.loads(other))
    keys = sorted(left.keys() | right.keys())
    return [f"{key}: {left.get(key)}, {right.get(key)}" for key in keys if left.get(key) != right.get(key)]


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, each in value.items():
        flat |= _flat(each, f"{prefix}{key}.") if isinstance(each, dict) else {prefix + key: each}
    return flat
