"""Allocations that hold together, and what differs between two of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.core.allocation import Allocation, BatchRule, Knob, Worker
from penstock.core.bounds import WORKERS_MOST
from penstock.core.errors import BadInput
from penstock.core.job import Job
from penstock.core.kinds import WorkerKind
from penstock.core.objective import Limits
from penstock.sim.scenario import Scenario

THREE = replace(Allocation.of(3), instances={"parse": ("w1",), "count": ("w1", "w3")})


def test_instances_stand_only_on_workers_that_are_rented() -> None:
    with pytest.raises(BadInput, match="'count' is placed on w3, which is not rented"):
        Allocation.of(2).__class__((Worker("w1"), Worker("w2")), {"count": ("w1", "w3")})


def test_a_worker_that_holds_an_instance_is_not_given_up_by_a_count() -> None:
    with pytest.raises(BadInput, match="'count' is placed on w3"):
        THREE.resized(2)
    assert [worker.name for worker in THREE.resized(4).workers] == ["w1", "w2", "w3", "w4"]


def test_a_wish_for_a_milliard_workers_is_no_longer_than_any_limits_allow() -> None:
    many = Allocation.of(2).resized(10**9)
    assert len(many.workers) == WORKERS_MOST
    assert many.workers[-1].name == f"w{WORKERS_MOST}"
    assert Limits(1, 5).cut(many) == Allocation.of(5)


def test_what_is_left_on_some_workers_has_no_instances_elsewhere() -> None:
    left = THREE.only({"w1", "w2"})
    assert left.instances == {"parse": ("w1",), "count": ("w1",)}
    assert [worker.name for worker in left.workers] == ["w1", "w2"]


@pytest.mark.parametrize(
    ("change", "knob"),
    [
        ({"workers": Allocation.of(4).workers}, Knob.WORKERS),
        ({"instances": {"parse": ("w2",)}}, Knob.PLACEMENT),
        ({"cpu_share": {"parse": 0.5}}, Knob.CPU_SHARE),
        ({"alternate": {"parse": "rough"}}, Knob.ALTERNATE),
        ({"batch": BatchRule(120.0, 1.0, 50.0)}, Knob.BATCH_SIZE),
    ],
)
def test_each_knob_that_differs_is_named(change: dict[str, object], knob: Knob) -> None:
    assert replace(Allocation.of(3), **change).turned(Allocation.of(3)) == {knob}  # type: ignore[arg-type]


def test_names_that_were_given_are_no_difference() -> None:
    there_and_back = Allocation.of(2).resized(3).resized(2)
    assert there_and_back.turned(Allocation.of(2)) == frozenset()


class TestCores:
    """The one order of more and less."""

    job: Job = replace(
        Scenario.constant(1.0, 10.0).job(), kinds=(WorkerKind("small"), WorkerKind("huge", cores=16.0, speed=2.0))
    )

    def test_a_huge_worker_is_more_than_many_small_ones(self) -> None:
        small, huge = Allocation.of(20, "small"), Allocation.of(1, "huge")
        assert (self.job.cores(small), self.job.cores(huge)) == (20.0, 32.0)

    def test_where_cpu_is_shared_out_the_shares_count(self) -> None:
        shared = replace(THREE, cpu_share={"parse": 0.5, "count": 0.25})
        assert self.job.cores(shared) == 1.0  # half a core, and two instances of a quarter

    def test_an_unknown_kind_is_said(self) -> None:
        with pytest.raises(BadInput, match="unknown kind of worker 'hug': did you mean 'huge'"):
            self.job.cores(Allocation.of(1, "hug"))


class TestBatchRule:
    rule = BatchRule(latency_s=120.0, fixed_s=2.0, rows_per_worker_s=10.0)

    @pytest.mark.parametrize(("oldest_s", "lasts_s"), [(0.0, 60.0), (20.0, 50.0), (80.0, 20.0), (500.0, 10.0)])
    def test_a_batch_takes_half_of_what_is_left_within_its_bounds(self, oldest_s: float, lasts_s: float) -> None:
        assert self.rule.rows(3, oldest_s) == pytest.approx((lasts_s - 2.0) * 10.0 * 3)

    def test_a_batch_whose_fixed_time_is_all_it_may_take_gets_on(self) -> None:
        assert replace(self.rule, fixed_s=30.0).rows(1, 500.0) == pytest.approx(30.0 / 4 * 10.0)
        assert replace(self.rule, rows_per_worker_s=1e-9).rows(1, 0.0) == 1.0
