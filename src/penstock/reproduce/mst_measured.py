"""Paper 1 on our own measurements: how well a few worker counts predict others, and which to train on.

`measured.parquet` is what `scripts/bench mst` measured: six apps with 1 to 5 workers of a quarter of a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from penstock.models.curve_fitting import fit_model
from penstock.models.samples import read_rows, samples_of
from penstock.models.training import Samples, best_subset
from penstock.reproduce.claims import Claim

MEASURED = Path(__file__).with_name("measured.parquet")
TRAINED = (1, 2, 3)
TRIGGER_S = 10.0
_WHY = "our own measurements on a local cluster, rows from files, up to 5 workers of 0.25 core (docs/measured.md)"

Errors = Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]


def claims(path: Path = MEASURED) -> Iterator[Claim]:
    if not path.exists():
        return
    errors = errors_of(path)
    everywhere = 100 * max(float(each.mean()) for each in errors.values())
    text = "largest error over all counts, those trained on among them, percent (§6.3)"
    yield Claim("error-paper-way", text, 15.8, everywhere, everywhere <= 15.8, _WHY)
    beyond = 100 * max(float(each[len(TRAINED) :].mean()) for each in errors.values())
    text = "largest error on 4 and 5 workers, trained on 1, 2, 3, percent (not in the paper)"
    yield Claim("error-extrapolated", text, None, beyond, None, _WHY)
    yield _table1(path)


def errors_of(path: Path) -> Errors:
    """For each app, how far the model of 1 to 3 workers is off at each count, as a share of what was measured."""
    errors = {}
    for app, rows in _by_app(path).items():
        model = fit_model(samples_of(rows, path), TRAINED).model
        truth = {row["workers"]: sustained(row) for row in rows}
        errors[app] = np.array([abs(model.sustainable(m, TRIGGER_S) / truth[m] - 1) for m in sorted(truth)])
    return errors


def sustained(row: Mapping[str, Any]) -> float:
    """Rows per second that a trigger of ten seconds sustains."""
    return float(row["rows_per_s"] * (1 - row["fixed_s"] / TRIGGER_S))


def _table1(path: Path) -> Claim:
    apps = [Samples.of({row["workers"]: [sustained(row)] for row in rows}) for rows in _by_app(path).values()]
    found = [best_subset(apps, sizes=(2, 3), train_max=most) for most in (3, 4, 5)]
    falls = all(later.rmse <= earlier.rmse + 1e-12 for earlier, later in pairwise(found))
    shown = " ".join(f"{subset.rmse:.3f}" for subset in found)
    counts = ", ".join(map(str, found[-1].counts))
    text = f"the same on our own measurements, up to 3, 4, 5 workers (best of 5: {{{counts}}})"
    return Claim("table1-measured", text, ".2864 .1394 .1394 .1263 .0813 .0813", shown, falls, _WHY)


def _by_app(path: Path) -> dict[str, list[dict[str, Any]]]:
    apps: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(path):
        if row["source"] == "files":
            apps.setdefault(row["app"], []).append(row)
    return apps
