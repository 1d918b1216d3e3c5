"""Paper 2's nine scenarios: three loads each of ticks, tweets and meters, on up to 12 hosts for 90 minutes.

They were fixed before anything was tuned on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.core.dataflow import Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import linear
from penstock.sim.noise import Noise
from penstock.sim.scenario import Scenario
from penstock.sim.series import SeriesOptions, read_series
from penstock.sim.specs import PauseSpec, PlacedSpec, WorkerSpec
from penstock.sim.workloads import Constant, FlashCrowd, Floats, Jitter, Load, Shape, Sine, make_load

TICK_S, MEASUREMENTS, HOSTS, CORES = 10.0, 540, 12, 2.0
BOUND_S = 3.0
PER_HOUR = 0.120 + 0.015
# Twitter Week 1 costs $0.65 to $1.20: 3.2 to 5.9 hosts on average, at about half of their CPU.
MEAN_HOSTS, PEAK_HOSTS = 2.2, 7.5
RATE = 1000.0
# A move pauses an operator for a second, and one with state for 2 to 14 s.
PAUSE = PauseSpec(reconfigure_s=1.0, move_mb_s=10.0)
MOVES = f"pause_s={PAUSE.reconfigure_s:g},move_mb_s={PAUSE.move_mb_s:g}"
# Of what a query costs: its filter, its aggregation, its sink.
PARTS = (0.25, 0.60, 0.15)


@dataclass(frozen=True, slots=True)
class Kind:
    """One workload of the paper."""

    name: str
    unit: str
    queries: int
    mean_hosts: float
    file: str | None
    """Where a real trace would be, in a folder of traces."""
    columns: tuple[str, ...] = ()
    parts: tuple[tuple[float, float], ...] = ()
    """Which shares of the trace its three scenarios are."""


KINDS = (
    Kind("financial", "day", 35, MEAN_HOSTS, "us_equity_ticks_2013/us_equity_ticks_per_second.csv.gz",
         ("spy_trades",), ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6))),
    Kind("twitter", "week", 20, MEAN_HOSTS, "twitter/nab_twitter_mentions_5min.csv.gz",
         ("AMZN",), ((0.0, 0.125), (0.125, 0.25), (0.25, 0.375))),
    Kind("energy", "week", 10, 1.5, None),
)  # fmt: skip


def scenarios(traces: Path | None = None) -> list[tuple[Scenario, bool]]:
    """The nine, and whether each has a real load or a stand-in."""
    if traces is not None and not traces.is_dir():
        raise BadInput(f"no such folder of traces: {traces}")
    return [_scenario(kind, number, traces) for kind in KINDS for number in (1, 2, 3)]


def _scenario(kind: Kind, number: int, traces: Path | None) -> tuple[Scenario, bool]:
    path = traces / kind.file if traces and kind.file else None
    is_real = path is not None and path.is_file()
    relative = _recorded(path, kind, number) if is_real and path else _stand_in(kind, number)
    seed = 100 * KINDS.index(kind) + number
    flow = _flow(kind.queries)
    # The mean is set, and peaks are cut where even 12 hosts would be overloaded.
    needed = np.minimum(relative / relative.mean() * kind.mean_hosts, PEAK_HOSTS)
    load = _spread(needed * RATE / MEAN_HOSTS * TICK_S, flow, seed)
    scenario = Scenario(
        name=f"{kind.name}-{kind.unit}-{number}",
        load=load,
        dataflow=flow,
        capacity=linear(RATE / MEAN_HOSTS),
        limits=Limits(1, HOSTS),
        objective=Objective(latency_s=BOUND_S),
        price=Price(PER_HOUR, "minute"),
        worker=WorkerSpec(cores=CORES, memory_mb=4096.0, start_s=5.0),
        pause=PAUSE,
        placed=PlacedSpec(),
        workers_at_start=4,
        seed=seed,
    )
    return scenario, is_real


def _flow(queries: int) -> Dataflow:
    """Chains of a filter, an aggregation with state, and a sink: the same instances in all scenarios of a workload."""
    rng = np.random.default_rng(queries)
    filters, aggregates, sinks = (part * MEAN_HOSTS * CORES / RATE for part in PARTS)
    operators: list[Operator] = []
    for number, pause_s in enumerate(rng.uniform(2.0, 14.0, queries).tolist()):
        state_mb = round((pause_s - PAUSE.reconfigure_s) * PAUSE.move_mb_s, 1)
        names = [f"{part}{number}" for part in ("filter", "aggregate", "sink")]
        operators.append(Operator(names[0], filters))
        operators.append(Operator(names[1], aggregates, state_mb=state_mb, after=(names[0],)))
        operators.append(Operator(names[2], sinks, after=(names[1],)))
    return Dataflow(tuple(operators), service_s=0.05)


def _spread(arrivals: Floats, flow: Dataflow, seed: int) -> Load:
    """Some queries see more of the stream than others, and their shares wander."""
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(0.0, 0.5, len(flow.sources))
    wander = Noise.fading(len(flow.sources), TICK_S, 120.0, rng)
    rows = np.array([wander.row()[: len(weights)] for _ in arrivals])
    shares = weights * np.exp(0.15 * rows)
    shares /= shares.sum(axis=1, keepdims=True)
    each = {name: arrivals * shares[:, place] for place, name in enumerate(flow.sources)}
    whole = Load.of(arrivals, TICK_S)
    return Load(whole.arrivals, whole.times_s, TICK_S, by_source=each)


def _recorded(path: Path, kind: Kind, number: int) -> Floats:
    """A share of a trace, compressed to 90 minutes; ticks are cut at 1.3 times their 99th percentile."""
    begin, end = kind.parts[number - 1]
    series = [read_series(path, SeriesOptions(column)).arrivals for column in kind.columns]
    whole = np.sum(series, axis=0)
    part = whole[int(begin * len(whole)) : int(end * len(whole))]
    edges = np.linspace(0, len(part), MEASUREMENTS + 1).astype(int)
    counts = np.add.reduceat(part, edges[:-1]) / np.diff(edges)
    return np.asarray(np.minimum(counts, 1.3 * np.percentile(counts, 99)), dtype=np.float64)


def _stand_in(kind: Kind, number: int) -> Floats:
    """A load of the kind that the paper describes in §5."""
    span_s = MEASUREMENTS * TICK_S
    rng = np.random.default_rng([number, kind.queries])
    shapes: Sequence[Shape] = {
        "financial": _financial,  # "changes very frequently"
        "twitter": _twitter,  # "a seasonal pattern and random load peaks"
        "energy": _energy,  # "a low average load and unexpected load increases"
    }[kind.name](span_s, rng)
    return make_load(tuple(shapes), span_s, TICK_S, seed=number).arrivals


def _financial(span_s: float, rng: np.random.Generator) -> list[Shape]:
    bursts = [FlashCrowd(150.0 * rng.uniform(0.5, 2), at_s, 20.0, 90.0) for at_s in rng.uniform(0, span_s, 25).tolist()]
    return [Sine(60.0, 100.0, span_s), FlashCrowd(150.0, 0.0, 1.0, 600.0), *bursts, Jitter(0.25, 60.0)]


def _twitter(span_s: float, rng: np.random.Generator) -> list[Shape]:
    peaks = [FlashCrowd(200.0 * rng.uniform(0.5, 2), at_s, 60.0, 180.0) for at_s in rng.uniform(0, span_s, 5).tolist()]
    return [Sine(30.0, 150.0, span_s / 7), *peaks, Jitter(0.08, 120.0)]


def _energy(span_s: float, rng: np.random.Generator) -> list[Shape]:
    rises = [FlashCrowd(100.0 * rng.uniform(0.5, 3), at_s, 30.0, 400.0) for at_s in rng.uniform(0, span_s, 6).tolist()]
    return [Constant(40.0), *rises, Jitter(0.05, 120.0)]
