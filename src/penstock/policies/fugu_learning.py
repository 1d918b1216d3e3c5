"""Q-learning on utilisation alone: the black box that paper 2 compares with (§5.3)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import SEED_MOST, between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.fugu import Fugu, decided, moved_to
from penstock.policies.fugu_scaler import Change, Measured, host_loads
from penstock.policies.fugu_settings import HOST, SATURATED

BINS = 10
ACTIONS = (-1, 0, 1)
# An action is judged by what the load is half a minute later: a host takes a while to come, operators pause.
EVERY = 3
# Every so often another action than the best is tried, or nothing new would be learnt.
CURIOUS = 0.05


class Learning:
    """One host more, one less, or none, by what each was worth at such a utilisation before."""

    source: ClassVar[str] = "paper 2 (Heinze) §5.3: reinforcement learning as in its reference 13"
    needs = frozenset({Knob.WORKERS, Knob.PLACEMENT})

    def __init__(self, job: Job, rate: float = 0.5, discount: float = 0.5, target: float = 0.8, seed: int = 0) -> None:
        between("fugu-rl:rate", rate, 0, 1)
        between("fugu-rl:discount", discount, 0, 0.999)
        between("fugu-rl:target", target, 0.01, 1)
        between("fugu-rl:seed", seed, 0, SEED_MOST)
        inside = Fugu(job, upper=0.95, lower=0.0, grace_ticks=0)
        self._meter, self._scaler, self._kind = inside.meter, inside.scaler, job.kinds[0].name
        self._rate, self._discount, self._target = rate, discount, target
        self._rng = random.Random(seed)
        # What would bring the load to the target if hosts were all alike: a first guess that experience corrects.
        self._worth = {(at, act): -abs((at + 0.5) / BINS - target) * (1 if act == self._towards(at) else 2)
                       for at in range(BINS + 1) for act in ACTIONS}  # fmt: skip
        self._last: tuple[int, int] | None = None
        self._ticks = 0
        self.memory_s = 86400.0

    def decide(self, seen: Observation) -> Decision:
        measured, asked = self._meter.read(seen), seen.target
        if measured is None:
            return Decision(asked, "no operator was measured: what runs stays")
        hosts = [worker.name for worker in asked.workers]
        places = {name: there[0] for name, there in asked.instances.items() if there}
        if set(places) != set(self._scaler.layout.operators):
            return decided(self._scaler, measured, seen, self._kind)
        loads = host_loads(measured.loads, hosts, places)
        load = sum(each[0] for each in loads.values()) / HOST / max(1, len(hosts))
        state = min(BINS, int(load * BINS))
        action = self._next(state, load, max(each[0] for each in loads.values())) if not seen.pending else 0
        change = self._change(measured, loads, places, action, asked.grown(1, self._kind).workers[-1].name)
        signals = {"load": load, "target": self._target, "hosts": float(len(hosts))}
        why = change.why or f"load {load:.0%}, sought {self._target:.0%}: no host more or less"
        return Decision(moved_to(asked, places, change, self._kind), why, signals)

    def _next(self, state: int, load: float, fullest: int) -> int:
        """Learn from the last action and choose another, every few measurements."""
        self._ticks += 1
        if self._ticks % EVERY:
            return 0
        self._learn(state, load, fullest)
        action = self._chosen(state)
        self._last = (state, action)
        return action

    def _towards(self, at: int) -> int:
        load = (at + 0.5) / BINS
        return 1 if load > self._target else -1 if load < self._target - 1.5 / BINS else 0

    def _learn(self, state: int, load: float, fullest: int) -> None:
        """What the last action was worth: how near it came to the target, and no host overloaded."""
        if self._last is None:
            return
        reward = -abs(load - self._target) - (fullest > SATURATED)
        best = max(self._worth[state, action] for action in ACTIONS)
        before = self._worth[self._last]
        self._worth[self._last] = before + self._rate * (reward + self._discount * best - before)

    def _chosen(self, state: int) -> int:
        if self._rng.random() < CURIOUS:
            return self._rng.choice(ACTIONS)
        return max(ACTIONS, key=lambda action: self._worth[state, action])

    def _change(
        self, seen: Measured, loads: Mapping[str, list[int]], places: Mapping[str, str], action: int, fresh: str
    ) -> Change:
        hosts, limits = list(loads), self._scaler.limits
        if action > 0 and len(hosts) < limits.workers_max:
            return self._scaler.halved(seen, max(hosts, key=lambda host: loads[host][0]), places, fresh)
        if action < 0 and len(hosts) > max(1, limits.workers_min):
            return self._scaler.released(seen, loads, hosts, places)
        return Change("")


SETTINGS = tuple((rate, discount) for rate in (0.1, 0.5, 0.9) for discount in (0.1, 0.5, 0.9))
"""Nine learning settings: learning rate, and how much the next state counts."""
