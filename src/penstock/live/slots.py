"""Which executor stands for which worker. A policy names slots; executors come, go and are lost as Spark likes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.core.allocation import Allocation, Worker


class Slots:
    """The slots of a target, and the executors in them.

    >>> slots = Slots(Allocation.of(2))
    >>> slots.settle(["7"])
    >>> [worker.name for worker in slots.running.workers], slots.executor("w1")
    (['w1'], '7')
    """

    def __init__(self, target: Allocation, asked_s: Mapping[str, float] | None = None) -> None:
        self.target = target
        self._asked_s = dict(asked_s or {})
        """When each slot was asked for, where somebody asked."""
        self.lost = 0
        """Executors that went without being told to."""
        self._executors: dict[Worker, str] = {}
        self._leaving: dict[Worker, str] = {}
        self._surplus: list[str] = []
        self._told: set[str] = set()

    def retarget(self, target: Allocation, now_s: float = 0.0) -> None:
        """Slots that are no longer wanted are left as soon as may be; who was not told to go yet stays in a new one.

        4 → 3 → 4 within a batch would otherwise end a warm executor and start a cold one.
        """
        known = {worker.name for worker in self.target.workers}
        kept = {name: asked_s for name, asked_s in self._asked_s.items() if name in known}
        self._asked_s = kept | {worker.name: now_s for worker in target.workers if worker.name not in known}
        self.target = target
        for worker in [worker for worker in self._executors if worker not in target.workers]:
            self._leaving[worker] = self._executors.pop(worker)
        still = {name: worker for worker, name in self._leaving.items() if name not in self._told}
        for worker, name in zip(self._empty, [*still, *self._untold_surplus], strict=False):
            self._executors[worker] = name
            if name in still:
                del self._leaving[still[name]]
            else:
                self._surplus.remove(name)

    def follow(self, executors: Iterable[str], now_s: float) -> None:
        """Somebody else scales: what is there is what was asked for, as far as anybody can tell."""
        there = list(executors)
        gone = {worker for worker, name in self._executors.items() if name not in there}
        if gone or len(there) != len(self.target.workers):
            self._executors = {worker: name for worker, name in self._executors.items() if worker not in gone}
            stay = [worker.name for worker in self.target.workers if worker not in gone]
            known, self.target = self.target, self.target.only(stay[: len(there)]).resized(len(there))
            self._asked_s |= {worker.name: now_s for worker in self.target.workers if worker not in known.workers}
        self.settle(there, now_s)

    def settle(self, executors: Iterable[str], now_s: float = 0.0) -> None:
        """Take note of the executors that live: the oldest go to the oldest empty slots."""
        there = list(executors)
        self._told &= set(there)
        for worker in [worker for worker, name in self._executors.items() if name not in there]:
            self.lost += 1
            del self._executors[worker]
            self._asked_s[worker.name] = now_s  # another one is asked for in its place
        self._leaving = {worker: name for worker, name in self._leaving.items() if name in there}
        taken = {*self._executors.values(), *self._leaving.values(), *self._told}
        free, empty = [name for name in there if name not in taken], self._empty
        self._executors |= dict(zip(empty, free, strict=False))
        self._surplus = free[len(empty) :]

    @property
    def running(self) -> Allocation:
        """What exists: those that are to leave, too, until they have left."""
        held = [worker for worker in self.target.workers if worker in self._executors]
        return replace(self.target, workers=(*held, *self._leaving))

    @property
    def pending(self) -> dict[str, float]:
        """Slots without an executor, and when they were asked for."""
        return {worker.name: self._asked_s.get(worker.name, 0.0) for worker in self._empty}

    def asked_s(self, worker: str) -> float | None:
        """When a slot was asked for; None for one that was there before."""
        return self._asked_s.get(worker)

    def executor(self, worker: str) -> str | None:
        """The executor in a slot, by the slot's name."""
        held = self._executors | self._leaving
        return next((name for slot, name in held.items() if slot.name == worker), None)

    def to_end(self) -> list[str]:
        """Executors that nobody wants and that were not told yet: their slots were given up, or they came late."""
        return [name for name in self._leaving.values() if name not in self._told] + self._untold_surplus

    def tell(self, names: Iterable[str]) -> None:
        """These were told to end; the list of executors lags that by seconds."""
        self._told.update(names)

    @property
    def _empty(self) -> list[Worker]:
        return [worker for worker in self.target.workers if worker not in self._executors]

    @property
    def _untold_surplus(self) -> list[str]:
        return [name for name in self._surplus if name not in self._told]
