"""The hosts of a fleet: started and ended as they are wanted, heard, and missed when they are gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.core.errors import ExternalError
from penstock.core.observation import WorkerTable
from penstock.live.fleet_query import shared_out
from penstock.live.host_process import FleetHost

STARTS_MOST = 3
AGAIN_S, AGAIN_MOST_S = 1.0, 300.0


@dataclass(frozen=True, slots=True)
class Gone:
    """A host that is no more, and why."""

    name: str
    why: str


class HostPool:
    """Hosts by name. What is given up serves until nothing needs it, and is then told to end."""

    def __init__(self, make: Callable[[str], FleetHost]) -> None:
        self._make = make
        self._hosts: dict[str, FleetHost] = {}
        self._ending: dict[str, FleetHost] = {}
        self._used: dict[str, float] = {}
        self._failed_starts = 0
        self.broken = ""
        """Why no host can be started at all; empty where one runs."""
        self._again_s = 0.0

    @property
    def ready(self) -> list[str]:
        return [name for name, host in self._hosts.items() if host.is_ready]

    @property
    def serving(self) -> list[str]:
        """Those that are ready, and those that are told to end and have not yet."""
        return [*self.ready, *self._ending]

    def asked_s(self, name: str) -> float | None:
        """When it was asked for; None where it has not been yet."""
        host = self._hosts.get(name) or self._ending.get(name)
        return host.asked_s if host is not None else None

    def start(self, wanted: Collection[str]) -> None:
        """Those that are wanted and not there; one of a name that still ends is waited for."""
        if time.monotonic() < self._again_s:
            return
        for name in wanted:
            if name not in self._hosts and name not in self._ending:
                try:
                    self._hosts[name] = self._make(name)
                except OSError as error:
                    self._note_failed(f"{error.strerror or error}")
                    return

    def say(self, name: str, word: Mapping[str, Any]) -> None:
        self._hosts[name].say(word)

    def heard(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What all hosts said since the last call."""
        for name, host in list(self._hosts.items()):
            for word in host.heard():
                if word["says"] == "ready":
                    self._failed_starts, self.broken = 0, ""
                yield name, word

    def take_gone(self) -> list[Gone]:
        """Hosts that ended without being told to; of those that were told to, nothing stays."""
        for name, host in list(self._ending.items()):
            host.heard()
            if host.why_gone() is not None:
                with suppress(ExternalError):
                    self._forget(self._ending, name)
        found = []
        for name, host in list(self._hosts.items()):
            if (why := host.why_gone()) is not None:
                # While something of it still runs its queries have no other home: it is tried again.
                with suppress(ExternalError):
                    self._forget(self._hosts, name)
                    found.append(Gone(name, why))
                    self._note_start(host, why)
        return found

    def _note_start(self, host: FleetHost, why: str) -> None:
        if not host.is_ready:
            self._note_failed(why)

    def _note_failed(self, why: str) -> None:
        self._failed_starts += 1
        self._again_s = time.monotonic() + min(AGAIN_MOST_S, AGAIN_S * 2**self._failed_starts)
        if self._failed_starts >= STARTS_MOST and not self.ready:
            self.broken = f"{self._failed_starts} hosts in a row did not start: {why}"

    def _forget(self, where: dict[str, FleetHost], name: str) -> None:
        where[name].release()
        del where[name]
        self._used.pop(name, None)

    def drop(self, name: str) -> None:
        """End it at once, whatever it does."""
        self._forget(self._hosts, name)

    def end(self, name: str) -> None:
        """It is not needed: it is told so, and ends when it has."""
        host = self._hosts.pop(name)
        host.end()
        self._ending[name] = host

    def end_unneeded(self, is_needed: Callable[[str], bool]) -> None:
        for name in [name for name in self._hosts if not is_needed(name)]:
            self.end(name)

    def end_all(self) -> None:
        self.end_unneeded(lambda _: False)

    def take_cpu_s(self) -> dict[str, float | None]:
        """CPU of each serving host since the last call; None where nobody measures it."""
        found: dict[str, float | None] = {}
        for name in self.serving:
            used = self._named(name).cpu_s()
            found[name] = None if used is None else used - self._used.get(name, used)
            if used is not None:
                self._used[name] = used
        return found

    def table(self, cpu: Mapping[str, float], memory_mb: Mapping[str, float], origin_s: float) -> WorkerTable:
        """Statistics of the serving hosts; `cpu` as a part of what each has."""
        names = tuple(self.serving)
        since = [(self._named(name).ready_s or origin_s) - origin_s for name in names]
        columns = {
            "cpu": [cpu.get(name, 0.0) for name in names],
            "memory_mb": [memory_mb.get(name, 0.0) for name in names],
            "paid_since_s": [self._named(name).asked_s - origin_s for name in names],
            "runs_since_s": since,
        }
        return WorkerTable(names, columns)

    def _named(self, name: str) -> FleetHost:
        return self._hosts[name] if name in self._hosts else self._ending[name]


def used_by(
    hosts: Mapping[str, float | None], own: Mapping[str, float], places: Mapping[str, str]
) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds of each host and of each query: what a host used beyond its queries is shared out among them.

    >>> used_by({"w1": 3.0, "w2": None}, {"a": 1.0, "b": 0.5, "c": 2.0}, {"a": "w1", "b": "w1", "c": "w2"})
    ({'w1': 3.0, 'w2': 2.0}, {'a': 2.0, 'b': 1.0, 'c': 2.0})
    """
    totals: dict[str, float] = {}
    queries = dict.fromkeys(own, 0.0)
    for host, total in hosts.items():
        here = {query: own[query] for query, place in places.items() if place == host}
        each = shared_out(total, here)
        queries |= each
        totals[host] = sum(each.values()) if total is None else total
    return totals, queries
