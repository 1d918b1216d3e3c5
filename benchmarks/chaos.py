"""Nothing lost: a keyed count over Kafka that is scaled all the time, while executors, the driver with its controller
and the broker are killed. `scripts/chaos [--for 5m]`; every event must be counted exactly once at the end."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.feeding import KafkaFeeder
from penstock.core.errors import PenstockError
from penstock.core.journal import Journal
from penstock.core.units import duration_s
from penstock.live.cluster import Cluster, ClusterSpec
from penstock.live.kafka import Broker
from penstock.pipeline.session import session

POLICY = Path(__file__).with_name("updown.py")
CANARY = "canary-Zk81mQ"  # a password that nothing may show
TOPIC = "chaos"
RATE = 1000.0
WORKERS = 4
KILL_EVERY_S = 20.0
START_S = 600.0
DRAIN_S = 240.0
ENDS_S = 180.0


@dataclass(slots=True)
class World:
    """What is killed, and what must survive."""

    folder: Path
    cluster: Cluster
    broker: Broker
    driver: subprocess.Popen[bytes] | None = None
    killed: Counter[str] = field(default_factory=Counter)

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def start_driver(self) -> None:
        source = ["--source", "kafka", "--broker", self.broker.address, "--topic", TOPIC, "--master", self.cluster.url]
        control = ["--policy", f"{POLICY}:UpDown", "--min", "1", "--max", str(WORKERS), "--tick", "3s"]
        job = ["--trigger", "2s", "--partitions", "4", "--journal", str(self.journal)]
        words = ["run", "wordcount", *source, *control, *job, "--checkpoint", str(self.checkpoint)]
        (self.folder / "options").write_text("kafka.ssl.key.password=${CHAOS_PASSWORD}\n")
        command = [sys.executable, "-m", "penstock", *words, "--options", str(self.folder / "options")]
        environment = {**os.environ, "CHAOS_PASSWORD": CANARY}
        with (self.folder / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def leaks(self) -> list[str]:
        """Files that show the password: journal, log, checkpoint."""
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return [path.name for path in files if CANARY.encode() in path.read_bytes()]

    def kill_driver(self) -> None:
        assert self.driver is not None
        self.driver.kill()
        self.driver.wait()
        self.killed["driver"] += 1

    def kill_executor(self, rng: random.Random) -> None:
        """SIGKILL one executor of this cluster."""
        numbers = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
        found = [number for number in numbers if self._is_executor(number)]
        if found:
            os.kill(rng.choice(found), signal.SIGKILL)
            self.killed["executor"] += 1

    def _is_executor(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            return b"CoarseGrainedExecutorBackend" in words and str(self.cluster.folder).encode() in words
        return False

    def restart_broker(self) -> None:
        self.broker.restart()
        self.killed["broker"] += 1

    def steps(self) -> tuple[int, float, float]:
        """Scaling actions so far, events that wait, and events answered."""
        try:
            steps = list(Journal.open(self.journal))
        except PenstockError:
            return 0, 0.0, 0.0
        actions = sum(step.target.workers != step.seen.target.workers for step in steps)
        last = steps[-1].seen if steps else None
        if last is None:
            return 0, 0.0, 0.0
        return actions, math.inf if last.backlog is None else last.backlog, last.processed


def chaos(seconds: float, seed: int = 0) -> dict[str, Any]:
    """Run it; what was found out."""
    with tempfile.TemporaryDirectory(prefix="penstock-chaos-") as folder, contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker.start())
        broker.create_topic(TOPIC, partitions=4)
        cluster = stack.enter_context(Cluster.start(ClusterSpec(WORKERS, cores=0.5)))
        world = World(Path(folder), cluster, broker)
        feeder = KafkaFeeder(lambda _: RATE, broker.address, TOPIC, [f"k{number}" for number in range(100)])
        try:
            feeder.start()
            world.start_driver()
            _wait_for_steps(world)
            _disturb(world, seconds, random.Random(seed))
            feeder.stop()
            _drain(world)
        finally:
            if world.driver is not None and world.driver.poll() is None:
                world.kill_driver()
        actions, _, _ = world.steps()
        compared = _compare(world, feeder.counts)
        return {"fed": feeder.fed, "actions": actions, "killed": dict(world.killed), "leaks": world.leaks(), **compared}


def _wait_for_steps(world: World) -> None:
    """A job that is killed before it began proves nothing; it takes half a minute to begin, or more."""
    deadline = time.monotonic() + START_S
    while not world.journal.exists() or world.steps()[2] == 0:
        if time.monotonic() > deadline:
            raise SystemExit(f"the job did not begin: {(world.folder / 'driver.log').read_text()[-2000:]}")
        time.sleep(1)


def _disturb(world: World, seconds: float, rng: random.Random) -> None:
    """An executor every so often; the driver at 40 % of the time; the broker at 70 %."""
    begun = time.monotonic()
    events = [(0.4 * seconds, "driver"), (0.7 * seconds, "broker")]
    next_s = KILL_EVERY_S / 2
    while (now_s := time.monotonic() - begun) < seconds:
        if now_s > next_s:
            world.kill_executor(rng)
            next_s += KILL_EVERY_S
        if events and now_s > events[0][0]:
            _, what = events.pop(0)
            if what == "driver":
                world.kill_driver()
                world.start_driver()
            else:
                world.restart_broker()
        time.sleep(0.5)


def _drain(world: World) -> None:
    """Until all that was fed has been answered; then end at a batch boundary."""
    assert world.driver is not None
    deadline, processed = time.monotonic() + DRAIN_S, -1.0
    # Twice the same count and nothing waiting: a journal that stands still from the start would have said so at once.
    while time.monotonic() < deadline:
        _, waiting, now = world.steps()
        if waiting == 0 and now == processed:
            break
        processed = now
        if world.driver.poll() is not None:
            raise SystemExit(f"the driver ended by itself: {(world.folder / 'driver.log').read_text()[-2000:]}")
        time.sleep(10)
    world.driver.terminate()  # as Ctrl-C, which a shell's background jobs ignore
    try:
        world.driver.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"the driver does not end: {(world.folder / 'driver.log').read_text()[-4000:]}") from None


def _compare(world: World, fed: Counter[str]) -> dict[str, Any]:
    """What Spark's own state says was counted, word by word."""
    with session("local[2]", "chaos state") as spark:
        _ = spark.streams.active  # the first look starts the coordinator of state stores, without which none is read
        state = spark.read.format("statestore").load(str(world.checkpoint))
        counted = {row[0]: row[1] for row in state.selectExpr("key.word", "value.count").collect()}
    wrong = {word: (count, counted.get(word, 0)) for word, count in fed.items() if counted.get(word, 0) != count}
    return {"counted": sum(counted.values()), "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--for", dest="seconds", default="5m", metavar="TIME")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = chaos(duration_s(options.seconds, "--for"), options.seed)
    for name, value in found.items():
        print(f"{name}: {value}")
    problems = verdict(found)
    print("; ".join(problems) or "every event was counted exactly once")
    return 1 if problems else 0


def verdict(found: dict[str, Any], actions_least: int = 20) -> list[str]:
    """What went wrong, or did not happen and so proves nothing."""
    problems = []
    if found["wrong"] or found["counted"] != found["fed"]:
        problems.append("LOST OR COUNTED TWICE")
    if found["leaks"]:
        problems.append(f"the password stands in {', '.join(found['leaks'])}")
    if found["actions"] < actions_least:
        problems.append(f"only {found['actions']} scaling actions: {actions_least} are needed")
    return problems + [
        f"no {what} was killed" for what in ("executor", "driver", "broker") if not found["killed"].get(what)
    ]


if __name__ == "__main__":
    sys.exit(main())
