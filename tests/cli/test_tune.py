"""`penstock tune`: parameters for a load of one's own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.cli.main import main
from penstock.core.errors import BadInput
from penstock.policies.registry import Named
from penstock.runs.tuning import Budget, divided, space_of, tune
from penstock.sim.scenario import Scenario
from penstock.sim.specs import WorkerSpec
from penstock.sim.workloads import FlashCrowd, Load, Sine, make_load


def day() -> Scenario:
    load = make_load((Sine(20.0, 200.0, 7200.0), FlashCrowd(200.0, 3600.0)), 14400.0, 60.0, seed=0)
    still = Scenario.constant(rate=1.0, capacity_per_worker=20.0)
    return replace(still, load=load, worker=WorkerSpec(start_s=90.0))


def test_what_is_found_costs_no_more_than_untuned_where_both_keep_what_is_allowed() -> None:
    found = tune(day(), Named.parse("threshold"), Budget(60, violations=0.2))
    assert found.train.violation_share <= 0.2
    assert found.train.untuned_violation_share <= 0.2
    assert found.train.cost < found.train.untuned_cost
    assert found.train.bound is not None
    assert found.train.bound <= found.train.cost * (1 + 1e-9)
    assert set(found.parameters) == {"upper", "lower"}


def test_violations_come_before_cost() -> None:
    strict, loose = (tune(day(), Named.parse("mst"), Budget(40, violations=share)) for share in (0.0, 1.0))
    assert loose.train.cost <= strict.train.cost
    assert strict.train.violation_share <= loose.train.violation_share
    assert loose.parameters == {"spare": 0.0}


def test_what_the_name_sets_is_kept() -> None:
    found = tune(day(), Named.parse("threshold:upper=0.7,cooldown_s=60"), Budget(20))
    assert found.parameters["upper"] == 0.7
    assert found.name.startswith("threshold:upper=0.7,cooldown_s=60,lower=")


def test_the_parts_of_a_load_are_one_after_the_other() -> None:
    train, test = divided(day(), 0.6)
    assert (len(train.load.arrivals), len(test.load.arrivals)) == (144, 96)
    assert np.concatenate([train.load.arrivals, test.load.arrivals]) == pytest.approx(day().load.arrivals)
    assert test.load.times_s[0] == 60.0


def test_too_short_a_load_and_nothing_to_tune_are_one_line() -> None:
    short = replace(day(), load=Load.of(np.ones(30), 60.0))
    with pytest.raises(BadInput, match="both parts need 20"):
        divided(short, 0.6)
    with pytest.raises(BadInput, match="policy static:workers=3 has nothing to tune"):
        space_of(Named.parse("static:workers=3"))


def test_the_command_prints_what_others_can_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = [100 + 80 * (minute // 30 % 2) for minute in range(120)]
    trace = tmp_path / "rates.csv"
    trace.write_text("time,requests\n" + "".join(f"{60 * at},{60 * rate}\n" for at, rate in enumerate(rates)))
    words = ["tune", str(trace), "--policy", "threshold", "--budget", "10", "--capacity-per-worker", "20/s"]
    assert main([*words, "--unit", "s", "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"policy", "parameters", "evaluations", "train", "test"} <= set(found)
    assert {"cost", "violation_share", "bound", "untuned_cost"} <= set(found["test"])
    assert found["evaluations"] == 10
    assert main(["tune", str(trace), "--policy", "static:workers=2", "--unit", "s"]) == 2
    assert "nothing to tune" in capsys.readouterr().err


POLICY = """\
from penstock import Decision, Knob
from penstock.solvers.space import Range
print("loaded")
class Mine:
    needs, memory_s, space = frozenset({{Knob.WORKERS}}), 0.0, {space}
    def __init__(self, job, most=2.0): self.most = most
    def decide(self, seen):
        print("decides")
        return Decision(seen.target.resized(round(self.most)), "as many")
"""


def tuned(folder: Path, space: str) -> int:
    (folder / "mine.py").write_text(POLICY.format(space=space))
    (folder / "rates.csv").write_text("t_s,n\n" + "".join(f"{60 * n},{100 + n}\n" for n in range(60)))
    words = ["tune", str(folder / "rates.csv"), "--policy", f"{folder / 'mine.py'}:Mine", "--budget", "3"]
    return main([*words, "--output", "json"])


def test_what_a_policy_prints_is_not_part_of_the_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tuned(tmp_path, '{"most": Range(1.0, 4.0)}') == 0
    assert json.loads(capsys.readouterr().out)["evaluations"] <= 3


@pytest.mark.parametrize(
    ("space", "right"),
    [
        ("5", "space is 5; it must be a dict of Range and Choice"),
        ('{"most": (1, 2)}', "it must be a dict of Range and Choice"),
        ('{"least": Range(1.0, 4.0)}', "unknown parameter of"),
    ],
)
def test_a_space_that_is_none_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], space: str, right: str
) -> None:
    assert tuned(tmp_path, space) == 2
    assert right in capsys.readouterr().err.splitlines()[-1]


def test_a_name_that_sets_everything_or_what_nothing_goes_with_is_one_line() -> None:
    with pytest.raises(
        BadInput, match=r"threshold:upper=0\.9,lower=0\.5 has nothing left to tune: its name sets upper, lower"
    ):
        space_of(Named.parse("threshold:upper=0.9,lower=0.5"))
    with pytest.raises(BadInput, match=r"all 5 settings tried are refused: \{'lower': 0"):
        tune(day(), Named.parse("threshold:upper=0.1"), Budget(5))


def test_the_name_that_is_found_builds_the_same_policy_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY.format(space='{"most": Range(1.0, 4.0)}'))
    found = tune(day(), Named.parse(f"{tmp_path / 'mine.py'}:Mine"), Budget(5))
    # All its digits: a range has no grid here.
    assert dict(Named.parse(found.name).parameters) == found.parameters


def test_the_parts_replayed_with_what_is_printed_cost_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The peak lies in the rest, so a replay of the first part alone would take fewer workers to be the most.
    rates = [100 + 80 * (minute // 15 % 2) + 300 * (minute > 100) for minute in range(120)]
    lines = [f"{60 * at},{60 * rate}\n" for at, rate in enumerate(rates)]
    for called, part in (("all", lines), ("train", lines[:72]), ("test", lines[72:])):
        (tmp_path / f"{called}.csv").write_text("time,requests\n" + "".join(part))
    words = ["--unit", "s", "--capacity-per-worker", "20/s", "--output", "json"]
    assert main(["tune", str(tmp_path / "all.csv"), "--policy", "threshold", "--budget", "8", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumed"]["max"] == "at most 48 workers, twice what the peak needs"
    name = "threshold:" + ",".join(f"{key}={value}" for key, value in found["parameters"].items())
    for called in ("train", "test"):
        assert main(["replay", str(tmp_path / f"{called}.csv"), "--policy", name, "--max", "48", *words]) == 0
        replayed = json.loads(capsys.readouterr().out)["policies"][0]
        assert replayed["cost"] == pytest.approx(found[called]["cost"])
        assert replayed["violation_share"] == pytest.approx(found[called]["violation_share"])


def test_a_short_search_that_finds_nothing_better_keeps_what_was_there() -> None:
    found = tune(day(), Named.parse("mst"), Budget(1))
    assert found.parameters == {"spare": 0.2}
    assert (found.train.cost, found.test.cost) == (found.train.untuned_cost, found.test.untuned_cost)
