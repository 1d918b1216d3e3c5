"""What workers cost a look-ahead planner, and how much of that a unit of value is worth (paper 3: σ)."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.bounds import between
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.objective import BILLING_S
from penstock.core.observation import Observation
from penstock.models.flow_table import FlowTable
from penstock.solvers.lookahead import Offer

# What a worker takes to start where nobody says it: a virtual machine with a JVM on it.
START_S = 90.0


class Prices:
    """Kinds of workers as offers, and σ = (1 − least value) / (cost at the best value − cost at the least)."""

    def __init__(self, job: Job, sigma: float, period_s: float, least: float) -> None:
        between("plasticc:sigma", sigma, 0, 1e9)
        between("plasticc:period_s", period_s, 60.0)
        self._job, self.sigma, self.period_s, self._least = job, sigma, period_s, least
        self.unit_s = BILLING_S[job.price.billing]
        self.table = FlowTable.of(job.dataflow)
        self.best = {name: kinds[0] for name, kinds in zip(self.table.names, self.table.alternates, strict=True)}
        self.first: Mapping[str, str] = {each.name: each.active().name for each in job.dataflow.operators}
        """The alternate that an operator begins with, where nothing else was asked for."""

    def of(self, kind: WorkerKind) -> float:
        """Of one worker for an hour."""
        return self._job.price.per_hour if kind.per_hour is None else kind.per_hour

    def start_s(self, kind: WorkerKind) -> float:
        return START_S if kind.start_s is None else kind.start_s

    def offers(self, usual_speed: float) -> tuple[Offer, ...]:
        """What may be rented; one not seen yet is as fast as the fleet is on average."""
        return tuple(
            Offer(kind.name, max(1, int(kind.cores)), kind.speed * usual_speed, self.of(kind), self.start_s(kind))
            for kind in self._job.kinds
        )

    def learn(self, seen: Observation) -> None:
        """σ, where nobody gave it: from the mean rate that is known, else from the first that is seen."""
        if self.sigma:
            return
        oracle, rate = self._job.oracle, seen.input_rate
        if oracle is not None:
            rate = oracle.mean(self._job.tick_s)
        self.sigma = value_coefficient(self._job, rate * self._least, self.period_s)


def value_coefficient(job: Job, rate: float, period_s: float) -> float:
    """σ for a mean rate that is served, at the price of the cheapest power among the kinds, rated.

    Where all alternates are worth the same, the cost of the period counts as one unit of value.
    """
    price = min(
        (job.price.per_hour if kind.per_hour is None else kind.per_hour) / (max(1, int(kind.cores)) * kind.speed)
        for kind in job.kinds
    )
    flow, operators = job.dataflow, [each for each in job.dataflow.operators if each.alternates]
    most = {each.name: max(each.alternates, key=lambda a: a.value).name for each in operators}
    least = {each.name: min(each.alternates, key=lambda a: a.value).name for each in operators}
    worth = sum(min(a.value for a in each.alternates) - 1 for each in operators) / len(flow.operators)
    high, low = (
        flow.switched(chosen).demand_s * max(rate, 1e-9) * price * period_s / 3600.0 for chosen in (most, least)
    )
    if worth == 0 or high <= low:
        return 1.0 / max(high, 1e-9)
    return -worth / (high - low)
