"""Approximations of queues beside simulations: paths, micro-batches, quotas."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from penstock.models.arrivals import Map, poisson
from penstock.models.markov.chains import Floats
from penstock.models.queues import BatchServer, PhaseType, Quota, Station, map_ph_1, micro_batches, network, under_quota
from penstock.models.queues.lindley import responses

CUSTOMERS = 4_000_000
ROWS, RUNS = 1_000_000, 4


def paths(known: Mapping[str, Map]) -> None:
    print(
        f"two operators in a row, predicted / simulated ({CUSTOMERS:,} rows): mean of the second, mean and p95 of both"
    )
    for name, arrivals in ({"poisson": poisson(1.0)} | dict(known)).items():
        for first, second in ((0.3, 0.7), (0.5, 0.7), (0.7, 0.5)):
            seen = _tandem(arrivals, first, second)
            services = PhaseType.erlang(2, first), PhaseType.erlang(2, second)
            stations = {"a": Station(services[0]), "b": Station(services[1], ("a",))}
            cells = []
            for way in ("source", "lumped"):
                path = network(arrivals, stations, way)["a", "b"]
                found = path.stations["b"].mean_s, path.mean_s, path.percentile_s(0.95)
                cells.append(
                    f"{way} " + " ".join(f"{here / there:.2f}" for here, there in zip(found, seen, strict=True))
                )
            print(f"  {name:12} {first} → {second}   {'   '.join(cells)}")


def _tandem(arrivals: Map, first: float, second: float) -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    gaps = arrivals.sample(CUSTOMERS, rng)
    times = np.cumsum(gaps)
    one = responses(gaps, rng.gamma(2.0, first / 2, CUSTOMERS))
    two = responses(np.diff(times + one, prepend=0.0), rng.gamma(2.0, second / 2, CUSTOMERS))
    return float(two.mean()), float((one + two).mean()), float(np.quantile(one + two, 0.95))


def batches(known: Mapping[str, Map]) -> None:
    print(f"micro-batches of 0.5 s + c1·n, predicted / simulated ({RUNS} times {ROWS:,} rows): mean, p95")
    for name, rate in (("poisson", 200.0), ("mmpp2", 100.0), ("mmpp2", 2000.0), ("map4", 300.0), ("mmpp2", 5.0)):
        arrivals = ({"poisson": poisson(1.0)} | dict(known))[name].with_rate(rate)
        for load, trigger_s in ((0.3, 0.0), (0.7, 0.0), (0.5, 1.0)):
            server = BatchServer(0.5 if not trigger_s else 0.2, load / rate, trigger_s)
            begun = time.perf_counter()
            found = micro_batches(arrivals, server)
            mean, p95 = found.mean_s, found.percentile_s(0.95)
            took_s = time.perf_counter() - begun
            runs = [_batched(arrivals, server, seed) for seed in range(RUNS)]
            seen = np.mean([[run.mean(), np.quantile(run, 0.95)] for run in runs], axis=0)
            ratios = f"{mean / seen[0]:.3f} {p95 / seen[1]:.3f}"
            print(f"  {name:8} {rate:5.0f}/s, load {load}, trigger {trigger_s:.0f} s: {ratios}   ({took_s:.2f} s)")


def _batched(arrivals: Map, server: BatchServer, seed: int) -> Floats:
    times = np.cumsum(arrivals.sample(ROWS, np.random.default_rng(seed)))
    done, clock, found = 0, 0.0, []
    while done < ROWS:
        if not server.trigger_s:
            clock = max(clock, times[done])
        upto = int(np.searchsorted(times, clock, side="right"))
        takes = server.fixed_s + server.per_row_s * (upto - done) if upto > done else 0.0
        found.append(clock + takes - times[done:upto])
        done, clock = upto, clock + max(takes, server.trigger_s)
    return np.concatenate(found)


def quotas() -> None:
    print("Poisson 300/s, 1 ms of CPU a row, 40 % of a core: mean response in ms by period of the quota")
    arrivals, service = poisson(300.0), PhaseType.erlang(2, 0.001)
    slower = map_ph_1(arrivals, service.with_mean(0.001 / 0.4)).mean_s
    cells = []
    for period_s in (0.1, 0.02, 0.005, 0.001):
        found = under_quota(arrivals, service, Quota(0.4, period_s))
        cells.append(f"{1e3 * period_s:g} ms: {1e3 * found.mean_s:.2f} ± {1e3 * found.error_s:.2f}")
    print(f"  a slower server: {1e3 * slower:.2f}   {'   '.join(cells)}")
