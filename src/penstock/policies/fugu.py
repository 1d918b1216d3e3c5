"""FUGU: thresholds for each host, operators that move (Heinze et al., paper 2 §2.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from penstock.core.allocation import Allocation, Knob
from penstock.core.bounds import between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation, OperatorStats
from penstock.models.event_cost import EventCost
from penstock.policies.fugu_scaler import Change, Layout, Load, Measured, Scaler, peak_ms
from penstock.policies.fugu_settings import HOST, SPACE, Settings
from penstock.solvers.space import Space

# What waits is to be worked off within a minute: a host that can just do what comes never catches up.
DRAIN_S = 60.0
LEARNT_TICKS = 30


class Fugu:
    """Operators leave hosts above the upper threshold; below the lower one on average, the least loaded host goes."""

    source: ClassVar[str] = "paper 2 (Heinze), §2.2"
    space: ClassVar[Space] = SPACE
    needs = frozenset({Knob.WORKERS, Knob.PLACEMENT})

    def __init__(  # noqa: PLR0913  what can be set is what the paper sets
        self,
        job: Job,
        upper: float = 0.8,
        lower: float = 0.35,
        upper_ticks: int = 2,
        lower_ticks: int = 10,
        grace_ticks: int = 2,
        packing: str = "first-fit",
        latency_s: float = 0.0,
        pause_s: float = 2.0,
        move_mb_s: float = 0.0,
        network_mb_s: float = 0.0,
    ) -> None:
        settings = Settings(upper, lower, upper_ticks, lower_ticks, grace_ticks, packing)
        self.meter = Meter(job, pause_s, move_mb_s, network_mb_s)
        between("fugu:latency_s", latency_s, 0)
        self.bound_s = latency_s or job.objective.latency_s
        bound_ms = None if self.bound_s is None else round(1000 * self.bound_s)
        self.scaler = Scaler(self.meter.layout, settings, job.limits, bound_ms)
        self._kind, self._tick_s = job.kinds[0].name, job.tick_s
        self.memory_s = (upper_ticks + lower_ticks + grace_ticks) * job.tick_s + self.meter.memory_s

    def decide(self, seen: Observation) -> Decision:
        return decided(self.scaler, self.meter.read(seen), seen, self._kind)


def decided(scaler: Scaler, measured: Measured | None, seen: Observation, kind: str = "worker") -> Decision:
    """What the rules make of a measurement; a recorded window is decided on in the same way."""
    settings, asked = scaler.settings, seen.target
    signals: dict[str, float] = {"upper": settings.upper, "lower": settings.lower}
    if measured is None:
        return Decision(asked, "no operator was measured: what runs stays", signals)
    hosts = [worker.name for worker in asked.workers]
    total = sum(load[0] for load in measured.loads.values()) / HOST
    signals |= {"load": total / max(1, len(hosts)), "hosts": float(len(hosts))}
    spare = max(0, scaler.limits.workers_max - len(hosts))
    grown = asked.grown(min(spare, len(measured.loads)), kind)
    fresh = [worker.name for worker in grown.workers[len(hosts) :]]
    places = {name: places[0] for name, places in asked.instances.items() if places}
    if set(places) != set(scaler.layout.operators):
        there, opened = scaler.first(measured, hosts, fresh)
        return Decision(_allocation(grown, asked, there, opened), f"{len(there)} operators placed", signals)
    change = scaler.step(measured, hosts, places, fresh, settled=not seen.pending and not _moving(seen, places))
    why = change.why or f"load {signals['load']:.0%} on average over {len(hosts)} hosts"
    return Decision(moved_to(asked, places, change, kind), why, signals)


def _moving(seen: Observation, places: Mapping[str, str]) -> bool:
    """Does an operator run elsewhere than it was asked to? One that runs nowhere, as it fails, holds nobody up."""
    runs = seen.running.instances
    return any(runs[name] != (host,) for name, host in places.items() if runs.get(name))


def moved_to(asked: Allocation, places: Mapping[str, str], change: Change, kind: str = "worker") -> Allocation:
    """What is asked for after a change."""
    if not change.places and change.released is None and not change.opened:
        return asked
    grown = asked.grown(len(change.opened), kind)
    target = _allocation(grown, asked, {**places, **change.places}, change.opened)
    return target.only([worker.name for worker in target.workers if worker.name != change.released])


def _allocation(grown: Allocation, asked: Allocation, places: Mapping[str, str], opened: tuple[str, ...]) -> Allocation:
    """The hosts that were there and those that were opened, with the operators on them."""
    kept = {worker.name for worker in asked.workers} | set(opened)
    workers = tuple(worker for worker in grown.workers if worker.name in kept)
    # A name that was offered and not taken may be given later.
    given = max(asked.names_given, len(asked.workers)) + len(opened)
    instances = {name: (place,) for name, place in places.items()}
    return replace(asked, workers=workers, instances=instances, names_given=given)


class Meter:
    """What FUGU takes from an observation: each operator's load in thousandths of a host."""

    def __init__(self, job: Job, pause_s: float, move_mb_s: float, network_mb_s: float = 0.0) -> None:
        if len(job.kinds) > 1:
            raise BadInput("fugu rents one kind of worker: the job has " + ", ".join(kind.name for kind in job.kinds))
        between("fugu:pause_s", pause_s, 0)
        between("fugu:move_mb_s", move_mb_s, 0)
        between("fugu:network_mb_s", network_mb_s, 0)
        self.layout = Layout.of(job.dataflow)
        self._flow, self._kind, self._tick_s = job.dataflow, job.kinds[0], job.tick_s
        self._pause_s, self._move_mb_s, self._network_mb_s = pause_s, move_mb_s, network_mb_s
        self._learnt = {name: EventCost() for name, cost_s in job.dataflow.costs_s.items() if not cost_s}
        """Of operators whose cost nobody declared."""
        self._served = dict.fromkeys(self._learnt, 0.0)

    @property
    def memory_s(self) -> float:
        """How far back it looks for what events cost."""
        return LEARNT_TICKS * self._tick_s if self._learnt else 0.0

    def read(self, seen: Observation) -> Measured | None:
        """None where an operator is missing."""
        stats = seen.operators
        if any(name not in stats for name in self.layout.operators):
            return None
        for name, cost in self._learnt.items():
            self._learn(name, cost, stats[name], seen.span_s)
        demand = self._flow.rates({name: stats[name].input_rate for name in self._flow.sources})
        loads = {name: self._load(stats[name], name, demand[name]) for name in self.layout.operators}
        state_mb = {name: stats[name].state_mb for name in self.layout.operators}
        peaks = {name: self.peak(state_mb[name], loads[name][0]) for name in self.layout.operators}
        return Measured(loads, state_mb, peaks, self._latencies(seen))

    def peak(self, state_mb: float, cpu: int) -> int:
        """How late a move of an operator makes its query."""
        carried_s = state_mb / self._move_mb_s if self._move_mb_s else 0.0
        return peak_ms(self._pause_s + carried_s, cpu, self._tick_s)

    def _load(self, stats: OperatorStats, name: str, rate: float) -> Load:
        """A measured CPU is full at 100 %: what comes and what waits tell how much more is needed."""
        kind = self._kind
        rate += (stats.backlog or 0.0) / DRAIN_S
        needed = self._learnt[name].needed(rate) if name in self._learnt else rate * self._flow.costs_s[name]
        cpu = max(stats.cores, needed) / (kind.cores * kind.speed)
        network = stats.network_mb_s / self._network_mb_s if self._network_mb_s else 0.0
        return round(cpu * HOST), round(stats.memory_mb / kind.memory_mb * HOST), round(network * HOST)

    def _learn(self, name: str, cost: EventCost, stats: OperatorStats, span_s: float) -> None:
        """What it served since the last look, and by how much CPU."""
        before, self._served[name] = self._served[name], stats.processed or 0.0
        if before and stats.processed is not None and (stats.cores or stats.processed > before):
            cost.note(max(0.0, stats.processed - before) / span_s, stats.cores)

    def _latencies(self, seen: Observation) -> list[int]:
        """The mean latency of each query, by its latest sink."""
        paths = seen.paths
        means = {name: path.mean for name, path in paths.items() if path.count}
        return [round(1000 * max((means.get(name) or 0.0 for name in ends), default=0.0)) for ends in self.layout.sinks]
