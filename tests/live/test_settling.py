"""When a measurement has settled, on simulated series: the errors that `live/settling.py` states."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.live.batches import BatchTime
from penstock.live.meter_plan import MeterPlan
from penstock.live.settling import MOST, WINDOW, after_settling
from penstock.models.throughput_curves import Floats


def passing(drift: float, scatter: float, slow: float = 0.0, runs: int = 600) -> float:
    """Share of simulated runs that pass: so much drift a batch, so much scatter, and some batches twice as long."""
    rng = np.random.default_rng(1)
    rates = (1 + drift) ** np.arange(MOST) * np.exp(scatter * rng.standard_normal((runs, MOST)))
    rates = np.where(rng.random((runs, MOST)) < slow, rates / 2, rates)
    return float(np.mean([bool(after_settling(series(row))) for row in rates]))


def series(rates: Floats, speeds: Floats | None = None) -> list[BatchTime]:
    known = np.ones(len(rates)) if speeds is None else speeds
    return [
        BatchTime(n, 1000, 1000 / rate / speed, speed)
        for n, (rate, speed) in enumerate(zip(rates.tolist(), known.tolist(), strict=True))
    ]


@pytest.mark.parametrize("drift", [0.04, -0.04])
@pytest.mark.parametrize("scatter", [0.02, 0.08, 0.12])
def test_runs_that_drift_by_four_percent_a_batch_do_not_pass(drift: float, scatter: float) -> None:
    assert passing(drift, scatter) <= 0.05


def test_steady_runs_pass_though_batches_scatter() -> None:
    assert passing(0.0, 0.08) >= 0.90
    assert passing(0.0, 0.05, slow=0.1) >= 0.90


def test_a_run_that_scatters_too_much_to_tell_is_not_called_settled() -> None:
    assert passing(0.0, 0.20) <= 0.10


def test_only_what_came_after_settling_counts() -> None:
    rng = np.random.default_rng(2)
    warming = np.concatenate([[20.0, 40.0, 60.0, 80.0], np.full(WINDOW + 2, 100.0)])
    batches = series(warming * np.exp(0.02 * rng.standard_normal(len(warming))))
    counted = after_settling(batches)
    assert len(counted) >= WINDOW - 2
    assert min(batch.rate for batch in counted) > 70  # the last step of warming up, 80, may be within the window
    assert not after_settling(batches[:WINDOW])


def test_a_machine_that_slows_down_does_not_make_a_job_drift() -> None:
    steady, speeds = np.full(WINDOW, 100.0), np.linspace(1.0, 0.6, WINDOW)
    batches = series(steady, speeds)
    assert batches[-1].rate == pytest.approx(60.0)  # what was delivered fell
    assert len(after_settling(batches)) >= WINDOW - 2
    assert not after_settling(series(np.asarray([batch.rate for batch in batches])))


def test_more_workers_than_the_machine_has_cores_for_are_refused() -> None:
    plan = MeterPlan(workers=(1, 2, 5), cores=0.25)
    plan.need_cores(limited=True, cpus=2)
    with pytest.raises(
        BadInput, match=r"--workers 5: this machine has 2 cores .* nothing limits it\): measure at most 2"
    ):
        plan.need_cores(limited=False, cpus=2)
    MeterPlan(workers=(1, 2)).need_cores(limited=False, cpus=2)
    with pytest.raises(BadInput, match="measure at most 4"):
        MeterPlan(workers=(5,), cores=0.5).need_cores(limited=True, cpus=2)
