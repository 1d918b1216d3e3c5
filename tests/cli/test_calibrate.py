"""`penstock calibrate` on journals of worlds whose truth is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.core.journal import Journal
from penstock.live.recorder import Recorder
from penstock.runs.calibrated_replay import read_evidence, simulate
from penstock.sim.specs import BatchSpec, NoiseSpec
from penstock.sim.toml import read_scenario
from tests.cli.worlds import WORLDS, World


def calibrated(capsys: pytest.CaptureFixture[str], out: Path, *journals: Path) -> dict[str, Any]:
    assert main(["calibrate", *map(str, journals), "-o", str(out), "--output", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("journals")
    return {
        name: [world.journal(folder / f"{name}-{seed}.jsonl", seed) for seed in (1, 2)]
        for name, world in WORLDS.items()
    }


@pytest.mark.parametrize("name", WORLDS)
def test_what_made_a_journal_is_found_in_it(
    name: str, journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, world = tmp_path / "scenario.toml", WORLDS[name]
    learnt = calibrated(capsys, out, *journals[name])["learnt"]
    file = read_scenario(out)
    # A tick of 5 s hides when within it a worker came.
    assert list(file.worker.start_range_s) == pytest.approx([10.0, 20.0], abs=3.0)
    assert file.capacity is not None
    assert file.capacity.fixed_s(1) == pytest.approx(1.5, abs=0.1)
    for workers in range(1, 7):
        assert file.capacity.capacity(workers) == pytest.approx(world.capacity.capacity(workers), rel=0.03)
    assert file.worker.warm_s == pytest.approx(world.worker.warm_s, abs=15.0)
    if world.worker.warm_s:
        assert file.worker.warm_speed == pytest.approx(world.worker.warm_speed, abs=0.05)
    assert file.batch is not None
    assert replace(file.batch, busy=0.0) == BatchSpec(10.0)
    assert file.batch.busy <= 0.01
    assert file.noise.cpu == pytest.approx(0.03, abs=0.005)
    assert file.noise.rate_over_s == 0.0
    assert [file.noise.cpu_idle, file.noise.cpu_busy] == pytest.approx([0.0, 1.0], abs=0.02)
    assert learnt["starts"]["seen"] > 20


@pytest.mark.parametrize("name", WORLDS)
def test_the_calibrated_simulation_comes_to_the_same_as_its_journal_and_as_another(
    name: str, journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learnt_from, other = journals[name]
    both = calibrated(capsys, tmp_path / "both.toml", learnt_from, other)
    # What was learnt from the first alone is held against the second, whose load and draws are others.
    own = calibrated(capsys, tmp_path / "own.toml", learnt_from)["journals"][0]
    foreign = simulate("other", read_evidence(other)[0], read_scenario(tmp_path / "own.toml")).record()
    for run in (own, foreign, both["total"]):
        assert abs(run["off"]["cost"]) < 0.10
        assert abs(run["off"]["violation_share"]) < 0.02
    if name == "warming":
        assert own["measured"]["violation_share"] > 0.05  # a bound that is missed, or the two points mean nothing


def test_a_live_journal_is_replayed_with_its_safety_rules_and_its_own_idea_of_latency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(
        batch=BatchSpec(10.0, tasks=24, first_s=6.0, offset_s=3.7, latency_includes_service=False),
        noise=NoiseSpec(cpu=0.08, cpu_shared=0.5, cpu_idle=0.05, cpu_busy=0.95),
        facts={"partitions": 24},
    )
    path = world.journal(tmp_path / "live.jsonl", 1, is_live=True)
    found = calibrated(capsys, tmp_path / "scenario.toml", path)
    file = read_scenario(tmp_path / "scenario.toml")
    noise, batch = file.noise, file.batch
    assert noise.cpu == pytest.approx(0.08, abs=0.01)
    assert noise.cpu_shared == pytest.approx(0.5, abs=0.15)
    assert [noise.cpu_idle, noise.cpu_busy] == pytest.approx([0.05, 0.95], abs=0.03)
    assert batch is not None
    assert not batch.latency_includes_service
    assert batch.offset_s == pytest.approx(3.7, abs=0.01)
    assert batch.first_s == pytest.approx(6.0, abs=1.0)
    assert batch.tasks == 24
    assert abs(found["journals"][0]["off"]["cost"]) < 0.10
    assert abs(found["journals"][0]["off"]["violation_share"]) < 0.02


def test_a_live_journal_is_replayed_with_the_rules_that_it_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It says that its policy was frozen: whatever this version's rules are, nothing may be scaled in the replay.
    frozen = replace(WORLDS["linear"], facts={"rules": {"warm_up_s": 7200.0}})
    path = frozen.journal(tmp_path / "live.jsonl", 1, is_live=True)
    found = calibrated(capsys, tmp_path / "scenario.toml", path)["journals"][0]
    assert found["measured"]["scaling_actions"] > 0
    assert found["simulated"]["scaling_actions"] == 0


def test_parameters_of_the_policy_that_stand_among_its_rules_are_no_fault_of_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = replace(WORLDS["linear"], policy="filtered:upper=0.8").journal(tmp_path / "live.jsonl", 1, is_live=True)
    head, *lines = path.read_text().splitlines(keepends=True)
    rules = {"effect_s": 120.0, "upper": 0.8}
    path.write_text("".join([json.dumps(json.loads(head) | {"rules": rules}) + "\n", *lines]))
    found = calibrated(capsys, tmp_path / "scenario.toml", path)["journals"][0]
    assert abs(found["off"]["cost"]) < 0.10


def test_the_scenario_replays_and_says_from_how_much_it_comes(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scenario.toml"
    assert main(["calibrate", *map(str, journals["linear"]), "-o", str(out)]) == 0
    table = capsys.readouterr().out
    assert [
        word for word in ("measured", "simulated", "linear-1.jsonl", "in total", "points") if word not in table
    ] == []
    # Single runs first, then all as one, where their errors may cancel.
    assert table.index("a run alone is off") < table.index("all 2 as one")
    text = out.read_text()
    assert "# Learnt by `penstock calibrate` from 2 journals, 2 h in all." in text
    assert " starts" in text
    assert "# settled batches by worker count: 1: " in text
    assert "# Not learnt: memory" in text
    assert main(["replay", "--scenario", str(out), "--policy", "filtered", "--output", "json"]) == 0
    replayed = json.loads(capsys.readouterr().out)["policies"][0]
    assert replayed["duration_s"] == 3600.0


def test_without_the_load_any_series_can_be_replayed_in_it(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, rates = tmp_path / "world.toml", tmp_path / "rates.csv"
    assert main(["calibrate", str(journals["linear"][0]), "-o", str(out), "--no-load"]) == 0
    assert not out.with_suffix(".csv").exists()
    rates.write_text("t_s,arrivals\n" + "".join(f"{5 * tick},{4000}\n" for tick in range(60)))
    assert main(["replay", str(rates), "--scenario", str(out), "--policy", "static:workers=2"]) == 0
    capsys.readouterr()


def test_a_journal_without_scaling_says_that_start_times_could_not_be_learnt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = replace(WORLDS["linear"], policy="static:workers=2").journal(tmp_path / "still.jsonl", 1)
    learnt = calibrated(capsys, tmp_path / "scenario.toml", path)["learnt"]
    assert learnt["starts"] is None
    assert any("no worker started in the journals" in what for what in learnt["unknown"])
    assert any("only 2 was seen" in what for what in learnt["unknown"])
    assert learnt["capacity"]["per_worker"] == pytest.approx(800.0, rel=0.02)
    assert "# Not learnt: start times" in (tmp_path / "scenario.toml").read_text()


def test_a_journal_of_a_job_without_batches_has_the_capacity_that_its_plant_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = tmp_path / "rates.csv"
    rates.write_text("t_s,arrivals\n" + "".join(f"{60 * m},{60 * (20 + m % 40)}\n" for m in range(120)))
    words = ["replay", str(rates), "--policy", "threshold", "--journal", str(tmp_path), "--capacity-per-worker", "10/s"]
    assert main(words) == 0
    capsys.readouterr()
    found = calibrated(capsys, tmp_path / "scenario.toml", tmp_path / "threshold.jsonl")
    assert found["learnt"]["capacity"] == {"kind": "linear", "per_worker": pytest.approx(10.0)}
    assert found["learnt"]["batches"] is None
    assert abs(found["journals"][0]["off"]["cost"]) < 0.10


def test_a_rotated_journal_is_read_whole_and_its_parts_are_not_counted_twice(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole = tmp_path / "run.jsonl", journals["linear"][0]
    with Recorder(path, Journal.open(whole).header, rotate_bytes=whole.stat().st_size // 3) as recorder:
        for step in Journal.open(whole):
            recorder.write(step)
    assert path.with_name("run.jsonl.2").exists()
    found = calibrated(capsys, tmp_path / "scenario.toml", path, path.with_name("run.jsonl.1"))
    assert len(found["journals"]) == 1
    assert found["journals"][0]["measured"]["duration_s"] == 3600.0


def test_damaged_lines_are_counted_and_the_rest_teaches_as_before(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    lines = journals["linear"][0].read_text().splitlines(keepends=True)
    lines[700] = '{"time_s": 3495.0, "spa\n'
    path.write_text("".join(lines))
    assert main(["calibrate", str(path), "-o", str(tmp_path / "scenario.toml")]) == 0
    said = capsys.readouterr()
    # Lines 701 to 721 lean on the damaged one: the next whole step would be the 1001st.
    assert "21 damaged lines were left out" in said.err
    assert read_scenario(tmp_path / "scenario.toml").capacity is not None


def test_journals_of_two_jobs_are_refused_in_one_line(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "clicks.jsonl"
    other.write_text(journals["linear"][0].read_text().replace('"job":"orders"', '"job":"clicks"', 1))
    assert main(["calibrate", str(journals["linear"][0]), str(other), "-o", str(tmp_path / "scenario.toml")]) == 2
    said = capsys.readouterr().err
    assert said == "penstock: the journals are of different jobs (clicks, orders): calibrate each job by itself\n"
    assert not (tmp_path / "scenario.toml").exists()


@pytest.mark.parametrize("content", [None, "", "not a journal\n"])
def test_what_is_no_journal_is_refused_in_one_line(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    if content is not None:
        path.write_text(content)
    assert main(["calibrate", str(path), "-o", str(tmp_path / "scenario.toml")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(path) in said


def test_a_policy_that_is_not_here_costs_the_comparison_and_not_what_was_learnt(
    journals: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    text = journals["linear"][0].read_text().replace('"policy":"filtered"', '"policy":"gone.py:Mine"', 1)
    path.write_text(text)
    found = calibrated(capsys, tmp_path / "scenario.toml", path)
    assert (found["journals"], found["total"]) == ([], None)
    assert (tmp_path / "scenario.toml").exists()
