"""The search for the best training subset (paper 1, eq 6–8): seconds where the paper took minutes."""

from __future__ import annotations

import time

import numpy as np

from penstock.models.subset_search import Search, Subset, best_subset
from penstock.models.throughput_curves import Curve, InverseTime, Quadratic
from penstock.models.training import Samples
from penstock.reproduce.mst import COUNTS

SHAPES: tuple[Curve, ...] = (InverseTime(0.02, 1.2), Quadratic(0.5, 0.6, 0.001), InverseTime(0.05, 1.5, 0.0003))


def main() -> None:
    seconds, _ = timed(samples(COUNTS), Search())
    print(f"exhaustive, c in 3, 4, 5 of eq 9 up to 32 workers, 3 apps, 2 models: {seconds:.2f} s (asked: 2)")
    seconds, _ = timed(samples(range(1, 65)), Search((5,), 64))
    print(f"5 of 64, drawn at random and improved: {seconds:.2f} s (asked: 5)")
    counts = samples(range(1, 25))
    _, drawn = timed(counts, Search((5,), 24, tries=4000))
    exact_s, exact = timed(counts, Search((5,), 24, tries=100_000))
    worse = drawn.rmse / exact.rmse - 1
    print(f"5 of 24: drawn {worse:+.2%} of the exhaustive error, which takes {exact_s:.1f} s (asked: 2 %)")


def samples(counts: range | tuple[int, ...]) -> list[Samples]:
    """Six repetitions at each count, 5 % of noise."""
    rng = np.random.default_rng(0)
    noisy = ({m: (shape.rate(m) * (1 + 0.05 * rng.standard_normal(6))).tolist() for m in counts} for shape in SHAPES)
    return [Samples.of(each) for each in noisy]


def timed(apps: list[Samples], search: Search) -> tuple[float, Subset]:
    begun = time.perf_counter()
    found = best_subset(apps, search)
    return time.perf_counter() - begun, found
