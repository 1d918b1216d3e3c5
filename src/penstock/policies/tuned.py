"""Any policy, tuned online: what was seen lately is replayed with other parameters, and cheaper ones are adopted.

Paper 2's online tuner (§3.4, §4) with Penstock's simulator as the cost function, around a policy that has a `space`:
`tuned:threshold`, `tuned:deadline:budget=50`. It searches inline, so what was replayed is what runs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from penstock.core.allocation import Knob
from penstock.core.bounds import SEED_MOST, between
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Decision, Policy, control
from penstock.core.observation import Observation
from penstock.core.score import score
from penstock.models.drift import Adwin
from penstock.models.tracking import StartTimes
from penstock.policies.guards import Guards, safety
from penstock.policies.parameters import parameters_of
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, WorkerSpec
from penstock.sim.workloads import Load
from penstock.solvers.search import recursive_random
from penstock.solvers.space import Point, Space

# An hour of minutes shows a rise and a fall of most loads; of four hours the first is seldom like now.
SHORTEST, LONGEST = 60, 240
# What is adopted saves this share at least: a search finds a little by chance.
WORTH = 0.01


class Tuned:
    """A policy whose parameters are searched anew on what was recorded lately, whenever the load changes."""

    source: ClassVar[str] = "paper 2 (Heinze), §3.4 and §4, around any policy that can be tuned"
    among: ClassVar[Mapping[str, type]] = {}
    """Policies by name: the list that it stands on itself, and therefore cannot import."""

    def __init__(  # noqa: PLR0913  what can be set is what the search leaves open
        self,
        job: Job,
        inside: str,
        budget: int = 30,
        violations: float = 0.001,
        delta: float = 0.2,
        shortest: int = SHORTEST,
        longest: int = LONGEST,
        seed: int = 0,
    ) -> None:
        for key, value, low, high in (
            ("budget", budget, 1, 100_000),
            ("violations", violations, 0, 1),
            ("shortest", shortest, 10, longest),
            ("longest", longest, shortest, 100_000),
            ("seed", seed, 0, SEED_MOST),
        ):
            between(f"tuned:{key}", value, low, high)
        self._space = tunable(inside, self.among.get(inside))
        self._maker: Any = self.among[inside]
        self._job = job
        self._budget, self._violations, self._seed = budget, violations, seed
        self._given: Mapping[str, Any] = {}
        self._policy: Policy = self._maker(job)
        self.needs, self._shortest = self._policy.needs, shortest
        if Knob.PLACEMENT in self.needs:
            raise BadInput(f"tuned:{inside}: it places operators, which is not replayed here: take fugu-tuned")
        self._load = Adwin(delta, shortest, longest)
        self._history: deque[Observation] = deque(maxlen=longest + 1)
        self._starts = StartTimes(job.kinds[0].start_s)
        self._since = self._searches = self._adopted = 0
        self._recalled: Mapping[str, float] | None = None
        self.memory_s = max(self._policy.memory_s, longest * job.tick_s)

    def recall(self, signals: Mapping[str, float]) -> None:
        """What was adopted may be days old: a restart takes it from the journal, and repeats no search."""
        self._recalled = signals if {*self._signals()} <= {*signals} else None

    def decide(self, seen: Observation) -> Decision:
        self._starts.note(seen)
        self._history.append(seen)
        # In workers, as paper 2 counts hosts.
        needed = float(self._job.workers_for(seen.input_rate))
        note = self._tuned(needed) if self._recalled is None else self._resume(needed, self._recalled)
        self._recalled = None
        decision = self._policy.decide(seen)
        adopted = {f"{key} adopted": float(value) for key, value in self._given.items()}
        return Decision(decision.target, decision.reason + note, {**decision.signals, **self._signals(), **adopted})

    def _signals(self) -> dict[str, float]:
        """What a restart needs beside the adopted parameters."""
        counts = {"searches": self._searches, "adopted": self._adopted, "window": self._load.size}
        return {**{key: float(value) for key, value in counts.items()}, "expected start_s": self._starts.expected_s}

    def _resume(self, needed: float, signals: Mapping[str, float]) -> str:
        """The parameters and the counts that the journal tells."""
        self._load.recall(needed, int(signals["window"]))
        searches, self._adopted = int(signals["searches"]), int(signals["adopted"])
        self._since = self._since + 1 if searches == self._searches else 0
        self._searches, self._starts.expected_s = searches, signals["expected start_s"]
        keys = {key: f"{key} adopted" for key in self._space}
        given = self._typed({key: signals[name] for key, name in keys.items() if name in signals})
        if given != self._given:
            self._adopt(given)
        return ""

    def _tuned(self, needed: float) -> str:
        """Where the load has changed, search."""
        has_changed = self._load.add(needed) > 0
        self._since += 1
        if not has_changed or self._since < self._shortest or len(self._history) <= self._shortest:
            return ""
        self._since = 0
        world = self._world()
        return self._search(world) if world is not None else ""

    def _search(self, world: Scenario) -> str:
        def value(given: Mapping[str, Any]) -> tuple[float, float]:
            try:
                policy = self._maker(world.job(), **given)
            except BadInput:  # thresholds that cross: the space is a box, and what makes sense is not
                return math.inf, math.inf
            plant, job = SimulatedPlant(world), world.job()
            policy = Guards(**{**safety(job), "failures_max": 0}).around(policy, job)
            found = score(control(plant, policy, job.limits, plant.ticks()), job.objective, job.price, job.kinds)
            return max(0.0, found.violation_share - self._violations), found.cost

        self._searches += 1
        seed = self._seed + self._searches
        found = recursive_random(lambda point: value(self._typed(point)), self._space, self._budget, seed)
        late, cost = value(self._given)
        if not (found.value[0], found.value[1]) < (late, (1 - WORTH) * cost):
            return ""
        self._adopt(self._typed(found.point))
        self._adopted += 1
        chosen = ",".join(f"{key}={each:g}" for key, each in self._given.items())
        return f"; tuned on {len(world.load.arrivals)} ticks: {chosen}"

    def _adopt(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._policy = self._maker(self._job, **given)
        for each in list(self._history)[:-1]:  # what it would know, had it been there
            self._policy.decide(each)

    def _typed(self, point: Point) -> dict[str, Any]:
        known = parameters_of(self._maker)
        return {key: int(each) if str(known[key].annotation) == "int" else each for key, each in point.items()}

    def _world(self) -> Scenario | None:
        """What was seen lately, as a world to replay: no noise, no failures, workers that start as fast as they did."""
        job, seen = self._job, list(self._history)[-self._load.size - 1 :]
        came = [max(0.0, after.arrived - before.arrived) for before, after in pairwise(seen)]
        if not sum(came) or job.capacity.sustainable(1, job.trigger_s) <= 0:
            return None
        return Scenario(
            name=f"the last {len(came)} ticks",
            load=Load.of(np.array(came), job.tick_s),
            dataflow=job.dataflow,
            capacity=job.capacity,
            limits=job.limits,
            objective=job.objective,
            price=job.price,
            worker=_spec(job.kinds[0], self._starts.expected_s),
            batch=BatchSpec(job.trigger_s) if job.trigger_s else None,
            workers_at_start=job.limits.clamp(len(seen[0].running.workers)),
            seed=self._seed,
        )


def _spec(kind: WorkerKind, start_s: float) -> WorkerSpec:
    return WorkerSpec(kind.name, kind.cores, kind.memory_mb, kind.speed, kind.per_hour, start_s)


def tunable(name: str, maker: Any) -> Space:
    """What may be searched of a policy; BadInput where there is nothing."""
    space: Space = getattr(maker, "space", {})
    if not space:
        raise BadInput(f"tuned:{name}: it has nothing to tune: a class needs a `space`, as threshold and deadline have")
    return space
