"""Queues that do not see correlation: M/G/1 and Kingman's GI/G/1, the models that paper 4 compares with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.core.errors import BadInput
from penstock.models.markov.map import poisson
from penstock.models.markov.phase_type import PhaseType
from penstock.models.queues.qbd import Response, map_ph_1


@dataclass(frozen=True, slots=True)
class MeanResponse:
    """A mean without a distribution."""

    utilisation: float
    mean_s: float

    @property
    def is_stable(self) -> bool:
        return self.utilisation < 1

    def percentile_s(self, p: float) -> float:
        raise BadInput(f"percentile {p:g}: Kingman's GI/G/1 gives a mean only; use MAP/PH/1 or M/G/1")


def m_ph_1(rate: float, service: PhaseType) -> Response:
    """Poisson arrivals: the response's mean and percentiles, exactly."""
    return map_ph_1(poisson(rate), service)


def m_g_1(rate: float, mean_s: float, second_s2: float) -> MeanResponse:
    """Poisson arrivals, any service of these two moments (Pollaczek and Khinchine): E[W] = λE[S²] / (2(1 − ρ)).

    >>> m_g_1(0.5, 1.0, 1.5).mean_s  # Erlang-2: 1 + 0.5 · 1.5 / (2 · 0.5)
    1.75
    """
    load = rate * mean_s
    return MeanResponse(load, mean_s + rate * second_s2 / (2 * (1 - load)) if load < 1 else math.inf)


def kingman(rate: float, arrivals_scv: float, service: PhaseType) -> MeanResponse:
    """Any independent gaps, in heavy traffic: E[R] ≈ E[S] (1 + ρ/(1 − ρ) · (c_a² + c_s²)/2).

    >>> round(kingman(0.5, 1.0, PhaseType.exponential(1.0)).mean_s, 9)  # exact for M/M/1
    2.0
    """
    mean_s = service.mean_s
    load = rate * mean_s
    wait_s = mean_s * load / (1 - load) * (arrivals_scv + service.scv) / 2 if load < 1 else math.inf
    return MeanResponse(load, mean_s + wait_s)
