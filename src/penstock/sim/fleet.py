"""Workers that start late, warm up, vary in speed, fail and come back."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.allocation import Allocation, Worker
from penstock.core.errors import BadInput, unknown
from penstock.sim.engine import Segment
from penstock.sim.specs import PauseSpec, WorkerSpec
from penstock.sim.variability import Speeds


@dataclass(eq=False, slots=True)
class _Slot:
    name: str
    spec: WorkerSpec
    factor: float
    """Its cores at their speed, as a multiple of the first kind's."""
    paid_since_s: float
    speed: float = 0.0
    runs: bool = False
    runs_since_s: float = 0.0
    gone: bool = False


class Fleet:
    """The workers of a simulated plant, moved from event to event; between events nothing changes."""

    def __init__(
        self,
        kinds: Sequence[WorkerSpec],
        pause: PauseSpec,
        state_mb: float,
        rng: np.random.Generator,
        speeds: Speeds | None = None,
    ) -> None:
        """Without `speeds`, each kind says how its workers vary."""
        self._kinds = {kind.name: kind for kind in kinds}
        self._first, self._pause, self._state_mb, self._rng = kinds[0], pause, state_mb, rng
        self._varying = speeds
        self._slots: dict[str, _Slot] = {}
        self._events: list[tuple[float, int, Callable[[float, _Slot], None], _Slot]] = []
        self._events_made = 0
        self._speed = 0.0
        self._joined = 0.0
        self._paused_until_s = 0.0
        self._who: list[tuple[str, float]] = []
        self._shown: Allocation | None = None
        self.shown_later_s = 0.0
        """A trace's gaps are cut out of the fleet's time; this much later it is on the calendar."""
        self.target = Allocation(())
        self.running = Allocation(())
        self.names: tuple[str, ...] = ()
        self.speeds: tuple[float, ...] = ()
        self.alike = True
        self.paid_since_s: tuple[float, ...] = ()
        self.runs_since_s: tuple[float, ...] = ()
        self.pending: Mapping[str, float] = {}
        """Workers that were asked for and do not run yet: when each was asked for."""
        self._by_name: Mapping[str, float] = {}
        self._is_stale = False

    def begin(self, workers: int) -> None:
        """Some workers of the first kind that run and are warm at time 0."""
        self.target = Allocation.of(workers, self._first.name)
        self._slots = {worker.name: self._slot(worker, 0.0) for worker in self.target.workers}
        for slot in self._slots.values():
            slot.runs = True
            self._settle(0.0, slot)
            self._plan_failure(0.0, slot)
        self._changed()
        if self._varying is not None:
            # One event for all: a turn for each of 100 workers would look at all of them 100 times.
            self._at(self._varying.next_s(0.0), self._vary, _Slot("", self._first, 1.0, 0.0))

    def check(self, target: Allocation) -> None:
        """BadInput for workers of kinds that cannot be."""
        for worker in target.workers:
            has = self._slots.get(worker.name)
            if has is not None and has.spec.name != worker.kind:
                raise BadInput(f"worker {worker.name} is of the kind {has.spec.name}, not {worker.kind}")
            if worker.kind not in self._kinds:
                raise unknown("kind of worker", worker.kind, self._kinds)

    def resize(self, target: Allocation, now_s: float) -> None:
        """Start what is new and stop what is gone; what is starting already goes on."""
        fresh = [self._slot(each, now_s) for each in target.workers if each.name not in self._slots]
        self.target = target
        wanted = {worker.name for worker in target.workers}
        leaving = [slot for name, slot in self._slots.items() if name not in wanted]
        for slot in leaving:
            slot.gone = True
            del self._slots[slot.name]
        self._slots.update({slot.name: slot for slot in fresh})
        for slot in fresh:
            self._start(now_s, slot)
        self._changed()
        if any(slot.runs for slot in leaving):
            self._reconfigure(now_s, sum(slot.runs for slot in leaving))

    def advance(self, begin_s: float, end_s: float) -> list[Segment]:
        """The stretches between two times, in order."""
        segments: list[Segment] = []
        now_s = begin_s
        if not self._events and begin_s >= self._paused_until_s:
            return [Segment(begin_s, end_s, self._speed, self._joined, self._by_name)]
        while now_s < end_s:
            next_s = min(end_s, self._events[0][0]) if self._events else end_s
            if now_s < self._paused_until_s:
                next_s = min(next_s, self._paused_until_s)
            if next_s > now_s:
                paused = now_s < self._paused_until_s
                workers = 0.0 if paused else self._speed
                segments.append(Segment(now_s, next_s, workers, self._joined, self._by_name))
            now_s = next_s
            while self._events and self._events[0][0] <= now_s and now_s < end_s:
                _, _, action, slot = heapq.heappop(self._events)
                if not slot.gone:
                    action(now_s, slot)
            if self._is_stale:  # workers that come at one moment are looked at once
                self._changed()
        return segments

    def _slot(self, worker: Worker, now_s: float) -> _Slot:
        kind = self._kinds[worker.kind]
        return _Slot(worker.name, kind, kind.power / self._first.power, now_s + self.shown_later_s)

    def _start(self, now_s: float, slot: _Slot) -> None:
        takes_s = slot.spec.start_s
        delay_s = float(self._rng.uniform(*takes_s)) if isinstance(takes_s, tuple) else takes_s
        if delay_s <= 0:
            self._ready(now_s, slot)
        else:
            self._at(now_s + delay_s, self._ready, slot)

    def _ready(self, now_s: float, slot: _Slot) -> None:
        slot.runs, slot.runs_since_s = True, now_s + self.shown_later_s
        spec = slot.spec
        if spec.warm_s > 0:
            slot.speed = spec.warm_speed * slot.factor
            self._at(now_s + spec.warm_s, self._settle, slot)
        else:
            self._settle(now_s, slot)
        self._joined += slot.speed
        self._plan_failure(now_s, slot)
        self._is_stale = True
        self._reconfigure(now_s, 1)

    def _settle(self, now_s: float, slot: _Slot) -> None:
        """Give the worker its speed, and another one later where speeds change in time."""
        spec = slot.spec
        if self._varying is not None:
            speed = self._varying.speed(slot.name, now_s)
        else:
            speed = 1.0 - spec.speed_spread * float(self._rng.random()) if spec.speed_spread else 1.0
        slot.speed = speed * slot.factor
        if spec.speed_spread and spec.speed_every_s and self._varying is None:
            self._at(now_s + spec.speed_every_s, self._settle, slot)
        self._is_stale = True

    def _vary(self, now_s: float, turn: _Slot) -> None:
        """New speeds for all that are warm."""
        varying = self._varying
        assert varying is not None
        for slot in self._slots.values():
            if slot.runs and slot.runs_since_s - self.shown_later_s + slot.spec.warm_s <= now_s:
                slot.speed = varying.speed(slot.name, now_s) * slot.factor
        self._at(varying.next_s(now_s), self._vary, turn)
        self._is_stale = True

    def _plan_failure(self, now_s: float, slot: _Slot) -> None:
        if slot.spec.fails_every_s:
            self._at(now_s + float(self._rng.exponential(slot.spec.fails_every_s)), self._fail, slot)

    def _fail(self, now_s: float, slot: _Slot) -> None:
        """A worker that dies is replaced in its slot, as Spark's master does; the new one is paid from then on."""
        slot.gone = True
        successor = _Slot(slot.name, slot.spec, slot.factor, now_s + self.shown_later_s)
        self._slots[slot.name] = successor
        self._start(now_s, successor)
        self._is_stale = True
        self._reconfigure(now_s, 1)

    def _reconfigure(self, now_s: float, workers_changed: int) -> None:
        moved_mb = self._state_mb * workers_changed / max(1, len(self._slots))
        move_s = moved_mb / self._pause.move_mb_s if self._pause.move_mb_s else 0.0
        pause_s = self._pause.reconfigure_s + move_s
        if pause_s:
            self._paused_until_s = max(self._paused_until_s, now_s + pause_s)

    def _changed(self) -> None:
        self._is_stale = False
        slots = [self._slots[worker.name] for worker in self.target.workers]
        running = slots if all(slot.runs for slot in slots) else [slot for slot in slots if slot.runs]
        self.speeds = tuple(slot.speed for slot in running)
        self.alike = len(set(self.speeds)) <= 1
        self._speed = sum(self.speeds)
        self._by_name = {slot.name: slot.speed for slot in running}
        self.pending = {slot.name: slot.paid_since_s for slot in slots if not slot.runs} if running is not slots else {}
        who = [(slot.name, slot.paid_since_s) for slot in running]
        if who != self._who or self._shown is not self.target:
            self._shown = self.target
            # A new object tells readers that look at identity alone that something is new.
            self.running = replace(self.target) if running is slots else self.target.only(self._by_name)
            self.names = tuple(name for name, _ in who)
            self.paid_since_s = tuple(since_s for _, since_s in who)
            self.runs_since_s = tuple(slot.runs_since_s for slot in running)
            self._who = who

    def _at(self, time_s: float, action: Callable[[float, _Slot], None], slot: _Slot) -> None:
        self._events_made += 1
        heapq.heappush(self._events, (time_s, self._events_made, action, slot))
