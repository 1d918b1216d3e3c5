"""What simulated meters show: noise that workers share, and a CPU that is seen late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.sim.plant import SimulatedPlant
from penstock.sim.scenario import Scenario
from penstock.sim.specs import NoiseSpec
from penstock.sim.workloads import Load


def cpus(noise: NoiseSpec, rates: list[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Each tick's CPU of eight workers that do 10 events a second."""
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0, workers_at_start=8)
    plant = SimulatedPlant(replace(still, load=Load.of(np.array(rates), 1.0), noise=noise))
    seen = []
    for _ in plant.ticks():
        observation = plant.observe()
        assert observation is not None
        seen.append(np.broadcast_to(observation.workers.columns["cpu"], 8))
    return np.array(seen)


def test_noise_that_is_each_workers_own_averages_out_and_shared_noise_does_not() -> None:
    own, half, shared = (cpus(NoiseSpec(cpu=0.1, cpu_shared=part), [40.0] * 4000) for part in (0.0, 0.5, 1.0))
    for each in (own, half, shared):
        assert each.std() == pytest.approx(0.1, rel=0.05)
    # Of the mean over 8 workers: 0.1 / √8, √(0.5 + 0.5 / 8) · 0.1, and 0.1.
    assert own.mean(axis=1).std() == pytest.approx(0.0354, rel=0.05)
    assert half.mean(axis=1).std() == pytest.approx(0.075, rel=0.05)
    assert shared.mean(axis=1).std() == pytest.approx(0.1, rel=0.05)


def test_a_late_meter_shows_the_load_of_a_while_ago() -> None:
    shown = cpus(NoiseSpec(cpu_late_s=2.0), [8.0, 16.0, 24.0, 32.0])[:, 0]
    # 80 events a second can be done; two ticks late, and idle before the beginning.
    assert shown.tolist() == pytest.approx([0.0, 0.0, 0.1, 0.2])


def test_impossible_noise_is_refused_by_its_key() -> None:
    with pytest.raises(BadInput, match=r"noise\.cpu_shared is 2: it must be from 0 to 1"):
        NoiseSpec(cpu=0.1, cpu_shared=2.0)
    with pytest.raises(BadInput, match=r"noise\.cpu_late_s"):
        NoiseSpec(cpu_late_s=-1.0)


def test_a_meter_that_is_late_by_half_a_tick_mixes_two() -> None:
    rates = [16.0, 32.0, 64.0, 64.0]
    assert cpus(NoiseSpec(), rates)[:, 0].tolist() == pytest.approx([0.2, 0.4, 0.8, 0.8])
    assert cpus(NoiseSpec(cpu_late_s=0.5), rates)[:, 0].tolist() == pytest.approx([0.1, 0.3, 0.6, 0.8])
    assert cpus(NoiseSpec(cpu_late_s=1.5), rates)[:, 0].tolist() == pytest.approx([0.0, 0.1, 0.3, 0.6])
