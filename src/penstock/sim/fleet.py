"""Workers that start late, warm up, vary in speed, fail and come back."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.allocation import Allocation
from penstock.sim.specs import PauseSpec, WorkerSpec


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of time in which the fleet does not change."""

    begin_s: float
    end_s: float
    workers: float
    """Running workers, each counted with its speed; 0 while the job pauses."""
    joined: float = 0.0
    """How many workers have joined so far, each counted with its first speed."""


@dataclass(eq=False, slots=True)
class _Slot:
    name: str
    paid_since_s: float
    speed: float = 0.0
    runs: bool = False
    gone: bool = False


class Fleet:
    """The workers of a simulated plant, moved from event to event; between events nothing changes."""

    def __init__(self, spec: WorkerSpec, pause: PauseSpec, state_mb: float, rng: np.random.Generator) -> None:
        self._spec, self._pause, self._state_mb, self._rng = spec, pause, state_mb, rng
        self._slots: dict[str, _Slot] = {}
        self._events: list[tuple[float, int, Callable[[float, _Slot], None], _Slot]] = []
        self._events_made = 0
        self._speed = 0.0
        self._joined = 0.0
        self._paused_until_s = 0.0
        self._who: list[tuple[str, float]] = []
        self.shown_later_s = 0.0
        """A trace's gaps are cut out of the fleet's time; this much later it is on the calendar."""
        self.target = Allocation(())
        self.running = Allocation(())
        self.names: tuple[str, ...] = ()
        self.speeds: tuple[float, ...] = ()
        self.alike = True
        self.paid_since_s: tuple[float, ...] = ()

    def begin(self, workers: int) -> None:
        """Some workers that run and are warm at time 0."""
        self.target = Allocation.of(workers)
        self._slots = {worker.name: _Slot(worker.name, 0.0, runs=True) for worker in self.target.workers}
        for slot in self._slots.values():
            self._settle(0.0, slot)
            self._plan_failure(0.0, slot)

    def resize(self, target: Allocation, now_s: float) -> None:
        """Start what is new and stop what is gone; what is starting already goes on."""
        self.target = target
        wanted = [worker.name for worker in target.workers]
        leaving = [slot for name, slot in self._slots.items() if name not in wanted]
        for slot in leaving:
            slot.gone = True
            del self._slots[slot.name]
        fresh = [_Slot(name, now_s + self.shown_later_s) for name in wanted if name not in self._slots]
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
            return [Segment(begin_s, end_s, self._speed, self._joined)]
        while now_s < end_s:
            next_s = min(end_s, self._events[0][0]) if self._events else end_s
            if now_s < self._paused_until_s:
                next_s = min(next_s, self._paused_until_s)
            if next_s > now_s:
                paused = now_s < self._paused_until_s
                segments.append(Segment(now_s, next_s, 0.0 if paused else self._speed, self._joined))
            now_s = next_s
            while self._events and self._events[0][0] <= now_s and now_s < end_s:
                _, _, action, slot = heapq.heappop(self._events)
                if not slot.gone:
                    action(now_s, slot)
        return segments

    def _start(self, now_s: float, slot: _Slot) -> None:
        takes_s = self._spec.start_s
        delay_s = takes_s if isinstance(takes_s, float) else float(self._rng.uniform(*takes_s))
        if delay_s <= 0:
            self._ready(now_s, slot)
        else:
            self._at(now_s + delay_s, self._ready, slot)

    def _ready(self, now_s: float, slot: _Slot) -> None:
        slot.runs = True
        spec = self._spec
        if spec.warm_s > 0:
            slot.speed = spec.warm_speed
            self._at(now_s + spec.warm_s, self._settle, slot)
        else:
            self._settle(now_s, slot)
        self._joined += slot.speed
        self._plan_failure(now_s, slot)
        self._changed()
        self._reconfigure(now_s, 1)

    def _settle(self, now_s: float, slot: _Slot) -> None:
        """Give the worker its speed, and another one later where speeds change in time."""
        spec = self._spec
        slot.speed = 1.0 - spec.speed_spread * float(self._rng.random()) if spec.speed_spread else 1.0
        if spec.speed_spread and spec.speed_every_s:
            self._at(now_s + spec.speed_every_s, self._settle, slot)
        self._changed()

    def _plan_failure(self, now_s: float, slot: _Slot) -> None:
        if self._spec.fails_every_s:
            self._at(now_s + float(self._rng.exponential(self._spec.fails_every_s)), self._fail, slot)

    def _fail(self, now_s: float, slot: _Slot) -> None:
        """A worker that dies is replaced in its slot, as Spark's master does; the new one is paid from then on."""
        slot.gone = True
        self._slots[slot.name] = successor = _Slot(slot.name, now_s + self.shown_later_s)
        self._start(now_s, successor)
        self._changed()
        self._reconfigure(now_s, 1)

    def _reconfigure(self, now_s: float, workers_changed: int) -> None:
        moved_mb = self._state_mb * workers_changed / max(1, len(self._slots))
        move_s = moved_mb / self._pause.move_mb_s if self._pause.move_mb_s else 0.0
        pause_s = self._pause.reconfigure_s + move_s
        if pause_s:
            self._paused_until_s = max(self._paused_until_s, now_s + pause_s)

    def _changed(self) -> None:
        slots = [self._slots[worker.name] for worker in self.target.workers]
        running = [slot for slot in slots if slot.runs]
        self.speeds = tuple(slot.speed for slot in running)
        self.alike = len(set(self.speeds)) <= 1
        self._speed = sum(self.speeds)
        who = [(slot.name, slot.paid_since_s) for slot in running]
        if who != self._who or self.running.names_given != self.target.names_given:
            # A new object tells readers that look at identity alone that something is new.
            kept = tuple(worker for worker, slot in zip(self.target.workers, slots, strict=True) if slot.runs)
            self.running = replace(self.target, workers=kept)
            self.names = tuple(name for name, _ in who)
            self.paid_since_s = tuple(since_s for _, since_s in who)
            self._who = who

    def _at(self, time_s: float, action: Callable[[float, _Slot], None], slot: _Slot) -> None:
        self._events_made += 1
        heapq.heappush(self._events, (time_s, self._events_made, action, slot))
