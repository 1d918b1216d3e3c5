"""Log analysis over Kafka under bursts, live: is the model right, and is a bound kept as shares move?

`scripts/bench shares` makes what is missing of nine runs, some at a time (`--runs 2`, ten minutes), on applications
that stay warm between them, and writes journals, one report and a page of figures under `docs/live/shares/`.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.line_feeder import arrival_times
from benchmarks.shares_page import page
from penstock.apps.logs import OPERATORS, flow
from penstock.core.errors import BadInput
from penstock.core.journal import Journal
from penstock.core.loop import Step
from penstock.core.objective import Objective
from penstock.core.responses import Responses
from penstock.live.kafka import Broker
from penstock.live.log_fleet import LogFleet
from penstock.live.share_demand import Interval, costs_s, demand_of, settled_demand
from penstock.live.share_plant import SINK, SharePlant
from penstock.live.share_run import QUOTAS, RoleRecords, SharesWanted, controlled, warm_fleet
from penstock.models.arrivals import Map, fit_maps, poisson
from penstock.models.markov.chains import Floats
from penstock.models.queues.batch_server import BatchServer, micro_batches
from penstock.models.queues.demand import Demand, learn_demand
from penstock.policies.mead_plan import Markovian, Predictor, ResponseModel
from penstock.policies.mead_quota import QuotaPredictor, Rows
from penstock.report.page import write_page
from penstock.runs.comparison import Comparison, run_of_journal

FOLDER = Path("docs/live/shares")
DEMAND = FOLDER / "demand.json"
SEED, TICK_S = 4, 5.0
# Of the matcher at the least share, over calm and bursts. At 75 lines a second, which was 0.42 of it, the
# least share kept the bound by itself; at 0.85, which was 0.93 in the run, its p95 was 2.4 times what was predicted.
LOAD = 0.7
LEARN_RATE = 100.0
# After 30 s compilers are not done: a line of the parser was learnt to cost 0.50 ms, and took 0.35 to 0.42 in the runs.
WARM_S, LEARN_S = 90.0, 30.0
DRAIN_S = 8.0
BOUND_S, PERCENTILE, LEAST = 0.25, 0.95, 0.4
# A window is about one calm or bursty part, as paper 4's was half of one; analyses are more often, as its parts took
# seven times as long.
OWN = f"percentile={PERCENTILE},bounds=matcher:{BOUND_S},window=12000,every_s=10"
QUOTA = f"{OWN},{QUOTAS}"
FIXED = {f"fixed-{round(100 * share)}": f"static-share:share={share}" for share in (0.4, 0.7, 1.0, 0.55, 0.85)}
LOOPS = {
    "mead": f"mead:{QUOTA}",
    "mead-core": f"mead:{OWN}",
    "mg1": f"mead:{QUOTA},model=m",
    "threshold": "share-threshold",
}
RUNS = FIXED | LOOPS
# So that any piece has something of both.
ORDER = ("fixed-40", "mead", "fixed-70", "threshold", "fixed-100", "fixed-55", "mead-core", "mg1", "fixed-85")


@dataclass(frozen=True, slots=True)
class Warm:
    """Applications that are warm, and what a line costs them."""

    broker: Broker
    fleet: LogFleet
    reader: RoleRecords
    costs_s: dict[str, float]
    rate: float
    """Lines a second."""
    seconds: float
    """Of lines in each run."""


def main(*words: str) -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench shares")
    parser.add_argument("--runs", type=int, default=len(RUNS), help="at most so many now")
    parser.add_argument("--seconds", type=float, default=200.0, help="of lines in each run (200: nine are 30 minutes)")
    options = parser.parse_args(words)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    FOLDER.mkdir(parents=True, exist_ok=True)
    todo = [name for name in ORDER if not _journal(name).exists()][: options.runs]
    if todo:
        with Broker.start() as broker:
            broker.create_topic("lines")
            with (
                Feeding(broker, 600.0, LEARN_RATE) as feeding,
                warm_fleet(broker.source("lines"), WARM_S) as (fleet, reader),
            ):
                demands = _demands(fleet, reader)
                costs = costs_s(demands, LEAST)
                warm = Warm(broker, fleet, reader, costs, _rate(demands), options.seconds)
                feeding.end()  # a start takes half a minute, or two: lines come until costs are learnt
                for name in todo:
                    _drained(reader)
                    run(warm, name)
    done = {name: json.loads(_figures(name).read_text()) for name in RUNS if _figures(name).exists()}
    for name in FIXED.keys() & done.keys():
        done[name] |= predicted(name, done[name], costs_s(_told(), LEAST))
        done[name]["costs_error"] = {each: demand.error_s / demand.mean_s for each, demand in _told().items()}
    text = page(done, len(RUNS), BOUND_S, LOAD)
    print(text)
    if done:
        runs = [run_of_journal(_journal(name))[0] for name in done]
        named = [replace(each, header=replace(each.header, policy=name)) for name, each in zip(done, runs, strict=True)]
        what = "log analysis, live, calm and bursty"
        write_page(FOLDER / "report.html", Comparison(what, f"latency<={BOUND_S:g}s", tuple(named)))
    (FOLDER / "README.md").write_text(text, encoding="utf-8")


def _journal(name: str) -> Path:
    return FOLDER / f"{name}.jsonl"


def _figures(name: str) -> Path:
    return FOLDER / f"{name}.json"


class Feeding:
    """Lines for so long, from a process of its own."""

    def __init__(self, broker: Broker, seconds: float, rate: float) -> None:
        words = [broker.address, "lines", str(seconds), str(rate), str(SEED)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.line_feeder", *words], stdout=subprocess.PIPE, text=True
        )
        self.sent = 0

    def end(self) -> None:
        self._process.kill()

    def __enter__(self) -> Feeding:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.end()
        self.sent = int(self._process.communicate()[0] or 0)


def _demands(fleet: LogFleet, reader: RoleRecords) -> dict[str, Demand]:
    """CPU seconds of a line and idle cores, measured by the first piece and kept for all others."""
    for name in OPERATORS:
        fleet.limit(name, 1.0)
    if not DEMAND.exists():
        found = settled_demand(fleet, reader, LEARN_S)
        figures = {name: {"cpu_s": d.mean_s, "error_s": d.error_s, "idle": d.idle} for name, d in found.items()}
        DEMAND.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return _told()


def _told() -> dict[str, Demand]:
    told = json.loads(DEMAND.read_text())
    return {name: Demand(d["cpu_s"], d["error_s"], d["idle"]) for name, d in told.items()}


def _rate(demands: dict[str, Demand]) -> float:
    """Lines a second that load the matcher so at the least share: a line's cost differs twofold between machines."""
    matcher, reach = demands[SINK], flow({}).visits[SINK]
    return round(LOAD * (LEAST * OPERATORS[SINK].cores - matcher.idle) / matcher.mean_s / reach, -1)


def _drained(reader: RoleRecords) -> None:
    """Nothing of an earlier run is left in the topics."""
    while any(len(each.time_s) for each in reader.take().values()):
        time.sleep(2.0)


def run(warm: Warm, name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-shares-") as scratch:
        journal = Path(scratch) / f"{name}.jsonl"
        wanted = SharesWanted(
            policy=RUNS[name], objective=Objective(BOUND_S), tick_s=TICK_S, least=LEAST, journal=journal
        )
        job = wanted.job(warm.costs_s)
        plant = SharePlant(warm.fleet, warm.reader, job)
        seen: list[tuple[Step, dict[str, Responses]]] = []
        if name in FIXED:  # the whole run at this share, its first tick too
            share = float(RUNS[name].partition("=")[2])
            plant.apply(replace(plant.target, cpu_share=dict.fromkeys(OPERATORS, share)))
        begun = time.time()
        with Feeding(warm.broker, warm.seconds, warm.rate) as feeding:
            controller = controlled(wanted, plant, job, lambda step: seen.append((step, dict(plant.responses))))
            time.sleep(warm.seconds + DRAIN_S)
        controller.stop()
        figures = measured(seen, warm.rate)
        figures |= {"sent": feeding.sent, "seconds": time.time() - begun, "policy": RUNS[name], "rate": warm.rate}
        shutil.move(journal, _journal(name))
        _figures(name).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        print(name, json.dumps(figures), flush=True)


def measured(seen: list[tuple[Step, dict[str, Responses]]], rate: float) -> dict[str, Any]:
    """Over the ticks in which lines came."""
    steps = [step for step, _ in seen]
    whole = Responses.merged(step.seen.paths[SINK] for step in steps)
    counted = Responses.merged(responses["counter"] for _, responses in seen)
    came = [step.seen for step in steps if step.seen.input_rate > rate / 20]
    span_s = sum(each.span_s for each in came)
    shares = {n: sum(each.span_s * each.target.cpu_share[n] for each in came) / span_s for n in OPERATORS}
    used = {n: sum(each.span_s * each.operators[n].cores for each in came) / span_s for n in OPERATORS}
    lines = {"parser": sum(each.span_s * each.input_rate for each in came), "matcher": max(1.0, whole.count)}
    return {
        "lines": whole.count,
        "arrived": steps[-1].seen.arrived,
        "mean_s": whole.mean,
        "p95_s": whole.percentile(PERCENTILE),
        "late": whole.later_than(BOUND_S) / max(1.0, whole.count),
        "counter_mean_s": counted.mean,
        "counter_p95_s": counted.percentile(PERCENTILE),
        "shares": shares,
        "share": sum(shares.values()) / len(shares),
        "cores": sum(shares[n] * OPERATORS[n].cores for n in OPERATORS),
        "used": used,
        "cpu_s": {name: used[name] * span_s / max(1.0, each) for name, each in lines.items()},
        "actions": sum(dict(a.target.cpu_share) != dict(a.seen.target.cpu_share) for a in steps),
        "tick_s": float(np.median([each.span_s for each in came])),
    }


def predicted(name: str, figures: dict[str, Any], learnt_s: dict[str, float]) -> dict[str, Any]:
    """What models say of the lines of a run at its share: by costs as learnt before it, and as in the run itself."""
    steps = list(Journal.open(_journal(name)))
    share = dict(steps[-1].seen.target.cpu_share)
    in_run = {each: demand_of(intervals(steps[1:], each)) for each in learnt_s}
    own_s = costs_s(in_run, share[SINK])
    came_s, fitted = stream(round(figures["seconds"] - DRAIN_S), figures["rate"])
    cores = {each: operator.cores for each, operator in OPERATORS.items()}
    models, calm = [Markovian(fitted)], [Markovian(poisson(fitted.rate))]
    predictors: dict[str, ResponseModel] = {
        "quota": QuotaPredictor(flow(learnt_s), models, cores),
        "own": QuotaPredictor(flow(own_s), models, cores),
        "calm": QuotaPredictor(flow(own_s), calm, cores),
        "core": Predictor(flow(own_s), models),
    }
    found: dict[str, Any] = {"costs_s": _cpu_s(learnt_s), "own_costs_s": _cpu_s(own_s)}
    came, given = Rows(came_s, flow(own_s), cores), tuple((each, share[each]) for each in ("parser", SINK))
    for what, percentile in (("mean_s", 0.0), ("p95_s", PERCENTILE)):
        found[f"came_{what}"] = came.response_s(given, percentile)
        for key, predictor in predictors.items():
            found[f"{key}_{what}"] = predictor.along(("parser", SINK), share, percentile)
    return found | counter(steps, fitted, share["counter"])


def _cpu_s(costs: dict[str, float]) -> dict[str, float]:
    """Of a whole core."""
    return {name: cost * OPERATORS[name].cores for name, cost in costs.items()}


@cache
def stream(seconds: float, rate: float) -> tuple[Floats, Map]:
    """When lines were sent, and the process fitted to their gaps."""
    came_s = arrival_times(seconds, rate, SEED)
    return came_s, fit_maps(np.diff(came_s), best=1, rng=np.random.default_rng(0))[0]


def intervals(steps: Sequence[Step], name: str) -> list[Interval]:
    """What an operator did from tick to tick."""
    every = [(step.seen.operators[name], step.seen.span_s) for step in steps]
    return [Interval(each.output_rate * span_s, each.cores * span_s, span_s) for each, span_s in every]


def counter(steps: Sequence[Step], arrivals: Map, share: float) -> dict[str, Any]:
    """The counter has a batch every trigger: a line through its CPU and its rows, and the model of micro-batches."""
    operator, every = OPERATORS["counter"], intervals(steps[2:], "counter")
    try:
        demand = learn_demand([each.lines for each in every], [each.cpu_s for each in every], TICK_S)
    except BadInput:  # CPU that does not grow with the lines: no line, no model
        return {}
    trigger_s, cores = operator.trigger_s or 0.0, share * operator.cores
    server = BatchServer(demand.idle * trigger_s / cores, demand.mean_s / cores, trigger_s)
    response = micro_batches(arrivals, server)
    return {
        "counter_fixed_s": server.fixed_s,
        "counter_row_s": server.per_row_s,
        "counter_model_mean_s": response.mean_s,
        "counter_model_p95_s": response.percentile_s(PERCENTILE),
    }
