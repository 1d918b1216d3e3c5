"""Capacity learnt from batches, by query, and by a policy from what it sees alone."""

from __future__ import annotations

import pytest

from penstock.models.learned import Learned
from penstock.testing import check_capacity_model


def learnt(*batches: tuple[float, float]) -> Learned:
    """From batches of two workers: rows, and seconds of work."""
    model = Learned()
    for rows, work_s in batches:
        model.note("query", rows, work_s, fixed_s=0.5, crew=("1", "2"))
    return model


def test_a_learnt_capacity_tells_rows_from_the_launch_of_tasks() -> None:
    # Tasks take 4 s whatever they hold; two workers do 200 rows/s.
    small, large = (200.0, 4.0 + 1.0), (2400.0, 4.0 + 12.0)
    model = learnt(*[small] * 5, *[large] * 5)
    assert model.capacity(2) == pytest.approx(200.0, rel=0.05)
    assert model.fixed_s(2) == pytest.approx(4.5, rel=0.05)
    # 20 s between triggers leave 15.5 for rows.
    assert model.sustainable(2, 20.0) == pytest.approx(200.0 * 15.5 / 20, rel=0.05)
    # Small ones alone, for long, do not make it forget; and it follows a job that becomes slower.
    again = learnt(*[small] * 5, *[large] * 5, *[small] * 60)
    assert again.capacity(2) == pytest.approx(200.0, rel=0.2)
    slower = learnt(*[small] * 5, *[large] * 5, *[(2400.0, 4.0 + 24.0)] * 30)
    assert slower.capacity(2) == pytest.approx(100.0, rel=0.1)


def test_cold_batches_that_larger_warm_ones_undercut_do_not_make_launches_of_rows() -> None:
    """As live: 5,000 rows in 20 s while code was compiled, then ever more rows in ever less time."""
    model = Learned()
    for rows, work_s in ((5000.0, 26.0), (140_000.0, 8.0), (250_000.0, 5.9)):
        model.note("job", rows, work_s, 0.5, ("w1", "w2", "w3"))
    assert model.capacity(3) == pytest.approx(250_000 / 5.9)
    assert model.fixed_s(3) == pytest.approx(0.5, abs=0.1)


def test_batches_of_one_size_teach_a_plain_rate() -> None:
    model = learnt(*[(1000.0, 5.0)] * 20)
    assert (model.capacity(2), model.fixed_s(2)) == (200.0, 0.5)


def test_a_fresh_learner_and_one_that_has_learnt_keep_the_contract() -> None:
    check_capacity_model(Learned())
    check_capacity_model(learnt((200.0, 5.0), (2400.0, 16.0)))


def test_the_rows_of_two_queries_cost_what_they_do_in_the_mix_that_comes() -> None:
    model = Learned()
    for _ in range(5):
        model.note("clicks", 1000.0, 1.0, 0.1, ("1",))
        model.note("joins", 1000.0, 9.0, 0.3, ("1",))
    model.mix({"clicks": 300.0, "joins": 100.0})
    # A row of the mix takes (3 · 1 ms + 1 · 9 ms) / 4.
    assert model.capacity(1) == pytest.approx(1 / 0.003)
    assert model.fixed_s(1) == pytest.approx(0.3)
    for _ in range(60):
        model.mix({"clicks": 0.0, "joins": 100.0})
    assert model.capacity(1) == pytest.approx(1 / 0.009, rel=1e-3)
