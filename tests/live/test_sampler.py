"""Taking a sample, on batches made up to know the answer: what counts, what is delivered, what is flagged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest

from penstock.live import sampler
from penstock.live.batches import BatchTime, Split
from penstock.live.feed import BatchPlan
from penstock.live.sampler import Bench, Sample, Sampling, sample
from penstock.live.settling import WINDOW


@dataclass
class MadeUp:
    """Batches of 1 s + rows / 50,000 on the undisturbed machine; those of the first query at a pace of their own."""

    pace: Callable[[int], float] = lambda _: 1.0
    machine: float = 1.0
    holds: int = 100
    spark: Any = None
    queries: int = 0

    def run(self, plan: BatchPlan, is_enough: Callable[[list[BatchTime]], bool], _patience_s: float) -> list[BatchTime]:
        self.queries += 1
        seen: list[BatchTime] = []
        for batch in self._batches(plan.rows, min(plan.batches, self.holds)):
            seen.append(batch)
            if is_enough(seen):
                break
        return seen

    def _batches(self, rows: int, most: int) -> Iterator[BatchTime]:
        rng = np.random.default_rng(rows)
        for number in range(most):
            pace = self.machine * (self.pace(number) if self.queries == 1 else 1.0)
            alone_s = (1.0 + rows / 50_000) * float(np.exp(0.02 * rng.standard_normal()))
            yield BatchTime(number, rows, alone_s / pace, self.machine)

    def speed(self, _begun_s: float) -> float:
        return self.machine


@pytest.fixture(autouse=True)
def busy_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter(range(0, 10**9, 10**6))  # each look finds them at work all the time
    monkeypatch.setattr(sampler, "task_seconds", lambda _spark: {"0": float(next(spent))})


def taken(made_up: MadeUp, sampling: Sampling | None = None) -> Sample:
    return sample(cast(Bench, made_up), sampling or Sampling(), 2, Split(1.0, 50_000.0))


def test_a_sample_is_what_was_delivered_and_the_correction_stands_beside_it() -> None:
    found = taken(MadeUp(machine=0.5))
    assert found.flags == ()
    assert found.split is not None
    assert found.corrected is not None
    assert (found.split.rows_per_s, found.split.fixed_s) == pytest.approx((25_000, 2.0), rel=0.1)
    assert (found.corrected.rows_per_s, found.corrected.fixed_s) == pytest.approx((50_000, 1.0), rel=0.1)
    assert found.speed == 0.5


def test_batches_before_settling_do_not_count() -> None:
    found = taken(MadeUp(pace=lambda number: 0.7 if number < 5 else 1.0))
    assert found.flags == ()
    assert found.split is not None
    assert found.split.rows_per_s == pytest.approx(50_000, rel=0.05)


def test_a_run_that_drifts_to_its_end_is_flagged() -> None:
    assert taken(MadeUp(pace=lambda number: 1.04**number / 1.3)).flags == ("did not settle",)


def test_a_quick_sample_says_that_nobody_tested_whether_it_had_settled() -> None:
    assert taken(MadeUp(), Sampling.quick()).flags == ("settling not tested",)


def test_batches_in_which_rows_hardly_show_are_flagged() -> None:
    # The guess is 50,000 times too small: five tries, each five times as large, still are all fixed time.
    found = sample(cast(Bench, MadeUp()), Sampling.quick(), 2, Split(1.0, 1.0))
    assert "batches too short to tell" in found.flags
    found = sample(cast(Bench, MadeUp()), Sampling.quick(), 2, Split(1.0, 50.0))  # 1,000 times too small is mended
    assert found.flags == ("settling not tested",)


def test_a_source_that_runs_dry_gives_no_number() -> None:
    found = taken(MadeUp(holds=1))
    assert (found.split, found.corrected, found.flags) == (None, None, ("source ran dry",))
    few = taken(MadeUp(holds=WINDOW // 2))
    assert "source ran dry" in few.flags
