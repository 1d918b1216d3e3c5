"""Paper 1's claims: recomputed quickly, and the same as a replay would give."""

from __future__ import annotations

import json

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.core.score import score
from penstock.models.capacity import Capacity
from penstock.policies.mst import Mst, least_over, with_spare
from penstock.reproduce.mst import APPS, missed_share, scenario_of, scheduled
from penstock.runs.replayed import replay
from penstock.sim.workloads import Load


def test_all_six_validation_points_match_and_the_form_is_that_of_every_paper(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "mst", "--output", "json"]) == 0
    claims = json.loads(capsys.readouterr().out)
    assert all(set(claim) == {"id", "text", "paper", "ours", "holds", "why"} for claim in claims)
    points = [claim for claim in claims if claim["id"].startswith("validation-") and "second" not in claim["id"]]
    assert len(points) == 6
    assert all(claim["holds"] and claim["paper"] == claim["ours"] for claim in points)
    # Without the trace the costs are of a stand-in, which says nothing about the paper.
    costs = [claim for claim in claims if "-cost-" in claim["id"]]
    assert len(costs) == 24
    assert all(claim["holds"] is None and "stand-in" in claim["id"] for claim in costs)


@pytest.mark.parametrize("app", [APPS[0], APPS[4]], ids=lambda app: str(app.name))
def test_the_quick_computation_is_what_a_replay_gives(app: object) -> None:
    one = next(each for each in APPS if each is app)
    hours = one.peak * (0.55 + 0.45 * np.sin(np.arange(48) / 4))
    scenario = scenario_of(one, Load.of(np.repeat(hours, 60) * 60.0, 60.0))
    run = score(replay(scenario, Mst(scenario.job(), 0.1)), scenario.objective, scenario.price)
    workers = scheduled(hours, one.model, 10.0)
    assert isinstance(scenario.capacity, Capacity)
    assert run.violation_share == pytest.approx(missed_share(hours, workers, scenario.capacity.curve), abs=2e-3)
    # The replay pays the first minute of each hour for the last hour's workers.
    assert run.cost / 48 == pytest.approx(0.1 * workers.mean(), rel=0.01)


def test_spare_workers_are_rounded_up_once() -> None:
    assert [with_spare(5, 0.2), with_spare(5, 0.21), with_spare(1, 0.0), with_spare(10, 0.1)] == [6, 7, 1, 11]


def test_the_search_takes_the_first_percentage_that_suffices() -> None:
    assert least_over(lambda over: 0.05 if over < 7 else 0.01) == 7
    assert least_over(lambda over: 0.5) is None
