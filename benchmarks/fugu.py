"""Paper 2's cost function, its search and its packing: how many, how fast, how near to the best."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.objective import Limits
from penstock.pipeline.fugu_sweep import sweep_space
from penstock.pipeline.session import session
from penstock.policies.fugu_kernel import evaluate
from penstock.policies.fugu_scaler import Layout, Measured
from penstock.policies.fugu_search import WHOLE, best, rows
from penstock.policies.fugu_settings import SPACE, Settings
from penstock.policies.fugu_tuned import TunedFugu
from penstock.policies.fugu_window import Window
from penstock.reproduce.fugu_worlds import PAUSE, scenarios
from penstock.runs.replayed import replay
from penstock.solvers.bins import Host, Item
from penstock.solvers.packing import VARIANTS
from penstock.solvers.search import recursive_random
from penstock.solvers.space import Point

DRAWN = np.random.default_rng(0).permutation(WHOLE)[:40_000]


def main() -> None:
    recorded = recorded_windows()
    steady, ramp = shaped(35, 18, rises=False), shaped(35, 18, rises=True)
    for name, window in (("recorded", recorded["financial-day-1"]), ("steady", steady), ("ramp", ramp)):
        operators, snapshots = len(window.layout.operators), len(window.snapshots)
        print(
            f"cost function, {name}, {operators} operators, {snapshots} snapshots: {speed(window):,.0f}/s on one core"
        )
    print(f"exponent in the window (6 to 96 snapshots, steady): {exponent([(35, n) for n in (6, 12, 24, 48, 96)]):.2f}")
    print(
        f"exponent in the operators (15 to 240, steady): {exponent([(n, 18) for n in (5, 10, 20, 40, 80)], True):.2f}"
    )
    spark_sweep(recorded["financial-day-1"], ramp)
    searches(recorded)
    packing()


def speed(window: Window) -> float:
    """Evaluations a second of CPU time: what one core does, whoever else is on the machine."""
    arrays, chosen = window.arrays(), np.concatenate([rows(int(n), int(n) + 1) for n in DRAWN[:4000]])
    evaluate(chosen[:10], arrays)
    begun = time.process_time()
    evaluate(chosen, arrays)
    return len(chosen) / (time.process_time() - begun)


def exponent(sizes: list[tuple[int, int]], by_operators: bool = False) -> float:
    """Of the time, by what grows; the hosts' number and load stay as they are."""
    took = [1 / speed(shaped(queries, snapshots, rises=False)) for queries, snapshots in sizes]
    grown = [queries if by_operators else snapshots for queries, snapshots in sizes]
    return float(np.polyfit(np.log(grown), np.log(took), 1)[0])


def shaped(queries: int, snapshots: int, rises: bool) -> Window:
    """Four hosts' load on six hosts, or a ramp from two to nine on three."""
    operators = []
    for number in range(queries):
        first, then, last = f"f{number}", f"a{number}", f"s{number}"
        operators += [Operator(first), Operator(then, after=(first,)), Operator(last, after=(then,))]
    layout, rng = Layout.of(Dataflow(tuple(operators))), np.random.default_rng(1)
    names, hosts = layout.operators, 3 if rises else 6
    weights = rng.uniform(0.2, 1.8, len(names))
    total = np.linspace(2.0, 9.0, snapshots) if rises else 4.0 + rng.normal(0.0, 0.2, snapshots)
    cpu = 1000 * total[:, None] * (weights / weights.sum()) * rng.uniform(0.95, 1.05, (snapshots, len(names)))
    state = dict(zip(names, rng.integers(0, 200, len(names)).astype(float).tolist(), strict=True))
    peaks = dict.fromkeys(names, 2000)
    seen = tuple(
        Measured(
            {name: (round(load), 0, 0) for name, load in zip(names, row, strict=True)}, state, peaks, [50] * queries
        )
        for row in cpu.tolist()
    )
    places = {name: f"h{number % hosts}" for number, name in enumerate(names)}
    return Window(layout, seen, tuple(f"h{n}" for n in range(hosts)), places, Limits(1, 12), 3000)


def recorded_windows() -> dict[str, Window]:
    """The last 180 s of half an hour of each scenario (stand-ins, so that anyone gets these)."""
    found, pause_s, move_mb_s = {}, PAUSE.reconfigure_s, PAUSE.move_mb_s
    for scenario, _ in scenarios():
        job = scenario.job()
        policy = TunedFugu(job, budget=50, shortest=18, longest=18, pause_s=pause_s, move_mb_s=move_mb_s)
        for number, _step in enumerate(replay(scenario, policy)):
            if number == 180:
                break
        found[scenario.name] = policy.window()
    return found


def spark_sweep(recorded: Window, ramp: Window) -> None:
    with session("local[2]", "penstock benchmark"):
        sweep_space(recorded.arrays(), end=1000)  # starts the Python workers
        for name, window, asked in (("recorded", recorded, 20), ("ramp", ramp, 30)):
            begun = time.perf_counter()
            sweep_space(window.arrays())
            took_s = time.perf_counter() - begun
            print(f"all {WHOLE:,} configurations, {name}, Spark on 2 cores: {took_s:.1f} s (asked: {asked})")


def searches(windows: dict[str, Window]) -> None:
    """500 evaluations against all of them."""
    worse, took_s = [], []
    for window in windows.values():
        arrays, most = window.arrays(), window.most

        def value(point: Point, arrays: object = arrays, most: int = most) -> float:
            row = np.array([Settings.at(point).row()], dtype=np.int64)
            hosts, late = evaluate(row, arrays)[0].tolist()  # type: ignore[arg-type]
            return float(hosts + most * late)

        late, hosts, _ = best(arrays)
        begun = time.process_time()
        found = [recursive_random(value, SPACE, 500, seed).value for seed in range(5)]
        took_s.append((time.process_time() - begun) / 5)
        worse.append(median(found) / (hosts + most * late) - 1)
    shown = " ".join(f"{each:.1%}" for each in worse)
    print(f"recursive random search, 500 evaluations: {median(worse):.2%} above the optimum in the median (asked: 2 %)")
    print(f"  by scenario: {shown}; {1000 * median(took_s):.0f} ms of CPU a search (asked: 100)")


def packing() -> None:
    rng = np.random.default_rng(0)
    items = [Item(f"o{number}", load) for number, load in enumerate(rng.uniform(0.02, 0.14, 10_000).tolist())]
    for name in ("first-fit", "best-fit-decreasing"):
        begun = time.process_time()
        packed = VARIANTS[name].pack(items, [Host(f"h{number}", 1.0) for number in range(1000)])
        took_s = time.process_time() - begun
        print(
            f"packing 10,000 operators on 1,000 hosts, {name}: {took_s:.2f} s, {len(packed.unplaced)} left (asked: 0.5)"
        )
