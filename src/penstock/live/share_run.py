"""`penstock shares`: the log analysis, its plant of CPU shares, and a controller, until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.apps.logs import OPERATORS, flow
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Faults, Policy, Step, check_knobs
from penstock.core.objective import Limits, Objective, Price
from penstock.live.controller import Controller, ControllerParts
from penstock.live.jars import kafka_jars
from penstock.live.kafka import KafkaSource
from penstock.live.log_fleet import LogFleet
from penstock.live.log_records import LogRecords, Records
from penstock.live.pause import Pause
from penstock.live.policy_thread import PolicyThread, built
from penstock.live.recorder import Recorder, live_header
from penstock.live.share_demand import WINDOWS_LEAST, WINDOWS_MOST, costs_s, settled_demand
from penstock.live.share_plant import SharePlant
from penstock.models.capacity import linear
from penstock.pipeline.session import session
from penstock.policies.mead import Mead
from penstock.policies.parameters import parameters_of
from penstock.policies.registry import Named

log = logging.getLogger("penstock")
LOOK_S = 0.5
HANG_S = 30.0  # an analysis takes 0.7 s of a free core (`scripts/bench mead`)
# For `mead`: a share is the quota of a cgroup, and a whole one is so many cores.
QUOTAS = "service=quota,cores=" + "+".join(f"{name}:{each.cores:g}" for name, each in OPERATORS.items())


@dataclass(frozen=True, slots=True)
class SharesWanted:
    """How the log analysis is to be controlled."""

    policy: str = "mead:percentile=0.95"
    objective: Objective = field(default_factory=lambda: Objective(1.0))
    tick_s: float = 5.0
    least: float = 0.4
    journal: Path | None = None
    pause_file: str = ""
    is_dry: bool = False
    warm_s: float = 90.0
    """After 30 s compilers were not done: a parser's line was learnt to cost 0.50 ms, and took 0.35 to 0.42 later."""
    learn_s: float = 30.0
    costs_s: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of a line at each operator; empty: measured once it is warm."""
    seconds: float | None = None

    def job(self, costs_s: Mapping[str, float]) -> Job:
        """What the policy is told; `costs_s` are of operators that have their whole share."""
        dataflow = flow(costs_s)
        slowest_s = max((cost * dataflow.visits[name] for name, cost in costs_s.items()), default=0.0)
        return Job(
            name="logs",
            dataflow=dataflow,
            capacity=linear(1 / slowest_s if slowest_s else 1.0),
            limits=Limits(1, 1),
            tick_s=self.tick_s,
            kinds=(WorkerKind(cores=sum(each.cores for each in OPERATORS.values())),),
            objective=self.objective,
            price=Price(),
            knobs=SharePlant.knobs,
        )


class RoleRecords:
    """Records by the role of their topic."""

    def __init__(self, records: LogRecords, topics: Mapping[str, str]) -> None:
        self._records, self._topics = records, topics

    def take(self) -> Mapping[str, Records]:
        new = self._records.take()
        return {role: new[topic] for role, topic in self._topics.items()}


@contextlib.contextmanager
def warm_fleet(source: KafkaSource, warm_s: float) -> Iterator[tuple[LogFleet, RoleRecords]]:
    """The three applications, past their first compilations, and a reader of their topics."""
    if (parts := source.partitions()) != 1:
        raise BadInput(f"topic '{source.topic}' has {parts} partitions: the log analysis reads one, in its order")
    with _reading() as spark:
        log.info("starting parser, counter and matcher, each a Spark application in a cgroup")
        with LogFleet.start(source) as fleet:
            reader = RoleRecords(LogRecords(spark, source.address, [*fleet.topics.values()]), fleet.topics)
            log.info("warming up for %.0f s, without quotas", warm_s)
            _pass(warm_s, fleet)
            yield fleet, reader


@contextlib.contextmanager
def _reading() -> Iterator[SparkSession]:
    """A session of our own, which reads topics; its JVM takes no CPU while it does not."""
    settings = {"spark.jars": kafka_jars().spark_jars, "spark.driver.memory": "512m"}
    with session("local[1]", "penstock shares", settings) as spark:
        yield spark


def learnt_costs(wanted: SharesWanted, fleet: LogFleet, reader: RoleRecords) -> dict[str, float]:
    """Seconds of a line at each operator that has its whole share: as given, or measured at whole shares."""
    if wanted.costs_s:
        return {name: cost / OPERATORS[name].cores for name, cost in wanted.costs_s.items()}
    for name in OPERATORS:
        fleet.limit(name, 1.0)
    least, most = (windows * wanted.learn_s for windows in (WINDOWS_LEAST, WINDOWS_MOST))
    log.info("measuring what a line costs each operator, until it settles: %.0f to %.0f s", least, most)
    demands = settled_demand(fleet, reader, wanted.learn_s)
    for name, each in demands.items():
        told = (
            f"{1e3 * each.mean_s:.2f} ± {1e3 * each.error_s:.2f} ms of CPU a line, {each.idle:.3f} cores without lines"
        )
        log.info("%s: %s", name, told)
    return costs_s(demands, wanted.least)


def controlled(
    wanted: SharesWanted, plant: SharePlant, job: Job, told: Callable[[Step], None] = lambda _: None
) -> Controller:
    """A controller of this plant that runs, as `penstock run` makes one of executors."""
    pause, named = Pause(wanted.pause_file), Named.parse(wanted.policy)
    asked: list[PolicyThread] = []

    def inside(bare: Policy) -> PolicyThread:
        asked.append(PolicyThread(bare, HANG_S))
        return asked[0]

    policy = built(wanted.policy, lambda: named.build_safe(job, lambda _: pause.is_on(), inside))
    check_knobs(plant, policy)
    recorder = None
    if wanted.journal:
        header = live_header(job, wanted.policy, plant.origin_s, _facts(job), named.guards)
        recorder = Recorder(wanted.journal, header, policy.memory_s)
    faults = Faults(is_paused=pause.is_on)
    controller = Controller(
        ControllerParts(plant, policy, job, faults, recorder, is_dry=wanted.is_dry, asked=asked[0], pause=pause), told
    )
    controller.start()
    log.info(
        "controlling shares: policy %s, objective %s, a decision every %g s", wanted.policy, job.objective, job.tick_s
    )
    pause.listen()
    return controller


def run_shares(wanted: SharesWanted, source: KafkaSource) -> None:
    """Run until Ctrl-C or the end of its time."""
    with warm_fleet(source, wanted.warm_s) as (fleet, reader):
        job = wanted.job(learnt_costs(wanted, fleet, reader))
        controller = controlled(wanted, SharePlant(fleet, reader, job, wanted.is_dry), job)
        try:
            _pass(wanted.seconds, fleet)
        finally:
            controller.stop()


def checked(wanted: SharesWanted) -> SharesWanted:
    """What is wrong with it is said before anything is started."""
    wanted = replace(wanted, policy=completed(wanted.policy, wanted.least))
    job = wanted.job({name: 1e-3 for name, each in OPERATORS.items() if each.is_real_time})
    policy = Named.parse(wanted.policy).build_safe(job)
    if missing := policy.needs - SharePlant.knobs:
        what = " and ".join(sorted(knob.value for knob in missing))
        raise BadInput(
            f"policy {wanted.policy} needs {what}: only CPU shares can be changed here (mead, share-threshold)"
        )
    if wanted.journal and wanted.journal.exists() and wanted.journal.stat().st_size:
        raise BadInput(f"the journal {wanted.journal} exists: what it tells of is over; name another file")
    return wanted


def completed(policy: str, least: float) -> str:
    """The same policy, told what is so here: shares are quotas, and costs hold from the least share on.

    >>> completed("share-threshold:upper=0.8", 0.5)
    'share-threshold:upper=0.8,least=0.5'
    >>> completed("mead:service=core", 0.4)  # as paper 4 has it
    'mead:service=core,least=0.4'
    """
    named, more = Named.parse(policy), []
    given = named.parameters
    if named.maker is Mead and not {"service", "cores"} & given.keys() and given.get("model") != "gi":
        more.append(QUOTAS)
    if "least" in parameters_of(named.maker) and given.get("least") != least:
        if "least" in given:
            raise BadInput(f"policy {policy}: its least share is not that of --least, {least:g}; give it once")
        more.append(f"least={least:g}")
    return policy + "".join(f"{',' if ':' in policy or number else ':'}{each}" for number, each in enumerate(more))


def _pass(seconds: float | None, fleet: LogFleet) -> None:
    until_s = time.monotonic() + (float("inf") if seconds is None else seconds)
    while time.monotonic() < until_s:
        fleet.need_alive()
        time.sleep(min(LOOK_S, max(0.0, until_s - time.monotonic())))


def _facts(job: Job) -> dict[str, object]:
    costs = {f"{name}_s": cost for name, cost in job.dataflow.costs_s.items() if cost}
    return {**costs, **{f"{name}_cores": each.cores for name, each in OPERATORS.items()}}
