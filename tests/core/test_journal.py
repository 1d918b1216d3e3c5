"""The journal: what was written is what is read, and a crash costs one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.allocation import Allocation
from penstock.core.errors import BadInput
from penstock.core.journal import WHOLE_EVERY, Header, Journal, JournalWriter
from penstock.core.loop import Decision, Step
from penstock.core.objective import Limits, Objective, Price
from penstock.core.observation import Batch
from penstock.policies.threshold import Threshold
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario
from penstock.sim.specs import BatchSpec, NoiseSpec, WorkerSpec
from penstock.sim.workloads import Sine, make_load

HEADER = Header("job", "threshold", Limits(1, 64), Objective(90.5), Price(0.2, "hour"), 60.0, seed=7, origin_s=1e9)


def scenario(ticks: int = 200, **changes: Any) -> Scenario:
    load = make_load((Sine(10.0, 300.0, 3600.0),), 60.0 * ticks, 60.0, seed=1)
    still = Scenario.constant(rate=1.0, capacity_per_worker=10.0)
    return replace(still, load=load, worker=WorkerSpec(start_s=90.0), **changes)


def steps_of(world: Scenario) -> list[Step]:
    return list(replay(world, Threshold(world.job())))


def write(path: Path, steps: list[Step]) -> Path:
    with JournalWriter.at(path, HEADER) as journal:
        for step in steps:
            journal.write(step)
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"noise": NoiseSpec(0.1, 0.1, 0.1, 300.0)},
        {"batch": BatchSpec(10.0)},
        {"batch": BatchSpec(45.0, drains=True)},
    ],
    ids=["plain", "noisy", "in batches", "draining"],
)
def test_what_was_written_is_what_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    steps = steps_of(scenario(**changes))
    journal = Journal.open(write(tmp_path / "run.jsonl", steps))
    assert journal.header == HEADER
    for mine, theirs in zip(list(journal), steps, strict=True):
        assert dict(mine.seen.workers) == dict(theirs.seen.workers)
        assert replace(mine.seen, workers=theirs.seen.workers) == theirs.seen
        assert (mine.decision, mine.target) == (theirs.decision, theirs.target)
    assert journal.damaged == 0


def test_an_only_operator_keeps_a_batch_and_a_load_that_are_not_the_jobs(tmp_path: Path) -> None:
    (first, *_) = steps_of(scenario(ticks=2))
    (name,) = first.seen.operators
    own = replace(first.seen.operators[name], batch=Batch(5.0, 10.0, 2.0, 1.0, 0.5, number=7), load=0.4, processed=5.0)
    step = replace(first, seen=replace(first.seen, operators={name: own}))
    (read,) = Journal.open(write(tmp_path / "run.jsonl", [step]))
    assert read.seen.operators[name] == own


def test_what_a_limit_cut_is_kept_beside_what_was_applied(tmp_path: Path) -> None:
    step = steps_of(scenario(3))[0]
    cut = replace(step, decision=Decision(Allocation.of(99), "more"), target=Allocation.of(64))
    read = next(iter(Journal.open(write(tmp_path / "run.jsonl", [cut]))))
    assert (len(read.decision.target.workers), len(read.target.workers)) == (99, 64)


def test_a_signal_that_vanishes_does_not_come_back(tmp_path: Path) -> None:
    step = steps_of(scenario(3))[0]
    first = replace(step, decision=Decision(step.target, "a", {"load": 0.5}))
    second = replace(step, decision=Decision(step.target, "b"))
    read = list(Journal.open(write(tmp_path / "run.jsonl", [first, second, second])))
    assert [dict(one.decision.signals) for one in read] == [{"load": 0.5}, {}, {}]


def test_a_line_cut_short_by_a_crash_costs_itself_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", steps_of(scenario(50)))
    text = path.read_text()
    path.write_text(text[: len(text) - 25])
    journal = Journal.open(path)
    assert (len(list(journal)), journal.damaged) == (49, 1)


def test_a_damaged_line_costs_what_lies_before_the_next_whole_one(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", steps_of(scenario(WHOLE_EVERY + 10)))
    lines = path.read_text().splitlines(keepends=True)
    lines[5] = "{broken\n"  # the fifth step, line 6
    path.write_text("".join(lines))
    journal = Journal.open(path)
    assert (len(list(journal)), journal.damaged) == (4 + 10, WHOLE_EVERY - 4)


def test_what_does_not_change_is_not_repeated(tmp_path: Path) -> None:
    still = Scenario.constant(rate=640.0, capacity_per_worker=20.0, workers_at_start=64)
    steps = list(replay(still, Threshold(still.job())))
    lines = write(tmp_path / "run.jsonl", steps).read_text().splitlines()
    # 129,600 minutes are three months: 300 bytes a step are 39 MB.
    assert max(map(len, lines[2:])) < 300
    assert set(json.loads(lines[-1])) <= {"time_s", "arrived", "processed", "path job"}


def test_a_line_that_is_json_but_no_step_is_damaged_too(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", steps_of(scenario(5)))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], '{"whole": true}\n', '{"running": 7}\n', *lines[1:]]))
    journal = Journal.open(path)
    assert (len(list(journal)), journal.damaged) == (5, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "not a journal"), ('{"a": 1}\n', "not a journal"), ('{"penstock_journal": 99}\n', "schema 99")],
)
def test_a_file_that_is_no_journal_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        Journal.open(path)


def test_a_journal_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such journal"):
        Journal.open(tmp_path / "none.jsonl")


def test_what_nobody_knew_is_read_as_unknown_and_a_line_without_it_is_damaged(tmp_path: Path) -> None:
    known = steps_of(scenario(4))
    blind = [replace(step, seen=replace(step.seen, backlog=None, latency_s=None)) for step in known]
    path = write(tmp_path / "run.jsonl", [known[0], blind[1], blind[2], known[3]])
    read = list(Journal.open(path))
    assert [step.seen.backlog is None for step in read] == [False, True, True, False]
    assert read[3].seen.latency_s == known[3].seen.latency_s
    lines = path.read_text().splitlines()
    first = {key: value for key, value in json.loads(lines[1]).items() if key != "backlog"}
    path.write_text("\n".join([lines[0], json.dumps(first)]) + "\n")
    journal = Journal.open(path)
    assert (list(journal), journal.damaged) == ([], 1)


def test_a_batch_of_an_earlier_version_has_no_number(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", steps_of(scenario(3, batch=BatchSpec(10.0)))[:1])
    header, line = path.read_text().splitlines()
    fields = json.loads(line)
    path.write_text("\n".join([header, json.dumps(fields | {"batch": fields["batch"][:5]})]) + "\n")
    (step,) = Journal.open(path)
    assert step.seen.batch is not None
    assert step.seen.batch.number is None
