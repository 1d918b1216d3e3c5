"""A calibrated simulation beside the journals it was learnt from: the same load, the same policy, how far off?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from penstock.core.errors import BadInput
from penstock.core.follow import Follower
from penstock.core.job import Job
from penstock.core.loop import Policy, Step
from penstock.core.score import Score, score
from penstock.core.text import some_of
from penstock.core.typed import typed
from penstock.models.evidence import Evidence, evidence_of
from penstock.models.meters import trigger_offset_s
from penstock.policies.guards import OPTIONS, Guards
from penstock.policies.parameters import renamed
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.derive import Given, World
from penstock.sim.toml import ScenarioFile
from penstock.sim.workloads import Load

# Starts are drawn at random: one replay would be as lucky or unlucky as the run itself. The time that a run of ten
# minutes misses has a standard deviation of 12 points or so: a hundred of them tell its mean to one.
SEEDS = 100
STEPS = 30_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to; simulated, the mean over the seeds."""

    cost: float
    violation_share: float
    scaling_actions: float
    workers_started: float
    duration_s: float

    @classmethod
    def of(cls, run: Score) -> Figures:
        actions, started = float(run.scaling_actions), float(run.workers_started)
        return cls(run.cost, run.violation_share, actions, started, run.duration_s)

    @classmethod
    def each(cls, runs: Sequence[Figures], over: Callable[[Sequence[float]], float]) -> Figures:
        """Figure by figure: the mean, the least, the most of some runs."""
        return cls(*(over([getattr(run, name) for run in runs]) for name in cls.__slots__))

    @classmethod
    def total(cls, runs: Sequence[Figures]) -> Figures:
        """All runs as one: amounts add up, a share of the time is weighed by its time."""
        duration_s = sum(run.duration_s for run in runs)
        missed_s = sum(run.violation_share * run.duration_s for run in runs)
        sums = [sum(getattr(run, name) for run in runs) for name in ("cost", "scaling_actions", "workers_started")]
        return cls(sums[0], missed_s / (duration_s or 1.0), sums[1], sums[2], duration_s)


@dataclass(frozen=True, slots=True)
class MeasuredVsSimulated:
    """A run beside its replays in the calibrated world."""

    name: str
    policy: str
    measured: Figures
    simulated: Figures
    least: Figures
    """Over the seeds, figure by figure: the least that the run itself might as well have come to."""
    most: Figures
    """Over the seeds, figure by figure: the most that the run itself might as well have come to."""

    @property
    def cost_off(self) -> float | None:
        """As a share of what was measured."""
        return self.simulated.cost / self.measured.cost - 1 if self.measured.cost else None

    @property
    def violation_off(self) -> float:
        """In points of the time, as a share: 0.02 is two points."""
        return self.simulated.violation_share - self.measured.violation_share

    def record(self) -> dict[str, Any]:
        return asdict(self) | {
            "off": {
                "cost": self.cost_off,
                "violation_share": self.violation_off,
                "scaling_actions": self.simulated.scaling_actions - self.measured.scaling_actions,
                "workers_started": self.simulated.workers_started - self.measured.workers_started,
            }
        }


def read_evidence(path: Path) -> tuple[Evidence, int]:
    """What a journal, with the files it was rotated to, shows; and how many of its lines were damaged."""
    with Follower(path) as follower:
        evidence = evidence_of(follower.header, _steps(follower))
        if evidence is None:
            raise BadInput(f"{path} has no steps that can be read: the run wrote its header and nothing more")
        tick_s, apart_s = follower.header.tick_s, float(np.median(evidence.ticks.span_s))
        if not tick_s / 100 <= apart_s <= 100 * tick_s:
            raise BadInput(f"{path}: its steps are {apart_s:g} s long, and its header says {tick_s:g} s: it is damaged")
        return evidence, follower.damaged


def _steps(follower: Follower) -> Iterator[Step]:
    while True:
        steps = follower.read()
        yield from steps
        if not steps and follower.share >= 1.0:
            return


def simulate(
    name: str, evidence: Evidence, file: ScenarioFile, told: Callable[[float], None] = lambda _: None
) -> MeasuredVsSimulated:
    """Replay the journal's load with its policy in the calibrated world, once for each of some seeds."""
    world, named = _world(name, evidence, file), Named.parse(evidence.header.policy)
    seeds = max(2, min(SEEDS, STEPS // max(1, len(evidence.ticks.time_s))))
    runs = []
    for seed in range(seeds):
        scenario = world.scenario(seed)
        steps = replay(scenario, _built(named, scenario.job(), evidence))
        runs.append(Figures.of(score(steps, scenario.objective, scenario.price, scenario.job().kinds)))
        told((seed + 1) / seeds)
    measured, over = Figures.of(evidence.score), (fmean, min, max)
    return MeasuredVsSimulated(name, evidence.header.policy, measured, *(Figures.each(runs, each) for each in over))


def total(runs: Sequence[MeasuredVsSimulated]) -> MeasuredVsSimulated:
    """All journals together."""
    policies = sorted({run.policy for run in runs})
    names = ("measured", "simulated", "least", "most")
    return MeasuredVsSimulated(
        "in total", ", ".join(policies), *(Figures.total([getattr(run, name) for run in runs]) for name in names)
    )


def _world(name: str, evidence: Evidence, file: ScenarioFile) -> World:
    """The file's world with what is this journal's own: its load, start, limits, and its trigger's clock."""
    header, batch = evidence.header, file.batch
    if batch is not None:
        batch = replace(batch, trigger_s=evidence.trigger_s or batch.trigger_s, offset_s=trigger_offset_s(evidence))
    at_start = header.limits.clamp(evidence.workers_at_start)
    low, high = header.limits.workers_min, header.limits.workers_max
    return World(
        name,
        Given(objective=header.objective, price=header.price, workers_min=low, workers_max=high),
        replace(file, trace=None, workers_at_start=at_start, batch=batch),
        Load.of(evidence.arrivals(), header.tick_s),
    )


def _built(named: Named, job: Job, evidence: Evidence) -> Policy:
    """With the safety rules that stood around it; journals of earlier versions tell them among the facts."""
    header = evidence.header
    given = typed(dict(header.rules) or header.facts.get("rules", {}), dict[str, Any], "rules")
    # Live journals once told the policy's own parameters there, too.
    rules = {key: value for key, value in renamed(given, OPTIONS).items() if named.parameters.get(key) != value}
    if not rules.keys() <= OPTIONS.keys():
        raise BadInput(f"its header has rules that are not known here: {some_of(rules)}")
    typed(rules, Guards, "rules")
    if header.seed is not None:
        return named.build(job, rules)
    return replace(named, parameters={**rules, **named.parameters}).build_safe(job, lambda _: False)
