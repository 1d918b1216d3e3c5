"""How the Kubernetes HPA gets from a wish to a number of replicas: stabilisation windows and rate limits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.bounds import between
from penstock.core.objective import Limits
from penstock.core.observation import Observation
from penstock.policies.peers.measured import up

SYNC_S = 15.0


@dataclass(frozen=True, slots=True)
class Behavior:
    """`behavior` of autoscaling/v2, with its defaults: up at once by 4 or 100 % in 15 s, down after 5 minutes."""

    scale_up_s: float = 0.0
    scale_down_s: float = 300.0
    up_pods: int = 4
    up_percent: float = 100.0
    down_percent: float = 100.0
    period_s: float = 15.0

    def __post_init__(self) -> None:
        for name in ("scale_up_s", "scale_down_s"):
            between(f"hpa: {name}", getattr(self, name), 0)
        between("hpa: down_percent", self.down_percent, 0, 100)


class Replicas:
    """Replicas that follow a wish. Where a tick is longer than the 15 s of a sync, as many syncs happen within it."""

    def __init__(self, behavior: Behavior, limits: Limits) -> None:
        self._behavior, self._limits = behavior, limits
        self.memory_s = max(behavior.scale_up_s, behavior.scale_down_s, behavior.period_s)
        self._wishes: deque[tuple[float, int]] = deque()
        self._changes: deque[tuple[float, int]] = deque()

    def follow(self, seen: Observation, wish: Callable[[int, float], int]) -> int:
        """How many there are to be. The wish may depend on how many are asked for already, and on when: 1 is now, 0 the
        end of the tick before."""
        replicas, syncs = len(seen.target.workers), max(1, round(seen.span_s / SYNC_S))
        for number in range(1, syncs + 1):
            now_s = seen.time_s - seen.span_s * (1 - number / syncs)
            if not self._wishes:
                self._wishes.append((now_s, replicas))  # as many as there were when it began
            self._wishes.append((now_s, wish(replicas, number / syncs)))
            wanted = self._limited(now_s, replicas, self._stabilised(now_s, replicas))
            if wanted != replicas:
                self._changes.append((now_s, wanted - replicas))
            replicas = wanted
        return replicas

    def _stabilised(self, now_s: float, replicas: int) -> int:
        """Up to the least that was wished for in the upper window, down to the most in the lower one."""
        behavior, wished = self._behavior, self._wishes[-1][1]
        while self._wishes[0][0] < now_s - self.memory_s:
            self._wishes.popleft()
        least = min([wished, *(w for at_s, w in self._wishes if at_s > now_s - behavior.scale_up_s)])
        most = max([wished, *(w for at_s, w in self._wishes if at_s > now_s - behavior.scale_down_s)])
        return max(replicas, least) if replicas < least else min(replicas, most)

    def _limited(self, now_s: float, replicas: int, wanted: int) -> int:
        """Not faster than the policies allow, counted from how many there were when their period began."""
        behavior = self._behavior
        while self._changes and self._changes[0][0] <= now_s - behavior.period_s:
            self._changes.popleft()
        began = replicas - sum(change for _, change in self._changes)
        if wanted > replicas:
            most = max(began + behavior.up_pods, up(began * (1 + behavior.up_percent / 100)))
            wanted = min(wanted, max(replicas, most))
        elif wanted < replicas:
            wanted = max(wanted, min(replicas, int(began * (1 - behavior.down_percent / 100) + 1e-9)))
        return self._limits.clamp(max(1, wanted))
