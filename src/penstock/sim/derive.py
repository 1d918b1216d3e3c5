"""A whole scenario from what was given: a load, a file, options. What nobody gave is derived, and said."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.job import CapacityModel
from penstock.core.objective import Limits, Objective, Price
from penstock.core.units import show_duration
from penstock.models.capacity import Capacity, Fixed, linear
from penstock.models.throughput_curves import Linear
from penstock.sim.resample import resampled
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.toml import ScenarioFile, read_scenario
from penstock.sim.variability import GeneratedSpeeds, Speeds, Variability
from penstock.sim.workloads import Load, make_load, shaped

# A fleet that is neither trivial nor out of scale, and twice as many workers in reserve.
PEAK_WORKERS = 32
# A virtual machine with a JVM on it; an executor on a machine that is up takes 10 to 20 s.
START_S = 90.0
TICK_S = 60.0
WORKERS_MOST = 4096
_SAME = "are both of the same events? --scale multiplies the load"


@dataclass(frozen=True, slots=True)
class Given:
    """What a person said on the command line; it goes before the scenario file."""

    capacity: CapacityModel | None = None
    start_s: float | None = None
    workers_min: int | None = None
    workers_max: int | None = None
    objective: Objective | None = None
    price: Price | None = None
    seed: int | None = None
    per_worker: float | None = None
    """Events per second of one worker; a batch's fixed time stays that of the file."""
    tick_s: float | None = None
    """Another interval than the recorded series has."""
    scale: float = 1.0
    """The load is multiplied by this: requests become rows, or this year's load next year's."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise BadInput(f"--scale {self.scale:g}: it must be above 0")


@dataclass(frozen=True, slots=True)
class World:
    """A scenario but for its seed: the same world can be drawn many times."""

    name: str
    given: Given = Given()
    file: ScenarioFile | None = None
    series: Load | None = None
    """A recorded load; without it the file's shapes make one."""

    @classmethod
    def of_file(cls, path: Path, given: Given) -> World:
        """A world whose load, too, is in the file."""
        file = read_scenario(path)
        if file.trace is None and not file.workload:
            raise BadInput(f"{path} describes no load: add a [workload] to it, or name a rate series")
        series = file.trace.load(file.folder) if file.trace else None
        return cls(file.name or path.stem, given, file, series)

    @classmethod
    def of_series(cls, name: str, series: Load, given: Given, scenario: Path | None = None) -> World:
        """A world whose load is a recorded one."""
        file = read_scenario(scenario) if scenario else None
        if file is not None and (file.trace or file.workload):
            raise BadInput(f"{scenario} describes a load of its own: leave out the trace, or the load")
        return cls(name, given, file, series)

    def scenario(self, seed: int | None = None) -> Scenario:
        """The world, complete. What nobody gave is derived."""
        given, file = self.given, self.file or ScenarioFile()
        seed = next((s for s in (seed, given.seed, file.seed) if s is not None), 0)
        assumed: dict[str, str] = {}
        load = self._load(file, seed, assumed)
        worker = _worker(given, self.file, assumed)
        capacity = _given_capacity(given, file) or _capacity(load, file.dataflow, worker, assumed)
        if isinstance(capacity, Capacity):
            _need_fit(capacity, load.peak, worker)
        return Scenario(
            name=self.name,
            load=load,
            # How long one event takes cannot be told from how many are done: 14.6 s each, for 4 a minute and worker.
            dataflow=file.dataflow or Dataflow((Operator("job", worker.cores / capacity.capacity(1)),), service_s=0.0),
            capacity=capacity,
            limits=_limits(given, file, (capacity, load.peak), assumed),
            objective=given.objective or file.objective or _objective(load.tick_s, assumed),
            price=given.price or file.price or _price(assumed),
            worker=worker,
            kinds=file.kinds,
            believed=file.believed,
            placed=file.placed,
            speeds=_speeds(file, seed),
            noise=file.noise,
            pause=file.pause,
            batch=file.batch,
            workers_at_start=file.workers_at_start,
            seed=seed,
            assumed=assumed,
        )

    def _load(self, file: ScenarioFile, seed: int, assumed: dict[str, str]) -> Load:
        if self.series is not None:
            load = shaped(self._ticked(self.series, file, assumed), file.workload, seed)
        elif self.given.tick_s is not None:
            raise BadInput("--tick is for a recorded series: a scenario of shapes has the key tick_s")
        else:
            load = make_load(
                file.workload, file.duration_s or 0.0, TICK_S if file.tick_s is None else file.tick_s, seed
            )
        return replace(load, arrivals=load.arrivals * self.given.scale) if self.given.scale != 1.0 else load

    def _ticked(self, series: Load, file: ScenarioFile, assumed: dict[str, str]) -> Load:
        """The series at the interval that was asked for."""
        tick_s, what = (file.tick_s, "tick_s") if self.given.tick_s is None else (self.given.tick_s, "--tick")
        if tick_s is None:
            return series
        load, note = resampled(series, tick_s, what)
        if note is not None:
            assumed["tick"] = note
        return load


def _worker(given: Given, file: ScenarioFile | None, assumed: dict[str, str]) -> WorkerSpec:
    worker = file.worker if file else WorkerSpec()
    if given.start_s is not None:
        return replace(worker, start_s=given.start_s)
    if file is None or not file.says_start:
        assumed["start"] = f"a worker starts in {show_duration(START_S)}"
        return replace(worker, start_s=START_S)
    return worker


def _speeds(file: ScenarioFile, seed: int) -> Speeds | None:
    return GeneratedSpeeds(file.variability, seed) if isinstance(file.variability, Variability) else file.variability


def _given_capacity(given: Given, file: ScenarioFile) -> CapacityModel | None:
    if given.per_worker is None:
        return given.capacity or file.capacity
    fixed = file.capacity.fixed if isinstance(file.capacity, Capacity) else Fixed()
    return Capacity(Linear(given.per_worker), fixed)


def _capacity(load: Load, flow: Dataflow | None, worker: WorkerSpec, assumed: dict[str, str]) -> CapacityModel:
    if flow is not None and flow.demand_s > 0:
        return linear(worker.cores / flow.demand_s)
    per_worker = (load.peak or 1.0) / PEAK_WORKERS
    assumed["capacity"] = f"{per_worker:.4g}/s a worker: the peak of {load.peak:.4g}/s needs {PEAK_WORKERS}"
    return linear(per_worker)


def _need_fit(model: Capacity, peak: float, worker: WorkerSpec) -> None:
    """A model measured on another kind of worker, or on other events than the trace counts, answers nothing."""
    about = model.about
    if about.cores is not None and worker.cores not in (WorkerSpec().cores, about.cores):
        raise BadInput(f"the model is of workers with {about.cores:g} cores, the scenario's have {worker.cores:g}")
    if about.app is None or peak == 0:
        return
    one, most = model.capacity(1), model.capacity(WORKERS_MOST)
    if peak > most:
        raise BadInput(
            f"the model of {about.app} reaches {most:.4g}/s at most, the load's peak is {peak:.4g}/s: {_SAME}"
        )
    if peak < one / 100:
        raise BadInput(f"one worker of {about.app} does {one:.4g}/s, the load's peak is {peak:.4g}/s: {_SAME}")


def _limits(
    given: Given, file: ScenarioFile, needed_by: tuple[CapacityModel, float], assumed: dict[str, str]
) -> Limits:
    capacity, rate = needed_by
    low, high = given.workers_min, given.workers_max
    if file.limits is not None:
        low = file.limits.workers_min if low is None else low
        high = file.limits.workers_max if high is None else high
    if low is None:
        low = 1 if high is None else min(1, high)
        assumed["min"] = f"at least {low} worker"
    if high is None:
        needed = next((m for m in range(1, WORKERS_MOST) if capacity.capacity(m) >= rate * (1 - 1e-12)), 64)
        high = max(low, 2 * needed)
        assumed["max"] = f"at most {high} workers, twice what the peak needs"
    return Limits(low, high)


def _objective(tick_s: float, assumed: dict[str, str]) -> Objective:
    objective = Objective(max(120.0, 2 * tick_s))
    assumed["objective"] = str(objective)
    return objective


def _price(assumed: dict[str, str]) -> Price:
    price = Price()
    assumed["price"] = f"{price.per_hour:.2f} per worker-hour, billed by the {price.billing}"
    return price
