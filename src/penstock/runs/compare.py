"""Every policy on one scenario, and the bound beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from penstock.core.errors import BadInput
from penstock.core.files import whole
from penstock.core.job import Job
from penstock.core.journal import Header, JournalWriter
from penstock.core.loop import Policy, Step
from penstock.core.score import Scorer
from penstock.policies.clairvoyant import Clairvoyant, lower_alone
from penstock.policies.deadline import Deadline
from penstock.policies.registry import Named
from penstock.runs.comparison import Comparison, Run
from penstock.runs.objective_price import price_of_bound
from penstock.runs.replayed import replay
from penstock.runs.run_curves import Curves
from penstock.sim.scenario import Scenario

# How often a bar moves; at every step it would cost a tenth of the replay.
_PROGRESS_EVERY = 500


Shown = Literal["schedule", "lower", "nothing"]


class Progress(Protocol):
    """Is told the share that is done, and, if that changes, what is being done."""

    def __call__(self, done: float, doing: str = "", /) -> None: ...


def _quiet(_: float, __: str = "", /) -> None:
    """Nobody wants to know how far it is."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where a comparison goes while it is made."""

    journals: Path | None = None
    """A directory that gets one journal a policy; for a single run, its journal."""
    progress: Progress = _quiet
    """Told the share that is done."""
    bound: Shown = "schedule"
    """What is shown of the bound. It is computed only then: for a long series it takes longer than the replays."""


def compare(
    scenario: Scenario, policies: Sequence[Named], outputs: Outputs | None = None, bare: bool = False
) -> Comparison:
    """Replay each policy with the safety rules of a live run, or `bare`, without them.

    The bound holds under the same objective, limits, start state, start cost and billing.
    """
    outputs = outputs or Outputs()
    names = [named.name for named in policies]
    if len(set(names)) < len(names):
        raise BadInput(f"policy {max(names, key=names.count)} is given twice")
    job = scenario.job()
    rules = [{} if bare else named.rules(job) for named in policies]
    built = [named.build(job, each) for named, each in zip(policies, rules, strict=True)]
    clairvoyants = [policy for policy in built if isinstance(policy, Clairvoyant)]
    parts = len(built) + (bool(clairvoyants) or outputs.bound != "nothing")
    lower, cost, note = _bound(job, clairvoyants, outputs, parts)
    files = file_names(names)
    runs = []
    for position, (named, policy) in enumerate(zip(policies, built, strict=True)):

        def told(share: float, _: str = "", /, before: int = position) -> None:
            outputs.progress((before + share + parts - len(built)) / parts)

        journal = outputs.journals / files[named.name] if outputs.journals else None
        header = header_of(scenario, named, rules[position])
        runs.append(_run(scenario, header, policy, Outputs(journal, told)))
    known = [run.score.cost for run, policy in zip(runs, built, strict=True) if policy in clairvoyants]
    return Comparison(
        trace=scenario.name,
        objective=str(scenario.objective),
        runs=tuple(runs),
        bound_lower=lower,
        bound_cost=known[0] if known else cost,
        bound_note=note,
        assumed=scenario.assumed,
        objective_note=_objective_note(scenario, policies, runs, bare),
        notes=notes(policies, "capacity" in scenario.assumed, bare),
    )


def notes(policies: Sequence[Named], is_capacity_assumed: bool, bare: bool = False) -> list[str]:
    """Whose rules count events, which an assumed capacity makes arbitrary, and who runs without our safety rules."""
    found = []
    events = [named.name for named in policies if getattr(named.maker, "counts_events", False)]
    if events and is_capacity_assumed:
        text = "by numbers of events, which mean little where the capacity of a worker is assumed: give"
        found.append(f"{', '.join(events)} decide{'s' * (len(events) == 1)} {text} --capacity-per-worker")
    peers = [named.name for named in policies if getattr(named.maker, "is_peer", False)]
    if peers and not bare and len(peers) < len(policies):
        found.append(f"as they are, without our safety rules: {', '.join(peers)}")
    return found


def _objective_note(scenario: Scenario, policies: Sequence[Named], runs: Sequence[Run], bare: bool) -> str:
    for named, run in zip(policies, runs, strict=True):
        if named.maker is Deadline and run.score.cost > 0:
            return price_of_bound(scenario, run.score, named, bare)
    return ""


def _bound(
    job: Job, clairvoyants: Sequence[Clairvoyant], outputs: Outputs, parts: int
) -> tuple[float | None, float | None, str]:
    """The bound, what its schedule costs, and what is to be said about it; only what is shown or runs."""

    def told(share: float) -> None:
        outputs.progress(share / parts, "the bound")

    is_proven = len(job.kinds) == 1 and job.objective.throughput is None
    if clairvoyants or (outputs.bound == "schedule" and is_proven):
        found = (clairvoyants[0] if clairvoyants else Clairvoyant(job)).computed(told)
        return found.lower, found.cost, found.note
    if outputs.bound == "nothing":
        return None, None, ""
    if not is_proven:
        return None, None, "no bound: it is proven for one kind of worker, and a latency or a rate"
    lower, note = lower_alone(job, told)
    return lower, None, note


def _run(scenario: Scenario, header: Header, policy: Policy, outputs: Outputs) -> Run:
    scorer = Scorer(scenario.objective, scenario.price, header.kinds)
    curves = Curves(scenario.objective)
    steps = len(scenario.load.arrivals)
    with _journal(header, outputs.journals) as write:
        for number, step in enumerate(replay(scenario, policy)):
            scorer.add(step)
            curves.add(step)
            write(step)
            if number % _PROGRESS_EVERY == 0:
                outputs.progress(number / steps)
    return Run(header, scorer.result(), curves)


def header_of(scenario: Scenario, named: Named, rules: Mapping[str, Any]) -> Header:
    """What a replay's journal says first."""
    worker = scenario.worker
    facts = {
        "trace": scenario.name,
        "capacity_of_one_worker_per_s": round(scenario.capacity.capacity(1), 6),
        "start_s": worker.start_s,
        "workers_at_start": scenario.first_workers,
        "assumed": dict(scenario.assumed),
    }
    return Header(
        job=scenario.name,
        policy=named.name,
        limits=scenario.limits,
        objective=scenario.objective,
        price=scenario.price,
        tick_s=scenario.tick_s,
        seed=scenario.seed,
        origin_s=scenario.load.origin_s,
        parameters=dict(named.parameters),
        facts=facts,
        kinds=scenario.job().kinds,
        rules={**rules, **named.guards},
    )


@contextmanager
def _journal(header: Header, path: Path | None) -> Iterator[Callable[[Step], None]]:
    if path is None:
        yield lambda _: None
        return
    with whole(path) as scratch, JournalWriter.at(scratch, header) as journal:
        yield journal.write


def file_names(policies: Sequence[str]) -> dict[str, str]:
    """A journal's name for each policy; two that would share one are told apart.

    >>> file_names(["a/mine.py:Mine", "a-mine.py:Mine"])
    {'a/mine.py:Mine': 'a-mine.py-Mine.jsonl', 'a-mine.py:Mine': 'a-mine.py-Mine-2.jsonl'}
    """
    found: dict[str, str] = {}
    for policy in policies:
        plain = file_name(policy)[:120]
        taken = [f"{plain}.jsonl", *(f"{plain}-{number}.jsonl" for number in range(2, len(policies) + 2))]
        found[policy] = next(name for name in taken if name not in found.values())
    return found


def file_name(policy: str) -> str:
    """A policy's name as a file may have it.

    >>> file_name("threshold:upper=0.7,lower=0.4")
    'threshold-upper=0.7-lower=0.4'
    """
    return re.sub(r"[^\w.=+-]+", "-", policy).strip("-")
