"""Worker counts tried out tick by tick, in the engine and on the fleet of a replay; any tick can be gone back to."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

from penstock.core.job import CapacityModel
from penstock.sim.continuous import Continuous
from penstock.sim.fleet import Fleet
from penstock.sim.microbatches import MicroBatches

# Response times are collected on the way, and nobody asks for them.
_FORGET_EVERY = 256


class QueueTrial:
    """A replay of one queue without gauges, observations and journal: only what is late matters."""

    def __init__(self, load: tuple[Sequence[float], float], fleet: Fleet, engine: Continuous | MicroBatches) -> None:
        self._arrivals, self._tick_s = load
        self._fleet, self._engine = fleet, engine
        self._engine.apply(fleet.target)
        self.tick = 0

    def step(self, workers: int) -> float:
        """One tick further, with so many workers asked for at its begin: how many of its seconds are too late."""
        fleet, begin_s = self._fleet, self.tick * self._tick_s
        # The first tick runs before the first decision.
        if self.tick and len(fleet.target.workers) != workers:
            fleet.resize(fleet.target.resized(workers), begin_s)
        end_s = (self.tick + 1) * self._tick_s
        arriving = {"": self._arrivals[self.tick] / self._tick_s}
        for segment in fleet.advance(begin_s, end_s):
            self._engine.advance(segment, arriving)
        self.tick += 1
        if self.tick % _FORGET_EVERY == 0:
            self._engine.fifo.take_responses()
        return self._engine.fifo.take_late_s(end_s, self._engine.service_s)

    def saved(self) -> bytes:
        """Where it stands, to come back to."""
        file = io.BytesIO()
        _Pickler(file, self._engine.capacity).dump((self.tick, self._fleet, self._engine))
        return file.getvalue()

    def restored(self, saved: bytes) -> None:
        """Back to where it stood."""
        reader = _Unpickler(io.BytesIO(saved), self._engine.capacity)
        self.tick, self._fleet, self._engine = reader.load()


class _Pickler(pickle.Pickler):
    """The capacity model is left out: it never changes, may be large, and may be of a kind that cannot be written."""

    def __init__(self, file: io.BytesIO, model: CapacityModel) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._model = model

    def persistent_id(self, obj: Any) -> str | None:
        return "capacity" if obj is self._model else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, model: CapacityModel) -> None:
        super().__init__(file)
        self._model = model

    def persistent_load(self, _: Any) -> CapacityModel:
        return self._model
