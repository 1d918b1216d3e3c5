"""A recorded stretch of utilisation, and what a configuration would have cost in it (paper 2 §3.2, §3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.loop import Decision, Step, control
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.policies.fugu import decided
from penstock.policies.fugu_kernel import evaluate
from penstock.policies.fugu_packing import Arrays
from penstock.policies.fugu_scaler import Layout, Measured, Scaler
from penstock.policies.fugu_settings import SATURATED, Settings

Ints = NDArray[np.int64]
SNAPSHOTS_LEAST = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a configuration would have done in a window."""

    hosts: int
    """Host intervals: every host counts once for each snapshot."""
    violations: int
    """Snapshots in which the queries were late on average."""

    def cost(self, most: int) -> int:
        """As printed (§3.3): host intervals, or MAX and the violations where there are any."""
        return self.hosts if not self.violations else most + self.violations


@dataclass(frozen=True, slots=True)
class Window:
    """Snapshots of all operators, and where they were in the beginning.

    >>> Window.figure_3().plain(Settings(0.8, 0.3, 1, 1, 1)), Window.figure_3().fast(Settings(0.8, 0.3, 1, 1, 1))
    (Outcome(hosts=10, violations=0), Outcome(hosts=10, violations=0))
    """

    layout: Layout
    snapshots: tuple[Measured, ...]
    hosts: tuple[str, ...]
    places: Mapping[str, str]
    limits: Limits
    bound_ms: int | None = None
    """The latency bound; without it nothing is late."""
    any_host: bool = False
    """Is one overloaded host a violation? As printed, its queries' latency is just the bound, and the mean counts."""

    def __post_init__(self) -> None:
        if len(self.snapshots) < SNAPSHOTS_LEAST:
            raise BadInput(f"a window of {len(self.snapshots)} snapshot: it takes {SNAPSHOTS_LEAST} to see a scaling")
        if missing := [name for name in self.layout.operators if self.places.get(name) not in self.hosts]:
            raise BadInput(f"operator '{missing[0]}' of a window is on no host")
        if self.limits.clamp(len(self.hosts)) != len(self.hosts):
            raise BadInput(f"a window that begins with {len(self.hosts)} hosts does not fit the limits ({self.limits})")

    @classmethod
    def figure_3(cls) -> Window:
        """The paper's example: three operators on two hosts, four points in time."""
        rows = {"S1": (400, 500, 400, 300), "A1": (300, 500, 400, 300), "D1": (300, 400, 400, 300)}
        flow = Dataflow((Operator("S1"), Operator("A1", after=("S1",)), Operator("D1", after=("A1",))))
        still = dict.fromkeys(rows, 0)
        times = range(4)
        seen = tuple(Measured({n: (v[t], 0, 0) for n, v in rows.items()}, dict(still), still, (0,)) for t in times)
        return cls(Layout.of(flow), seen, ("H1", "H2"), {"S1": "H1", "A1": "H1", "D1": "H2"}, Limits(1, 12))

    @property
    def most(self) -> int:
        """MAX: more than any configuration can cost."""
        return self.limits.workers_max * len(self.snapshots) + 1

    def plain(self, settings: Settings) -> Outcome:
        """The readable form: the control loop, over a plant that shows what was recorded."""
        plant = _Shown(self)
        policy = _Rules(self, settings)
        steps = list(control(plant, policy, self.limits, plant.ticks()))
        late = sum(self._is_late(seen, step) for seen, step in zip(self.snapshots, steps, strict=True))
        return Outcome(sum(len(step.target.workers) for step in steps), late)

    def fast(self, settings: Settings) -> Outcome:
        """The compiled form: the same to the last digit."""
        hosts, late = evaluate(np.array([settings.row()], dtype=np.int64), self.arrays())[0].tolist()
        return Outcome(hosts, late)

    def _is_late(self, seen: Measured, step: Step) -> bool:
        """Are the queries late on average? By a host that is overloaded before the step, or by the step's moves."""
        if self.bound_ms is None:
            return False
        before, after = step.seen.target.instances, step.target.instances
        cpu = dict.fromkeys((worker.name for worker in step.seen.target.workers), 0)
        for name, (host,) in before.items():
            cpu[host] += seen.loads[name][0]
        full = {host for host, load in cpu.items() if load > SATURATED}
        if full and self.any_host:
            return True
        queries = self.layout.queries
        slowed = {queries[name] for name, (host,) in before.items() if host in full}
        moved = [name for name in before if before[name] != after[name]]
        peak = max((seen.peaks_ms[name] for name in moved), default=0)
        touched = {queries[name] for name in moved}
        latency = [
            max(self.bound_ms if query in slowed else ms, ms + (peak if query in touched else 0))
            for query, ms in enumerate(seen.latency_ms)
        ]
        return sum(latency) >= self.bound_ms * len(latency)

    def arrays(self) -> Arrays:
        """The window as the compiled form takes it."""
        names, index = self.layout.operators, {name: n for n, name in enumerate(self.layout.operators)}
        near = [[index[other] for other in self.layout.beside[name]] for name in names]
        loads = np.array([[seen.loads[name] for name in names] for seen in self.snapshots], dtype=np.int64)
        return Arrays(
            loads=np.ascontiguousarray(loads.transpose(0, 2, 1)),
            peaks=np.array([[seen.peaks_ms[name] for name in names] for seen in self.snapshots], dtype=np.int64),
            latency=np.array([list(seen.latency_ms) for seen in self.snapshots], dtype=np.int64),
            query=np.array([self.layout.queries[name] for name in names], dtype=np.int64),
            # Whoever has a large state is hard to move, and comes first. A live query's state grows and is dropped.
            hard=np.array([_hardest(seen.state_mb, names) for seen in self.snapshots], dtype=np.int64),
            near_from=np.cumsum([0, *map(len, near)], dtype=np.int64),
            near=np.array([other for each in near for other in each], dtype=np.int64),
            places=np.array([self.hosts.index(self.places[name]) for name in names], dtype=np.int64),
            facts=np.array(
                [
                    len(self.hosts),
                    self.limits.workers_min,
                    self.limits.workers_max,
                    -1 if self.bound_ms is None else self.bound_ms,
                    int(self.any_host),
                    int(loads[:, :, 1:].any()),
                ],
                dtype=np.int64,
            ),
        )


def _hardest(state_mb: Mapping[str, float], names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=lambda number: -state_mb[names[number]])


class _Shown:
    """A recorded stretch as a plant: loads are as they were, and operators are where a policy puts them."""

    knobs = frozenset({Knob.WORKERS, Knob.PLACEMENT})

    def __init__(self, window: Window) -> None:
        # By their place in the order of age: a name that a new host would get must not be taken.
        slots = {name: f"w{number}" for number, name in enumerate(window.hosts, start=1)}
        instances = {name: (slots[window.places[name]],) for name in window.layout.operators}
        self._target = Allocation(tuple(map(Worker, slots.values())), instances)
        self._snapshots, self._time_s = len(window.snapshots), 0.0

    def ticks(self) -> Iterator[None]:
        for number in range(1, self._snapshots + 1):
            self._time_s = float(number)
            yield

    def observe(self) -> Observation:
        target, nothing = self._target, (0.0,) * 8
        return Observation(self._time_s, 1.0, *nothing, running=target, target=target)

    def apply(self, target: Allocation) -> None:
        self._target = target


class _Rules:
    """FUGU on what was recorded."""

    needs = _Shown.knobs
    memory_s = 0.0

    def __init__(self, window: Window, settings: Settings) -> None:
        self._scaler = Scaler(window.layout, settings, window.limits, window.bound_ms)
        self._snapshots = window.snapshots

    def decide(self, seen: Observation) -> Decision:
        return decided(self._scaler, self._snapshots[round(seen.time_s) - 1], seen)
