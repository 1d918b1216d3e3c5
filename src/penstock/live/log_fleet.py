"""The three queries of the log analysis, each a Spark application of its own in a cgroup of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.apps.logs import OPERATORS, topic_names
from penstock.core.errors import BadInput, ExternalError, PenstockError
from penstock.live.cgroup import Group, Groups, find_groups, works
from penstock.live.daemon import spark_environment
from penstock.live.kafka import KafkaSource
from penstock.live.log_query import RUNS
from penstock.live.resources import Holding, hold, remove_cgroup
from penstock.models.queues.quota import PERIOD_S, Quota
from penstock.pipeline.java import need_java
from penstock.pipeline.starting import Starting, last_words

START_CORES = 2.0
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    group: Group


class LogFleet:
    """Parser, counter and matcher, until the block ends; then no process, cgroup or topic of it is left."""

    def __init__(self, holding: Holding, source: KafkaSource) -> None:
        self._holding, self.source = holding, source
        self.topics = topic_names(source.topic, holding.mark[:8])
        self._running: dict[str, _Running] = {}

    @classmethod
    @contextlib.contextmanager
    def start(cls, source: KafkaSource) -> Iterator[LogFleet]:
        """All three queries run, and may use what they want: quotas are set by `limit`."""
        need_java()
        with hold("shares") as holding:
            fleet = cls(holding, source)
            groups = need_groups(holding)
            made = [topic for topic in fleet.topics.values() if topic != source.topic]
            try:
                with source.admin() as admin:
                    for topic in made:
                        admin.create_topic(topic, 1)
                for name in OPERATORS:
                    fleet._begin(name, groups(f"penstock-{holding.mark}-{name}"))
                for name in OPERATORS:
                    fleet._await(name)
                yield fleet
            finally:
                fleet.stop()
                with contextlib.suppress(PenstockError), source.admin() as admin:
                    for topic in made:
                        with contextlib.suppress(PenstockError):  # it may never have been made
                            admin.delete_topic(topic)

    def limit(self, name: str, share: float) -> None:
        """From now on an operator may use this part of its whole share."""
        cores = share * OPERATORS[name].cores
        self._running[name].group.limit(cores, Quota.of_linux(cores).period_s)

    def lift(self) -> None:
        """No quota that matters: a cold JVM on a part of a core compiles for minutes."""
        for each in self._running.values():
            each.group.limit(START_CORES, PERIOD_S)

    def cpu_seconds(self) -> Mapping[str, float]:
        """CPU that each operator used since it was started."""
        return {name: each.group.cpu_seconds() for name, each in self._running.items()}

    def need_alive(self) -> None:
        for name, each in self._running.items():
            if each.process.poll() is not None:
                raise ExternalError(f"{name} has ended: {self._words(name)}")

    def stop(self) -> None:
        self.lift()
        for each in self._running.values():
            each.process.terminate()
        for each in self._running.values():
            try:
                each.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
        self._running = {}

    def _begin(self, name: str, group: Group) -> None:
        self._holding.note_cgroups(group.folders)
        for folder in group.folders:
            folder.mkdir()
        group.limit(START_CORES, PERIOD_S)
        checkpoint = self._holding.scratch / f"{name}-checkpoint"
        operator = OPERATORS[name]
        ends = [self.topics[operator.reads], self.topics[operator.writes]]
        words = [sys.executable, "-m", "penstock.live.log_query", name, self.source.address, *ends, str(checkpoint)]
        environment = spark_environment(self._holding.scratch)
        process = self._holding.start(words, self._log(name), group.folders, environment)
        self._running[name] = _Running(process, group)

    def _await(self, name: str) -> None:
        process = self._running[name].process
        Starting(name, self._log(name), lambda: [process.pid], process.poll).wait(lambda: RUNS in self._said(name))

    def _log(self, name: str) -> Path:
        return self._holding.scratch / f"{name}.log"

    def _said(self, name: str) -> str:
        return self._log(name).read_text(encoding="utf-8", errors="replace")

    def _words(self, name: str) -> str:
        return last_words(self._log(name)) or "it said nothing"


def need_groups(holding: Holding) -> Groups:
    """Without cgroups there are no shares: refused."""
    for number, groups in enumerate(find_groups()):
        trial = groups(f"penstock-{holding.mark}-trial-{number}")
        holding.note_cgroups(trial.folders)
        if works(trial):
            for folder in trial.folders:
                remove_cgroup(folder)
            return groups
    raise BadInput(
        "no right to make cgroups here: CPU shares are quotas of cgroups; run as root, or in a slice of yours"
    )
