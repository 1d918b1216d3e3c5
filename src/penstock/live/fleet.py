"""`penstock fleet`: many queries on several Spark applications, placed by a policy until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.allocation import Knob
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput, ExternalError
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Faults, Policy, Step, check_knobs
from penstock.core.units import show_duration
from penstock.live.cgroup import find_groups, need_quota
from penstock.live.cluster import usable_groups
from penstock.live.control_options import Wanted
from penstock.live.controller import Controller, ControllerParts
from penstock.live.fleet_plant import FleetPlant
from penstock.live.fleet_spec import FleetSpec
from penstock.live.host_process import HostMaker
from penstock.live.locks import open_lock, take
from penstock.live.metrics import Metrics
from penstock.live.metrics_server import MetricsServer
from penstock.live.pause import Pause
from penstock.live.policy_thread import built
from penstock.live.recorder import Recorder, live_header
from penstock.live.resources import hold
from penstock.live.restart import remind
from penstock.pipeline.java import need_java
from penstock.pipeline.session import reach

log = logging.getLogger("penstock")
LOOK_S = 0.5
FAILURES_MAX = 5
END_S = 15.0


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """What to run, how it is controlled, and for how long."""

    spec: FleetSpec
    wanted: Wanted
    seconds: float | None = None
    """End after so long; None runs until it is told to end."""

    def job(self) -> Job:
        """What the policy is told. What an event costs nobody knows yet: policies learn it from what they see."""
        hosts = self.spec.hosts
        kind = WorkerKind(cores=hosts.cores, memory_mb=float(hosts.memory_mb))
        return replace(
            self.wanted.job(self.spec.name),
            dataflow=Dataflow(tuple(Operator(name) for name in self.spec.queries)),
            kinds=(kind,),
            knobs=frozenset({Knob.WORKERS, Knob.PLACEMENT}),
            workers_at_start=hosts.least,
        )

    def check(self) -> Policy:
        """Refuse a policy that such a job cannot have, before a host is started."""
        need_quota(self.spec.hosts.cores, 0.1)
        return self.wanted.policy_for(self.job())


def run_fleet(
    plan: FleetPlan, told: Callable[[Step], None] = lambda _: None, ready: Callable[[FleetPlant], None] = lambda _: None
) -> None:
    """Run until Ctrl-C or the end of its time; checkpoints stay, hosts and all that they started do not."""
    need_java()
    if plan.spec.hosts.master:
        reach(plan.spec.hosts.master)
    with _alone(Path(plan.spec.state)), hold("fleet") as holding:
        hosts = plan.spec.hosts
        make = HostMaker(holding, usable_groups(holding, find_groups()), hosts)
        size = f"{hosts.cores:g} cores and {hosts.memory_mb} MB each"
        log.info("a fleet of %d queries on %s, %s", len(plan.spec.queries), hosts.limits, size)
        with _controlled(plan, make, told) as plant:
            ready(plant)
            _watch(plant, plan)
        _end(plant)


@contextlib.contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Two fleets on the same checkpoints would run each query twice."""
    state.mkdir(parents=True, exist_ok=True)
    with open_lock(state / "lock") as lock:
        if not take(lock, wait=False):
            raise BadInput(f"{state} is in use by another fleet: end that one first, or name another state")
        yield


@contextlib.contextmanager
def _controlled(plan: FleetPlan, make: HostMaker, told: Callable[[Step], None]) -> Iterator[FleetPlant]:
    wanted, job = plan.wanted, plan.job()
    pause = Pause(built(wanted.policy, lambda: wanted.rules).get("pause_file", ""))
    policy, asked = wanted.asked_policy(job, pause)
    plant = FleetPlant(plan.spec, job, make, is_placed=Knob.PLACEMENT in policy.needs, is_dry=wanted.dry_run)
    check_knobs(plant, policy)
    metrics = Metrics(job.name)
    with contextlib.ExitStack() as opened:
        port = wanted.metrics_port
        server = opened.enter_context(MetricsServer(metrics, port)) if port is not None else None
        recorder = None
        if wanted.journal:
            facts = {"queries": list(plan.spec.queries), "cores": job.kinds[0].cores}
            rules = {key: value for key, value in wanted.rules.items() if key != "pause_file"}
            header = live_header(job, wanted.policy, plant.origin_s, facts, rules)
            recorder = opened.enter_context(Recorder(Path(wanted.journal), header, policy.memory_s))
            if recorder.past:
                plant.go_on(recorder.past[-1], recorder.header.origin_s or plant.origin_s)
                remind(policy, recorder.past, job.limits)
        opened.pop_all()
    faults = Faults(failures_max=wanted.rules.get("failures_max", FAILURES_MAX), is_paused=pause.is_on)
    parts = ControllerParts(plant, policy, job, faults, recorder, metrics, server, wanted.dry_run, asked, pause)
    controller = Controller(parts, told)
    controller.start()
    dry = " (dry run)" if wanted.dry_run else ""
    how = f"objective {job.objective}, a decision every {show_duration(job.tick_s)}"
    log.info("policy %s, %s%s", wanted.policy, how, dry)
    pause.listen()
    try:
        yield plant
    finally:
        controller.stop()


def _watch(plant: FleetPlant, plan: FleetPlan) -> None:
    deadline = time.monotonic() + (plan.seconds if plan.seconds is not None else float("inf"))
    while time.monotonic() < deadline:
        if plant.pool.broken and not plant.pool.ready:
            raise ExternalError(plant.pool.broken)
        time.sleep(LOOK_S)


def _end(plant: FleetPlant) -> None:
    """Hosts were told to end when nobody controlled them any more; what does not is ended with the holding."""
    until_s = time.monotonic() + END_S
    while plant.pool.serving and time.monotonic() < until_s:
        plant.pool.take_gone()
        time.sleep(LOOK_S / 5)
    log.info("ended: %d queries moved, checkpoints are kept", plant.homes.moves)
