"""Paper 5's queries (§3.2): one per 100 images, answered from state that moves when VMs come and go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.core.loop import Step
from penstock.policies.registry import Named
from penstock.reproduce import ekf_paper as paper
from penstock.reproduce.claims import Claim
from penstock.reproduce.ekf_runs import PAPERS_OWN, PER_WORKER, SCENARIOS, policies
from penstock.runs.replayed import replay

PER_IMAGE = 0.01
BOUND_S = 1.0
# R, G and B of 1,000 images of 1.7 megapixels; a gigabit link. The paper prints neither, only that it takes a while.
STATE_MB, MOVE_MB_S = 5100.0, 125.0
RUNS = 3
_WHY = (
    "a query passes waiting images by; it waits for the one in work and, where its region moves, for that VM's share of"
    f" {STATE_MB:g} MB at {MOVE_MB_S:g} MB/s: both assumed, so order and ratios are compared"
)


@dataclass(slots=True)
class Answers:
    """Queries of a run, in parts of one: how many, how long in all, how many late."""

    count: float = 0.0
    waited_s: float = 0.0
    late: float = 0.0

    @property
    def mean_s(self) -> float:
        return self.waited_s / self.count if self.count else 0.0


def answers(steps: Iterable[Step]) -> Answers:
    """What queries meet: regions are equally large, so one VM that joins n takes 1/(n + 1) of each other's."""
    found, arrived = Answers(), 0.0
    names: frozenset[str] | None = None
    moving: list[tuple[float, float]] = []  # until when, and which share of all regions
    for step in steps:
        seen = step.seen
        asked, arrived = PER_IMAGE * (seen.arrived - arrived), seen.arrived
        now = frozenset(worker.name for worker in seen.running.workers)
        if names is not None and now != names:
            wide = max(len(now), len(names), 1)
            move_s = STATE_MB / wide / MOVE_MB_S
            moving.append((seen.time_s + move_s, min(1.0, len(now ^ names) / wide)))
        names = now
        moving = [(until_s, share) for until_s, share in moving if until_s > seen.time_s]
        busy = min(1.0, asked / PER_IMAGE / seen.span_s / (PER_WORKER * max(1, len(now))))
        found.count += asked
        found.waited_s += asked * busy / (2 * PER_WORKER)
        _wait(found, asked, moving, seen.time_s)
    return found


def _wait(found: Answers, asked: float, moving: Iterable[tuple[float, float]], now_s: float) -> None:
    left = 1.0
    for until_s, share in sorted(moving, reverse=True):
        # A region that moves twice waits for the later of the two.
        hit = left * share
        found.waited_s += asked * hit * (until_s - now_s)
        found.late += asked * hit * (until_s - now_s > BOUND_S)
        left -= hit


Queries = Mapping[tuple[str, str], tuple[Answers, ...]]


def ask(seeds: int) -> Queries:
    """Queries of the paper's three filters in its three scenarios."""
    found = {}
    for world in SCENARIOS:
        for name in PAPERS_OWN:
            runs = []
            for seed in range(min(seeds, RUNS)):
                scenario = world.scenario(seed)
                runs.append(answers(replay(scenario, Named.parse(policies()[name]).build(scenario.job()))))
            found[world.name, name] = tuple(runs)
    return found


def claims(known: Queries) -> Iterator[Claim]:
    """Mean times beside the paper's, and those that took more than a second."""
    for world in SCENARIOS:
        cells = [known[world.name, name] for name in PAPERS_OWN]
        means = [float(np.mean([run.mean_s for run in runs])) for runs in cells]
        printed = paper.TABLES[world.name]["query"]
        holds = list(np.argsort([mean for mean, _ in printed])) == list(np.argsort(means))
        theirs = " ".join(f"{mean:g} ({spread:g})" for mean, spread in printed)
        text = f"{world.name}: time for a query, seconds"
        yield Claim(f"{world.name}-query", text, theirs, " ".join(f"{mean:.3g}" for mean in means), holds, _WHY)
        late = " ".join(f"{np.mean([run.late for run in runs]):.3g}" for runs in cells)
        share = " ".join(f"{np.mean([run.late / run.count for run in runs]):.2%}" for runs in cells)
        text = f"{world.name}: queries of more than {BOUND_S:g} s, and their share"
        yield Claim(f"{world.name}-query-late", text, None, f"{late}; {share}", None, _WHY)
