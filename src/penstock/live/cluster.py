"""A real Spark cluster on one machine: a master, and workers that each get a part of a core."""

from __future__ import annotations

import contextlib
import math
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.errors import BadInput, ExternalError
from penstock.live.cgroup import PERIOD_S, Group, Groups, find_groups, need_quota, works
from penstock.live.daemon import (
    HOST,
    page_answers,
    port_in_log,
    spark_command,
    spark_environment,
    starting,
    workers_alive,
)
from penstock.live.resources import Holding, hold, remove_cgroup
from penstock.pipeline.java import need_java
from penstock.pipeline.starting import last_words

LEAVE_S = 5.0
START_CORES = 1.0  # a worker's own start takes 2 s of CPU: 8 s on a quarter of a core, which nobody measures
MEMORY_MIN_MB = 512  # Spark refuses an executor of less than 450 MB


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """What to start. `cores` is what each worker may use; a period of 5 ms makes it behave like a slower machine."""

    workers: int = 4
    cores: float = 0.25
    memory_mb: int = 1024
    period_s: float = PERIOD_S
    port: int = 0  # the master's; 0 takes any that is free

    def __post_init__(self) -> None:
        need_quota(self.cores, self.period_s)
        if self.workers < 1:
            raise BadInput(f"a cluster of {self.workers} workers: at least 1 is needed")
        if self.memory_mb < MEMORY_MIN_MB:
            raise BadInput(f"workers of {self.memory_mb} MB: Spark needs at least {MEMORY_MIN_MB}")
        if self.port != 0 and not 1024 <= self.port < 65536:  # Spark itself refuses the lower ones
            raise BadInput(f"port {self.port}: write a number from 1024 to 65535")


@dataclass(frozen=True, slots=True)
class _Worker:
    name: str
    process: subprocess.Popen[bytes]
    group: Group | None


class Cluster:
    """A master and workers, until the block ends; then no process, cgroup or file of it is left.

    >>> with Cluster.start(ClusterSpec(workers=2)) as cluster:  # doctest: +SKIP
    ...     cluster.resize(3)
    ...     cluster.url
    'spark://127.0.0.1:41235'
    """

    def __init__(self, spec: ClusterSpec, holding: Holding) -> None:
        self.spec = spec
        self._holding = holding
        self._groups = usable_groups(holding, find_groups())
        self._workers: list[_Worker] = []
        self._started = 0
        self._environment = spark_environment(holding.scratch)
        self.slots = max(1, math.ceil(spec.cores))  # tasks at once, of each worker
        self._master = self._start_master()
        self.url = f"spark://{HOST}:{port_in_log(self._log('master'), 'sparkMaster')}"
        self._page_port = port_in_log(self._log("master"), "MasterUI")

    @classmethod
    @contextlib.contextmanager
    def start(cls, spec: ClusterSpec) -> Iterator[Cluster]:
        """A cluster whose workers are all registered."""
        need_java()
        _need_port(spec.port)
        with hold("cluster") as holding:
            cluster = cls(spec, holding)
            cluster.resize(spec.workers)
            yield cluster

    @property
    def workers(self) -> tuple[str, ...]:
        """Names of the workers that run, the oldest first. A name is never used twice."""
        return tuple(worker.name for worker in self._workers)

    @property
    def page(self) -> str:
        """The master's web page."""
        return f"http://{HOST}:{self._page_port}"

    @property
    def folder(self) -> Path:
        """Where its logs and its executors' scratch lie, until it ends."""
        return self._holding.scratch

    @property
    def is_limited(self) -> bool:
        """Whether CPU limits hold: cgroups could be made."""
        return self._groups is not None

    def set_cores(self, cores: float) -> None:
        """Change what each worker may use, now and for workers to come."""
        self.spec = replace(self.spec, cores=cores)
        for worker in self._workers:
            if worker.group:
                worker.group.limit(cores, self.spec.period_s)

    def resize(self, workers: int) -> None:
        """Start or stop workers, the youngest first; returns when the master knows the new ones."""
        if workers < 1:
            raise BadInput(f"a cluster of {workers} workers: at least 1 is needed")
        while len(self._workers) > workers:
            self._stop_worker(self._workers.pop())
        new = [self._start_worker() for _ in range(workers - len(self._workers))]
        self._workers += new
        for worker in new:
            starting(worker.process, self._log(worker.name)).wait(self._all_registered)
        self.set_cores(self.spec.cores)

    @property
    def settings(self) -> dict[str, str]:
        """What an application should set to be at home here."""
        # On a part of a core, collector and compiler threads burn the quota in a burst and then all stall.
        java = f"-XX:+UseSerialGC -XX:ActiveProcessorCount={self.slots} -XX:-UsePerfData"
        return {
            "spark.master": self.url,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": f"{self.spec.memory_mb}m",
            "spark.executor.extraJavaOptions": f'{java} -Djava.io.tmpdir="{self._holding.scratch}"',
        }

    def need_alive(self) -> None:
        """A master or a worker that has ended by itself is a failure."""
        for name, process in [("master", self._master), *((worker.name, worker.process) for worker in self._workers)]:
            if process.poll() is not None:
                raise ExternalError(f"{name} has ended: {last_words(self._log(name)) or 'it said nothing'}")

    def cpu_seconds(self) -> dict[str, float]:
        """CPU that each worker used since it started, with all its executors; empty where no limit holds."""
        return {worker.name: worker.group.cpu_seconds() for worker in self._workers if worker.group}

    def cpu_of_executors(self, application: str) -> dict[str, float]:
        """The same by executor: each worker keeps a folder for every executor that it ran, the last one lives."""
        used = self.cpu_seconds()
        found = {}
        for worker in used:
            ran = [int(each.name) for each in (self._holding.scratch / worker / application).glob("[0-9]*")]
            if ran:
                found[str(max(ran))] = used[worker]
        return found

    def _start_master(self) -> subprocess.Popen[bytes]:
        words = ["--port", str(self.spec.port), "--webui-port", "0"]
        command = spark_command("master.Master", words, self._holding.scratch)
        log = self._log("master")
        process = self._holding.start(command, log, settings=self._environment)
        starting(process, log, "the master").wait(lambda: page_answers(port_in_log(log, "MasterUI")))
        return process

    def _start_worker(self) -> _Worker:
        self._started += 1
        name = f"worker-{self._started}"
        group = self._make_group(name)
        size = ["--cores", str(self.slots), "--memory", f"{self.spec.memory_mb}M"]
        place = ["--port", "0", "--webui-port", "0", "--work-dir", str(self._holding.scratch / name)]
        command = spark_command("worker.Worker", [*place, *size, self.url], self._holding.scratch)
        folders = group.folders if group else ()
        return _Worker(name, self._holding.start(command, self._log(name), folders, self._environment), group)

    def _make_group(self, name: str) -> Group | None:
        if self._groups is None:
            return None
        group = self._groups(f"penstock-{self._holding.mark}-{name}")
        self._holding.note_cgroups(group.folders)
        for folder in group.folders:
            folder.mkdir()
        group.limit(max(START_CORES, self.spec.cores), self.spec.period_s)
        return group

    def _stop_worker(self, worker: _Worker) -> None:
        if worker.group:
            worker.group.limit(max(START_CORES, self.spec.cores), self.spec.period_s)
        worker.process.terminate()  # it ends its executors
        try:
            worker.process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            worker.process.kill()
            worker.process.wait()
        for folder in worker.group.folders if worker.group else ():
            remove_cgroup(folder)

    def _all_registered(self) -> bool:
        """A master that is too busy to answer is asked again; one that has ended is not."""
        try:
            return len(workers_alive(self._page_port)) >= len(self._workers)
        except ExternalError:
            self.need_alive()
            return False

    def _log(self, name: str) -> Path:
        return self._holding.scratch / f"{name}.log"


def usable_groups(holding: Holding, places: Sequence[Groups]) -> Groups | None:
    """Where this process may make cgroups; if nowhere, that is said once and workers run without a limit."""
    for number, groups in enumerate(places):
        trial = groups(f"penstock-{holding.mark}-trial-{number}")
        holding.note_cgroups(trial.folders)
        if works(trial):
            for folder in trial.folders:
                remove_cgroup(folder)
            return groups
    print("penstock: no right to make cgroups here: each worker may use whole cores", file=sys.stderr)
    return None


def _need_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise BadInput(f"port {port} cannot be used: {error.strerror}") from None
