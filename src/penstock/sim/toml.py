"""Scenarios as TOML files, with the names of the dataclasses. Unknown keys are errors."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from penstock.core.bounds import SEED_MOST, between
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput, unknown
from penstock.core.job import CapacityModel
from penstock.core.objective import Limits, Objective, Price
from penstock.core.typed import read_toml, typed
from penstock.models.capacity import Capacity, Fixed, read_model
from penstock.models.throughput_curves import Curve, Linear, Table
from penstock.sim.recorded_speeds import RecordedSpeeds, SpeedsFile
from penstock.sim.series import Trace
from penstock.sim.specs import BatchSpec, NoiseSpec, PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.variability import Variability
from penstock.sim.workloads import SHAPES, Shape


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What a file says; what it leaves out, the command line or the trace must."""

    name: str | None = None
    tick_s: float | None = None
    """The interval: of shapes 60 s, of a recorded series its own, where nothing is said."""
    duration_s: float | None = None
    seed: int | None = None
    workers_at_start: int | None = None
    objective: Objective | None = None
    price: Price | None = None
    limits: Limits | None = None
    worker: WorkerSpec = WorkerSpec()
    kinds: tuple[WorkerSpec, ...] = ()
    says_start: bool = True
    """Does the file say how long a worker takes to start?"""
    noise: NoiseSpec = NoiseSpec()
    pause: PauseSpec = PauseSpec()
    batch: BatchSpec | None = None
    placed: PlacedSpec | None = None
    variability: Variability | RecordedSpeeds | None = None
    """How workers' speeds vary in time and from one to the next: generated, or with the key `file` as recorded."""
    operators: tuple[Operator, ...] = ()
    capacity: CapacityModel | None = None
    believed: CapacityModel | None = None
    """What policies are told of the capacity, where that is not the truth."""
    trace: Trace | None = None
    workload: tuple[Shape, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        if self.seed is not None:
            between("seed", self.seed, 0, SEED_MOST)
        if self.workload and self.trace is None and self.duration_s is None:
            raise BadInput("a workload of shapes needs the key duration_s")
        if self.operators:
            Dataflow(self.operators)  # refuses operators that do not fit together

    @property
    def dataflow(self) -> Dataflow | None:
        return Dataflow(self.operators) if self.operators else None


def read_scenario(path: Path) -> ScenarioFile:
    """A scenario from its file; every error names the file and the key."""
    content = read_toml(path, "scenario")
    try:
        return _scenario(content, path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _scenario(content: dict[str, Any], folder: Path) -> ScenarioFile:
    known = {field.name for field in fields(ScenarioFile)} - {"folder", "says_start"}
    for key in content:
        if key not in known:
            raise unknown("key", key, known)
    tables: dict[str, type] = {"worker": WorkerSpec, "noise": NoiseSpec, "pause": PauseSpec, "batch": BatchSpec}
    tables |= {"limits": Limits, "price": Price, "trace": Trace, "placed": PlacedSpec}
    tables["variability"] = SpeedsFile if "file" in _table(content, "variability") else Variability
    built: dict[str, Any] = {"says_start": "start_s" in _table(content, "worker")}
    if "foresees" in _table(content, "batch"):  # as calibrate called it before
        batch = dict(content["batch"])
        batch["latency_includes_service"] = batch.pop("foresees")
        content = content | {"batch": batch}
    for key, value in content.items():
        if key in tables:
            built[key] = typed(value, tables[key], key)
        elif key == "objective":
            built[key] = Objective.parse(typed(value, str, key))
        elif key in ("operators", "kinds"):
            kind: type[Operator | WorkerSpec] = Operator if key == "operators" else WorkerSpec
            built[key] = tuple(typed(entry, kind, key) for entry in _tables(value, key))
        elif key == "workload":
            built[key] = tuple(_shape(entry) for entry in _tables(value, key))
        elif key in ("capacity", "believed"):
            built[key] = _capacity(_only(_tables(value, key), key), folder)
        else:
            built[key] = typed(value, typing.get_type_hints(ScenarioFile)[key], key)
    return ScenarioFile(**built | _recorded(built.get("variability"), folder), folder=folder)


def _recorded(variability: object, folder: Path) -> dict[str, Any]:
    return {"variability": variability.speeds(folder)} if isinstance(variability, SpeedsFile) else {}


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key)
    return value if isinstance(value, Mapping) else {}


def _tables(value: object, key: str) -> list[Mapping[str, Any]]:
    entries = value if isinstance(value, list) else [value]
    tables = [entry for entry in entries if isinstance(entry, Mapping)]
    if not tables or len(tables) < len(entries):
        raise BadInput(f"{key} must be a table, as in [{key}], or several, as in [[{key}]]")
    return tables


def _only(tables: list[Mapping[str, Any]], key: str) -> Mapping[str, Any]:
    if len(tables) > 1:
        raise BadInput(f"[[{key}]] is there {len(tables)} times: give one [{key}]")
    return tables[0]


def _shape(entry: Mapping[str, Any]) -> Shape:
    name = entry.get("shape")
    if name is None:
        raise BadInput(f"[workload] needs the key shape: one of {', '.join(SHAPES)}")
    if not isinstance(name, str) or name not in SHAPES:
        raise unknown("workload.shape", str(name), SHAPES)
    kind: type[Shape] = SHAPES[name]
    return typed({k: v for k, v in entry.items() if k != "shape"}, kind, "workload")


def _capacity(entry: Mapping[str, Any], folder: Path) -> CapacityModel:
    if "model" in entry:
        if len(entry) > 1:
            raise BadInput("[capacity] has a model file: it takes no other key")
        return read_model(folder / typed(entry["model"], str, "capacity.model"))
    weights = {key: value for key, value in entry.items() if key not in ("fixed_s", "fixed_shared_s")}
    kind: type[Curve] = Table if "workers" in entry else Linear
    curve = typed(weights, kind, "capacity")
    fixed_s, shared_s = (typed(entry.get(key, 0.0), float, f"capacity.{key}") for key in ("fixed_s", "fixed_shared_s"))
    return Capacity(curve, Fixed(fixed_s, shared_s=shared_s))
