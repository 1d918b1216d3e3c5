"""How much some workers can do, and what a batch costs before its first row (paper 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.core.files import reads, whole
from penstock.core.typed import typed
from penstock.models.throughput_curves import CURVES, Curve, Linear

SCHEMA = 1
UNITS = {"rate": "rows/s", "time": "s"}


@dataclass(frozen=True, slots=True)
class Fixed:
    """Seconds of a batch before its first row: planning, commits, and a task for every worker."""

    base_s: float = 0.0
    per_worker_s: float = 0.0
    shared_s: float = 0.0
    """Where the number of tasks does not grow with the workers: all of them as such, on one worker."""

    def __post_init__(self) -> None:
        for key in ("base_s", "per_worker_s", "shared_s"):
            between(f"the fixed time of a batch, {key},", getattr(self, key), 0)

    def seconds(self, workers: float) -> float:
        shared_s = self.shared_s / workers if workers > 0 else 0.0
        return self.base_s + self.per_worker_s * workers + shared_s


@dataclass(frozen=True, slots=True)
class About:
    """What a model was measured on; what is not known is None."""

    app: str | None = None
    source: str | None = None
    bytes_per_row: float | None = None
    cores: float | None = None
    partitions: int | None = None
    partitions_per_worker: float | None = None
    workers: tuple[int, ...] = ()
    """The worker counts that were measured."""
    limited: bool | None = None
    """Whether a CPU limit held each worker to its cores."""
    unsettled: tuple[int, ...] = ()
    """Worker counts with no sample that is known to have settled."""
    short: tuple[int, ...] = ()
    """Worker counts whose batches were too short to tell rows from the fixed time."""

    def __post_init__(self) -> None:
        for key, most in (
            ("bytes_per_row", 1e12),
            ("cores", 1024),
            ("partitions", 1e6),
            ("partitions_per_worker", 1e6),
        ):
            value = getattr(self, key)
            if value is not None:
                between(f"about.{key}", value, 1e-3, most)


@dataclass(frozen=True, slots=True)
class Capacity:
    """A curve and the fixed time of a batch: events per second for workers and trigger.

    >>> model = linear(50.0, fixed_s=2.0)
    >>> model.capacity(4), model.sustainable(4, trigger_s=10.0), model.workers_for(150.0, trigger_s=10.0)
    (200.0, 160.0, 4)
    """

    curve: Curve
    fixed: Fixed = Fixed()
    about: About = About()
    others: tuple[Curve, ...] = field(default=(), repr=False)
    """The same curve fitted to resampled measurements: how sure it is. Empty where repeats do not tell."""

    def capacity(self, workers: float) -> float:
        return self.curve.rate(workers)

    def fixed_s(self, workers: float) -> float:
        return self.fixed.seconds(workers)

    def sustainable(self, workers: float, trigger_s: float | None) -> float:
        """capacity · (1 − fixed / trigger): every batch pays its fixed time."""
        return self._share(workers, trigger_s) * self.capacity(workers)

    def workers_for(self, rate: float, trigger_s: float | None = None, most: int = 128) -> int | None:
        """The fewest workers that sustain a rate (paper 1, eq 11); None if none do."""
        fits = (m for m in range(1, most + 1) if self.sustainable(m, trigger_s) >= rate * (1 - 1e-12))
        return next(fits, None)

    def interval(self, workers: float, trigger_s: float | None, confidence: float) -> tuple[float, float] | None:
        """Between what the rate lies, as sure as the measurements allow (bootstrap); None where they tell nothing."""
        if len(set(self.others)) < 2:
            return None
        share = self._share(workers, trigger_s)
        rates = [curve.rate(workers) * share for curve in self.others]
        low, high = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2])
        return float(low), float(high)

    def _share(self, workers: float, trigger_s: float | None) -> float:
        return 1.0 if trigger_s is None else max(0.0, 1.0 - self.fixed_s(workers) / trigger_s)


def linear(per_worker: float, fixed_s: float = 0.0) -> Capacity:
    """Workers that each do the same."""
    return Capacity(Linear(per_worker), Fixed(fixed_s))


def write_model(model: Capacity, path: Path) -> None:
    """The model as a JSON file that a person can read, and write by hand."""
    content = {
        "penstock_model": SCHEMA,
        "units": UNITS,
        "curve": _plain(model.curve),
        "fixed": asdict(model.fixed),
        "about": asdict(model.about),
        "others": [_plain(curve) for curve in model.others],
    }
    with whole(path) as scratch:
        scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_model(path: Path) -> Capacity:
    """A model from its file, in events per second: `{"curve": {"kind": "linear", "per_worker": 50}}`."""
    try:
        content = json.loads(reads(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"no such model file: {path}") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no JSON, no text, a number of 5,000 digits
        raise BadInput(f"{path} is not a model file: {error}") from None
    try:
        return _model(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _plain(curve: Curve) -> dict[str, Any]:
    return {"kind": curve.kind} | weights(curve)


def weights(curve: Any) -> dict[str, Any]:
    """The numbers that make a curve, by name."""
    return {entry.name: getattr(curve, entry.name) for entry in fields(curve)}


def _model(content: object) -> Capacity:
    known = ("penstock_model", "units", "curve", "fixed", "about", "others")
    if not isinstance(content, dict) or "curve" not in content:
        raise BadInput('not a model file: it needs a key "curve"')
    for key in content:
        if key not in known:
            raise unknown("key", key, known)
    if content.get("penstock_model", SCHEMA) != SCHEMA:
        raise BadInput(f"model schema {content['penstock_model']}; this version of penstock reads {SCHEMA}")
    if content.get("units", UNITS) != UNITS:
        raise BadInput(f"units {content['units']}: a model is in {UNITS['rate']} and {UNITS['time']}")
    return Capacity(
        _curve(content["curve"]),
        typed(content.get("fixed", {}), Fixed, "fixed"),
        typed(content.get("about", {}), About, "about"),
        tuple(_curve(entry) for entry in typed(content.get("others", []), list[dict[str, Any]], "others")),
    )


def _curve(entry: object) -> Curve:
    if not isinstance(entry, Mapping) or "kind" not in entry:
        raise BadInput(f"a curve needs the key kind: one of {', '.join(CURVES)}")
    kind = str(entry["kind"])
    if kind not in CURVES:
        raise unknown("kind of curve", kind, CURVES)
    curve: Curve = typed({k: v for k, v in entry.items() if k != "kind"}, CURVES[kind], kind)
    return curve
