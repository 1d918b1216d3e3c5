"""`penstock status` as a person runs it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli.main import main
from penstock.core.journal import Journal, JournalWriter
from penstock.core.score import score
from penstock.report.live import LiveRun
from penstock.report.screen import Screen
from tests.report.conftest import Made

MADE = Made(count=300, signals=True)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return MADE.journal(tmp_path / "run.jsonl")


def test_one_screen_says_what_runs_what_was_asked_and_why(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(journal)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    last = list(Journal.open(journal))[-1]
    assert lines[0].startswith("steady on orders  step 300, 1995-07-01 05:00:00 UTC  last step ")
    assert "latency ≤ 120 s, 1 … 32 workers, a step every 60 s, $0.10 per worker hour" in lines[1]
    running, asked = len(last.seen.running.workers), len(last.target.workers)
    assert any(line.split()[:4] == ["Workers", str(running), str(asked), "asked"] for line in lines)
    for label in ("Rate", "Capacity", "Load", "Backlog", "Latency", "  raw rate", "  filtered rate"):
        row = next(line for line in lines if line.startswith(label))
        assert any(block in row for block in "▁▂▃▄▅▆▇█")
    for label in ("Cost so far", "Objective missed", "Scaling actions"):
        assert any(line.startswith(label) for line in lines)
    assert last.decision.reason in captured.out
    assert len(lines) <= 26
    assert captured.err == ""


def test_escape_codes_of_a_header_are_shown_and_not_sent(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *steps = journal.read_text().splitlines()
    spoilt = json.dumps(json.loads(header) | {"policy": "a\n\x1b[2J", "job": "b\x1b]0;x\x07"})
    journal.write_text("\n".join([spoilt, *steps]) + "\n")
    assert main(["status", str(journal)]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.startswith(r"a\n\x1b[2J on b\x1b]0;x\x07  step 300")


def test_as_json_it_has_the_score_of_the_report(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(journal), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    read = Journal.open(journal)
    steps = list(read)
    whole = score(steps, read.header.objective, read.header.price)
    assert found["score"]["cost"] == pytest.approx(whole.cost)
    assert found["score"]["scaling_actions"] == whole.scaling_actions
    assert (found["steps"], found["policy"], found["trouble"]) == (300, "steady", "")
    assert found["now"]["input_rate"] == steps[-1].seen.input_rate
    assert found["now"]["target"] == len(steps[-1].target.workers)
    assert found["signals"] == dict(steps[-1].decision.signals)
    assert found["decisions"][0]["reason"] == steps[-1].decision.reason


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 24), (200, 60), (40, 10)])
def test_it_fits_the_terminal(journal: Path, width: int, height: int) -> None:
    with LiveRun(journal) as live:
        live.advance()
        out = StringIO()
        console = Console(width=width, height=height, force_terminal=True, color_system=None, file=out)
        console.print(Screen(live, now_s=0.0))
        lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    # Ten lines have no room for all; 24 do.
    assert len(lines) < max(height, 24)
    assert any("Last decisions" in line for line in lines)


def test_a_damaged_line_is_said_with_its_place_and_the_rest_is_read(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = journal.read_text().splitlines(keepends=True)
    lines[200] = "{" + lines[200]
    journal.write_text("".join(lines))
    assert main(["status", str(journal)]) == 0
    captured = capsys.readouterr()
    assert "step 199," in captured.out
    # Lines 201 … 301 lean on the damaged one: the next whole step would be the 1,001st.
    said = "line 201 of run.jsonl is damaged; 101 lines are left out, as they are damaged or lean on one that is"
    assert captured.err == f"penstock: {said}\n"


def test_half_a_last_line_is_no_damage(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with journal.open("a") as file:
        file.write('{"time_s": 4')
    assert main(["status", str(journal)]) == 0
    captured = capsys.readouterr()
    assert "step 300," in captured.out
    assert captured.err == ""


def test_a_run_that_just_began_has_no_step_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JournalWriter.at(tmp_path / "run.jsonl", MADE.header()):
        pass
    assert main(["status", str(tmp_path / "run.jsonl")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "steady on orders  no step yet"
    assert main(["status", str(tmp_path / "run.jsonl"), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["now"] == {}


def test_what_users_write_is_text_and_no_colour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = replace(MADE, count=3, policy="[red]odd[/]", reason="[bold]why[/] not")
    assert main(["status", str(odd.journal(tmp_path / "run.jsonl"))]) == 0
    out = capsys.readouterr().out
    assert out.startswith("[red]odd[/] on orders")
    assert "[bold]why[/] not" in out


@pytest.fixture
def watching(journal: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "penstock", "status", str(journal), "--watch", "--output", "json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def test_watching_prints_a_line_for_each_change_until_ctrl_c(journal: Path, watching: subprocess.Popen[str]) -> None:
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["steps"] == 300
    with journal.open("a") as file:
        file.write('{"time_s": 18060.0}\n')
    assert json.loads(watching.stdout.readline())["steps"] == 301
    begun = time.monotonic()
    os.kill(watching.pid, signal.SIGINT)
    _, err = watching.communicate(timeout=5)
    assert (watching.returncode, err) == (130, "penstock: interrupted\n")
    assert time.monotonic() - begun < 2


def test_watching_on_a_terminal_redraws_and_gives_the_screen_back(journal: Path) -> None:
    words = [sys.executable, "-m", "penstock", "status", str(journal), "--watch"]
    master, slave = pty.openpty()
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown = ""
    try:
        shown = read_until(master, shown, "step 300")
        with journal.open("a") as file:
            file.write('{"time_s": 18060.0}\n')
        shown = read_until(master, shown, "step 301")
        os.kill(process.pid, signal.SIGINT)
        shown = read_until(master, shown, "penstock: interrupted")
        assert process.wait(timeout=5) == 130
    finally:
        process.kill()
        process.wait()
        os.close(master)
    # The alternate screen is entered and left: what stood on the terminal before is there again.
    assert shown.index("\x1b[?1049h") < shown.index("\x1b[?1049l") < shown.index("penstock: interrupted")


def read_until(terminal: int, shown: str, wanted: str) -> str:
    deadline = time.monotonic() + 20
    while wanted not in shown:
        assert time.monotonic() < deadline, shown
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 65536).decode("utf-8", errors="replace")
    return shown


def test_what_nobody_knows_is_called_unknown_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "blind.jsonl"
    with JournalWriter.at(path, MADE.header()) as writer:
        for number, step in enumerate(MADE.steps()):
            is_blind = number >= 200
            writer.write(replace(step, seen=replace(step.seen, backlog=None, latency_s=None)) if is_blind else step)
    assert main(["status", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["Backlog", "unknown"] for line in lines)
    assert any("latency ≤ 120 s: unknown" in line for line in lines)
    assert any("unknown 33.3 %" in line for line in lines)
    assert main(["status", str(path), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["now"]["backlog"], found["now"]["latency_s"], found["missed"]) == (None, None, None)
    assert found["score"]["unknown_share"] == pytest.approx(1 / 3)
    assert main(["explain", str(path), "--step", "201"]) == 0
    said = capsys.readouterr().out
    assert "backlog unknown" in said
    assert "latency ≤ 120 s: unknown" in said
    assert main(["explain", str(path)]) == 0
    assert "unknown 33.3 % of the time" in capsys.readouterr().out
