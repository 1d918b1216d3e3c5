"""What a simulated plant's meters show: the truth, with noise where the scenario asks for it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.core.observation import WorkerTable
from penstock.sim.engine import Served
from penstock.sim.fleet import Fleet
from penstock.sim.noise import Noise

if TYPE_CHECKING:
    from penstock.sim.scenario import Scenario

# What the JVM and Spark hold before any state: a quarter of an executor of 4 GB.
BASE_MEMORY = 0.25


class Gauges:
    """Noisy CPU, memory and rates. Rounded as a meter would: what a policy sees is what the journal keeps."""

    def __init__(self, scenario: Scenario, rng: np.random.Generator) -> None:
        self._noise = noise = scenario.noise
        self._memory_mb, self._state_mb = scenario.worker.memory_mb, scenario.dataflow.state_mb
        wide = scenario.limits.workers_max
        self._cpu, self._memory, self._rate = (
            Noise.fading(columns, scenario.tick_s, noise.correlation_s, rng) if size else None
            # The last of the CPU's columns is the noise that all workers share.
            for size, columns in ((noise.cpu, wide + bool(noise.cpu_shared)), (noise.memory, wide), (noise.rate, 1))
        )
        self._rates: deque[float] = deque(maxlen=max(1, round(noise.rate_over_s / scenario.tick_s)))
        ticks = noise.cpu_late_s / scenario.tick_s
        self._late = deque([0.0] * math.ceil(ticks - 1e-9))
        # A meter that is late by a part of a tick shows some of this one and some of the one before.
        self._newer = len(self._late) - ticks

    def rate(self, rate: float) -> float:
        if self._rates.maxlen != 1:
            self._rates.append(rate)
            rate = sum(self._rates) / len(self._rates)
        if self._rate is None:
            return round(rate, 3)
        return round(max(0.0, rate * (1.0 + self._noise.rate * float(self._rate.row()[0]))), 3)

    def workers(self, fleet: Fleet, served: Served) -> WorkerTable:
        """What is seen of the running workers."""
        count, throughput = len(fleet.speeds), served.throughput
        memory_mb = BASE_MEMORY * self._memory_mb + self._state_mb / max(1, count)
        input_rate: float | list[float] = round(throughput / max(1, count), 3)
        if not fleet.alike:
            pace = throughput / (sum(fleet.speeds) or 1.0)
            input_rate = [round(pace * speed, 3) for speed in fleet.speeds]
        columns: dict[str, float | Sequence[float]] = {
            "cpu": self._cpu_column(served.load, count),
            "memory_mb": self._memory_column(memory_mb, count),
            "input_rate": input_rate,
            "paid_since_s": fleet.paid_since_s,
            "runs_since_s": fleet.runs_since_s,
        }
        if served.loads is not None:
            # An engine that places operators knows each worker by itself, and measures how fast it is.
            columns["cpu"] = self._noisy([served.loads.get(name, 0.0) for name in fleet.names])
            columns["speed"] = fleet.speeds
        return WorkerTable(fleet.names, columns)

    def _noisy(self, loads: list[float]) -> list[float]:
        if self._cpu is None:
            return [round(load, 4) for load in loads]
        errors = self._cpu.row()[: len(loads)] * self._noise.cpu
        return [round(min(1.0, max(0.0, load + float(error))), 3) for load, error in zip(loads, errors, strict=True)]

    def _cpu_column(self, load: float, count: int) -> float | list[float]:
        late = self._late
        if late:
            late.append(load)
            load = late.popleft() * (1 - self._newer) + late[0] * self._newer
        load = self._noise.cpu_idle + (self._noise.cpu_busy - self._noise.cpu_idle) * load
        if self._cpu is None:
            return round(min(1.0, load), 4)
        row, shared = self._cpu.row(), self._noise.cpu_shared
        errors = math.sqrt(1 - shared) * row[:count] + math.sqrt(shared) * row[-1] if shared else row[:count]
        noisy = errors * self._noise.cpu + load
        return list(np.minimum(np.maximum(noisy, 0.0), 1.0).round(3).tolist())

    def _memory_column(self, memory_mb: float, count: int) -> float | list[float]:
        if self._memory is None:
            return round(memory_mb, 1)
        noisy = memory_mb * (1.0 + self._noise.memory * self._memory.row()[:count])
        return list(np.minimum(np.maximum(noisy, 0.0), self._memory_mb).round().astype(int).tolist())
