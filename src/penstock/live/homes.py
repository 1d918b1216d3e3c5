"""Where the queries of a fleet are, and what has to be said to whom to bring them where they are wanted.

A query runs on one host at a time: it is started elsewhere only after its old host said that it stopped, or is gone.
No clock, no process and no JVM in here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from penstock.core.allocation import Allocation
from penstock.core.objective import Limits

AGAIN_S, AGAIN_MOST_S = 5.0, 300.0
# Each try to move a query that fails on resume stops it for seconds: a policy that insists must not do so each tick.
BARRED_S = 300.0


class Phase(Enum):
    """What a query does."""

    DOWN = "runs nowhere"
    STARTING = "starts"
    RUNNING = "runs"
    STOPPING = "stops at the next batch boundary"


@dataclass(slots=True)
class Home:
    """One query: where it is, and where it is wanted."""

    wanted: str
    host: str | None = None
    phase: Phase = Phase.DOWN
    ran_on: str | None = None
    """Where it ran last, while it moves; it goes back there if it fails on resume."""
    failures: int = 0
    again_s: float = 0.0
    """When it may be started again, after a failure."""
    left_s: float | None = None
    """When it was told to stop, of a move under way."""


@dataclass(frozen=True, slots=True)
class Order:
    """`start` or `stop` a query on a host."""

    do: str
    query: str
    host: str


@dataclass(slots=True)
class Homes:
    """All queries of a fleet.

    >>> homes = Homes.of({"q": "w1"})
    >>> homes.orders({"w1"}, now_s=0.0)
    [Order(do='start', query='q', host='w1')]
    >>> homes.resumed("q", "w1", now_s=1.0)
    >>> homes.want({"q": "w2"})
    >>> homes.orders({"w1"}, now_s=2.0)
    []
    >>> homes.orders({"w1", "w2"}, now_s=3.0)
    [Order(do='stop', query='q', host='w1')]
    >>> homes.stopped("q", "w1")
    >>> homes.orders({"w1", "w2"}, now_s=5.0)
    [Order(do='start', query='q', host='w2')]
    """

    by_query: dict[str, Home]
    moves: int = 0
    """That ended well."""
    pauses_s: list[float] = field(default_factory=list)
    """Of each move: from the word to stop until it had resumed."""
    notes: list[str] = field(default_factory=list)
    _went_back: dict[tuple[str, str], float] = field(default_factory=dict)
    """When a query failed on resume on a host."""

    @classmethod
    def of(cls, wanted: Mapping[str, str]) -> Homes:
        return cls({query: Home(host) for query, host in wanted.items()})

    def want(self, places: Mapping[str, str]) -> None:
        """Where each query is to be from now on."""
        for query, host in places.items():
            self.by_query[query].wanted = host

    def barred(self, places: Mapping[str, str], now_s: float) -> list[str]:
        """Queries that would move to where they failed on resume lately."""
        moves = {query: host for query, host in places.items() if self.by_query[query].wanted != host}
        return [each for each, host in moves.items() if now_s < self._went_back.get((each, host), -BARRED_S) + BARRED_S]

    def orders(self, ready: Iterable[str], now_s: float) -> list[Order]:
        """What is to be said now; it is taken as said. No query leaves before its new host is ready."""
        there, found = set(ready), []
        for query, home in self.by_query.items():
            if home.phase is Phase.RUNNING and home.wanted != home.host and home.wanted in there and home.host:
                home.phase, home.left_s = Phase.STOPPING, now_s
                found.append(Order("stop", query, home.host))
            elif home.phase is Phase.DOWN and home.wanted in there and now_s >= home.again_s:
                home.phase, home.host = Phase.STARTING, home.wanted
                found.append(Order("start", query, home.wanted))
        return found

    def resumed(self, query: str, host: str, now_s: float) -> None:
        home = self.by_query[query]
        if home.phase is not Phase.STARTING or home.host != host:
            return
        home.phase = Phase.RUNNING
        if home.left_s is not None and home.ran_on not in (None, host):
            self.moves += 1
            self.pauses_s.append(now_s - home.left_s)
            self.notes.append(f"{query} moved from {home.ran_on} to {host} in {now_s - home.left_s:.1f} s")
        elif home.failures:
            self.notes.append(f"{query} runs again on {host}")
        home.ran_on = home.left_s = None
        home.failures = 0

    def stopped(self, query: str, host: str) -> None:
        home = self.by_query[query]
        if home.host != host:
            return
        home.phase, home.ran_on, home.host, home.again_s = Phase.DOWN, host, None, 0.0

    def failed(self, query: str, host: str, why: str, now_s: float, there: Iterable[str]) -> bool:
        """It ended by itself. True if it goes back to where it ran, which is then where it is wanted."""
        home = self.by_query[query]
        if home.host != host:
            return False
        back = home.ran_on if home.phase is Phase.STARTING and home.ran_on in set(there) else None
        home.phase, home.host, home.left_s = Phase.DOWN, None, None
        if back is not None and back != host:
            home.wanted, home.ran_on = back, None
            self._went_back[query, host] = now_s
            self.notes.append(f"{query} failed on resume on {host}, and goes back to {back}: {why}")
            return True
        home.failures += 1
        wait_s = min(AGAIN_MOST_S, AGAIN_S * 2 ** (home.failures - 1))
        home.again_s = now_s + wait_s
        self.notes.append(f"{query} failed on {host}, is started again in {wait_s:g} s: {why}")
        return False

    def lost(self, host: str) -> list[str]:
        """A host is gone: the queries that it had, which run nowhere now."""
        queries = [query for query, home in self.by_query.items() if home.host == host]
        for query in queries:
            home = self.by_query[query]
            home.phase, home.host, home.left_s, home.again_s = Phase.DOWN, None, None, 0.0
        for home in self.by_query.values():
            if home.ran_on == host:
                home.ran_on = None
        return queries

    def using(self, host: str) -> bool:
        """Has it, or will it have, a query? One that moves away may have to come back."""
        return any(host in (home.host, home.wanted, home.ran_on) for home in self.by_query.values())

    def on(self) -> dict[str, str]:
        """Where each query is, of those that are somewhere."""
        return {query: home.host for query, home in self.by_query.items() if home.host is not None}

    @property
    def settled(self) -> bool:
        """Does every query run where it is wanted?"""
        return all(each.phase is Phase.RUNNING and each.host == each.wanted for each in self.by_query.values())


def spread(queries: Iterable[str], hosts: list[str], before: Mapping[str, str]) -> dict[str, str]:
    """Queries on hosts by their number alone, for a policy that places none; no more move than must.

    >>> spread("abcd", ["w1", "w2"], {"a": "w1", "b": "w1", "c": "w1", "d": "w1"})
    {'a': 'w1', 'b': 'w1', 'c': 'w2', 'd': 'w2'}
    """
    names = list(queries)
    most = -(-len(names) // len(hosts))
    counts = dict.fromkeys(hosts, 0)
    found: dict[str, str] = {}
    for query in names:
        host = before.get(query)
        if host in counts and counts[host] < most:
            found[query] = host
            counts[host] += 1
    for query in names:
        if query not in found:
            found[query] = min(hosts, key=lambda host: counts[host])
            counts[found[query]] += 1
    return {query: found[query] for query in names}


def fitted(target: Allocation, limits: Limits) -> Allocation:
    """An earlier controller's target within limits that were changed since: the oldest hosts stay.

    A policy that gives up one host at a time could not come back from six to four: five are refused, too.

    >>> fitted(Allocation.of(3), Limits(1, 2)).workers == Allocation.of(2).workers
    True
    """
    allowed = limits.clamp(len(target.workers))
    if allowed >= len(target.workers):
        return target.grown(allowed - len(target.workers))
    kept = [worker.name for worker in target.workers[:allowed]]
    there = {query: places[0] for query, places in target.instances.items() if places}
    instances = {query: (host,) for query, host in spread(there, kept, there).items()}
    return replace(target.only(kept), instances=instances)
