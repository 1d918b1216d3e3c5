"""Paper 1's claims: recomputed quickly, and the same as a replay would give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.core.score import score
from penstock.models.capacity import Capacity
from penstock.models.samples import write_samples
from penstock.policies.mst import Mst, with_spare
from penstock.reproduce.mst import APPS, HOURS, WINDOW, claims, missed_share, scenario_of, scheduled
from penstock.reproduce.mst_measured import claims as measured_claims
from penstock.runs.replayed import replay
from penstock.sim.workloads import Load
from tests.models.test_samples import ROW as SAMPLE

ROOT = Path(__file__).parents[2]


def test_all_six_validation_points_match_and_the_form_is_that_of_every_paper(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "mst", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(set(claim) == {"id", "text", "paper", "ours", "holds", "why"} for claim in found)
    points = [claim for claim in found if claim["id"].startswith("validation-") and "second" not in claim["id"]]
    assert len(points) == 6
    assert all(claim["holds"] and claim["paper"] == claim["ours"] for claim in points)
    # Without the trace nothing is said of Table 3; what needs new samples of each count waits for them.
    assert {claim["id"] for claim in found if claim["holds"] is None} == {"table3", "error-paper-way"}


def test_every_claim_of_table_3_is_judged_and_says_what_was_fitted_to_it() -> None:
    # Not World Cup 98, but 500 hours from the same moment: what is claimed is then mostly not so, and that is said.
    minutes = np.arange(HOURS * 60)
    load = replace(Load.of(60 * (1.2 + np.sin(minutes / 229)), 60.0), origin_s=WINDOW.timestamp())
    found = {claim.id: claim for claim in claims(load) if claim.id.startswith(("table3", "abstract"))}
    assert all(isinstance(claim.holds, bool) for claim in found.values())
    assert sum(not claim.holds for claim in found.values()) > 10
    assert "window and exponent fitted to these costs" in found["table3-inferred-grep-cost-0"].text
    assert not any("missed" in name and "raw" in name for name in found)


def test_claims_on_our_samples_fail_where_the_samples_say_so(tmp_path: Path) -> None:
    def measured(bend: float, repeats: int) -> Path:
        """Six apps whose sixth bends down beyond 3 workers by so much."""
        rows = [
            SAMPLE
            | {"app": f"app-{n}", "workers": m, "repeat": r, "rows_per_s": rate}
            | {"rows_per_s_corrected": rate, "fixed_s_corrected": 1.0}
            for n in range(6)
            for m in (1, 2, 3, 4, 5)
            for r in range(repeats)
            for rate in [1000.0 * m * (1 - bend * (n == 5 and m > 3)) * (1 + 0.01 * r)]
        ]
        write_samples(rows, tmp_path / "samples.parquet")
        return tmp_path / "samples.parquet"

    good = {claim.id: claim for claim in measured_claims(measured(0.0, 2))}
    assert good["error-extrapolated-delivered"].holds
    assert good["error-paper-way"].ours == pytest.approx(100 * (1 - 1 / 1.01), rel=0.01)  # judged on the second samples
    bad = {claim.id: claim for claim in measured_claims(measured(0.4, 1))}
    assert bad["error-extrapolated-delivered"].holds is False
    assert (bad["error-paper-way"].ours, bad["error-paper-way"].holds) == (None, None)


def test_what_was_delivered_stands_beside_what_was_corrected_in_the_page_and_the_readme_quotes_both() -> None:
    claims_ = {claim.id: claim for claim in measured_claims()}
    worst = {key: float(claims_[f"error-extrapolated-{key}"].ours or 0) for key in ("delivered", "corrected")}
    text = (ROOT / "docs" / "measured.md").read_text()
    for value in worst.values():
        assert f"worst {value:.1f}%" in text
    assert "reconstructed from the mean speed" in text
    readme = " ".join((ROOT / "README.md").read_text().split())
    for value in worst.values():
        assert f"{value:.0f} % for the worst" in readme


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
