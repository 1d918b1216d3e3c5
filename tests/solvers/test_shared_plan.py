"""Workers and implementations of some steps at once: as good as the best of all plans, and honest without one."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.solvers.shared_plan import SWITCH, WORKER, Steps, planned

VALUES = np.array([1.0, 0.6])


def told(arriving: list[float], price: float = 0.1, most: int = 3, here: float = 9.0) -> Steps:
    """A worker serves 10 events a step by the first implementation, 30 by the second; nothing may wait."""
    serves = np.outer([10.0, 30.0], np.arange(most + 1))
    count = len(arriving)
    return Steps(
        np.array(arriving), 0.0, serves, VALUES, price, (1, most), np.full(count, here), np.zeros(count), (1, 0)
    )


def worth(steps: Steps, plan: list[tuple[int, int]]) -> float | None:
    """By the definition; None for a plan that lets something wait."""
    total, before = 0.0, steps.now
    for arriving, (workers, which) in zip(steps.arriving, plan, strict=True):
        if steps.serves[which, workers] < arriving - 1e-9:
            return None
        total += VALUES[which] - steps.price * workers
        total -= WORKER * abs(workers - before[0]) + SWITCH * (which != before[1])
        before = (workers, which)
    return total


@settings(max_examples=40)
@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=4),
    st.sampled_from([0.01, 0.05, 0.2, 0.5]),
)
def test_no_other_plan_that_serves_all_is_worth_more(arriving: list[int], price: float) -> None:
    steps = told([float(each) for each in arriving], price)
    found = planned(steps)
    options = list(product(range(1, 4), range(2)))
    every = [
        value for plan in product(options, repeat=len(arriving)) if (value := worth(steps, list(plan))) is not None
    ]
    mine = worth(steps, list(zip(found.workers, found.implementations, strict=True)))
    assert found.is_feasible
    assert mine is not None
    assert mine >= max(every) - 1e-9


def test_what_no_plan_serves_gets_all_there_is_and_is_not_called_feasible() -> None:
    found = planned(told([200.0, 200.0]))
    assert (found.workers, found.implementations, found.is_feasible) == ((3, 3), (1, 1), False)
    assert found.waits >= 2 * (200.0 - 90.0)


def test_a_worker_that_comes_too_late_is_not_counted_on() -> None:
    found = planned(told([20.0, 20.0], price=0.01, here=1.0))
    assert found.workers == (1, 1)
    assert found.implementations == (1, 1)
