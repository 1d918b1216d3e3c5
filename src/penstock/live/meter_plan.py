"""What the meter is to measure: worker counts, a source, a cluster; and whether samples that are there fit."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.apps.app import App
from penstock.core.errors import BadInput
from penstock.live.jars import kafka_jars
from penstock.live.kafka import KafkaSource
from penstock.live.sampler import Sampling
from penstock.live.settling import WINDOW
from penstock.models.samples import differences

# CPU that an executor needs until its code is compiled: batches of word count went from 1.7 to 0.7 s within 20 s,
# and to 0.6 s within 30.
WARM_CPU_S = 25.0
QUICK_WARM_CPU_S = 10.0
COOL_S = 3.0


@dataclass(frozen=True, slots=True)
class MeterPlan:
    """What to measure, and where."""

    workers: tuple[int, ...] = (1, 2, 3)
    repeat: int = 3
    cores: float = 0.25
    memory_mb: int = 1024
    partitions: int | None = None
    partitions_per_worker: int = 2
    quick: bool = False
    seed: int = 0
    master: str | None = None
    """An existing cluster; its executors get whole cores and are warmed longer, for nobody lifts their quota."""
    source: str = "files"
    kafka: KafkaSource | None = None
    """A broker of the user's own; with a topic's name, that topic is read as it is."""
    folder: Path | None = None
    """Where input and checkpoints lie: all workers must see it."""

    def __post_init__(self) -> None:
        if not self.workers or min(self.workers) < 1:
            raise BadInput("--workers takes counts from 1 on, as in 1,2,3")
        if self.repeat < 1:
            raise BadInput(f"--repeat {self.repeat}: at least 1 is needed")
        if self.master and self.master.startswith("local"):
            raise BadInput(
                f"--master {self.master}: it has no executors to count; leave it out for a cluster of our own"
            )
        if self.master and not self.folder and not _is_here(self.master):
            raise BadInput(
                f"--master {self.master}: give --folder a path that all its workers see (input, checkpoints)"
            )

    def partitions_for(self, workers: int) -> int:
        """Fixed, or so many for each worker (paper 1, eq 1)."""
        return self.partitions or workers * self.partitions_per_worker

    @property
    def sampling(self) -> Sampling:
        return Sampling.quick() if self.quick else Sampling()

    @property
    def slots(self) -> int:
        """Tasks at once on an executor."""
        return max(1, -(-int(self.cores * 1000) // 1000))

    @property
    def warm_cpu_s(self) -> float:
        return QUICK_WARM_CPU_S if self.quick else WARM_CPU_S

    @property
    def settings(self) -> dict[str, str]:
        settings = {
            "spark.executor.cores": str(self.slots),
            "spark.executor.memory": f"{self.memory_mb}m",
            "spark.sql.adaptive.enabled": "false",
            "spark.dynamicAllocation.enabled": "false",
            "spark.driver.memory": "1g",
        }
        return settings | ({"spark.jars": kafka_jars().spark_jars} if self.source == "kafka" else {})

    def need_cores(self, limited: bool, cpus: int) -> None:
        """More workers than the machine has cores for would share them, and add nothing."""
        each = self.cores if limited else self.slots
        if max(self.workers) * each > cpus:
            why = f"{each:g} cores" if limited else f"{each:g} (no right to make cgroups, so nothing limits it)"
            raise BadInput(
                f"--workers {max(self.workers)}: this machine has {cpus} cores and each worker takes {why}: "
                f"measure at most {math.floor(cpus / each)}"
            )

    def need_same(self, rows: list[dict[str, Any]], app: App, setup: str) -> None:
        """A file of samples is gone on with only if what it has is of the same kind."""
        wanted = {"app": app.name, "source": self.source, "cores": self.cores, "partitions": self.partitions}
        wanted["partitions_per_worker"] = None if self.partitions else float(self.partitions_per_worker)
        for row in rows:
            for key, value in wanted.items():
                if row[key] != value:
                    raise BadInput(f"the output has samples of {key} {row[key]}, not {value}: choose another file")
            if row["setup"] != setup:
                where = "; ".join(differences(row["setup"], setup))
                raise BadInput(f"the output has samples of another set-up ({where}): choose another file")

    def expected_s(self, todo: list[tuple[int, int]]) -> float:
        """How long it should take to measure these."""
        sampling = self.sampling
        long = 1 + (WINDOW + 1 if sampling.settles else sampling.batches)
        each_s = long * sampling.long_s + max(sampling.sample_s, (sampling.batches + 1) * 2.0) + 4
        warm_s = 1.2 * WARM_CPU_S * max(1.0, todo[0][0] / (os.cpu_count() or 1))
        preload_s = 20.0 * len({m for m, _ in todo}) if self.source == "kafka" else 0.0
        return 25.0 + warm_s + preload_s + (each_s + COOL_S) * len(todo)


def _is_here(master: str) -> bool:
    return master.startswith(("spark://127.0.0.1:", "spark://localhost:"))
