"""`penstock explain` as a person runs it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli import explain
from penstock.cli.main import Parser
from penstock.core.allocation import Allocation, Worker
from penstock.core.errors import BadInput
from penstock.core.journal import Header, JournalWriter
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Observation, WorkerTable

Explain = Callable[..., int]
LIMITS = Limits(1, 4)


def some_workers(count: int) -> Allocation:
    return Allocation(tuple(Worker(f"w{number}") for number in range(count)))


def steps(count: int) -> list[Step]:
    """Each step wants one worker more than there are; the limits stop at four. The rate is 100 times the number."""
    made, target = [], some_workers(1)
    for number in range(1, count + 1):
        seen = Observation(
            time_s=60.0 * number,
            span_s=60.0,
            arrived=6000.0 * number,
            processed=5000.0 * number,
            delivered=0.0,
            deliverable=0.0,
            input_rate=100.0 * number,
            backlog=1000.0 * number,
            latency_s=100.0 * number,
            capacity=250.0,
            running=target,
            target=target,
            workers=WorkerTable(("w1",), {"cpu": 0.5}),
        )
        wanted = some_workers(len(target.workers) + 1)
        target = LIMITS.cut(wanted)
        made.append(Step(seen, Decision(wanted, f"reason {number}", {"smooth": number / 3}), target))
    return made


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    header = Header("orders", "greedy", LIMITS, Objective(120.0), Price(0.6), 60.0, 3, 0.0, {}, {"trace": "nasa"})
    path = tmp_path / "run.jsonl"
    with JournalWriter.at(path, header) as writer:
        for step in steps(6):
            writer.write(step)
    return path


def run(*arguments: object) -> int:
    parser = Parser()
    explain.add(parser.add_subparsers(parser_class=Parser))
    options = parser.parse_args(["explain", *map(str, arguments)])
    return int(options.run(options))


def test_a_step_is_told_with_what_was_seen_wanted_and_changed(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(journal, "--step", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Step 2, 1970-01-01 00:02:00 UTC: greedy on orders"
    assert "input rate 200/s, capacity 250/s, latency 3.33 min, backlog 2k, workers running 2" in lines[1]
    assert lines[2:6] == [
        "objective  latency ≤ 120 s: missed",
        "wanted     3 workers: reason 2",
        "limits     1 … 4 workers: not reached",
        "applied    2 → 3 workers",
    ]
    assert lines[6] == "signals    smooth 0.6667"
    assert "input rate 100/s → 200/s" in lines[7]
    assert "capacity" not in lines[7]


def test_a_step_that_the_limits_cut_says_so(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(journal, "--step", 4)
    out = capsys.readouterr().out
    assert "limits     1 … 4 workers: cut from 5 to 4" in out
    assert "applied    4 workers, as before" in out


def test_the_first_step_has_nothing_before_it(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(journal, "--step", 1)
    out = capsys.readouterr().out
    assert "changed    nothing before the first step" in out
    assert "latency ≤ 120 s: kept" in out


def test_a_step_as_json(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(journal, "--step", 4, "--output", "json")
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], found["time_s"], found["cut"], found["missed"]) == (4, 240.0, True, True)
    assert found["decision"] == {"workers": 5, "reason": "reason 4", "signals": {"smooth": 4 / 3}}
    assert found["changed"]["input_rate"] == {"before": 300.0, "now": 400.0}


def test_a_run_in_short_lists_its_scaling_actions(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(journal) == 0
    out = capsys.readouterr().out
    assert out.startswith("greedy on orders: 6 steps, 6 min\n")
    assert "tick 60 s, seed 3, trace nasa" in out
    # 1 → 2 → 3 → 4 workers; the limits cut what was wanted after that.
    assert "scaled     3 times, 3 workers started, 0 stopped" in out
    assert "  step 3  1970-01-01 00:03:00  3 → 4 workers: reason 3" in out
    assert "missed     83.3 % of the time, 1 stretch," in out


def test_a_run_as_json_has_the_score_and_no_nan(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(journal, "--output", "json")
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["score"]["scaling_actions"] == 3
    assert found["header"]["objective"] == "latency<=120s"
    assert [action["step"] for action in found["last_actions"]] == [1, 2, 3]


@pytest.mark.parametrize(
    ("step", "said"), [(7, "steps 1 … 6"), (0, "0 is no whole number from 1"), (-1, "-1 is no whole number from 1")]
)
def test_a_step_that_does_not_exist_is_bad_input(journal: Path, step: int, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        run(journal, "--step", step)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not a journal"),
        ("time,rate\n1,2\n", "is not a journal"),
        ('{"penstock_journal": 99}\n', "schema 99"),
        ('{"penstock_journal": 1}\n', "header that cannot be read"),
    ],
)
def test_a_foreign_file_is_bad_input(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "odd"
    path.write_text(content)
    with pytest.raises(BadInput, match=said):
        run(path)


def test_a_missing_file_and_a_folder_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such journal"):
        run(tmp_path / "none.jsonl")
    with pytest.raises(BadInput, match="is not a journal"):
        run(tmp_path)


def test_a_journal_without_steps_is_bad_input(journal: Path) -> None:
    journal.write_text(journal.read_text().splitlines()[0] + "\n")
    with pytest.raises(BadInput, match="has no steps"):
        run(journal)


def test_a_line_that_is_json_but_no_step_is_bad_input(journal: Path) -> None:
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], '{"whole": true, "time_s": 1}']) + "\n")
    with pytest.raises(BadInput, match="has no steps"):
        run(journal)


def test_damaged_lines_are_mentioned_once_on_stderr(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with journal.open("a") as file:
        file.write('{"time_s": 4')
    assert run(journal) == 0
    captured = capsys.readouterr()
    assert "6 steps" in captured.out
    assert captured.err.count("\n") == 1
    assert "1 damaged line was left out" in captured.err


def test_a_value_that_is_not_finite_is_null_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = Header("orders", "greedy", LIMITS, Objective(), Price(), 60.0, facts={"peak": math.inf})
    with JournalWriter.at(tmp_path / "run.jsonl", header) as writer:
        writer.write(steps(1)[0])
    run(tmp_path / "run.jsonl", "--output", "json")
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["header"]["facts"] == {"peak": None}
