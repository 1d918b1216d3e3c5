"""Thousands of replays as one Spark job: worlds × policies × seeds. Finished cells are not run again."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput, PenstockError
from penstock.core.files import own_folder, remove_own, whole, writable
from penstock.core.score import Score, score
from penstock.core.version import VERSION
from penstock.pipeline.failures import plain
from penstock.pipeline.python import use_this_python
from penstock.pipeline.session import session
from penstock.pipeline.watch import watched
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.derive import World

# A task of a few replays takes a second or so: short enough to lose little, long enough to hide its start.
CELLS_PER_TASK = 8
CELLS_MOST = 1_000_000
Cell = tuple[int, str, int]  # which world, which policy, which seed
_CELL_SCHEMA = "cell string, number long, policy string, seed long"
_SCORES = [field.name for field in fields(Score)]
_SPARK_SCHEMA = "cell string, world string, policy string, seed long, error string" + "".join(
    f", {name} double" for name in _SCORES
)
_RESULT_SCHEMA = pa.schema(
    [("cell", pa.string()), ("world", pa.string()), ("policy", pa.string())]
    + [("seed", pa.int64()), ("error", pa.string())]
    + [(name, pa.float64()) for name in _SCORES]
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to replay: every policy in every world with every seed."""

    worlds: tuple[World, ...]
    policies: tuple[str, ...]
    seeds: tuple[int, ...]
    bare: bool = False
    """Without the safety rules of a live run."""

    def __post_init__(self) -> None:
        if not (self.worlds and self.policies and self.seeds):
            raise BadInput("a sweep needs at least one scenario, one policy and one seed")
        cells = len(self.worlds) * len(self.policies) * len(self.seeds)
        if cells > CELLS_MOST:
            raise BadInput(f"a sweep of {cells:,} replays: {CELLS_MOST:,} at most")
        for policy in self.policies:
            Named.parse(policy)

    def cells(self) -> dict[str, Cell]:
        """Each cell by a name that says all that its result depends on."""
        worlds = [hashlib.sha256(pickle.dumps(world)).hexdigest() for world in self.worlds]
        return {
            _cell_name(worlds[number], policy, seed, self.bare): (number, policy, seed)
            for number, policy, seed in itertools.product(range(len(worlds)), self.policies, self.seeds)
        }


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """How many cells there are, how many were done before, and how many failed."""

    output: Path
    cells: int
    done_before: int
    failed: int
    first_error: str | None


def sweep(
    plan: Plan, output: Path, master: str | None = None, done: Callable[[float], None] | None = None
) -> SweepSummary:
    """Run what is missing; results gather beside `output` and take its name when all are there."""
    writable(output)
    partial = output.with_name(output.name + ".partial")
    wanted = plan.cells()
    finished = _finished(output, partial) & set(wanted)
    own_folder(partial, "results of a sweep", is_removed=True)
    missing = {name: cell for name, cell in wanted.items() if name not in finished}
    if missing:
        with (
            tempfile.TemporaryDirectory(prefix="penstock-") as folder,
            session(master, "penstock sweep") as spark,
            watched(spark, done),
            plain(output),
        ):
            prepare(spark, plan.policies, Path(folder))
            _run(spark, plan, missing, partial)
    return _gathered(output, partial, wanted, len(finished))


def swept(plan: Plan, output: Path) -> list[dict[str, Any]]:
    """The rows of a plan's cells from where `sweep` has put them."""
    wanted = plan.cells()
    return [row for row in _results(output).to_pylist() if row["cell"] in wanted]


def expanded(*policies: str) -> tuple[str, ...]:
    """Every combination of the alternatives in policies' names.

    >>> expanded("threshold:upper=0.7|0.8,lower=0.4", "mst")
    ('threshold:upper=0.7,lower=0.4', 'threshold:upper=0.8,lower=0.4', 'mst')
    """
    # Ten keys with ten alternatives each are 10^10 names: they are counted, and refused, before they are made.
    found = tuple(itertools.islice(itertools.chain.from_iterable(map(_combined, policies)), CELLS_MOST + 1))
    if len(found) > CELLS_MOST:
        raise BadInput(f"more than {CELLS_MOST:,} combinations of alternatives: give fewer")
    return found


def need_some(policies: Iterable[str], world: World) -> None:
    """BadInput, before Spark starts, for a policy of which no setting can be; some may not, where thresholds cross."""
    job = world.scenario().job()
    for policy in policies:
        wrong = None
        for name in expanded(policy):
            try:
                Named.parse(name).build(job, {})
                break
            except BadInput as error:
                wrong = wrong or error
        else:
            raise wrong or BadInput(f"{policy}: no settings")


def _combined(policy: str) -> Iterator[str]:
    parts = []
    for part in policy.split(","):
        key, equals, values = part.rpartition("=")
        parts.append([f"{key}{equals}{value}" for value in values.split("|")])
    return (",".join(combination) for combination in itertools.product(*parts))


def _cell_name(world: str, policy: str, seed: int, bare: bool) -> str:
    path = Path(policy.partition(":")[0])
    code = path.read_bytes() if path.suffix == ".py" else b""
    content = f"{VERSION} {world} {policy} {seed} {'bare ' if bare else ''}".encode() + code
    return hashlib.sha256(content).hexdigest()[:24]


def _finished(*stores: Path) -> set[str]:
    """Cells that ended well, in this run or an earlier one."""
    table = _stored(stores)
    if table is None:
        return set()
    return {row["cell"] for row in table.select(["cell", "error"]).to_pylist() if row["error"] is None}


def _stored(stores: Iterable[Path]) -> pa.Table | None:
    tables = [_results(store) for store in stores if _holds(store)]
    return pa.concat_tables(tables) if tables else None


def _results(store: Path) -> pa.Table:
    try:
        table = pyarrow.dataset.dataset(store, format="parquet").to_table()
        for name in set(_SCORES) - set(table.column_names) if "cell" in table.column_names else ():
            table = table.append_column(name, pa.nulls(len(table), pa.float64()))  # a score of a later version
        return table.select(_RESULT_SCHEMA.names).cast(_RESULT_SCHEMA)
    except (pa.ArrowException, KeyError, ValueError, OSError):
        raise BadInput(f"{store} is there and holds no results of a sweep: name another output") from None


def _holds(store: Path) -> bool:
    return store.is_file() or any(store.glob("*.parquet"))


def _run(spark: SparkSession, plan: Plan, missing: Mapping[str, Cell], partial: Path) -> None:
    context = spark.sparkContext
    worlds, bare = context.broadcast(plan.worlds), plan.bare
    rows = [(name, *cell) for name, cell in missing.items()]
    tasks = max(1, len(rows) // CELLS_PER_TASK, min(len(rows), 2 * context.defaultParallelism))
    cells = spark.createDataFrame(context.parallelize(rows, tasks), _CELL_SCHEMA)

    def replayed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield pa.RecordBatch.from_pylist([_result(worlds.value[row["number"]], row, bare)], _RESULT_SCHEMA)

    # With version 2 a task's results are in place when the task ends, so an interrupted sweep keeps them.
    committing = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}
    results = cells.mapInArrow(replayed, _SPARK_SCHEMA)
    results.write.options(**committing).mode("append").parquet(str(partial.resolve()))


def _result(world: World, row: Mapping[str, Any], bare: bool) -> dict[str, Any]:
    """One replay. A cell that fails says why, and the others go on."""
    known = {key: row[key] for key in ("cell", "policy", "seed")} | {"world": world.name}
    try:
        scenario = world.scenario(row["seed"])
        job, named = scenario.job(), Named.parse(_local(row["policy"]))
        steps = replay(scenario, named.build(job, {} if bare else named.rules(job)))
        return known | {"error": None} | asdict(score(steps, scenario.objective, scenario.price, job.kinds))
    except PenstockError as error:
        return known | {"error": str(error)}


def prepare(spark: SparkSession, policies: Iterable[str], folder: Path) -> None:
    """Give the executors this package and the users' policies; on this machine, this very Python."""
    context, master = spark.sparkContext, str(spark.sparkContext.master)
    use_this_python(spark)
    if master.startswith("local"):
        return
    package = Path(__file__).parents[1]
    with zipfile.ZipFile(folder / "penstock.zip", "w") as archive:
        for path in package.rglob("*.py"):
            archive.write(path, path.relative_to(package.parent))
    context.addPyFile(str(folder / "penstock.zip"))
    for file_name in {policy.partition(":")[0] for policy in policies}:
        if file_name.endswith(".py"):
            context.addFile(file_name)


def _local(policy: str) -> str:
    """The policy with its file where this machine has it."""
    path, colon, rest = policy.partition(":")
    if not path.endswith(".py") or Path(path).is_file():
        return policy
    return f"{SparkFiles.get(Path(path).name)}{colon}{rest}"


def _gathered(output: Path, partial: Path, wanted: Mapping[str, Cell], before: int) -> SweepSummary:
    """One file with the wanted cells, in their order; the pieces go."""
    table = _stored((output, partial))
    assert table is not None
    # Later results come last and win: a cell that failed before may have ended well now. What an earlier sweep
    # with other cells left there stays.
    by_cell = {row["cell"]: row for row in table.to_pylist()}
    rows = [by_cell.pop(name) for name in wanted]
    others = list(by_cell.values())
    with whole(output) as scratch:
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows + others, _RESULT_SCHEMA), scratch)
    remove_own(partial)
    errors = [row["error"] for row in rows if row["error"] is not None]
    return SweepSummary(output, len(wanted), before, len(errors), errors[0] if errors else None)
