"""Sweeps: each cell once, in one file, whatever happened before."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from penstock.core.errors import BadInput
from penstock.core.score import score
from penstock.pipeline.sweep_job import Plan, expanded, need_some, sweep
from penstock.policies.registry import Named
from penstock.runs.replayed import replay
from penstock.sim.derive import Given, World

WORLD = """
tick_s = 60
duration_s = 7200
[[workload]]
shape = "sine"
low = 5
high = 50
period_s = 3600
[[workload]]
shape = "noise"
size = 0.2
"""
FRAGILE = """
from penstock.policies.threshold import Threshold

class Fragile(Threshold):
    def decide(self, seen):
        if seen.time_s > 3600 and FAILS:
            raise ValueError("too late")
        return super().decide(seen)
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    path = tmp_path / "world.toml"
    path.write_text(WORLD)
    return World.of_file(path, Given())


@pytest.mark.spark
def test_every_cell_is_the_replay_it_names_and_is_run_once(world: World, tmp_path: Path) -> None:
    output = tmp_path / "results.parquet"
    first = sweep(Plan((world,), ("threshold", "static:workers=9"), (0, 1)), output, "local[2]")
    assert (first.cells, first.done_before, first.failed) == (4, 0, 0)
    larger = sweep(Plan((world,), ("threshold", "static:workers=9"), (0, 1, 2)), output, "local[2]")
    assert (larger.cells, larger.done_before) == (6, 4)
    rows = pyarrow.parquet.read_table(output).to_pylist()
    assert [(row["policy"], row["seed"]) for row in rows] == [
        (policy, seed) for policy in ("threshold", "static:workers=9") for seed in (0, 1, 2)
    ]
    for row in rows:
        scenario = world.scenario(row["seed"])
        policy = Named.parse(row["policy"]).build(scenario.job())
        alone = score(replay(scenario, policy), scenario.objective, scenario.price)
        assert (row["cost"], row["scaling_actions"]) == (alone.cost, alone.scaling_actions)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.parquet", "world.toml"]


@pytest.mark.spark
def test_a_cell_that_fails_says_why_and_is_tried_again(world: World, tmp_path: Path) -> None:
    mine, output = tmp_path / "mine.py", tmp_path / "results.parquet"
    mine.write_text("FAILS = True\n" + FRAGILE)
    plan = Plan((world,), ("threshold", f"{mine}:Fragile"), (0,))
    failed = sweep(plan, output, "local[2]")
    assert failed.failed == 1
    assert failed.first_error is not None
    assert "ValueError: too late" in failed.first_error
    mine.write_text("FAILS = False\n" + FRAGILE)
    mended = sweep(plan, output, "local[2]")
    assert (mended.done_before, mended.failed) == (1, 0)


def test_a_plan_of_nothing_or_of_unknown_policies_is_refused(world: World) -> None:
    with pytest.raises(BadInput, match="at least one"):
        Plan((world,), ("threshold",), ())
    with pytest.raises(BadInput, match="did you mean 'threshold'"):
        Plan((world,), ("treshold",), (0,))


def test_a_policy_may_have_settings_that_cannot_be_but_not_these_alone(world: World) -> None:
    need_some(["mst", "threshold:upper=0.3|0.9,lower=0.5"], world)
    with pytest.raises(BadInput, match=r"upper"):
        need_some(["mst", "threshold:upper=0.2|0.3,lower=0.5"], world)


def test_an_output_that_cannot_be_written_is_refused_before_any_work(world: World, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        sweep(Plan((world,), ("threshold",), (0,)), tmp_path / "none" / "results.parquet")


def test_alternatives_without_end_are_refused_before_they_are_made() -> None:
    ten = "|".join(map(str, range(10)))
    many = "threshold:" + ",".join(f"k{number}={ten}" for number in range(12))
    with pytest.raises(BadInput, match="more than 1,000,000 combinations"):
        expanded("mst", many)
