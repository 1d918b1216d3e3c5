"""Paper 1 on our own measurements: how well a few worker counts predict others, and which to train on.

`measured.parquet` is what `scripts/bench mst` measured: six apps with 1 to 5 workers of a quarter of a core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.models.capacity import Capacity
from penstock.models.curve_fitting import fit_model
from penstock.models.samples import corrected, read_rows, samples_of, sustained
from penstock.models.subset_search import Search, best_subset, subset_error
from penstock.models.throughput_curves import Floats
from penstock.models.training import Samples
from penstock.reproduce.claims import Claim

MEASURED = Path(__file__).with_name("measured.parquet")
TRAINED = (1, 2, 3)
TRIGGER_S = 10.0
WORST = 15.8  # percent, the paper's largest (§5.2)
_WHY = "our own measurements on a local cluster, rows from files, up to 5 workers of 0.25 core (docs/measured.md)"
_ONCE = "one sample a count: nothing was measured anew; scripts/bench mst takes two"

Row = dict[str, Any]
Apps = Mapping[str, list[Row]]


def claims(path: Path = MEASURED) -> Iterator[Claim]:
    if not path.exists():
        return
    apps = by_app(path)
    undisturbed = {name: [corrected(row) for row in rows] for name, rows in apps.items()}
    speeds = [row["speed"] for rows in apps.values() for row in rows]
    unequal = (
        f"{_WHY}; between samples the machine's speed went from {min(speeds):.0%} to {max(speeds):.0%} of its best"
    )
    yield _extrapolated("delivered", apps, unequal)
    yield _extrapolated("corrected", undisturbed, _WHY)
    yield _anew(apps)
    yield _chosen_elsewhere(apps)


def _extrapolated(label: str, apps: Apps, why: str) -> Claim:
    worst = 100 * max(map(beyond, apps.values()))
    text = f"largest error of an app on 4 and 5 workers, trained on 1, 2, 3, percent ({label} throughput)"
    return Claim(f"error-extrapolated-{label}", text, WORST, worst, worst <= WORST, why)


def _anew(apps: Apps) -> Claim:
    """Trained on the first sample of each count, judged on those that were measured after it."""
    text = "largest error of an app on all counts, measured anew, percent (§5.2)"
    later = {name: [row for row in rows if row["repeat"] > 0] for name, rows in apps.items()}
    if not all(later.values()):
        return Claim("error-paper-way", text, WORST, None, None, _ONCE)
    first = {name: [row for row in rows if row["repeat"] == 0] for name, rows in apps.items()}
    worst = 100 * max(float(_off(model_of(first[name]), later[name]).mean()) for name in apps)
    return Claim("error-paper-way", text, WORST, worst, worst <= WORST, _WHY)


def model_of(rows: list[Row]) -> Capacity:
    """What 1 to 3 workers teach."""
    return fit_model(samples_of(rows, MEASURED), TRAINED).model


def beyond(rows: list[Row]) -> float:
    """How far the model of 1 to 3 workers is off on other counts, in the mean, as a share of what was measured."""
    return float(_off(model_of(rows), [row for row in rows if row["workers"] not in TRAINED]).mean())


def _off(model: Capacity, rows: list[Row]) -> Floats:
    return np.array([abs(model.sustainable(row["workers"], TRIGGER_S) / truth(row) - 1) for row in rows])


def truth(row: Row) -> float:
    """What a trigger of ten seconds sustains."""
    return sustained(row, TRIGGER_S) or 0.0


def _chosen_elsewhere(apps: Apps) -> Claim:
    """Phase 1 chooses counts on some apps and trusts them for others (§4.4): each app by the five others."""
    samples = {name: Samples.of({row["workers"]: [truth(row)] for row in rows}) for name, rows in apps.items()}
    better = 0
    for name, each in samples.items():
        others = [other for known, other in samples.items() if known != name]
        chosen = best_subset(others, Search((3,), 4)).counts
        better += subset_error([each], chosen) < subset_error([each], TRAINED)
    text = "apps of 6 that counts up to 4, chosen on the 5 others, predict better than 1, 2, 3 (§4.4; half by chance)"
    return Claim("table1-measured", text, None, better, better > len(apps) / 2, _WHY)


def by_app(path: Path) -> dict[str, list[Row]]:
    apps: dict[str, list[Row]] = {}
    for row in read_rows(path):
        if row["source"] == "files":
            apps.setdefault(row["app"], []).append(row)
    return apps
