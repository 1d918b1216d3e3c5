"""Scenarios as TOML files, with the names of the dataclasses. Unknown keys are errors."""

from __future__ import annotations

import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput, unknown
from penstock.core.job import CapacityModel
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import Capacity, Fixed, read_model
from penstock.models.curves import Curve, Linear, Table
from penstock.sim.series import Trace
from penstock.sim.specs import BatchSpec, NoiseSpec, PauseSpec, WorkerSpec
from penstock.sim.workloads import SHAPES, Shape


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """What a file says; what it leaves out, the command line or the trace must."""

    name: str | None = None
    tick_s: float = 60.0
    duration_s: float | None = None
    seed: int | None = None
    workers_at_start: int | None = None
    objective: Objective | None = None
    price: Price | None = None
    limits: Limits | None = None
    worker: WorkerSpec = WorkerSpec()
    noise: NoiseSpec = NoiseSpec()
    pause: PauseSpec = PauseSpec()
    batch: BatchSpec | None = None
    operators: tuple[Operator, ...] = ()
    capacity: CapacityModel | None = None
    trace: Trace | None = None
    workload: tuple[Shape, ...] = ()
    folder: Path = Path()

    def __post_init__(self) -> None:
        if self.workload and self.trace is None and self.duration_s is None:
            raise BadInput("a workload of shapes needs the key duration_s")
        if self.operators:
            Dataflow(self.operators)  # refuses operators that do not fit together

    @property
    def dataflow(self) -> Dataflow | None:
        return Dataflow(self.operators) if self.operators else None


def read_scenario(path: Path) -> ScenarioFile:
    """A scenario from its file; every error names the file and the key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"no such scenario file: {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} is not a TOML file: {error}") from None
    try:
        return _scenario(content, path.parent)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _scenario(content: dict[str, Any], folder: Path) -> ScenarioFile:
    known = {field.name for field in fields(ScenarioFile)} - {"folder"}
    for key in content:
        if key not in known:
            raise unknown("key", key, known)
    tables = {"worker": WorkerSpec, "noise": NoiseSpec, "pause": PauseSpec, "batch": BatchSpec}
    tables |= {"limits": Limits, "price": Price, "trace": Trace}
    built: dict[str, Any] = {}
    for key, value in content.items():
        if key in tables:
            built[key] = build(tables[key], value, key)
        elif key == "objective":
            built[key] = Objective.parse(_checked(value, str, key))
        elif key == "operators":
            built[key] = tuple(build(Operator, entry, key) for entry in _tables(value, key))
        elif key == "workload":
            built[key] = tuple(_shape(entry) for entry in _tables(value, key))
        elif key == "capacity":
            built[key] = _capacity(_tables(value, key)[0], folder)
        else:
            built[key] = _checked(value, typing.get_type_hints(ScenarioFile)[key], key)
    return ScenarioFile(**built, folder=folder)


def build(kind: type, value: object, where: str) -> Any:
    """A dataclass from a table; keys and types are checked against its fields."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{where} must be a table, as in [{where}]")
    hints = typing.get_type_hints(kind)
    known = [field.name for field in fields(kind) if field.init]
    for key in value:
        if key not in known:
            raise unknown(f"key in [{where}]", key, known)
    for field in fields(kind):
        required = field.init and field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in value:
            raise BadInput(f"[{where}] needs the key {field.name}")
    return kind(**{key: _checked(entry, hints[key], f"{where}.{key}") for key, entry in value.items()})


def _checked(value: Any, hint: Any, key: str) -> Any:
    """The value as its field wants it: whole numbers serve as floats, lists as tuples."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        if option is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if option in (int, str, bool) and type(value) is option:
            return value
        if typing.get_origin(option) is tuple and isinstance(value, list):
            return _tuple(value, typing.get_args(option), key)
    wanted = " or ".join(_said(option) for option in options if option is not types.NoneType)
    raise BadInput(f"{key} is {value!r}: it must be {wanted}")


def _tuple(value: list[Any], inside: tuple[Any, ...], key: str) -> tuple[Any, ...]:
    if inside[-1] is not Ellipsis and len(value) != len(inside):
        raise BadInput(f"{key} is {value!r}: it must have {len(inside)} values")
    return tuple(_checked(entry, inside[0], key) for entry in value)


def _said(option: Any) -> str:
    return {float: "a number", int: "a whole number", str: "text", bool: "true or false"}.get(option, "a list")


def _tables(value: object, key: str) -> list[Mapping[str, Any]]:
    entries = value if isinstance(value, list) else [value]
    tables = [entry for entry in entries if isinstance(entry, Mapping)]
    if not tables or len(tables) < len(entries):
        raise BadInput(f"{key} must be a table, as in [{key}], or several, as in [[{key}]]")
    return tables


def _shape(entry: Mapping[str, Any]) -> Shape:
    name = entry.get("shape")
    if name is None:
        raise BadInput(f"[workload] needs the key shape: one of {', '.join(SHAPES)}")
    if name not in SHAPES:
        raise unknown("workload.shape", str(name), SHAPES)
    shape: Shape = build(SHAPES[name], {k: v for k, v in entry.items() if k != "shape"}, "workload")
    return shape


def _capacity(entry: Mapping[str, Any], folder: Path) -> CapacityModel:
    if "model" in entry:
        if len(entry) > 1:
            raise BadInput("[capacity] has a model file: it takes no other key")
        return read_model(folder / _checked(entry["model"], str, "capacity.model"))
    weights = {key: value for key, value in entry.items() if key not in ("fixed_s", "fixed_shared_s")}
    curve: Curve = build(Table if "workers" in entry else Linear, weights, "capacity")
    fixed_s, shared_s = (
        _checked(entry.get(key, 0.0), float, f"capacity.{key}") for key in ("fixed_s", "fixed_shared_s")
    )
    return Capacity(curve, Fixed(fixed_s, shared_s=shared_s))
