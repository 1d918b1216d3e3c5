"""`penstock replay` as a person uses it: what it prints, writes and refuses."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.core.journal import Journal
from penstock.core.score import score
from penstock.policies import clairvoyant
from penstock.policies.deadline import PARTS
from penstock.solvers.schedule_bound import lower_bound

ALL = ["static-peak", "static-average", "threshold", "mst", "filtered", "deadline", "clairvoyant"]
USUAL = ["static-peak", "hpa", "keda", "flink", "deadline", "clairvoyant"]


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Six hours with a busy one in the middle."""
    path = tmp_path / "rates.csv"
    counts = [600 + 10 * (minute % 7) + (3000 if 150 <= minute < 210 else 0) for minute in range(360)]
    rows = "".join(f"{60 * minute},{count}\n" for minute, count in enumerate(counts))
    path.write_text("t_s,requests\n" + rows)
    return path


def replay(*words: object) -> int:
    return main(["replay", *map(str, words)])


def test_json_alone_is_on_stdout_and_has_all_that_a_program_needs(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [word for name in ALL for word in ("--policy", name)]
    assert replay(series, *named, "--output", "json") == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result) >= {"trace", "objective", "bound", "policies"}
    assert [policy["name"] for policy in result["policies"]] == ALL
    assert set(result["policies"][0]) >= {
        "name",
        "cost",
        "violation_share",
        "violations",
        "late_events",
        "scaling_actions",
        "workers_started",
        "workers_stopped",
        "latency_p50_s",
        "latency_p95_s",
        "latency_p99_s",
        "cost_to_bound",
        "arrived",
        "processed",
        "backlog",
    }
    for policy in result["policies"]:
        assert policy["arrived"] == pytest.approx(policy["processed"] + policy["backlog"])
        assert policy["cost_to_bound"] == pytest.approx(policy["cost"] / result["bound"]["lower"])


def test_no_policy_that_misses_no_more_costs_less_than_the_bound(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for billing in ("second", "minute", "hour"):
        replay(series, "--output", "json", "--billing", billing)
        result = json.loads(capsys.readouterr().out)
        best = next(policy for policy in result["policies"] if policy["name"] == "clairvoyant")
        assert result["bound"]["lower"] <= result["bound"]["cost"]
        # By the hour the gap may be larger; then its note says how large.
        within = result["bound"]["cost"] <= 1.03 * result["bound"]["lower"]
        assert within or (billing == "hour" and "may cost up to" in result["bound"]["note"])
        assert best["cost"] == pytest.approx(result["bound"]["cost"])
        for policy in result["policies"]:
            if policy["violation_share"] <= best["violation_share"]:
                assert policy["cost"] >= result["bound"]["lower"]


def test_csv_has_a_line_a_policy(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(series, "--output", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"] for row in rows] == USUAL


@pytest.mark.parametrize(
    ("words", "asked"),
    [(("--output", "csv"), ["lower"]), (("--output", "json"), ["lower", "schedule"]), (("--no-bound",), [])],
)
def test_of_the_bound_only_what_is_shown_is_computed(
    series: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], asked: list[str]
) -> None:
    computed: list[str] = []

    def noted(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            computed.append(what)
            return work(*given)

        return call

    monkeypatch.setattr(clairvoyant, "lower_bound", noted("lower", lower_bound))
    monkeypatch.setattr(clairvoyant, "planned", noted("schedule", clairvoyant.planned))
    assert replay(series, "--policy", "threshold", *words) == 0
    assert computed == asked


def test_without_the_bound_the_table_is_silent_about_it(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(series, "--policy", "threshold", "--no-bound") == 0
    assert "no plan costs less" not in capsys.readouterr().out


def test_the_table_says_what_was_assumed(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(series) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for words in (*USUAL, "needs 32", "starts in 90 s", "at most 64 workers"):
        assert words in shown


def test_one_sentence_says_what_the_default_would_save_and_at_which_violations(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(series, "--output", "json") == 0
    result = json.loads(capsys.readouterr().out)
    by_name = {policy["name"]: policy for policy in result["policies"]}
    ours, saving = by_name["deadline"], result["saving"]
    fair = [by_name[name] for name in USUAL[:4] if by_name[name]["violation_share"] <= ours["violation_share"]]
    cheapest = min(fair, key=lambda policy: policy["cost"])
    assert (saving["policy"], saving["against"]) == ("deadline", cheapest["name"])
    assert saving["cost"] == pytest.approx(cheapest["cost"] - ours["cost"])
    assert saving["share"] == pytest.approx(1 - ours["cost"] / cheapest["cost"])
    assert replay(series) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert saving["sentence"] in shown
    assert f"deadline would save ${saving['cost']:,.2f}" in shown


def test_nothing_is_said_of_savings_where_the_default_or_another_is_missing(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for names in (["deadline", "clairvoyant"], ["hpa", "keda"]):
        replay(series, *(word for name in names for word in ("--policy", name)), "--output", "json")
        assert json.loads(capsys.readouterr().out)["saving"] is None


def test_a_journal_scores_as_its_run_did(series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(series, "--policy", "threshold", "--journal", tmp_path / "runs", "--output", "json")
    printed = json.loads(capsys.readouterr().out)["policies"][0]
    journal = Journal.open(tmp_path / "runs" / "threshold.jsonl")
    assert journal.header.policy == "threshold"
    again = score(journal, journal.header.objective, journal.header.price)
    assert (again.cost, again.late_events) == (printed["cost"], printed["late_events"])


def test_check_fails_when_the_objective_is_missed_and_not_when_it_is_kept(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(series, "--policy", "static-average", "--check") == 1
    assert replay(series, "--policy", "static-average") == 0
    assert replay(series, "--policy", "clairvoyant", "--check") == 0


def test_options_shape_the_world(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--capacity-per-worker", "20/s", "--start", "0s", "--min", "2", "--max", "5", "--price", "1.00/h"]
    replay(series, "--policy", "static-peak", *words, "--objective", "rate", "--output", "json")
    result = json.loads(capsys.readouterr().out)
    # The peak of 61/s needs 4 workers of 20/s. The first minute's 10/s needs 2; then 4 for 359 minutes.
    assert result["policies"][0]["cost"] == pytest.approx((2 + 4 * 359) / 60)
    assert result["objective"] == "rate"


def test_the_price_of_a_bound_that_is_shorter_than_a_start_is_said(
    series: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--policy", "deadline", "--start", "90s", "--capacity-per-worker", "5/s", "--output", "json"]
    replay(series, *words, "--objective", "latency<=30s")
    tight = json.loads(capsys.readouterr().out)
    replay(series, *words, "--objective", "latency<=120s")
    loose = json.loads(capsys.readouterr().out)
    saved = 1 - loose["policies"][0]["cost"] / tight["policies"][0]["cost"]
    assert saved > 0.05
    assert tight["objective_note"].startswith(f"latency<=120s would cost {saved:.0%} less with deadline")
    assert loose["objective_note"] == ""


def test_a_scenario_file_replays_without_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "flash_crowd.toml"
    mine = Path(__file__).parents[2] / "examples" / "mine.py"
    assert replay("--scenario", example, "--policy", f"{mine}:Mine", "--output", "json") == 0
    policy = json.loads(capsys.readouterr().out)["policies"][0]
    assert policy["violation_share"] < 0.05
    assert policy["arrived"] > 1e6


def test_what_a_policy_prints_does_not_spoil_the_result(
    series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = Path(__file__).parents[2] / "examples" / "mine.py"
    (tmp_path / "talks.py").write_text(
        f"print('loaded')\n{mine.read_text()}\nclass Talks(Mine):\n"
        "    def decide(self, seen):\n        print('decides')\n        return super().decide(seen)\n"
    )
    assert replay(series, "--policy", f"{tmp_path / 'talks.py'}:Talks", "--output", "json") == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["policies"]
    assert "decides" in shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "no such file: none.csv"),
        ([], "nothing to replay"),
        (["{series}", "--min", "9", "--max", "3"], "(9) is above the most (3)"),
        (["{series}", "--policy", "treshold"], "did you mean 'threshold'"),
        (["{series}", "--objective", "fast"], "objective 'fast' is not one"),
        (["{series}", "--objective", "latency<=5"], "is not a duration"),
        (["{series}", "--start", "soon"], "--start 'soon' is not a duration"),
        (["{series}", "--price", "cheap"], "price 'cheap' is not one"),
        (["{series}", "--capacity-per-worker", "50"], "is not a rate"),
        (["{series}", "--model", "none.json"], "no such model file"),
        (["{series}", "--scenario", "none.toml"], "no such scenario file"),
        (["{series}", "--report", "none/page.html"], "the folder none does not exist"),
        (["{series}", "--journal", "/proc/none"], "cannot write journals"),
        (["{series}", "--policy", "threshold", "--policy", "threshold"], "given twice"),
        (["{series}", "--every", "7s"], "--every 7 s, but its times are 60 s apart"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    series: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay(*(word.format(series=series) for word in words)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert message in shown.err


def test_an_unknown_option_is_one_line_too(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(series, "--polcy", "threshold") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_command_of_its_own_shows_no_traceback_and_no_progress_bar(series: Path) -> None:
    command = [sys.executable, "-m", "penstock", "replay", str(series), "--policy", "nobody"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("penstock: unknown policy 'nobody'")
    assert done.stderr.count("\n") == 1


def test_another_interval_keeps_every_arrival_and_is_said(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals, notes = {}, {}
    for tick in (None, "10s", "5m"):
        options = [] if tick is None else ["--tick", tick]
        assert replay(series, "--policy", "static:workers=40", "--output", "json", *options) == 0
        result = json.loads(capsys.readouterr().out)
        totals[tick] = result["policies"][0]["arrived"]
        notes[tick] = result["assumed"].get("tick")
    assert totals["10s"] == pytest.approx(totals[None])
    assert totals["5m"] == pytest.approx(totals[None])
    assert notes[None] is None
    assert "spread evenly over 10 s" in notes["10s"]
    assert "added up to 5 min" in notes["5m"]


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("t_s,requests\n0,1\n60,2\n", ("--tick", "45s"), "neither is a multiple of the other"),
        ("t_s,requests\n0,1\n60,2\n", ("--every", "30s"), "its times are 60 s apart"),
        ("t_s,value\n0,1.5\n60,2.5\n", (), "pass --kind counts (per interval) or --kind rates"),
        ("iat_us\n5\n7\n2\n", (), "holds inter-arrival times (iat_us), not counts: `penstock trace"),
        ("requests\n5\n7\n2\n", (), "pass --kind counts --every 60s"),
        ("date,requests\n01/02/2024 10:00,1\n01/02/2024 10:01,2\n", (), "pass --dates dmy or --dates mdy"),
    ],
)
def test_what_a_series_does_not_say_is_asked_for_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, options: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(content)
    assert replay(path, "--policy", "threshold", *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_another_interval_of_shapes_is_their_own_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "world.toml"
    path.write_text('duration_s = 600\n[workload]\nshape = "constant"\nrate = 5\n')
    assert replay("--scenario", path, "--tick", "10s") == 2
    assert "has the key tick_s" in capsys.readouterr().err


@pytest.mark.parametrize("inside", [True, False])
def test_an_interval_in_the_scenario_beside_a_trace_is_kept_or_refused(
    series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: bool
) -> None:
    path = tmp_path / "world.toml"
    trace = f'[trace]\npath = "{series.name}"\n' if inside else ""
    words = ["--scenario", path] if inside else [series, "--scenario", path]
    path.write_text("tick_s = 10\n" + trace)
    assert replay(*words, "--policy", "static:workers=40", "--output", "json") == 0
    assert "spread evenly over 10 s" in json.loads(capsys.readouterr().out)["assumed"]["tick"]
    assert replay(*words, "--policy", "static:workers=40", "--output", "json", "--tick", "60s") == 0
    assert "tick" not in json.loads(capsys.readouterr().out)["assumed"]
    path.write_text("tick_s = 45\n" + trace)
    assert replay(*words, "--policy", "static:workers=40") == 2
    assert "tick_s 45 s: the load's intervals are 60 s" in capsys.readouterr().err


def test_ablate_shows_the_policy_without_each_of_its_parts(series: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay(series, "--ablate", "--output", "csv") == 0
    names = [row["name"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert names == ["deadline", *(f"deadline:without={part}" for part in PARTS)]
    assert replay(series, "--policy", "deadline:without=margin", "--ablate") == 2
    assert "--ablate leaves out one part after the other by itself" in capsys.readouterr().err
    assert replay(series, "--policy", "threshold", "--ablate") == 2
    assert "threshold has no parts" in capsys.readouterr().err
