"""A live journal: gone on with, rotated, written by one alone."""

from __future__ import annotations

import logging
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import BadInput, ExternalError
from penstock.core.journal import Header, Journal
from penstock.core.loop import Step
from penstock.core.objective import Limits, Objective, Price
from penstock.live.control_options import Wanted
from penstock.live.recorder import Recorder, live_header
from penstock.policies.guards import OPTIONS
from penstock.policies.static import Static
from penstock.runs.replayed import replay
from penstock.sim.scenario import Scenario


def header(job: str = "clicks") -> Header:
    return Header(job, "static", Limits(1, 4), Objective(120.0), Price(), 60.0)


def steps() -> list[Step]:
    scenario = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=2)
    return list(replay(scenario, Static(scenario.job(), workers=2)))


def test_parameters_of_a_policy_are_no_safety_rules() -> None:
    job = Scenario.constant(rate=30.0, capacity_per_worker=20.0, workers_at_start=2).job()
    wanted = Wanted("deadline:without=margin,cooldown_s=5m", Limits(1, 4))
    told = live_header(job, wanted.policy, 0.0, {}, wanted.rules)
    assert told.parameters == {"without": "margin", "cooldown_s": 300.0}
    assert told.rules["cooldown_s"] == 300.0
    assert told.rules.keys() <= OPTIONS.keys()


def test_a_restart_goes_on_with_the_same_file_and_shows_the_policy_its_past(tmp_path: Path) -> None:
    path, made = tmp_path / "journal.jsonl", steps()[:10]
    with Recorder(path, header()) as recorder:
        assert recorder.past == ()
        for step in made[:6]:
            recorder.write(step)
    with Recorder(path, header(), memory_s=120.0) as recorder:
        # Steps lie 60 s apart: the last one and the two within 120 s before it.
        assert [step.seen.time_s for step in recorder.past] == [step.seen.time_s for step in made[3:6]]
        for step in made[6:]:
            recorder.write(step)
    assert list(Journal.open(path)) == made


def test_a_line_that_a_crash_cut_short_costs_itself_alone(tmp_path: Path) -> None:
    path, made = tmp_path / "journal.jsonl", steps()[:5]
    with Recorder(path, header()) as recorder:
        for step in made[:4]:
            recorder.write(step)
    path.write_bytes(path.read_bytes()[:-20])
    with Recorder(path, header()) as recorder:
        recorder.write(made[4])
    assert list(Journal.open(path)) == [*made[:3], made[4]]


def test_steps_after_a_full_disk_are_as_they_were(tmp_path: Path) -> None:
    """What could not be written may stand there later, whole or half: no line after it may lean on it."""
    path, made = tmp_path / "journal.jsonl", steps()[:30]
    made = [replace(step, seen=replace(step.seen, backlog=float(n in (11, 13)))) for n, step in enumerate(made)]
    failed = 0
    with Recorder(path, header()) as recorder:
        for number, step in enumerate(made):
            if number == 10:
                resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 150, resource.RLIM_INFINITY))
            elif number == 15:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            try:
                recorder.write(step)
            except ExternalError:
                failed += 1
    read = {step.seen.time_s: step for step in Journal.open(path)}
    assert failed > 0
    assert all(read[step.seen.time_s] == step for step in made[15:])
    assert all(step in made for step in read.values())  # it read the backlog of step 13 as that of step 12


def test_a_damaged_line_in_the_middle_is_said_and_the_controller_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("penstock"), "propagate", True)
    path, made = tmp_path / "journal.jsonl", steps()[:5]
    with Recorder(path, header()) as recorder:
        for step in made[:4]:
            recorder.write(step)
    lines = path.read_text().splitlines()
    lines[3] = lines[3][:30] + "#" + lines[3][31:]
    path.write_text("\n".join(lines) + "\n")
    with Recorder(path, header()) as recorder:
        # The header, two good steps, a damaged one and one that leans on it: the last whole one is the second.
        assert [step.seen.time_s for step in recorder.past] == [made[1].seen.time_s]
        recorder.write(made[4])
    assert [line for line in caplog.messages if "damaged" in line] == [f"{path}: damaged, 2 lines of it are left out"]
    assert list(Journal.open(path))[-1] == made[4]


def test_a_journal_that_grows_is_rotated_and_the_past_is_found_across_files(tmp_path: Path) -> None:
    path, made = tmp_path / "journal.jsonl", steps()[:40]
    with Recorder(path, header(), rotate_bytes=1500) as recorder:
        for step in made:
            recorder.write(step)
    assert (tmp_path / "journal.jsonl.1").exists()
    assert not (tmp_path / "journal.jsonl.5").exists()
    older = list(Journal.open(tmp_path / "journal.jsonl.1"))
    with Recorder(path, header(), memory_s=1e9) as recorder:
        assert list(recorder.past)[: len(older)] == older


def test_a_second_controller_and_a_journal_of_another_job_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Recorder(path, header()) as recorder:
        recorder.write(steps()[0])
        with pytest.raises(BadInput, match="is written by another controller: a job has one"):
            Recorder(path, header())
    with pytest.raises(BadInput, match="is of the job clicks, not orders: choose another file"):
        Recorder(path, header("orders"))
    with pytest.raises(BadInput, match="cannot be written"):
        Recorder(tmp_path / "nowhere" / "journal.jsonl", header())


def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("of somebody else")
    (tmp_path / "journal.jsonl.lock").symlink_to(other)
    with pytest.raises(BadInput, match=r"journal.jsonl cannot be written: its lock is a link: remove it"):
        Recorder(tmp_path / "journal.jsonl", header())
    assert other.read_text() == "of somebody else"
