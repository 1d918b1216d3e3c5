"""Scenario files and what is derived where they are silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.core.objective import Limits, Objective, Price
from penstock.models.capacity import About, Capacity, linear
from penstock.models.throughput_curves import Table
from penstock.sim.derive import Given, World
from penstock.sim.workloads import Constant, FlashCrowd, Jitter, Load, Pyramid, Shape, Sine, Square, Steps, make_load

WHOLE = """
name = "a busy day"
tick_s = 30
duration_s = 3600
seed = 3
workers_at_start = 2
objective = "latency<=90s"

[limits]
workers_min = 1
workers_max = 16

[price]
per_hour = 0.2
billing = "minute"

[worker]
cores = 2
start_s = [60, 120]
warm_s = 30

[noise]
cpu = 0.05
correlation_s = 60

[batch]
trigger_s = 10

[[operators]]
name = "parse"
cost_s = 0.01
selectivity = 2

[[operators]]
name = "count"
cost_s = 0.02
state_mb = 100
after = ["parse"]

[[workload]]
shape = "sine"
low = 10
high = 100
period_s = 3600

[[workload]]
shape = "noise"
size = 0.1
"""


def read(folder: Path, text: str, given: Given | None = None) -> World:
    path = folder / "world.toml"
    path.write_text(text)
    return World.of_file(path, given or Given())


def test_a_whole_file_becomes_a_whole_scenario(tmp_path: Path) -> None:
    scenario = read(tmp_path, WHOLE).scenario()
    assert (scenario.name, scenario.tick_s, scenario.seed) == ("a busy day", 30, 3)
    assert len(scenario.load.arrivals) == 120
    assert scenario.limits == Limits(1, 16)
    assert scenario.price == Price(0.2, "minute")
    assert scenario.objective == Objective(90.0)
    assert scenario.worker.start_s == (60.0, 120.0)
    # An event costs 0.01 + 2 · 0.02 = 0.05 core-seconds; a worker has 2 cores: 40/s.
    assert scenario.capacity.capacity(1) == pytest.approx(40)
    assert scenario.job().kinds[0].start_s == 90
    assert scenario.assumed == {}


def test_options_go_before_the_file(tmp_path: Path) -> None:
    given = Given(linear(7.0), 5.0, 2, 9, Objective(), Price(1.0), 11)
    scenario = read(tmp_path, WHOLE, given).scenario()
    assert (scenario.capacity, scenario.worker.start_s, scenario.limits) == (linear(7.0), 5.0, Limits(2, 9))
    assert (scenario.objective, scenario.price.per_hour, scenario.seed) == (Objective(), 1.0, 11)


def test_what_nobody_gave_is_derived_and_said() -> None:
    scenario = World("trace.csv", series=Load.of(np.array([600.0, 3840.0]), 60.0)).scenario()
    # The peak is 64/s; a thirty-second of it is 2/s.
    assert scenario.capacity == linear(2.0)
    assert scenario.limits == Limits(1, 64)
    assert set(scenario.assumed) == {"start", "capacity", "min", "max", "objective", "price"}
    # The first interval needs 10/s, which is 5 workers.
    assert scenario.first_workers == 5


def test_an_interval_of_an_hour_gets_an_objective_it_can_meet() -> None:
    assert World("t", series=Load.of(np.array([1.0, 2.0]), 3600.0)).scenario().objective == Objective(7200.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed = 3", "unknown key 'sed': did you mean 'seed'"),
        ("[worker]\nstart = 3", r"unknown key in \[worker\] 'start': did you mean 'start_s'"),
        ("[worker]\nstart_s = 'long'", "worker.start_s is 'long': it must be a number or a list"),
        ("[worker]\nstart_s = -1", "worker.start_s is -1: it must be at least 0"),
        ("[worker]\nstart_s = [90, 60]", "worker.start_s is 60: it must be at least 90"),
        ("[worker]\nspeed_spread = 2", "worker.speed_spread is 2: it must be from 0 to 0.99"),
        ("[noise]\ncpu = true", "noise.cpu is True: it must be a number"),
        ("worker = 3", "worker must be a table"),
        ("[limits]\nworkers_min = 9\nworkers_max = 3", r"\(9\) is above the most \(3\)"),
        ("[limits]\nworkers_min = 9", "needs the key workers_max"),
        ("objective = 'fast'", "objective 'fast' is not one"),
        ("[[workload]]\nshape = 'sinus'\nlow = 1", "did you mean 'sine'"),
        ("[[workload]]\nrate = 1", "needs the key shape"),
        ("[[workload]]\nshape = 'sine'\nlow = 5\nhigh = 1", "workload.high is 1: it must be at least 5"),
        ("[[workload]]\nshape = 'constant'\nrate = 1", "needs the key duration_s"),
        ("[[operators]]\nname = 'a'\ncost_s = 1\nafter = ['b']", "unknown operator in 'after' of 'a'"),
        ("[[operators]]\nname = 'a'\ncost_s = 1\nafter = ['a']", "in a circle"),
        ("[price]\nbilling = 'week'", "billing 'week' is not known"),
        ("[capacity]\nworkers = [2, 1]\nrates = [1.0, 2.0]", "rising worker counts"),
        ("objective = 'rate'", "describes no load"),
        ("[trace]\npath = 'none.csv'", "no such file"),
        ("tick_s = ", "not a TOML file"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read(tmp_path, text).scenario()


def test_a_capacity_table_saturates(tmp_path: Path) -> None:
    text = "duration_s = 60\n[workload]\nshape = 'constant'\nrate = 1\n"
    text += "[capacity]\nworkers = [1, 2]\nrates = [10, 15]\n"
    assert read(tmp_path, text).scenario().capacity == Capacity(Table((1, 2), (10.0, 15.0)))


def test_another_seed_draws_another_load_of_the_same_world(tmp_path: Path) -> None:
    world = read(tmp_path, WHOLE)
    first, again, other = (world.scenario(seed).load.arrivals.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_trace_in_a_scenario_is_found_beside_it_and_shapes_add_to_it(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("t_s,n\n0,60\n60,120\n")
    text = "[trace]\npath = 'rates.csv'\nscale = 2\n[[workload]]\nshape = 'constant'\nrate = 1\n"
    load = read(tmp_path, text).scenario().load
    assert load.arrivals.tolist() == [60 * 2 + 60, 120 * 2 + 60]


def rates(shape: Shape, minutes: int) -> list[float]:
    return [float(n) / 60 for n in make_load((shape,), minutes * 60.0, 60.0, seed=0).arrivals]


def test_the_shapes_of_loads() -> None:
    assert rates(Constant(5.0), 3) == [5, 5, 5]
    assert rates(Steps((1.0, 2.0), 120.0), 5) == [1, 1, 2, 2, 1]
    assert rates(Square(1.0, 65.0, 60.0), 4) == [1, 65, 1, 65]
    assert rates(Pyramid(60.0, 15.0, 60.0), 9) == [0, 15, 30, 45, 60, 45, 30, 15, 0]
    wave = rates(Sine(10.0, 20.0, 3600.0), 60)
    assert (min(wave), max(wave)) == pytest.approx((10, 20), rel=0.01)
    crowd = rates(FlashCrowd(100.0, 600.0, 60.0, 600.0), 60)
    assert max(crowd[:10]) == 0
    assert max(crowd) == pytest.approx(100, rel=0.1)
    assert crowd[-1] < 2


def test_noise_multiplies_what_stands_before_it_and_depends_on_the_seed_alone() -> None:
    def noisy(seed: int) -> list[float]:
        return [float(n) for n in make_load((Constant(100.0), Jitter(0.2)), 6000.0, 60.0, seed).arrivals]

    assert noisy(1) == noisy(1) != noisy(2)
    assert np.std(noisy(1)) / np.mean(noisy(1)) == pytest.approx(0.2, rel=0.3)


MEASURED = Capacity(Table((1, 8), (100.0, 500.0)), about=About(app="wordcount", cores=0.25))


@pytest.mark.parametrize(
    ("peak", "scale", "message"),
    [
        (1000.0, 1.0, "the model of wordcount reaches 500/s at most, the load's peak is 1000/s"),
        (0.5, 1.0, "one worker of wordcount does 100/s, the load's peak is 0.5/s"),
        (400.0, 0.0, "--scale 0: it must be above 0"),
    ],
)
def test_a_model_of_other_events_than_the_load_is_refused(peak: float, scale: float, message: str) -> None:
    load = make_load((Constant(peak),), 600.0, 60.0, 0)
    with pytest.raises(BadInput, match=message):
        World("load", Given(capacity=MEASURED, scale=scale), series=load).scenario()


def test_a_load_is_scaled_to_the_events_of_its_model() -> None:
    load = make_load((Constant(0.5),), 600.0, 60.0, 0)
    assert World("load", Given(capacity=MEASURED, scale=800.0), series=load).scenario().load.peak == 400.0


def test_a_model_of_other_workers_than_the_scenarios_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[worker]\ncores = 2\n")
    load = make_load((Constant(400.0),), 600.0, 60.0, 0)
    with pytest.raises(BadInput, match=r"the model is of workers with 0.25 cores, the scenario's have 2"):
        World.of_series("load", load, Given(capacity=MEASURED), tmp_path / "s.toml").scenario()
