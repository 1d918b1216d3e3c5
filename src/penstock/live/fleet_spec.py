"""What a fleet is, as its TOML file says: hosts, and the queries that are placed on them."""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from penstock.apps.app import find_app
from penstock.apps.catalogue import APPS
from penstock.apps.queries import instances
from penstock.core.bounds import WORKERS_MOST, between
from penstock.core.errors import BadInput, unknown
from penstock.core.objective import Limits
from penstock.core.text import one_line
from penstock.core.typed import known_keys, read_toml, typed
from penstock.core.units import duration_s

QUERIES_MOST = 1000
MEMORY_MIN_MB = 512
T = TypeVar("T")
NAME = "a name: letters, digits, - and _"


@dataclass(frozen=True, slots=True)
class HostRules:
    """What each host is made of, and how many there may be."""

    least: int = 1
    most: int = 4
    cores: float = 0.5
    memory_mb: int = 768
    """Of the heap of a host's driver."""
    threads: int = 2
    """Tasks that a host runs at once: n of local[n]."""
    master: str | None = None
    """Where its tasks run instead: each host is a client of this cluster."""

    def __post_init__(self) -> None:
        Limits(self.least, self.most)
        between("hosts.least", self.least, 1, WORKERS_MOST)
        between("hosts.cores", self.cores, 0.1, 1024)
        between("hosts.memory_mb", self.memory_mb, MEMORY_MIN_MB, 1_000_000)
        between("hosts.threads", self.threads, 1, 1024)

    @property
    def limits(self) -> Limits:
        return Limits(self.least, self.most)


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """One query: what it computes, of which files, and where its results and its checkpoint are."""

    name: str
    app: str
    files: str
    to: str = ""
    """A folder for results; without one they are thrown away."""
    parameters: Mapping[str, str | int | float] = field(default_factory=dict)
    files_max: int = 100
    """Files of one batch."""
    trigger: str = "2s"
    partitions: int = 2
    """Of the state; a checkpoint keeps the number that it began with."""
    checkpoint: str = ""
    """Without one, below the fleet's `state`."""

    def __post_init__(self) -> None:
        if not self.name or not self.name.replace("-", "").replace("_", "").isalnum() or not self.name.isascii():
            raise BadInput(f"query '{one_line(self.name, 60)}': name must be {NAME}")
        between(f"query {self.name}: files_max", self.files_max, 1, 1_000_000)
        between(f"query {self.name}: partitions", self.partitions, 1, 10_000)
        duration_s(self.trigger, f"query {self.name}: trigger", least_s=0.1)

    @property
    def trigger_s(self) -> float:
        return duration_s(self.trigger)

    def words(self) -> dict[str, Any]:
        """As a host is told."""
        return {**asdict(self), "parameters": dict(self.parameters)}


@dataclass(frozen=True, slots=True)
class Workload:
    """Several instances of one of paper 2's templates on the same files."""

    name: str
    files: str
    to: str = ""
    count: int | None = None
    """The first so many; without it all: 35, 20 or 10."""
    files_max: int = 100
    trigger: str = "2s"
    partitions: int = 2

    def queries(self) -> list[QuerySpec]:
        found = instances(self.name)
        between(f"workload {self.name}: count", len(found) if self.count is None else self.count, 1, len(found))
        return [
            QuerySpec(
                each.name,
                each.app,
                self.files,
                str(Path(self.to) / each.name) if self.to else "",
                each.parameters,
                self.files_max,
                self.trigger,
                self.partitions,
            )
            for each in found[: self.count]
        ]


@dataclass(frozen=True, slots=True)
class FleetSpec:
    """A fleet: its hosts, its queries, and where their checkpoints are."""

    name: str = "fleet"
    state: str = "fleet-state"
    """A folder for checkpoints, kept across restarts."""
    hosts: HostRules = HostRules()
    query: tuple[QuerySpec, ...] = ()
    workload: tuple[Workload, ...] = ()

    @property
    def queries(self) -> dict[str, QuerySpec]:
        """All of them by name, with whole paths."""
        listed = [*self.query, *(query for each in self.workload for query in each.queries())]
        return {each.name: self._placed(each) for each in listed}

    def _placed(self, query: QuerySpec) -> QuerySpec:
        checkpoint = query.checkpoint or str(Path(self.state) / query.name)
        whole = {key: str(Path(value).absolute()) if value else "" for key, value in
                 (("files", query.files), ("to", query.to), ("checkpoint", checkpoint))}  # fmt: skip
        return replace(query, **whole)  # type: ignore[arg-type]


def read_fleet(path: Path) -> FleetSpec:
    """The file as it was meant, or one line that says what is wrong with it."""
    table = read_toml(path, "fleet")
    try:
        spec = _typed(table)
        check(spec)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
    return spec


def _typed(table: Mapping[str, Any]) -> FleetSpec:
    known_keys(table, FleetSpec)
    parts = {key: value for key, value in table.items() if key not in ("hosts", "query", "workload")}
    hosts = typed(table.get("hosts", {}), HostRules, "hosts")
    queries, workloads = _listed(table, "query", QuerySpec), _listed(table, "workload", Workload)
    return replace(typed(parts, FleetSpec), hosts=hosts, query=queries, workload=workloads)


def _listed(table: Mapping[str, Any], key: str, kind: type[T]) -> tuple[T, ...]:
    given = table.get(key, [])
    if not isinstance(given, list):
        raise BadInput(f"{key} must be a list of tables, as in [[{key}]]")
    return tuple(typed(each, kind, f"{key} {number}") for number, each in enumerate(given, 1))


def check(spec: FleetSpec) -> None:
    """Refuse what would not run, before a host is started for it."""
    listed = [*spec.query, *(query for each in spec.workload for query in each.queries())]
    if not listed:
        raise BadInput("there is no query: write [[query]] with name, app and files, or [[workload]]")
    between("queries", len(listed), 1, QUERIES_MOST)
    _need_once("queries are named", (each.name for each in listed))
    queries = spec.queries.values()
    _need_once("queries write to", (each.to for each in queries if each.to))
    _need_once("queries have the checkpoint", (each.checkpoint for each in queries))
    for query in queries:
        app = find_app(query.app, APPS)
        known = _parameters(query.app, app.transform)
        for key, value in query.parameters.items():
            if key not in known:
                raise unknown(f"parameter of {query.app} (query {query.name})", key, list(known) or ["none"])
            _need_kind(f"query {query.name}: {key}", value, known[key])
        if not Path(query.files).is_dir():
            raise BadInput(f"query {query.name}: files = {query.files}: no such folder")
        for key, place in (("to", query.to), ("checkpoint", query.checkpoint)):
            _need_folder(query.name, key, place)
        has_results = bool(query.to) and Path(query.to).is_dir() and any(Path(query.to).iterdir())
        if has_results and not (Path(query.checkpoint) / "metadata").exists():
            right = "name an empty folder, or the checkpoint that they belong to"
            raise BadInput(f"query {query.name}: to = {query.to}: results of another checkpoint are there: {right}")
        _need_apart(query)


def _parameters(name: str, transform: Callable[..., Any]) -> dict[str, str]:
    """What may be set, and the kind of each as it is written; of some nobody says it."""
    try:
        found = list(inspect.signature(transform).parameters.values())[1:]
        return {each.name: getattr(each.annotation, "__name__", str(each.annotation)) for each in found}
    except (TypeError, ValueError):  # of some builtins nobody knows
        raise BadInput(f"app {name}: its parameters cannot be told: give a function written in Python") from None


def _need_kind(key: str, value: str | int | float, kind: str) -> None:
    """Refuse what a host could only fail on, half a minute after it was started."""
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
    if not isinstance(value, kinds.get(kind, (object,))):
        right = {"str": "text", "int": "a whole number", "float": "a number"}[kind]
        raise BadInput(f"{key} is {one_line(repr(value), 60)}: it must be {right}")
    if key.endswith("_s") and not isinstance(value, str):
        between(key, value, 0.001)


def _need_apart(query: QuerySpec) -> None:
    """A query that writes where it reads would read its own results."""
    places = {"files": query.files, "to": query.to, "the checkpoint": query.checkpoint}
    for (one, place), (other, its) in itertools.combinations(places.items(), 2):
        if place == its:
            raise BadInput(f"query {query.name}: {one} and {other} are both {place}: each needs a folder of its own")


def _need_folder(query: str, key: str, place: str) -> None:
    if place and Path(place).exists() and not Path(place).is_dir():
        raise BadInput(f"query {query}: {key} = {place}: it is a file, and a folder is needed")


def _need_once(what: str, values: Iterable[str]) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise BadInput(f"two {what} {twice[0]}: each has its own")
