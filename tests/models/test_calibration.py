"""What journals teach a simulator, from numbers whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.core.allocation import Allocation, Worker
from penstock.core.errors import BadInput
from penstock.core.journal import Header
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Batch, Observation, WorkerTable
from penstock.models.calibration import calibrate, learn_starts
from penstock.models.evidence import Evidence, evidence_of
from penstock.models.seen_batches import SeenBatch
from penstock.models.service import learn_service
from penstock.models.throughput_curves import Linear, Scalability
from penstock.models.worker_starts import Crew, Start

TRUTH = Scalability(900.0, 0.08)
FIXED_S = 1.5


def header(job: str = "orders") -> Header:
    return Header(job, "threshold", Limits(1, 6), Objective(30.0), Price(), 5.0)


def batches(rng: np.random.Generator, warm_s: float = 0.0, speed: float = 1.0) -> Iterator[SeenBatch]:
    """Batches of 1 to 5 workers; the youngest is 3 s to 5 min old. One in twenty takes three times as long."""
    for number in range(400):
        workers = 1 + number % 5
        age_s = float(rng.uniform(3.0, 300.0))
        able = workers - 1 + (speed if age_s < warm_s else 1.0)
        rows = float(rng.uniform(500.0, 8000.0)) * workers
        takes_s = (FIXED_S + rows / TRUTH.rate(able)) * math.exp(0.05 * float(rng.standard_normal()))
        takes_s *= 3.0 if number % 20 == 7 else 1.0
        crew = Crew((*(math.inf for _ in range(workers - 1)), age_s), (), has_drained=False)
        yield SeenBatch(10.0 * number, rows, takes_s, 0.9, crew, waited=True)


def step(time_s: float, running: tuple[str, ...], asked: tuple[str, ...], **more: Any) -> Step:
    """A tick of 5 s at which what was asked for is applied; `since_s` is what a live plant tells of its executors."""
    allocation = Allocation(tuple(map(Worker, running)))
    target = Allocation(tuple(map(Worker, asked)))
    since_s = more.pop("since_s", 0.0)
    counts: dict[str, Any] = {"arrived": 100 * time_s, "processed": 90 * time_s, "backlog": 10 * time_s} | more
    seen = Observation(
        time_s=time_s,
        span_s=counts.pop("span_s", 5.0),
        delivered=0.0,
        deliverable=0.0,
        input_rate=100.0,
        latency_s=1.0,
        capacity=0.0,
        running=allocation,
        target=allocation,
        workers=WorkerTable(running, {"cpu": 0.5, "paid_since_s": [since_s] * len(running)}),
        **counts,
    )
    return Step(seen, Decision(target, "as told"), target)


def seen(*steps: Step) -> Evidence:
    evidence = evidence_of(header(), steps)
    assert evidence is not None
    return evidence


@pytest.mark.parametrize("tick_s", [0.0, 2.0, 5.0])
def test_start_times_between_10_and_20_s_are_found_within_2_s_whatever_the_tick_hides(tick_s: float) -> None:
    rng = np.random.default_rng(3)
    starts = []
    for takes_s in rng.uniform(10.0, 20.0, 60):
        before_s = math.floor(takes_s / tick_s) * tick_s if tick_s else takes_s
        starts.append(Start(before_s, before_s + tick_s))
    found = learn_starts(starts)
    assert found is not None
    assert [found.low_s, found.high_s] == pytest.approx([10.0, 20.0], abs=2.0)
    assert found.seen == 60


def test_a_start_that_took_minutes_is_an_accident_and_is_counted_as_one() -> None:
    found = learn_starts([Start(12.0, 12.0), Start(14.0, 14.0), Start(16.0, 16.0), Start(400.0, 400.0)])
    assert found is not None
    assert (found.seen, found.odd) == (3, 1)
    assert found.high_s == 16.0
    assert learn_starts([]) is None


def test_capacity_and_fixed_time_are_found_though_one_batch_in_twenty_took_three_times_as_long() -> None:
    found = learn_service(list(batches(np.random.default_rng(1))), workers_max=6)
    assert found is not None
    assert found.capacity.fixed_s(1) == pytest.approx(FIXED_S, abs=0.15)
    for workers in (1, 2, 3, 4, 5):
        assert found.capacity.capacity(workers) == pytest.approx(TRUTH.rate(workers), rel=0.05)
    # Nobody saw six; the curve goes on where a table of what was seen would stay flat.
    assert found.capacity.capacity(6) == pytest.approx(TRUTH.rate(6), rel=0.08)
    assert (found.warm_s, found.first_s) == (0.0, 0.0)


def test_a_warm_up_is_found_and_none_is_invented() -> None:
    found = learn_service(list(batches(np.random.default_rng(2), warm_s=60.0, speed=0.4)), workers_max=5)
    assert found is not None
    assert found.warm_s == pytest.approx(60.0, abs=15.0)
    assert found.warm_speed == pytest.approx(0.4, abs=0.12)
    assert found.warm_seen > 20
    assert found.capacity.capacity(3) == pytest.approx(TRUTH.rate(3), rel=0.05)


def test_one_worker_count_makes_a_line_and_equal_batches_keep_the_fixed_time_that_the_engine_tells() -> None:
    # 3 workers, always 6000 rows: 1.0 s + 6000 / 1500 = 5 s. Any split of the 5 s would explain them as well.
    crew = Crew((math.inf,) * 3, (), has_drained=False)
    same = [SeenBatch(10.0 * n, 6000.0, 5.0, 1.0, crew, waited=True) for n in range(30)]
    found = learn_service(same, workers_max=6)
    assert found is not None
    assert isinstance(found.capacity.curve, Linear)
    assert found.capacity.fixed_s(3) == pytest.approx(1.0, abs=0.02)
    assert found.capacity.capacity(3) == pytest.approx(1500.0, rel=0.01)
    assert found.seen == {3: 30}


def test_a_slot_starts_from_the_tick_that_asks_for_it_until_it_runs() -> None:
    both = ("w1", "w2")
    evidence = seen(step(5, ("w1",), both), step(10, ("w1",), both), step(15, ("w1",), both), step(20, both, both))
    # Asked for at 5, not yet there at 15, there at 20.
    assert evidence.starts == (Start(10.0, 15.0),)


def test_a_live_plant_tells_exactly_when_an_executor_came() -> None:
    both = ("w1", "w2")
    evidence = seen(step(5, ("w1",), both), step(10, ("w1",), both), step(15, both, both, since_s=12.5))
    assert evidence.starts == (Start(7.5, 7.5),)


def test_an_executor_that_stayed_in_a_new_slot_did_not_start() -> None:
    # w2 was given up at 5 s and wanted again at 10 s, before its executor, which came at 3 s, was told to go.
    two, again = ("w1", "w2"), ("w1", "w3")
    found = seen(step(5, two, ("w1",)), step(10, two, again), step(15, again, again, since_s=3.0))
    assert found.starts == ()


def test_workers_that_never_came_and_those_that_were_lost_are_counted_apart() -> None:
    both, three = ("w1", "w2"), ("w1", "w2", "w3")
    gone = step(20, ("w1",), both)
    lost = Step(replace_target(gone.seen, both), gone.decision, gone.target)
    evidence = seen(step(5, both, three), step(10, both, both), step(15, both, both), lost)
    assert (evidence.given_up, evidence.lost, evidence.starts) == (1, 1, ())


def replace_target(observation: Observation, names: tuple[str, ...]) -> Observation:
    return replace(observation, target=Allocation(tuple(map(Worker, names))))


def workers_of_the_batch(third: tuple[str, ...], fourth: tuple[str, ...]) -> list[int]:
    """A batch from 12 to 18 s; one worker runs at 10 s, and these at 15 and at 20 s."""
    last = with_batch(step(20, fourth, fourth), Batch(1000.0, 5.0, execution_s=6.0, fixed_s=0.5, age_s=2.0))
    evidence = seen(step(5, ("w1",), ("w1",)), step(10, ("w1",), third), step(15, third, fourth), last)
    return [batch.workers for batch in evidence.batches]


def test_a_batch_is_that_of_the_workers_it_began_with_and_is_left_out_where_they_are_not_known() -> None:
    one, both = ("w1",), ("w1", "w2")
    assert workers_of_the_batch(one, one) == [1]
    # Somebody came between 15 and 20 s: before it ended, or after?
    assert workers_of_the_batch(one, both) == []
    # Somebody came between 10 and 15 s: before 12 s or after?
    assert workers_of_the_batch(both, both) == []
    # Its only worker left, and another came.
    assert workers_of_the_batch(one, ("w2",)) == []


def test_arrivals_are_spread_over_even_intervals_and_none_is_lost() -> None:
    one = ("w1",)
    late = step(16, one, one, arrived=1800.0, span_s=6.0)
    evidence = seen(step(5, one, one, arrived=500.0), step(10, one, one, arrived=1200.0), late)
    # 600 events in the 6 s from 10 to 16, the header's tick is 5 s: 16 s make three of them, and 1 s is cut off.
    assert evidence.arrivals().tolist() == pytest.approx([500.0, 700.0, 500.0])


def test_what_was_served_while_steps_were_lost_does_not_come_again_as_a_burst() -> None:
    one = ("w1",)
    after = step(605, one, one, arrived=60_500.0, processed=60_400.0, backlog=100.0)
    evidence = seen(step(5, one, one, arrived=500.0, processed=400.0, backlog=100.0), after)
    # 60,000 came in the ten minutes that are lost; 5 s at 100/s of them are the last interval's.
    assert evidence.arrivals().tolist() == pytest.approx([500.0, 500.0])


def test_journals_of_two_jobs_teach_nothing_together() -> None:
    one = ("w1",)
    orders, clicks = (evidence_of(header(job), [step(5, one, one)]) for job in ("orders", "clicks"))
    assert orders is not None
    assert clicks is not None
    with pytest.raises(BadInput, match=r"different jobs \(clicks, orders\)"):
        calibrate([orders, clicks])


def test_a_journal_that_shows_no_capacity_is_refused() -> None:
    with pytest.raises(BadInput, match="neither a batch with rows nor a capacity"):
        calibrate([seen(step(5, ("w1",), ("w1",)))])


def with_batch(made: Step, batch: Batch) -> Step:
    return Step(replace(made.seen, batch=batch), made.decision, made.target)


@pytest.mark.parametrize("origin_s", [1000.0, None])
def test_a_slow_batch_that_hides_behind_a_quick_one_is_found_where_the_clock_is_known(origin_s: float | None) -> None:
    # Trigger and tick are 5 s. Batches: 5 … 7 s, 10 … 17 s, and at once 17 … 19 s: the tick of 20 s shows the last.
    one, quick = ("w1",), step(10, ("w1",), ("w1",), processed=100.0)
    shown = [
        step(5, one, one, processed=0.0),
        with_batch(quick, Batch(100.0, 5.0, 2.0, 0.5, 3.0)),
        with_batch(step(15, one, one, processed=100.0), Batch(100.0, 5.0, 2.0, 0.5, 8.0)),
        with_batch(step(20, one, one, processed=600.0), Batch(150.0, 5.0, 2.0, 0.5, 1.0)),
    ]
    evidence = evidence_of(replace(header(), origin_s=origin_s), shown)
    assert evidence is not None
    found = [(batch.begun_s, batch.ended_s, batch.rows) for batch in evidence.batches]
    hidden = [(10.0, 17.0, 350.0)] if origin_s else []
    assert found == [(5.0, 7.0, 100.0), *hidden, (17.0, 19.0, 150.0)]


def test_how_unequal_batches_are_is_found_though_one_in_twenty_is_an_accident() -> None:
    found = learn_service(list(batches(np.random.default_rng(5))), workers_max=5)
    assert found is not None
    assert found.spread == pytest.approx(0.05, abs=0.015)


def held(batch: SeenBatch, came_s: float, first_s: float) -> SeenBatch:
    """The same batch, in which a worker came after some seconds, and did its first task for some more."""
    crew = replace(batch.crew, fresh_s=(came_s,))
    return replace(batch, crew=crew, execution_s=max(batch.execution_s, came_s + first_s))


@pytest.mark.parametrize("came_s", [0.0, 4.0])
def test_a_first_task_that_holds_its_batch_is_told_from_a_slow_worker(came_s: float) -> None:
    rng = np.random.default_rng(6)
    made = [
        held(batch, came_s, 25.0) if number % 16 == 3 and batch.execution_s > came_s else batch
        for number, batch in enumerate(batches(rng))
    ]
    found = learn_service(made, workers_max=5)
    assert found is not None
    assert found.first_s == pytest.approx(25.0, abs=1.0)
    assert found.first_seen >= 10
    assert found.warm_s == 0.0
    assert found.capacity.capacity(3) == pytest.approx(TRUTH.rate(3), rel=0.05)


def test_new_workers_that_hold_nobody_up_teach_no_first_task() -> None:
    made = list(batches(np.random.default_rng(7)))
    for number in range(3, 400, 16):
        crew = replace(made[number].crew, ages_s=made[number].crew.ages_s[1:], fresh_s=(0.0,))
        made[number] = replace(made[number], crew=crew)
    found = learn_service(made, workers_max=5)
    assert found is not None
    assert found.first_s == 0.0
    assert found.first_seen == 25


def crew_of_the_batch(*ticks: tuple[float, str, str], since_s: float = 0.0) -> tuple[int, list[float]] | None:
    """Who ran the batch from 12 to 18 s: settled ones, and when new ones came. Ticks: time, who runs, who is wanted."""
    steps = []
    for time_s, running, wanted in ticks:
        made = step(time_s, tuple(running), tuple(wanted), since_s=since_s)
        steps.append(Step(replace_target(made.seen, tuple(wanted)), made.decision, made.target))
    last = Batch(1000.0, 5.0, execution_s=6.0, fixed_s=0.5, age_s=steps[-1].seen.time_s - 18.0)
    steps[-1] = with_batch(steps[-1], last)
    found = seen(*steps).batches
    return (found[0].workers, list(found[0].crew.fresh_s)) if found else None


def test_a_worker_that_is_given_up_left_between_batches_if_workers_drain() -> None:
    # b runs on at 15 s though it is not wanted any more, and has gone at 20 s: it ran the batch to its end.
    assert crew_of_the_batch((5, "ab", "ab"), (10, "ab", "ab"), (15, "ab", "a"), (20, "a", "a")) == (2, [])
    # b has gone at 15 s, within the batch: then it left before it.
    drains = (5, "abc", "ab"), (10, "ab", "a")
    assert crew_of_the_batch(*drains, (15, "a", "a"), (20, "a", "a")) == (1, [])
    # Where nobody was seen to drain, it may have left in the middle.
    assert crew_of_the_batch((5, "ab", "ab"), (10, "ab", "ab"), (15, "a", "a"), (20, "a", "a")) is None
    # One that was wanted and is gone was lost, whoever drains.
    assert crew_of_the_batch(*drains, (15, "a", "ab"), (20, "a", "ab")) is None


def test_a_new_worker_has_its_first_task_in_the_batch_that_runs_when_it_comes() -> None:
    ticks = (5, "a", "ab"), (10, "a", "ab"), (15, "a", "ab"), (20, "ab", "ab")
    assert crew_of_the_batch(*ticks, since_s=16.0) == (1, [4.0])
    # One that came before the batch waited for it.
    early = (5, "a", "ab"), (10, "ab", "ab"), (15, "ab", "ab"), (20, "ab", "ab")
    assert crew_of_the_batch(*early, since_s=9.0) == (1, [0.0])
    # Nobody is known to have run it: the only one left before it, and another came at its very end.
    gone = (5, "ac", "a"), (10, "a", ""), (15, "", ""), (20, "b", "b")
    assert crew_of_the_batch(*gone, since_s=17.9) is None
    # One that came after it has nothing to do with it.
    assert crew_of_the_batch(*ticks, since_s=19.0) == (1, [])
    # The tick hides whether it came before or after the end.
    assert crew_of_the_batch(*ticks) is None
