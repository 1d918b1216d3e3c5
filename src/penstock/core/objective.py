"""What good means: the objective, the price, the limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.allocation import Allocation
from penstock.core.bounds import PRICE_MOST, WORKERS_MOST, between
from penstock.core.dataflow import Dataflow
from penstock.core.errors import BadInput
from penstock.core.kinds import WorkerKind
from penstock.core.observation import Observation
from penstock.core.units import SECONDS, duration_s

BILLING_S = {"second": 1.0, "minute": 60.0, "hour": 3600.0}
# A capacity is a sum of floats; without this margin a worker too few would be blamed for a rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Objective:
    """One of: `rate` (what arrives is at most what could be done), a bound on the oldest event's latency, or a least
    relative throughput: of the results that all arrivals so far lead to, at least this part has come out (paper 3).

    >>> Objective.parse("latency<=120s").latency_s, Objective.parse("throughput>=0.8").throughput
    (120.0, 0.8)
    >>> str(Objective.parse("rate"))
    'rate'
    """

    latency_s: float | None = None
    throughput: float | None = None
    """0…1, over the run so far: one bad interval may be made up for."""

    def __post_init__(self) -> None:
        if self.throughput is not None:
            between("objective: throughput", self.throughput, 0, 1)
            if self.latency_s is not None:
                raise BadInput("an objective is a bound on the latency or on the throughput, not both")

    @classmethod
    def parse(cls, text: str) -> Objective:
        squeezed = re.sub(r"\s+", "", text)
        if squeezed in ("rate", "rate<=capacity"):
            return cls()
        if squeezed.startswith("throughput>="):
            return cls(throughput=_share(squeezed.removeprefix("throughput>="), text))
        name, relation, bound = squeezed.partition("<=")
        if name != "latency" or not relation:
            raise BadInput(
                f"objective '{text}' is not one: write latency<=120s, throughput>=0.8, or rate (arrivals <= capacity)"
            )
        return cls(duration_s(bound, "the bound of the objective", least_s=1e-3))

    def missed(self, seen: Observation, arrived: float, could: float | None = None) -> bool | None:
        """Does the interval miss it? `arrived` is what came within it. None: that cannot be judged.

        `could` is what the workers could really have served a second; without it the model's word counts.
        """
        if self.throughput is not None:
            reached = relative_throughput(seen.delivered, seen.deliverable)
            return reached is not None and reached < self.throughput * (1 - ROUNDING)
        if self.latency_s is None:
            capacity = seen.capacity if could is None else could
            # Where nobody tells what waits, arrivals are known batch by batch: only their rate can be judged.
            came = arrived if seen.backlog is not None else seen.input_rate * seen.span_s
            return came > capacity * seen.span_s * (1 + ROUNDING)
        if seen.late_s is not None:
            return seen.late_s > ROUNDING
        return None if seen.latency_s is None else seen.latency_s > self.latency_s * (1 + ROUNDING)

    def missed_s(self, seen: Observation, missed: bool) -> float:
        """For how much of an interval that misses it it is missed: all of it, where nobody kept the time."""
        if not missed:
            return 0.0
        return seen.span_s if self.latency_s is None or seen.late_s is None else min(seen.late_s, seen.span_s)

    def __str__(self) -> str:
        if self.throughput is not None:
            return f"throughput>={self.throughput:g}"
        return "rate" if self.latency_s is None else f"latency<={self.latency_s:g}s"


def _share(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"objective '{whole}': '{text[:40]}' is no number from 0 to 1") from None


def relative_throughput(delivered: float, deliverable: float) -> float | None:
    """Ω: results, to those that the arrivals lead to if nothing waits; None where nothing was to be delivered.

    Above 1 where backlog is worked off (paper 3 §III).
    """
    return delivered / deliverable if deliverable > 0 else None


def application_value(flow: Dataflow) -> float:
    """Γ: the mean value of the active alternates, 0…1; an operator without alternates has the value 1."""
    values = [each.active(flow.alternate.get(each.name)).value for each in flow.operators]
    return sum(values) / len(values)


def profit(value: float, cost: float, sigma: float) -> float:
    """Θ = Γ − σμ, of a period's mean value and its cost. It has no unit: a percentage of it says what σ was."""
    return value - sigma * cost


def deviations(relatives: Iterable[float | None], low: float, high: float) -> int:
    """χ: steps whose Ω lies outside of a band, the same count for every policy.

    >>> deviations([0.79, 0.8, 0.9, 0.91, None], low=0.8, high=0.9)
    2
    """
    return sum(not low - ROUNDING <= each <= high + ROUNDING for each in relatives if each is not None)


@dataclass(frozen=True, slots=True)
class Price:
    """What a worker costs, and in which units its time is billed: each started unit in full.

    >>> Price(0.60, "hour").of(3601.0), Price(0.60, "minute").of(61.0)
    (1.2, 0.02)
    """

    per_hour: float = 0.10
    billing: str = "second"

    def __post_init__(self) -> None:
        if not 0 <= self.per_hour <= PRICE_MOST:
            raise BadInput(f"a price of {self.per_hour:g} per hour is none: give a number from 0 to {PRICE_MOST:g}")
        if self.billing not in BILLING_S:
            raise BadInput(f"billing '{self.billing}' is not known: write {', '.join(BILLING_S)}")

    @classmethod
    def parse(cls, text: str, billing: str = "second") -> Price:
        amount, slash, unit = (part.strip() for part in text.lstrip("$").partition("/"))
        try:
            value = float(amount)
        except ValueError:
            value = math.nan
        if not slash or unit not in SECONDS or not value >= 0:
            raise BadInput(f"price '{text}' is not one: write an amount per time, such as 0.10/h")
        return cls(value * 3600.0 / SECONDS[unit], billing)

    def of(self, paid_s: float, kind: WorkerKind | None = None) -> float:
        """The price of one worker for some time; a kind may have a price of its own."""
        unit = BILLING_S[self.billing]
        per_hour = self.per_hour if kind is None or kind.per_hour is None else kind.per_hour
        return math.ceil(paid_s / unit - ROUNDING) * unit * per_hour / 3600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How few and how many workers there may be."""

    workers_min: int
    workers_max: int

    def __post_init__(self) -> None:
        if self.workers_min < 0 or not 1 <= self.workers_max <= WORKERS_MOST:
            raise BadInput(
                f"limits of {self.workers_min} … {self.workers_max} workers: the least is 0, the most {WORKERS_MOST}"
            )
        if self.workers_min > self.workers_max:
            raise BadInput(f"the least number of workers ({self.workers_min}) is above the most ({self.workers_max})")

    def clamp(self, workers: int) -> int:
        return min(max(workers, self.workers_min), self.workers_max)

    def cut(self, target: Allocation) -> Allocation:
        """A plain worker count within the limits; a placement that does not fit is refused."""
        allowed = self.clamp(len(target.workers))
        if allowed == len(target.workers):
            return target
        if target.instances:
            # Cutting workers out of a placement would leave operators without a home.
            raise BadInput(f"a placement on {len(target.workers)} workers does not fit the limits ({self})")
        return target.resized(allowed)

    def __str__(self) -> str:
        return f"{self.workers_min} … {self.workers_max} workers"


def break_even(extra_cost: float, saved: float) -> float:
    """What each thing saved (a violation, say) must be worth before an extra cost pays: Δcost < Δsaved · worth.

    0 where nothing extra is paid, infinity where something is and nothing saved. This is what equations 20–23 of
    paper 5 mean; as printed they compare percentages of unlike amounts.

    >>> break_even(extra_cost=2.0, saved=1000.0), break_even(extra_cost=-1.0, saved=10.0)
    (0.002, 0.0)
    """
    if extra_cost <= 0 and saved >= 0:
        return 0.0
    return extra_cost / saved if saved > 0 else math.inf


def break_even_as_printed(price: float, rise: float, gain: float) -> float:
    """Equations 20–23 as printed: (1 + rise) · price < (1 + gain) · worth.

    >>> round(break_even_as_printed(0.0612, rise=0.078, gain=0.132), 4)
    0.0583
    """
    return price * (1 + rise) / (1 + gain)
