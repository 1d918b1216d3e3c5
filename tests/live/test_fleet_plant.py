"""The fleet's plant with hosts that keep the contract and have no JVM: who goes where when hosts come, fail and die."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.allocation import Allocation
from penstock.core.errors import PlantError
from penstock.core.loop import Decision, Step, control
from penstock.core.objective import Limits
from penstock.live.control_options import Wanted
from penstock.live.fleet import FleetPlan
from penstock.live.fleet_plant import FleetPlant
from penstock.live.fleet_spec import FleetSpec, HostRules, QuerySpec
from penstock.policies.registry import Named


class EmulatedHost:
    """Ready at the second look; does at once what it is told."""

    def __init__(self, name: str, refuses: set[str]) -> None:
        self.name, self.refuses = name, refuses
        self.is_ready, self.asked_s = False, time.time()
        self.ready_s: float | None = None
        self.queries: set[str] = set()
        self.words: list[dict[str, Any]] = []
        self.why = ""
        self.looks = 0
        self.used_s = 0.0

    def say(self, word: Mapping[str, Any]) -> None:
        query = word["query"]["name"] if word["do"] == "start" else word["query"]
        if word["do"] == "start" and self.name in self.refuses:
            self.words.append({"says": "failed", "query": query, "why": "no such file"})
        elif word["do"] == "start":
            self.queries.add(query)
            self.words.append({"says": "resumed", "query": query})
        else:
            self.queries.discard(query)
            self.words.append({"says": "stopped", "query": query})

    def heard(self) -> list[dict[str, Any]]:
        self.looks += 1
        if self.looks == 2:
            self.is_ready, self.ready_s = True, time.time()
            self.words.append({"says": "ready"})
        words, self.words = self.words, []
        return words

    def why_gone(self) -> str | None:
        return self.why or None

    def cpu_s(self) -> float | None:
        return self.used_s

    def end(self) -> None:
        assert not self.queries, "a host was ended with queries on it"
        self.why = "told to"

    def release(self) -> None:
        self.queries.clear()


class World:
    """A fleet of some queries, and its hosts by name."""

    def __init__(self, folder: Path, queries: int, least: int = 1, most: int = 4, is_placed: bool = True) -> None:
        for number in range(queries):
            (folder / f"in{number}").mkdir(exist_ok=True)
        specs = [QuerySpec(f"q{number}", "hashtags", str(folder / f"in{number}")) for number in range(queries)]
        spec = FleetSpec(state=str(folder / "state"), hosts=HostRules(least, most), query=tuple(specs))
        self.plan = FleetPlan(spec, Wanted(policy="fugu", limits=Limits(least, most), objective="latency<=30s"))
        self.job = self.plan.job()
        self.hosts: dict[str, EmulatedHost] = {}
        self.refuses: set[str] = set()
        self.plant = FleetPlant(spec, self.job, self.make, is_placed=is_placed)

    def make(self, name: str) -> EmulatedHost:
        self.hosts[name] = EmulatedHost(name, self.refuses)
        return self.hosts[name]

    def tend(self, times: int = 8) -> None:
        for _ in range(times):
            self.plant.tend()

    def begin(self) -> None:
        self.tend()
        assert self.plant.observe() is None  # the first reading of the CPU

    @property
    def where(self) -> dict[str, list[str]]:
        there = {name: sorted(host.queries) for name, host in self.hosts.items()}
        return {name: queries for name, queries in there.items() if queries}

    def move(self, places: dict[str, str]) -> None:
        target = self.plant.target
        missing = sorted({*places.values()} - {worker.name for worker in target.workers})
        target = target.grown(len(missing))
        instances = {**target.instances, **{query: (host,) for query, host in places.items()}}
        self.plant.apply(replace(target, instances=instances))
        self.tend()


def test_queries_start_on_the_first_hosts_and_are_seen_when_all_run(tmp_path: Path) -> None:
    world = World(tmp_path, queries=3, least=2)
    assert world.plant.observe() is None
    assert world.plant.awaited == ["q0", "q1", "q2"]
    world.begin()
    seen = world.plant.observe()
    assert seen is not None
    assert world.where == {"w1": ["q0", "q2"], "w2": ["q1"]}
    assert dict(seen.running.instances) == dict(seen.target.instances) == {"q0": ("w1",), "q1": ("w2",), "q2": ("w1",)}


def test_a_query_moves_to_a_host_that_is_started_for_it_and_an_empty_host_ends(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    world.move({"q1": "w2"})
    assert world.where == {"w1": ["q0"], "w2": ["q1"]}
    world.move({"q1": "w1"})
    world.plant.apply(world.plant.target.only(["w1"]))
    world.tend()
    assert world.where == {"w1": ["q0", "q1"]}
    assert world.plant.pool.serving == ["w1"]
    assert world.plant.homes.moves == 2


def test_queries_of_a_host_that_dies_go_on_elsewhere_and_the_target_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, queries=4, least=2)
    world.begin()
    world.hosts["w2"].why = "it ended: Killed"
    world.tend()
    assert world.where == {"w1": ["q0", "q1", "q2", "q3"]}  # at once, and not when another host is up
    placed = {query for query, places in world.plant.target.instances.items() if places}
    assert placed == {"q0", "q1", "q2", "q3"}
    assert len(world.plant.target.workers) == 2  # no fewer than the least
    (note,) = [note for note in world.plant.take_notes() if "w2" in note]
    assert note == "host w2 is gone (it ended: Killed): 2 queries go on elsewhere"


def test_the_last_host_is_replaced_under_a_fresh_name(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    world.hosts["w1"].why = "it ended: Killed"
    world.tend()
    assert world.where == {"w2": ["q0", "q1"]}


def test_a_query_that_fails_on_resume_goes_back_and_its_old_host_stays(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    world.refuses.add("w2")
    # All leave w1, which is given up: it must not end before its queries are at home elsewhere.
    everything = Allocation.of(1).grown(1).only(["w2"])
    world.plant.apply(replace(everything, instances={"q0": ("w2",), "q1": ("w2",)}))
    world.tend(12)
    assert world.where == {"w1": ["q0", "q1"]}
    assert dict(world.plant.target.instances) == {"q0": ("w1",), "q1": ("w1",)}
    assert "w1" in [worker.name for worker in world.plant.target.workers]
    notes = world.plant.take_notes()
    assert "q0 failed on resume on w2, and goes back to w1: no such file" in notes
    assert world.plant.observe() is not None
    # A policy that insists does not stop it at each tick.
    again = replace(world.plant.target, instances={"q0": ("w2",), "q1": ("w1",)})
    with pytest.raises(PlantError, match="q0 failed on resume there within the last 5 min"):
        world.plant.apply(again)
    assert world.where == {"w1": ["q0", "q1"]}


def test_without_a_placement_queries_are_spread_over_the_workers(tmp_path: Path) -> None:
    world = World(tmp_path, queries=4, is_placed=False)
    world.begin()
    world.plant.apply(world.plant.target.resized(2))
    world.tend()
    assert {name: len(queries) for name, queries in world.where.items()} == {"w1": 2, "w2": 2}
    assert not world.plant.target.instances
    world.plant.apply(world.plant.target.resized(1))
    world.tend()
    assert world.where == {"w1": ["q0", "q1", "q2", "q3"]}


def test_targets_that_would_leave_a_query_without_a_home_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    with pytest.raises(PlantError, match="at least one host"):
        world.plant.apply(Allocation(()))
    with pytest.raises(PlantError, match="q1 has none"):
        world.plant.apply(replace(Allocation.of(1), instances={"q0": ("w1",)}))
    assert world.where == {"w1": ["q0", "q1"]}


def test_hosts_that_never_start_are_an_error_that_says_why(tmp_path: Path) -> None:
    world = World(tmp_path, queries=1)
    world.plant.pool._again_s = 0.0
    for name in ("w1", "w2", "w3"):
        world.plant.tend()
        world.hosts[name].why = "it ended: no Java"
        world.plant.tend()
        world.plant.pool._again_s = 0.0
    with pytest.raises(PlantError, match="3 hosts in a row did not start: it ended: no Java"):
        world.plant.observe()


def test_fugu_moves_queries_off_a_full_host_by_what_is_measured(tmp_path: Path) -> None:
    """A host at its quota: half of its queries leave for a new one, with the CPU that each was measured to use."""
    world = World(tmp_path, queries=4)
    world.begin()
    policy = Named.parse("fugu:upper_ticks=1,lower_ticks=3,pause_s=1").build(world.job)
    used = dict.fromkeys(world.plant.queries, 0.0)

    def ticks() -> Any:
        for _ in range(6):
            time.sleep(0.05)
            for host in world.hosts.values():
                host.used_s += 0.05 * 0.49 * (1 if len(host.queries) == 4 else 0.5)
                for query in host.queries:
                    used[query] += 0.01
                    host.words.append({"says": "progress", "query": query, "reports": [], "cpu_s": used[query],
                                       "busy": False})  # fmt: skip
            world.tend(2)
            yield None

    steps: list[Step] = list(control(world.plant, policy, world.job.limits, ticks()))
    assert len(world.where) >= 2
    assert any("w1 above 80%" in step.decision.reason for step in steps)
    assert sum(len(queries) for queries in world.where.values()) == 4


def test_before_a_first_batch_what_waits_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    (tmp_path / "in0" / "a.txt").write_text("a line\n")
    world.begin()
    seen = world.plant.observe()
    assert seen is not None
    assert (seen.backlog, seen.latency_s, seen.late_s) == (None, None, None)
    assert (seen.operators["q0"].backlog, seen.operators["q1"].backlog) == (None, 0.0)


def test_a_folder_that_is_gone_costs_its_own_query_what_is_known_and_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    (tmp_path / "in0").rmdir()
    seen = world.plant.observe()
    assert seen is not None
    assert (seen.operators["q0"].backlog, seen.operators["q1"].backlog) == (None, 0.0)


def test_a_word_that_is_not_understood_is_said_and_those_after_it_are_heard(tmp_path: Path) -> None:
    world = World(tmp_path, queries=1)
    world.begin()
    host = world.hosts["w0"] if "w0" in world.hosts else next(iter(world.hosts.values()))
    host.words = [
        {"says": "progress", "query": "q0", "reports": [{"batchId": "seven"}], "busy": False, "cpu_s": 1.0},
        {"says": "failed", "query": "q0", "why": "no such file"},
    ]
    world.plant.tend()
    told = "; ".join(world.plant.take_notes())
    assert "said what was not understood" in told
    assert "no such file" in told


def test_hosts_that_were_let_go_are_not_replaced(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    for host in world.hosts.values():
        host.queries.clear()
    before = dict(world.hosts)
    world.plant.leave()
    world.plant.tend()
    assert world.plant.observe() is not None
    assert world.hosts == before


def test_counters_do_not_fall_when_a_query_is_taken_out_of_the_fleet(tmp_path: Path) -> None:
    world = World(tmp_path, queries=2)
    world.begin()
    seen = world.plant.observe()
    assert seen is not None
    known = {name: replace(stats, arrived=70.0, processed=60.0) for name, stats in seen.operators.items()}
    told = replace(seen, operators={**known, "gone": known["q0"]}, arrived=210.0, processed=180.0)
    before = Step(told, Decision(seen.target, ""), seen.target)
    after = World(tmp_path, queries=2)
    after.plant.go_on(before, world.plant.origin_s)
    after.begin()
    found = after.plant.observe()
    assert found is not None
    assert (found.arrived, found.processed) == (210.0, 180.0)


def test_a_fleet_goes_on_within_limits_that_were_lowered_or_raised_meanwhile(tmp_path: Path) -> None:
    # Six hosts, and four are the most now: FUGU would ask for five, and be refused at every tick.
    world = World(tmp_path, queries=6, least=1, most=6)
    world.begin()
    six = Allocation.of(6)
    world.plant.apply(replace(six, instances={f"q{number}": (f"w{number + 1}",) for number in range(6)}))
    world.tend()
    seen = world.plant.observe()
    assert seen is not None
    before = Step(seen, Decision(seen.target, ""), seen.target)
    for least, most, hosts in ((1, 4, 4), (1, 6, 6), (8, 9, 8)):
        after = World(tmp_path, queries=6, least=least, most=most)
        after.plant.go_on(before, world.plant.origin_s)
        after.tend(12)
        assert len(after.plant.target.workers) == hosts
        assert sorted(query for queries in after.where.values() for query in queries) == [f"q{n}" for n in range(6)]
        kept = {query: host for query, (host,) in after.plant.target.instances.items()}
        assert [kept[f"q{number}"] for number in range(4)] == ["w1", "w2", "w3", "w4"]
