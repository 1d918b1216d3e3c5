"""A fleet as a plant: each worker is a host (a Spark application), each operator a query with its own checkpoint."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from penstock.core.allocation import Allocation, Knob, Worker
from penstock.core.errors import PlantError
from penstock.core.job import Job
from penstock.core.loop import Step
from penstock.core.observation import Observation
from penstock.core.units import show_duration
from penstock.live.fleet_query import FleetQuery, all_known
from penstock.live.fleet_spec import FleetSpec
from penstock.live.homes import BARRED_S, Homes, Phase, fitted, spread
from penstock.live.host_pool import Gone, HostPool, used_by
from penstock.live.host_process import FleetHost

log = logging.getLogger("penstock")
# A query that does not stop holds up its move: its host is taken to hang, and is ended.
STOP_S = 180.0


class FleetPlant:
    """Places queries on hosts, and starts and ends these. Whoever looks at it or tends it lets it hear its hosts, and
    queries of a host that is gone go on elsewhere, whatever the policy does."""

    knobs = frozenset({Knob.WORKERS, Knob.PLACEMENT})

    def __init__(
        self, spec: FleetSpec, job: Job, make: Callable[[str], FleetHost], *, is_placed: bool, is_dry: bool = False
    ) -> None:
        self._job, self._is_dry = job, is_dry
        self.origin_s = self._last_s = time.time()
        unit_s = job.objective.latency_s or 1.0
        self.queries = {
            name: FleetQuery(each, self.origin_s, unit_s, max(job.tick_s, each.trigger_s))
            for name, each in spec.queries.items()
        }
        self.pool = HostPool(make)
        self.target = Allocation.of(job.workers_at_start)
        self._workers: dict[str, Worker] = {}
        # Counters never fall: what queries had counted that are no longer in the fleet stays in its sums.
        self._arrived_before = self._processed_before = 0.0
        self._notes: list[str] = []
        self._has_begun = self._is_left = False
        places = spread(self.queries, [worker.name for worker in self.target.workers], {})
        self.homes = Homes.of(places)
        if is_placed:
            self.target = replace(self.target, instances={query: (host,) for query, host in places.items()})
        self._place()

    def go_on(self, before: Step, origin_s: float) -> None:
        """Continue where an earlier controller stopped: its clock, counters and placement. Its hosts ended with it."""
        self.origin_s = origin_s
        gone = [stats for name, stats in before.seen.operators.items() if name not in self.queries]
        self._arrived_before = sum(each.arrived or 0.0 for each in gone)
        self._processed_before = sum(each.processed or 0.0 for each in gone)
        for name, query in self.queries.items():
            if (stats := before.seen.operators.get(name)) is not None:
                late_s = stats.latency_s
                query.go_on(stats, None if late_s is None else origin_s + before.seen.time_s - late_s)
        placed = before.target.instances
        if before.target.workers and not self._is_dry and (not placed or set(placed) == set(self.queries)):
            self.target = fitted(before.target, self._job.limits)
            self._place()

    @property
    def awaited(self) -> list[str]:
        """Queries that were never started yet; one that fails holds nobody up."""
        if self._has_begun:
            return []
        homes = self.homes.by_query.items()
        return [name for name, home in homes if home.phase is not Phase.RUNNING and not home.failures]

    def observe(self) -> Observation | None:
        """None until the queries have been started."""
        now_s = time.time()
        self._attend(now_s)
        if self.pool.broken:
            raise PlantError(self.pool.broken)
        for query in self.queries.values():
            query.follow(now_s)
        if self.awaited:
            return None
        if not self._has_begun:  # a load is the difference of two readings
            self._has_begun, self._last_s = True, now_s
            self._take_cpu_s()
            return None
        return self._observation(now_s)

    def apply(self, target: Allocation) -> None:
        """Hosts and queries follow as they can."""
        if self._is_dry or target == self.target:
            return
        if not target.workers:
            raise PlantError("a fleet needs at least one host: its queries would be without a home")
        lost = [name for name in self.queries if not target.instances.get(name)]
        if target.instances and lost:
            raise PlantError(f"a placement names a host for every query: {', '.join(lost[:5])} has none")
        placed = {name: places[0] for name, places in target.instances.items()}
        if barred := self.homes.barred(placed, time.time()):
            why = f"failed on resume there within the last {show_duration(BARRED_S)}"
            raise PlantError(f"{', '.join(barred[:5])} {why}, and not moved there again before")
        self.target = target
        self._place()
        self._attend(time.time())

    def tend(self) -> None:
        self._attend(time.time())

    def leave(self) -> None:
        """Its hosts are told to end; those that do not are ended with the controller's holding."""
        self._is_left = True
        self.pool.end_all()

    def take_notes(self) -> list[str]:
        notes = self._notes + self.homes.notes
        self._notes, self.homes.notes = [], []
        if not self._has_begun:  # no step yet that would tell it
            for note in notes:
                log.warning("%s", note)
        return notes

    def _place(self) -> None:
        """Queries are wanted where the target has them; where it has none, they are spread evenly."""
        self._workers |= {worker.name: worker for worker in self.target.workers}
        placed = {name: places[0] for name, places in self.target.instances.items()}
        before = {name: home.wanted for name, home in self.homes.by_query.items()}
        self.homes.want(placed or spread(self.queries, self._wanted, before))

    @property
    def _wanted(self) -> list[str]:
        return [worker.name for worker in self.target.workers]

    def _attend(self, now_s: float) -> None:
        """Hear the hosts, replace those that are gone, and say what brings every query to where it is wanted."""
        if self._is_left:
            return
        for host, word in self.pool.heard():
            try:
                self._take_word(host, word, now_s)
            except (KeyError, TypeError, ValueError, AttributeError, PlantError) as error:
                self._notes.append(f"host {host} said what was not understood ({type(error).__name__}: {error})")
        for gone in self.pool.take_gone():
            self._lose(gone)
        for name in self._stuck(now_s):
            self.pool.drop(name)
            self._lose(Gone(name, f"a query on it did not stop within {STOP_S:g} s"))
        self.pool.start(self._wanted)
        for order in self.homes.orders(self.pool.ready, now_s):
            spec = self.queries[order.query].spec
            self.pool.say(order.host, {"do": order.do, "query": spec.words() if order.do == "start" else order.query})
        self.pool.end_unneeded(lambda name: name in self._wanted or self.homes.using(name))

    def _take_word(self, host: str, word: Mapping[str, Any], now_s: float) -> None:
        query, says = word.get("query", ""), word["says"]
        if query not in self.queries or self.homes.on().get(query) != host:
            return
        if says == "progress":
            self.queries[query].take_word(word)
        elif says == "resumed":
            self.homes.resumed(query, host, now_s)
        elif says == "stopped":
            self.homes.stopped(query, host)
            self.queries[query].left()
        elif says == "failed":
            self.queries[query].left()
            if self.homes.failed(query, host, str(word["why"]), now_s, self.pool.ready):
                self._rehome({query: self.homes.by_query[query].wanted})

    def _lose(self, gone: Gone) -> None:
        """A host is gone: its queries go on where the fewest are, or on a new host where no other is."""
        lost = self.homes.lost(gone.name)
        for query in lost:
            self.queries[query].left()
        self._notes.append(f"host {gone.name} is gone ({gone.why}): {len(lost)} queries go on elsewhere")
        left = tuple(worker for worker in self.target.workers if worker.name != gone.name)
        rest = replace(self.target, workers=left, instances={})
        least = max(1, self._job.limits.workers_min)
        target = rest.resized(max(least, len(left)), self._job.kinds[0].name)
        homeless = [name for name, home in self.homes.by_query.items() if home.wanted == gone.name]
        there = [worker.name for worker in target.workers]
        counts = {name: 0 for name in there if name in self.pool.ready} or dict.fromkeys(there, 0)
        for home in self.homes.by_query.values():
            if home.wanted in counts:
                counts[home.wanted] += 1
        found: dict[str, str] = {}
        for query in homeless:
            found[query] = min(counts, key=lambda name: counts[name])
            counts[found[query]] += 1
        instances = {name: each for name, each in self.target.instances.items() if name not in found}
        placed = {**instances, **{query: (host,) for query, host in found.items()}} if self.target.instances else {}
        self.target = replace(target, instances=placed)
        self._workers |= {worker.name: worker for worker in self.target.workers}
        self.homes.want(found)

    def _rehome(self, places: Mapping[str, str]) -> None:
        """The target has these queries where they are: a policy must not think that they moved."""
        missing = [name for name in places.values() if name not in self._wanted]
        workers = (*(self._workers[name] for name in dict.fromkeys(missing)), *self.target.workers)
        instances = {**self.target.instances, **{query: (host,) for query, host in places.items()}}
        self.target = replace(self.target, workers=workers, instances=instances if self.target.instances else {})

    def _stuck(self, now_s: float) -> Collection[str]:
        homes = self.homes.by_query.values()
        return {
            home.host
            for home in homes
            if home.host and home.phase is Phase.STOPPING and now_s - (home.left_s or now_s) > STOP_S
        }

    def _take_cpu_s(self) -> tuple[dict[str, float], dict[str, float]]:
        own = {name: query.take_cpu_s() for name, query in self.queries.items()}
        return used_by(self.pool.take_cpu_s(), own, self.homes.on())

    @property
    def running(self) -> Allocation:
        """What exists: hosts that serve, and queries where they run."""
        names = self.pool.serving
        on = {query: home.host for query, home in self.homes.by_query.items() if home.phase is not Phase.STARTING}
        instances = {query: (host,) for query, host in on.items() if host in names}
        return replace(self.target, workers=tuple(self._workers[name] for name in names), instances=instances)

    def _observation(self, now_s: float) -> Observation:
        span_s, self._last_s = max(1e-3, now_s - self._last_s), now_s
        cores, queries = self._job.kinds[0].cores, list(self.queries.values())
        hosts_s, own_s = self._take_cpu_s()
        load = {name: used / span_s / cores for name, used in hosts_s.items()}
        stats = {name: each.stats(now_s, own_s[name] / span_s) for name, each in self.queries.items()}
        memory = dict.fromkeys(hosts_s, 0.0)
        for name, host in self.homes.on().items():
            memory[host] = memory.get(host, 0.0) + stats[name].memory_mb
        arrived = self._arrived_before + sum(each.queue.arrived for each in queries)
        processed = self._processed_before + sum(each.queue.processed for each in queries)
        backlog = all_known([each.backlog for each in stats.values()])
        latency = all_known([each.latency_s for each in stats.values()])
        late = all_known([each.take_late_s(now_s) for each in queries])
        responses = {name: each.responses() for name, each in self.queries.items()}
        done = sum(each.output_rate for each in stats.values())
        mean = sum(load.values()) / max(1, len(load))
        missing = [name for name in self._wanted if name not in self.pool.ready]
        asked = {name: self.pool.asked_s(name) for name in missing}
        return Observation(
            time_s=now_s - self.origin_s,
            span_s=span_s,
            arrived=arrived,
            processed=processed,
            delivered=processed,
            deliverable=arrived,
            input_rate=sum(each.input_rate for each in stats.values()),
            backlog=None if backlog is None else sum(backlog),
            latency_s=None if latency is None else max(latency),
            capacity=done / mean if mean > 0 else done,
            running=self.running,
            target=self.target,
            workers=self.pool.table(load, memory, self.origin_s),
            operators=stats,
            paths={name: each for name, each in responses.items() if each is not None},
            pending={name: (now_s if at is None else at) - self.origin_s for name, at in asked.items()},
            late_s=None if late is None or self._job.objective.latency_s is None else min(max(late), span_s),
        )
