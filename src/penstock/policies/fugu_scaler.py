"""When to scale, and where operators go (paper 2 §2.2, §3.3), on loads in thousandths of a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.dataflow import Dataflow
from penstock.core.objective import Limits
from penstock.policies.fugu_settings import HOST, Settings
from penstock.solvers.bins import Host, Item
from penstock.solvers.packing import neighbours_of, subset_sum_bits

Load = tuple[int, int, int]
"""CPU, memory and network, each in thousandths of a host."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The operators in order, the query that each belongs to, and its neighbours."""

    operators: tuple[str, ...]
    queries: Mapping[str, int]
    beside: Mapping[str, tuple[str, ...]]
    sinks: tuple[tuple[str, ...], ...]
    """The sinks of each query."""

    @classmethod
    def of(cls, flow: Dataflow) -> Layout:
        """Operators that feed each other are one query."""
        beside, queries = neighbours_of(flow), dict[str, int]()
        names = tuple(operator.name for operator in flow.operators)
        count = 0
        for name in names:
            found = [name] if name not in queries else []
            count += len(found)
            while found:
                each = found.pop()
                queries[each] = count - 1
                found += [other for other in beside[each] if other not in queries]
        ends = [sink.name for sink in flow.sinks]
        sinks = tuple(tuple(name for name in ends if queries[name] == query) for query in range(count))
        return cls(names, queries, beside, sinks)


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement of all operators."""

    loads: Mapping[str, Load]
    state_mb: Mapping[str, float]
    peaks_ms: Mapping[str, int]
    """How late the query of an operator would be, had that been moved."""
    latency_ms: Sequence[int]
    """Of each query."""


def peak_ms(pause_s: float, cpu: int, span_s: float) -> int:
    """The mean latency within a measurement if an operator pauses for so long and catches up after it.

    Events of the pause wait for half of it on average, and so do those that come while the queue is worked off, which
    takes p·u/(1 − u) on a host that the operator has to itself: p·(p + catch-up)/2 over the measurement, p at most.

    >>> peak_ms(4.0, cpu=200, span_s=10.0)  # 4 · (4 + 1) / 20
    1000
    """
    busy = min(cpu / HOST, 0.9)
    return round(1000 * min(pause_s, pause_s * (pause_s + pause_s * busy / (1 - busy)) / (2 * span_s)))


def estimated_ms(latency_ms: Sequence[int], touched: Iterable[int], peak: int) -> int:
    """The latencies of all queries summed, those that are touched by a move later by its largest peak (§3.3)."""
    return sum(latency_ms) + peak * len(set(touched))


@dataclass(slots=True)
class Change:
    """What a measurement led to."""

    why: str
    places: dict[str, str] = field(default_factory=dict)
    """Where the operators that move go."""
    opened: tuple[str, ...] = ()
    released: str | None = None


class Scaler:
    """Paper 2's rules: counts of measurements, grace periods, who leaves, where to. Hosts are in the order of age."""

    def __init__(self, layout: Layout, settings: Settings, limits: Limits, bound_ms: int | None = None) -> None:
        self.layout, self.settings, self.limits, self.bound_ms = layout, settings, limits, bound_ms
        self._over: dict[str, list[int]] = {}
        self._resting: dict[str, int] = {}
        self._under = 0

    def step(
        self,
        seen: Measured,
        hosts: Sequence[str],
        places: Mapping[str, str],
        fresh: Sequence[str],
        settled: bool = True,
    ) -> Change:
        """What is to be done after one more measurement; `settled`: no move is under way."""
        loads = host_loads(seen.loads, hosts, places)
        self._count(loads)
        free = [host for host in hosts if not self._resting.get(host)]
        if settled:  # a grace period counts from the end of a move
            self._resting = {host: left - 1 for host, left in self._resting.items() if left > 1}
        hot = [host for host in free if max(self._over[host]) >= self.settings.upper_ticks]
        change = self._relieved(seen, hot, hosts, places, fresh) if hot else None
        if change is None or not change.places:
            is_low = self._under >= self.settings.lower_ticks
            may = settled and is_low and len(hosts) > max(1, self.limits.workers_min) and free
            change = self.released(seen, loads, free, places) if may else change or Change("")
        return change

    def _count(self, loads: Mapping[str, Sequence[int]]) -> None:
        limits = self.settings.limits
        over = self._over
        self._over = {
            host: [before + 1 if load > limit else 0 for before, load, limit in zip(*counted, limits, strict=True)]
            for host, each in loads.items()
            for counted in [(over.get(host, (0, 0, 0)), each)]
        }
        total = sum(each[0] for each in loads.values())
        # "Below" in the text; Figure 3 costs 10 only if a load at the threshold counts.
        self._under = self._under + 1 if total <= self.settings.lowest * len(loads) else 0

    def _relieved(
        self, seen: Measured, hot: list[str], hosts: Sequence[str], places: Mapping[str, str], fresh: Sequence[str]
    ) -> Change:
        """Operators leave overloaded hosts for others, or for new ones; who finds no room stays."""
        leaving = {name for host in hot for name in self._leaving(seen, host, places)}
        moved = [name for name in self.layout.operators if name in leaving]
        cold = [host for host in hosts if host not in hot]
        there, opened = self._packed(seen, moved, cold, places, fresh[: len(moved)])
        homeless = [name for name in moved if name not in there]
        said = f"{', '.join(hot)} above {self.settings.upper:.0%}: {len(there)} operators leave"
        if homeless:
            said += f"; no room for {', '.join(homeless[:3])}{' …' if len(homeless) > 3 else ''}"
        if there:
            sources = {places[name] for name in there}
            self._rest(sources | set(there.values()))
        return Change(said, there, opened)

    def _leaving(self, seen: Measured, host: str, places: Mapping[str, str]) -> list[str]:
        """Who leaves: all but the largest set within the limit, which keeps large states where it can (§3.3)."""
        counts = self._over[host]
        which = next(number for number, count in enumerate(counts) if count >= self.settings.upper_ticks)
        limits, kept = self.settings.limits, self.settings.kept[which]
        here = [name for name in self.layout.operators if places.get(name) == host]
        # One that is larger than any host may be loaded stays: it has nowhere to go.
        pinned = [name for name in here if any(map(int.__gt__, seen.loads[name], limits))]
        rest = sorted((name for name in here if name not in pinned), key=lambda name: -seen.state_mb[name])
        room = max(0, kept - sum(seen.loads[name][which] for name in pinned))
        stays = subset_sum_bits([seen.loads[name][which] for name in rest], room)
        return [name for number, name in enumerate(rest) if number not in set(stays)]

    def released(
        self, seen: Measured, loads: Mapping[str, Sequence[int]], free: list[str], places: Mapping[str, str]
    ) -> Change:
        """The least loaded host goes, the youngest of equals, if all of it fits elsewhere and no query is late."""
        least = min(reversed(free), key=lambda host: loads[host][0])
        moved = [name for name in self.layout.operators if places.get(name) == least]
        others = [host for host in loads if host != least]
        there, _ = self._packed(seen, moved, others, places)
        if len(there) < len(moved):
            return Change(f"{least} stays: not all of its operators fit elsewhere")
        peak = max((seen.peaks_ms[name] for name in moved), default=0)
        touched = {self.layout.queries[name] for name in moved}
        late_ms = estimated_ms(seen.latency_ms, touched, peak)
        queries = len(seen.latency_ms)
        if self.bound_ms is not None and moved and late_ms >= self.bound_ms * queries:
            return Change(f"{least} stays: moving {len(moved)} operators would take {late_ms / queries / 1000:.1f} s")
        self._under = 0
        self._rest(set(there.values()))
        low = self.settings.lower
        return Change(f"hosts at most {low:.0%} loaded: {least} goes, {len(moved)} operators move", there, (), least)

    def halved(self, seen: Measured, host: str, places: Mapping[str, str], fresh: str) -> Change:
        """Half of what a host has to do goes to a new one."""
        here = [name for name in self.layout.operators if places.get(name) == host]
        here.sort(key=lambda name: -seen.state_mb[name])
        loads = [seen.loads[name][0] for name in here]
        stays = set(subset_sum_bits(loads, sum(loads) // 2))
        there = {name: fresh for number, name in enumerate(here) if number not in stays}
        return Change(f"one host more: {len(there)} operators leave {host}", there, (fresh,))

    def _packed(
        self,
        seen: Measured,
        moved: Sequence[str],
        onto: Sequence[str],
        places: Mapping[str, str],
        fresh: Sequence[str] = (),
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        limits, leaves, open_ = self.settings.limits, set(moved), set(onto)
        stay = [name for name in self.layout.operators if name not in leaves and places.get(name) in open_]
        items = [_item(name, seen, places[name]) for name in stay] + [_item(name, seen) for name in moved]
        hosts, more = ([Host(name, *map(float, limits)) for name in names] for names in (onto, fresh))
        packed = self.settings.way.pack(items, hosts, more, self.layout.beside)
        there = zip(items[len(stay) :], packed.places[len(stay) :], strict=True)
        return {item.operator: place for item, place in there if place is not None}, packed.opened

    def _rest(self, hosts: Iterable[str]) -> None:
        if self.settings.grace_ticks:
            self._resting |= dict.fromkeys(hosts, self.settings.grace_ticks)

    def first(
        self, seen: Measured, hosts: Sequence[str], fresh: Sequence[str]
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """A placement where there is none: packed, and what fits nowhere on the host with the least to do."""
        names = self.layout.operators
        there, opened = self._packed(seen, names, hosts, {}, fresh[: len(names)])
        load = host_loads(seen.loads, [*hosts, *opened], there)
        for name in names:
            if name not in there:
                there[name] = min(load, key=lambda host: load[host][0])
                load[there[name]][0] += max(1, seen.loads[name][0])
        return there, opened


def _item(name: str, seen: Measured, stays_on: str | None = None) -> Item:
    cpu, memory, network = map(float, seen.loads[name])
    return Item(name, cpu, memory, network, stays_on)


def host_loads(loads: Mapping[str, Load], hosts: Iterable[str], places: Mapping[str, str]) -> dict[str, list[int]]:
    """The load of each host: the sum of its operators', which are taken not to disturb each other (§3.2)."""
    found = {host: [0, 0, 0] for host in hosts}
    for name, host in places.items():
        if name in loads and host in found:
            found[host] = [have + more for have, more in zip(found[host], loads[name], strict=True)]
    return found
