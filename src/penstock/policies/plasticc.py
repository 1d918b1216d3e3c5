"""Plans ahead: which alternates, how many instances, on which workers, over the next minutes (paper 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import unknown
from penstock.core.job import Job
from penstock.core.loop import Decision
from penstock.core.objective import application_value, relative_throughput
from penstock.core.observation import Observation
from penstock.models.forecast_oracle import Errors
from penstock.policies.expectations import DAY_S, HEURISTICS, Expectations, Sight, spread_of
from penstock.policies.plasticc_plan import Plan, check_spans, paid_since, steps_ahead
from penstock.policies.plasticc_price import Prices
from penstock.policies.plasticc_shared import Horizon, SharedPlan
from penstock.solvers.initial import deploy, with_homes
from penstock.solvers.joint import joint
from penstock.solvers.layout import Interval, Layout, Machine, hours_end
from penstock.solvers.lookahead import Planned, Rules, look_ahead
from penstock.solvers.two_stage import two_stage

PLANNERS = {"greedy": look_ahead, "joint": joint, "two-stage": two_stage}


class Plasticc:
    """Look-ahead scheduling of a dataflow with alternates, each instance on a core of its own.

    Every `plan_s`, a plan for the next `interval_s`: the least that keeps the relative throughput in its band, by one
    instance more or less or another alternate, whichever profits more. Workers are launched ahead by their start;
    those without instances go when their paid hour ends. With the forecasts caf, waaf, wpa, wpo and wpp it plans when
    the throughput has left its band. `planner=joint` chooses all of ten minutes together, and not one change at a
    time. Where nobody can place operators, all workers serve all of them, and the plan is of workers and alternates
    (`plasticc_shared`).
    """

    source: ClassVar[str] = "paper 3, Algorithm 1"
    needs: frozenset[Knob] = frozenset({Knob.WORKERS, Knob.PLACEMENT, Knob.ALTERNATE})

    def __init__(  # noqa: PLR0913  what can be set is what the paper varies
        self,
        job: Job,
        forecast: str = "holt-winters",
        interval_s: float = 1800.0,
        planner: str = "greedy",
        least: float = 0.8,
        epsilon: float = 0.05,
        sigma: float = 0.0,
        period_s: float = 43200.0,
        plan_s: float = 600.0,
        step_s: float = 300.0,
        error: float = 0.0,
        bias: float = 0.0,
        spread: str = "variance",
        charge: str = "hour",
        seed: int = 0,
        season_s: float = DAY_S,
    ) -> None:
        sight = Sight(forecast, step_s, Errors(error, bias, spread_of(spread)), seed, season_s)
        check_spans(job, least, epsilon, (interval_s, plan_s, step_s))
        if planner not in PLANNERS:
            raise unknown("planner", planner, PLANNERS)
        if charge not in ("hour", "interval"):
            raise unknown("charge", charge, ("hour", "interval"))
        self._job, self._step_s, self._plan_s = job, step_s, plan_s
        self._planner, self._when_off = PLANNERS[planner], forecast in HEURISTICS
        self._prices = Prices(job, sigma, period_s, least)
        self._band, self._by_interval = (least, least + 2 * epsilon), charge == "interval"
        self._steps = steps_ahead(job, sight, interval_s, plan_s)
        self._ahead = Expectations(job, sight)
        self._table = self._prices.table
        self._plan: Plan | None = None
        self._before = (0.0, 0.0)
        self._relative: float | None = None
        self._valued: tuple[Mapping[str, str], float] = ({}, application_value(job.dataflow))
        # A season, for those who learn one, or what the last plan was made from.
        self.memory_s = 2 * season_s if forecast in ("holt-winters", "seasonal-naive") else interval_s + plan_s
        self._shared: SharedPlan | None = None
        if Knob.PLACEMENT not in job.knobs:
            told = Horizon(step_s, plan_s, self._steps, least, sigma, period_s)
            self._shared = SharedPlan(job, sight, told)
            self.needs = self._shared.needs

    def decide(self, seen: Observation) -> Decision:
        if self._shared is not None:
            return self._shared.decide(seen)
        self._ahead.note(seen)
        self._note(seen)
        why = self._why(seen)
        if why:
            self._plan = Plan(self._ahead.clock_s, self._planned(seen))
        assert self._plan is not None
        target = self._target(seen, self._plan)
        return Decision(target, self._reason(seen, target, why), self._signals(target))

    def _why(self, seen: Observation) -> str:
        """Why it plans now; nothing: it does not."""
        if self._plan is None:
            return "the first deployment" if not seen.target.instances else "a restart"
        if not self._ahead.is_step_end:
            return ""
        if not self._when_off:
            return "a new forecast" if self._ahead.clock_s - self._plan.begin_s >= self._plan_s - 1e-6 else ""
        off = self._relative is not None and not self._band[0] <= self._relative <= self._band[1]
        return f"throughput {self._relative:.2f} has left its band" if off else ""

    def _note(self, seen: Observation) -> None:
        if self._ahead.is_step_end:
            before = self._before
            self._relative = relative_throughput(seen.delivered - before[0], seen.deliverable - before[1])
            self._before = (seen.delivered, seen.deliverable)

    def _planned(self, seen: Observation) -> Planned:
        rates = self._ahead.rates(self._steps)
        self._prices.learn(seen)
        layout = self._layout(seen, rates)
        rules = Rules(
            *self._band,
            sigma=self._prices.sigma,
            period_s=self._prices.period_s,
            offers=self._prices.offers(self._ahead.usual_speed),
            machines_max=self._job.limits.workers_max,
            by_interval=self._by_interval,
        )
        if not any(layout.places):
            return deploy(layout, rules)
        return with_homes(self._planner, layout, rules)

    def _layout(self, seen: Observation, rates: Mapping[str, Sequence[float]]) -> Layout:
        table, steps = self._table, self._steps
        arriving, backlog = np.zeros((steps, len(table.names))), np.zeros(len(table.names))
        for place, name in enumerate(table.names):
            if place in table.sources:
                arriving[:, place] = np.asarray(rates[name]) * self._step_s
            if name in seen.operators:
                backlog[place] = seen.operators[name].backlog or 0.0
        machines = self._machines(seen)
        number = {each.name: place for place, each in enumerate(machines)}
        instances, alternate = self._now(seen)
        places = [[number[each] for each in instances.get(name, ()) if each in number] for name in table.names]
        active = [
            kinds.index(alternate.get(name, self._prices.first[name])) if len(kinds) > 1 else 0
            for name, kinds in zip(table.names, table.alternates, strict=True)
        ]
        return Layout(table, Interval(self._step_s, arriving, backlog), machines, places, active)

    def _now(self, seen: Observation) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
        """Instances and alternates that the last plan has for now."""
        if self._plan is None:
            return dict(seen.target.instances), dict(seen.target.alternate)
        stage = self._plan.stage((self._ahead.clock_s - self._plan.begin_s) / self._step_s)
        return self._plan.real(stage), dict(stage.alternate)

    def _machines(self, seen: Observation) -> list[Machine]:
        workers = seen.target.workers
        factors = self._ahead.speeds([worker.name for worker in workers], self._steps)
        ends_s = (np.arange(self._steps) + 1) * self._step_s
        found, since_s = [], paid_since(seen)
        for worker in workers:
            kind = self._job.kind(worker.kind)
            asked_s = seen.pending.get(worker.name)
            up_s = 0.0 if asked_s is None else max(0.0, asked_s + self._prices.start_s(kind) - seen.time_s)
            there_s = np.clip(ends_s - up_s, 0.0, self._step_s)
            core_s = kind.speed * np.asarray(factors[worker.name]) * there_s
            left_s = hours_end(since_s.get(worker.name, seen.time_s), seen.time_s, self._prices.unit_s)
            if worker.name in since_s and left_s > self._prices.unit_s - 1e-6:
                left_s = 0.0  # its hour ends with this very tick: it may still be given up
            machine = Machine(worker.name, worker.kind, max(1, int(kind.cores)), core_s, self._prices.of(kind))
            found.append(replace(machine, ends=left_s / self._step_s))
        return found

    def _target(self, seen: Observation, plan: Plan) -> Allocation:
        """What to ask for now: workers whose launch is due, instances on those that run, nothing that is not needed."""
        step = (self._ahead.clock_s - plan.begin_s) / self._step_s
        target = self._launched(seen.target, plan, step)
        stage = plan.stage(step)
        kept = self._kept(seen, target, plan.wanted(step))
        runs = {worker.name for worker in seen.running.workers} & kept
        instances = {}
        for name, where in plan.real(stage).items():
            # On those that run: an operator does not wait for the last of its workers, and is never without a home.
            up = tuple(each for each in where if each in runs)
            instances[name] = up or tuple(e for e in seen.target.instances.get(name, ()) if e in runs)
        if not all(instances.values()):
            instances = dict(seen.target.instances)
            kept |= {each for where in instances.values() for each in where}
        workers = tuple(worker for worker in target.workers if worker.name in kept)
        return replace(target, workers=workers, instances=instances, alternate=dict(stage.alternate))

    def _launched(self, target: Allocation, plan: Plan, step: float) -> Allocation:
        for machine in plan.planned.launches:
            if machine.name in plan.names or machine.launch is None:
                continue
            ahead_s = self._prices.start_s(self._job.kind(machine.kind))
            due_s = machine.launch * self._step_s - ahead_s
            if due_s < step * self._step_s + self._job.tick_s - 1e-6:
                target = target.grown(1, machine.kind)
                plan.names[machine.name] = target.workers[-1].name
        return target

    def _kept(self, seen: Observation, target: Allocation, wanted: set[str]) -> set[str]:
        """Workers with something to do, and those whose paid hour goes on."""
        kept, since_s = {worker.name for worker in target.workers if worker.name in wanted}, paid_since(seen)
        for worker in target.workers:
            if worker.name in kept:
                continue
            left_s = hours_end(since_s.get(worker.name, seen.time_s), seen.time_s, self._prices.unit_s)
            ends_now = left_s < self._job.tick_s - 1e-6 or left_s > self._prices.unit_s - 1e-6
            is_fresh = worker.name not in since_s
            if (not ends_now and not is_fresh) or len(kept) < self._job.limits.workers_min:
                kept.add(worker.name)
        return kept

    def _reason(self, seen: Observation, target: Allocation, why: str) -> str:
        assert self._plan is not None
        planned = self._plan.planned
        cores = sum(map(len, target.instances.values()))
        has = f"{cores} instances on {len(target.workers)} workers"
        more = f", {len(planned.launches)} to launch" if why and planned.launches else ""
        poor = "" if planned.feasible else "; no plan was found that keeps the throughput: this is the best"
        degraded = sorted(name for name, kind in target.alternate.items() if kind != self._prices.best[name])
        cheaper = f", {len(degraded)} operators degraded" if degraded else ""
        if not why:
            return f"the plan of {seen.time_s - self._ahead.clock_s + self._plan.begin_s:.0f} s: {has}{cheaper}{poor}"
        return f"{why}: {has}{more}{cheaper}, throughput {planned.relative:.2f} ahead{poor}"

    def _signals(self, target: Allocation) -> dict[str, float]:
        assert self._plan is not None
        if target.alternate != self._valued[0]:
            value = application_value(self._job.dataflow.switched(target.alternate))
            self._valued = (target.alternate, value)
        found = {"value": self._valued[1], "throughput ahead": self._plan.planned.relative}
        return found if self._relative is None else found | {"throughput": self._relative}
