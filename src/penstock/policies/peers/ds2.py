"""DS2: three steps is all you need (Kalavri et al., OSDI 2018)."""

from __future__ import annotations

from typing import ClassVar

from penstock.core.allocation import Knob
from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.peers.measured import Measured, Meter, up

# Its default is the greatest number there is: no last correction by the source's rate.
NEVER = 1e9


class Ds2:
    """As many workers as their true processing rate, events by useful time, says the source's rate takes."""

    source: ClassVar[str] = "Kalavri et al., OSDI 2018"
    is_peer: ClassVar[bool] = True
    needs = frozenset({Knob.WORKERS})

    def __init__(  # noqa: PLR0913  what can be set is what its configuration file sets
        self,
        job: Job,
        policy_interval_s: float = 10.0,
        warm_up_time: int = 2,
        activation_time: int = 1,
        scaling_factor: float = 0.0,
        target_rate_ratio_threshold: float = NEVER,
    ) -> None:
        between("ds2:policy_interval_s", policy_interval_s, 0.01)
        between("ds2:warm_up_time", warm_up_time, 0, 1e6)
        between("ds2:activation_time", activation_time, 1, 1e6)
        between("ds2:scaling_factor", scaling_factor, 0, 10)
        between("ds2:target_rate_ratio_threshold", target_rate_ratio_threshold, 1)
        self._limits, self._every_s, self._factor = job.limits, policy_interval_s, scaling_factor
        self._ratio = target_rate_ratio_threshold
        self._warm_s, self._activation = warm_up_time * policy_interval_s, activation_time
        self.memory_s = self._warm_s + activation_time * policy_interval_s
        self._meter = Meter()
        self._epoch: list[Measured] = []
        self._ignored_s = 0.0
        self._agreed = 0

    def decide(self, seen: Observation) -> Decision:
        measured = self._meter.note(seen)
        self._epoch += [measured] if measured else []
        span_s = sum(each.span_s for each in self._epoch)
        if span_s < self._every_s - 1e-6:
            return Decision(seen.target, f"decides every {self._every_s:g} s")
        epoch, self._epoch = self._epoch, []
        if len(seen.running.workers) != len(seen.target.workers):
            self._ignored_s = 0.0
            return Decision(seen.target, "the last change is under way")
        if self._ignored_s < self._warm_s:
            self._ignored_s += span_s
            return Decision(seen.target, f"warming up: {self._warm_s:g} s after a change are ignored")
        return self._judged(seen, epoch)

    def _judged(self, seen: Observation, epoch: list[Measured]) -> Decision:
        running, asked = len(seen.running.workers), len(seen.target.workers)
        rates = [each.useful_rate for each in epoch if each.useful_rate]
        if not rates or not running:
            return Decision(seen.target, "nothing was processed: no true rate is known")
        span_s = sum(each.span_s for each in epoch)
        target, true_rate = sum(each.arrived for each in epoch) / span_s, sum(rates) / len(rates)
        observed = sum(each.processed for each in epoch) / span_s
        wanted = max(1, up((1 + self._factor) * target / (true_rate / running)))
        if wanted <= asked and observed > 0 and target / observed > self._ratio:
            wanted = up(wanted * target / observed)
        wanted = self._limits.clamp(wanted)
        self._agreed = self._agreed + 1 if wanted != asked else 0
        reason = f"{target:.4g}/s at {true_rate / running:.4g}/s a worker takes {wanted}"
        signals = {"target rate": target, "true rate": true_rate}
        if self._agreed < self._activation:
            return Decision(seen.target, f"{reason}; said {self._agreed} of {self._activation} times", signals)
        self._agreed, self._ignored_s = 0, 0.0
        return Decision(seen.target.resized(wanted), reason, signals)
