"""Paper 2's baselines from its runs: naive (the median), the top 3 by trade-off, learners on average and at best."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median

from penstock.policies.fugu_settings import TABLE_2
from penstock.reproduce.fugu_runs import OURS, PRINTED, Result, Results, name

KINDS = ("financial", "twitter", "energy")
BASELINES = tuple(map(name, TABLE_2))


@dataclass(frozen=True, slots=True)
class Pair:
    """Dollars, and violations."""

    cost: float
    violations: float

    def __str__(self) -> str:
        return f"{self.cost:.3f}, {self.violations:.1f}"


class Table:
    """All runs, by scenario and name."""

    def __init__(self, results: Results, is_real: Mapping[str, bool]) -> None:
        self._results, self.is_real = results, is_real
        self.worlds = tuple(is_real)

    def __getitem__(self, cell: tuple[str, str]) -> Pair:
        """One run, or what several make together: naive, top 3, rl, rl best, a tuner over its seeds."""
        world, called = cell
        if cell in self._results:
            return _mean([self._results[cell]])
        if called == "naive":
            runs = [self._results[world, each] for each in BASELINES]
            return Pair(median(run.cost for run in runs), median(run.violations for run in runs))
        if called == "top 3":
            return _mean(
                self._results[world, each] for each in sorted(BASELINES, key=lambda n: self.trade_off(world, n))[:3]
            )
        own = {each: run for (of, each), run in self._results.items() if of == world}
        chosen = {each: run for each, run in own.items() if each.startswith(f"{called.removesuffix(' best')} ")}
        if called.endswith(" best"):  # "analogously" (§5.3): by the same metric
            return _mean([chosen[min(chosen, key=lambda each: _trade_off(chosen[each], chosen.values()))]])
        return _mean(chosen.values())

    def row(self, world: str) -> dict[str, Pair]:
        return {what: self[world, what] for what in ("naive", "top 3", OURS, PRINTED, "rl", "rl best")}

    def trade_off(self, world: str, called: str) -> float:
        """The mean of cost and violations, each relative to the largest of the 16 (§5.1)."""
        return _trade_off(self._results[world, called], [self._results[world, each] for each in BASELINES])

    def rank(self, world: str, called: str) -> float:
        """1 is the best of the 16; equals share a rank."""
        own = self.trade_off(world, called)
        values = [self.trade_off(world, each) for each in BASELINES]
        return 0.5 + sum(value < own for value in values) + sum(value == own for value in values) / 2

    def mean_rank(self, called: str) -> float:
        return self.mean(lambda world: self.rank(world, called))

    def cost_ratio(self, world: str) -> float:
        costs = [self._results[world, each].cost for each in BASELINES]
        return max(costs) / min(costs)

    def violation_ratios(self) -> tuple[float, float]:
        ratios = []
        for world in self.worlds:
            counts = [self._results[world, each].violations for each in BASELINES]
            ratios.append(max(counts) / max(1, min(counts)))
        return min(ratios), max(ratios)

    def mean(self, of: Callable[[str], float]) -> float:
        return fmean(of(world) for world in self.worlds)

    def average(self, called: str) -> Pair:
        pairs = [self[world, called] for world in self.worlds]
        return Pair(fmean(pair.cost for pair in pairs), fmean(pair.violations for pair in pairs))

    def change(self, called: str, base: str, kind: str = "") -> tuple[float, float]:
        """Cost against another's in percent, and violations more: means of the scenarios."""
        return self.against(lambda world: self[world, called], base, kind)

    def against(self, of: Callable[[str], Pair], base: str, kind: str = "") -> tuple[float, float]:
        worlds = [world for world in self.worlds if world.startswith(kind)]
        pairs = [(of(world), self[world, base]) for world in worlds]
        cost = fmean(100 * (one.cost / other.cost - 1) for one, other in pairs)
        return cost, fmean(one.violations - other.violations for one, other in pairs)

    def statics(self, world: str) -> list[Result]:
        """All static configurations that were tried."""
        kinds = ("static ", "fixed ")
        own = [(each, run) for (of, each), run in self._results.items() if of == world]
        return [run for each, run in own if each in BASELINES or each.startswith(kinds)]

    def best_static(self, world: str) -> Pair:
        """The cheapest that violates no more than naive."""
        most = self[world, "naive"].violations
        return _mean([min((run for run in self.statics(world) if run.violations <= most), key=lambda run: run.cost)])

    def is_beaten(self, world: str) -> bool:
        tuned = self[world, OURS]
        return all(run.cost > tuned.cost for run in self.statics(world) if run.violations <= tuned.violations)


def _trade_off(run: Result, among: Collection[Result]) -> float:
    most = max(each.violations for each in among) or 1
    return (run.cost / max(each.cost for each in among) + run.violations / most) / 2


def _mean(runs: Iterable[Result]) -> Pair:
    each = list(runs)
    return Pair(fmean(run.cost for run in each), fmean(run.violations for run in each))
