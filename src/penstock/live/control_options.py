"""How a job is to be controlled, as people write it, and what is said where they wrote something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from penstock.core.allocation import Knob
from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput, unknown
from penstock.core.job import CapacityModel, Job
from penstock.core.kinds import WorkerKind
from penstock.core.loop import Policy
from penstock.core.objective import Limits, Objective, Price
from penstock.core.units import duration_s
from penstock.live.lag_source import Places
from penstock.live.pause import Pause
from penstock.live.policy_thread import PolicyThread, built
from penstock.models.alternate_capacity import AlternateCapacity
from penstock.models.capacity import Capacity, read_model
from penstock.models.learned import Learned
from penstock.policies.learning import Learning
from penstock.policies.registry import Around, Named

TICK_MIN_S = 0.1  # to look at a job takes 20 to 100 ms
HANG_TICKS, HANG_MIN_S = 4, 10.0  # a policy that takes longer than both hangs; ours take under a millisecond


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a job is to be controlled; durations as people write them."""

    policy: str = "deadline"
    limits: Limits = Limits(1, 2)
    tick: str = "15s"
    trigger: str | None = None
    objective: str = "latency<=120s"
    model: str | Path | None = None
    journal: str | Path | None = None
    metrics_port: int | None = None
    pause_file: str = ""
    safe_workers: int | None = None
    dry_run: bool = False
    cores: float | None = None
    """Of an executor; None where nobody knows."""
    app: str | None = None
    """What it runs; None where nobody knows."""
    source: str | None = None
    """Where its rows come from; None where nobody knows."""
    partitions: int | None = None
    price: str = "0.10/h"
    places: Places = field(default_factory=Places)
    alternates: tuple[Alternate, ...] = ()
    """Implementations between which the job can be switched, by whoever starts it."""

    @classmethod
    def given(cls, limits: object, given: Mapping[str, Any]) -> Wanted:
        """From what a caller of `attach` wrote: each mistake is one line that says what would be right."""
        known = [each.name for each in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise unknown("parameter of attach", name, known)
            _check(name, value)
        return cls(limits=_limits(limits), **{name: _plain(name, value) for name, value in given.items()})

    def job(self, name: str, memory_mb: float = 1024.0) -> Job:
        """What the policy is told; `memory_mb` is the heap of an executor."""
        model: CapacityModel = self._fitting(read_model(Path(self.model))) if self.model else Learned()
        # Costs of alternates are relative: how long an event takes to serve is not theirs to tell.
        flow = Dataflow((Operator(name, alternates=self.alternates),), service_s=0.0)
        if self.alternates:
            model = AlternateCapacity(model, flow)
        tick_s = duration_s(self.tick, "tick")
        if tick_s < TICK_MIN_S:
            raise BadInput(f"tick '{self.tick}' is too short: write at least 100ms, such as 15s")
        return Job(
            name=name,
            dataflow=flow,
            capacity=model,
            limits=self.limits,
            tick_s=tick_s,
            kinds=(WorkerKind(cores=self.cores or 1.0, memory_mb=memory_mb),),
            objective=Objective.parse(self.objective),
            price=Price.parse(self.price, "second"),
            trigger_s=duration_s(self.trigger, "trigger") if self.trigger else None,
            workers_at_start=self.limits.workers_min or 1,
            knobs=frozenset({Knob.WORKERS, Knob.ALTERNATE} if self.alternates else {Knob.WORKERS}),
        )

    def _fitting(self, model: Capacity) -> Capacity:
        """A model of another app, source or kind of worker answers nothing."""
        for what in ("app", "source", "cores", "partitions"):
            measured, wanted = getattr(model.about, what), getattr(self, what)
            if None not in (measured, wanted) and measured != wanted:
                raise BadInput(f"the model {self.model} is of {what} {measured}, the job's is {wanted}: measure that")
        return model

    @property
    def rules(self) -> dict[str, Any]:
        """The policy's parameters, with those that were given beside it."""
        given: dict[str, Any] = {"pause_file": self.pause_file} if self.pause_file else {}
        given |= {"safe_workers": self.safe_workers} if self.safe_workers is not None else {}
        return {**Named.parse(self.policy).parameters, **given}

    def policy_for(self, job: Job, pause: Pause | None = None, inside: Around = lambda bare: bare) -> Policy:
        """The policy with its safety rules."""
        is_paused = (pause or Pause()).is_on
        return replace(Named.parse(self.policy), parameters=self.rules).build_safe(job, lambda _: is_paused(), inside)

    def asked_policy(self, job: Job, pause: Pause) -> tuple[Policy, PolicyThread]:
        """The same, asked in a thread of its own, which stands within its rules."""
        asked: list[PolicyThread] = []

        def inside(bare: Policy) -> Policy:
            model = job.capacity
            learns = bare
            if isinstance(model, Learned) or (isinstance(model, AlternateCapacity) and model.learns):
                learns = Learning(bare, model)
            asked.append(PolicyThread(learns, max(HANG_MIN_S, HANG_TICKS * job.tick_s)))
            return asked[0]

        return built(self.policy, lambda: self.policy_for(job, pause, inside)), asked[0]


_IS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "policy": (lambda value: isinstance(value, str), 'a policy\'s name, such as "deadline" or "mine.py:Mine"'),
    "tick": (lambda value: isinstance(value, str), 'a duration with its unit, such as "15s"'),
    "trigger": (lambda value: value is None or isinstance(value, str), 'a duration with its unit, such as "10s"'),
    "objective": (lambda value: isinstance(value, str), '"latency<=120s", or "rate"'),
    "model": (lambda value: value is None or isinstance(value, (str, Path)), "the path of a model that `fit` wrote"),
    "journal": (lambda value: value is None or isinstance(value, (str, Path)), 'a path, such as "job.jsonl"'),
    "metrics_port": (lambda value: value is None or _is_whole(value), "a port, such as 9464, or 0 for any"),
    "pause_file": (lambda value: isinstance(value, (str, Path)), 'a path, such as "job.pause"'),
    "safe_workers": (lambda value: value is None or _is_whole(value), "a number of executors, such as 4"),
    "dry_run": (lambda value: isinstance(value, bool), "True or False"),
    "cores": (lambda value: value is None or _is_whole(value) or isinstance(value, float), "a number, such as 1"),
    "app": (lambda value: value is None or isinstance(value, str), "a name"),
    "source": (lambda value: value is None or isinstance(value, str), "a name"),
    "partitions": (lambda value: value is None or _is_whole(value), "a number, such as 10"),
    "price": (lambda value: isinstance(value, str), 'a price with its time, such as "0.10/h"'),
    "places": (lambda value: isinstance(value, Places), "penstock.live.lag_source.Places(…)"),
    "alternates": (lambda value: value == (), "nothing: `penstock run` alone can start a query again"),
}


def _check(name: str, value: object) -> None:
    fits, right = _IS[name]
    if not fits(value):
        raise BadInput(f"{name}={_short(value)}: write {right}")


def _plain(name: str, value: Any) -> Any:
    return str(value) if name == "pause_file" else value


def _limits(limits: object) -> Limits:
    if isinstance(limits, Limits):
        return limits
    pair = list(limits) if isinstance(limits, Sequence) and not isinstance(limits, str) else []
    if len(pair) != 2 or not all(map(_is_whole, pair)):
        given = "no limits" if limits is None else f"limits={_short(limits)}"
        raise BadInput(f"{given}: write the fewest and the most executors, such as limits=(1, 8)")
    return Limits(*pair)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
