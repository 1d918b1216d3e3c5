"""Paper 5's runs in numbers: means, deviations, ratios, Welch's test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import ttest_ind

from penstock.reproduce.ekf_runs import Rows, policies
from penstock.sim.workloads import Floats

SCENARIOS = ("pyramid", "square", "lab")


@dataclass(frozen=True, slots=True)
class Metric:
    """A column of a score as the paper counts it."""

    column: str
    label: str
    unit: str = ""
    size: float = 1.0

    def __str__(self) -> str:
        return f"{self.label}, {self.unit}" if self.unit else self.label


METRICS = {
    "vm": Metric("worker_hours", "VM time", "hours"),
    "events": Metric("scaling_actions", "scaling events"),
    "started": Metric("workers_started", "VMs started"),
    "stopped": Metric("workers_stopped", "VMs stopped"),
    "image": Metric("latency_mean_s", "time for an image", "seconds"),
    "sla": Metric("late_events", "SLA violations", "thousands", 1000.0),
    "processed": Metric("processed", "images processed"),
}


@dataclass(frozen=True, slots=True)
class Runs:
    """All runs, by scenario and by what a policy is called here."""

    rows: Rows

    def of(self, scenario: str, name: str, metric: str, thresholds: tuple[float, float] = (0.45, 0.8)) -> Floats:
        lower, upper = thresholds
        known = METRICS[metric]
        rows = self.rows[scenario, policies(upper, lower)[name]]
        return np.array([row[known.column] for row in rows], dtype=np.float64) / known.size

    def mean(self, scenario: str, name: str, metric: str) -> float:
        return float(self.of(scenario, name, metric).mean())

    def total(self, name: str, metric: str) -> float:
        """Over the paper's three scenarios."""
        return sum(self.mean(scenario, name, metric) for scenario in SCENARIOS)

    def cell(self, scenario: str, name: str, metric: str) -> str:
        """A mean, and its deviation in brackets."""
        values = self.of(scenario, name, metric)
        return f"{values.mean():.3g} ({values.std(ddof=1):.2g})"

    def ratio(self, scenario: str, metric: str, over: str, under: str) -> float:
        """Of two means; of nothing, 1 is as much and infinity more."""
        one, other = self.mean(scenario, over, metric), self.mean(scenario, under, metric)
        return one / other if other else math.inf if one else 1.0

    def p(self, scenario: str, metric: str, one: str, other: str) -> float:
        """Welch's test; where nothing varies, 0 for different values and 1 for the same."""
        left, right = self.of(scenario, one, metric), self.of(scenario, other, metric)
        if left.std() == 0 and right.std() == 0:
            return float(left[0] == right[0])
        return float(ttest_ind(left, right, equal_var=False).pvalue)
