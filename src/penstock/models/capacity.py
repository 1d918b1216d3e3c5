"""How much some workers can do (paper 1)."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from penstock.core.errors import BadInput, unknown
from penstock.core.job import CapacityModel


@dataclass(frozen=True, slots=True)
class Linear:
    """Every worker adds the same: what ElasticStream assumes.

    >>> Linear(50.0).capacity(4), Linear(50.0, batch_fixed_s=2.0).sustainable(4, trigger_s=10.0)
    (200.0, 160.0)
    """

    name: ClassVar[str] = "linear"
    per_worker: float
    batch_fixed_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.per_worker < math.inf or not 0 <= self.batch_fixed_s < math.inf:
            raise BadInput(
                f"a worker that does {self.per_worker} events/s, {self.batch_fixed_s} s a batch, is impossible"
            )

    def capacity(self, workers: float) -> float:
        return self.per_worker * workers

    def fixed_s(self, workers: float) -> float:  # noqa: ARG002  the contract's signature
        return self.batch_fixed_s

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        return in_batches(self, workers, trigger_s)


@dataclass(frozen=True, slots=True)
class Table:
    """Measured capacities, joined by straight lines and flat after the peak: the ground truth.

    >>> Table((1, 2, 4), (100.0, 180.0, 240.0)).capacity(3)
    210.0
    """

    name: ClassVar[str] = "table"
    workers: tuple[int, ...]
    capacities: tuple[float, ...]
    batch_fixed_s: float = 0.0

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in itertools.pairwise(self.workers))
        if not self.workers or len(self.workers) != len(self.capacities) or self.workers[0] < 1 or not rising:
            raise BadInput("a table of capacities needs rising worker counts from 1 on, and one capacity for each")
        if not all(0 < value < math.inf for value in self.capacities) or not 0 <= self.batch_fixed_s < math.inf:
            raise BadInput("a table of capacities needs positive events per second, and a fixed time of at least 0")

    def capacity(self, workers: float) -> float:
        """Flat after the peak: a user who has more workers than help simply leaves them idle."""
        known = [(0, 0.0), *zip(self.workers, self.capacities, strict=True)]
        best = 0.0
        for (left, below), (right, above) in itertools.pairwise(known):
            if workers <= right:
                return max(best, below + (above - below) * (workers - left) / (right - left))
            best = max(best, above)
        return best

    def fixed_s(self, workers: float) -> float:  # noqa: ARG002  the contract's signature
        return self.batch_fixed_s

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        return in_batches(self, workers, trigger_s)


def in_batches(model: CapacityModel, workers: float, trigger_s: float | None) -> float:
    """Events per second when every batch pays its fixed time: capacity · (1 − fixed / trigger)."""
    if trigger_s is None:
        return model.capacity(workers)
    return model.capacity(workers) * max(0.0, 1.0 - model.fixed_s(workers) / trigger_s)


def read_model(path: Path) -> Linear | Table:
    """A capacity model from its JSON file, in events per second.

    `{"model": "linear", "per_worker": 50}` or `{"model": "table", "workers": [1, 2], "capacities": [50, 95]}`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"no such model file: {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} is not a model file: {error}") from None
    return _model(content, path)


def _model(content: object, path: Path) -> Linear | Table:
    if not isinstance(content, dict) or "model" not in content:
        raise BadInput(f'{path} is not a model file: it needs a key "model"')
    kinds: dict[str, Callable[..., Linear | Table]] = {"linear": Linear, "table": Table}
    name = str(content["model"])
    if name not in kinds:
        raise unknown(f"model in {path}", name, kinds)
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in content.items() if key != "model"}
    allowed = (Linear if name == "linear" else Table).__slots__
    for key in fields:
        if key not in allowed:
            raise unknown(f"key in {path}", key, allowed)
    try:
        return kinds[name](**fields)
    except TypeError as error:
        raise BadInput(f"{path}: {error}") from None
