"""A journal that grows: half lines wait, rotated files are read out, damage is said with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.core.errors import BadInput
from penstock.core.follow import Follower
from penstock.core.loop import Step
from tests.report.conftest import Made


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    """A header and 30 steps."""
    return Made(count=30, signals=True).journal(tmp_path / "made.jsonl").read_text().splitlines(keepends=True)


def times(steps: list[Step]) -> list[float]:
    return [step.seen.time_s / 60.0 for step in steps]


def test_each_step_is_read_once_as_the_file_grows(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines[:6]))
    with Follower(path) as follower:
        assert times(follower.read()) == [1, 2, 3, 4, 5]
        assert follower.read() == []
        with path.open("a") as file:
            file.write("".join(lines[6:9]))
        assert times(follower.read(lines=2)) == [6, 7]
        assert times(follower.read(lines=2)) == [8]


@pytest.mark.parametrize("cut", [1, 20, -1])
def test_half_a_line_waits_for_its_end(tmp_path: Path, lines: list[str], cut: int) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines[:3]) + lines[3][:cut])
    with Follower(path) as follower:
        assert times(follower.read()) == [1, 2]
        assert (follower.read(), follower.damaged, follower.share) == ([], 0, 1.0)
        with path.open("a") as file:
            file.write(lines[3][cut:])
        assert times(follower.read()) == [3]
        assert follower.damaged == 0


def test_a_rotated_journal_is_read_out_before_the_next(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines[:3]))
    with Follower(path) as follower:
        assert times(follower.read()) == [1, 2]
        # Between two looks: a last step into the old file, which then makes room for a new one.
        with path.open("a") as file:
            file.write(lines[3])
        path.rename(tmp_path / "run.jsonl.1")
        assert times(follower.read()) == [3]
        assert follower.read() == []
        assert "waiting for it to come back" in follower.trouble
        path.write_text(lines[0][:10])
        assert (follower.read(), follower.files, follower.trouble) == ([], 1, "")
        path.write_text(lines[0] + lines[1])
        assert times(follower.read()) == [1]
        assert (follower.files, follower.trouble) == (2, "")


def test_what_was_rotated_before_is_read_first(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(lines[0] + lines[1])
    (tmp_path / "run.jsonl.1").write_text(lines[0] + lines[1] + lines[2] + lines[3][:9])
    (tmp_path / "run.jsonl.2").write_text(lines[0] + lines[1])
    # Another run's: neither it nor what is older belongs to this one.
    (tmp_path / "run.jsonl.3").write_text(lines[0].replace("steady", "hasty") + lines[1])
    with Follower(path) as follower:
        read = [times(follower.read(lines=5)) for _ in range(4)]
        assert read == [[1], [1, 2], [1], []]
        assert (follower.files, follower.damaged, follower.share) == (3, 0, 1.0)


def test_the_share_that_is_read_grows_to_one(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines))
    (tmp_path / "run.jsonl.1").write_text("".join(lines))
    with Follower(path) as follower:
        shares = [follower.share]
        while follower.read(lines=10):
            shares.append(follower.share)
        assert shares == sorted(shares)
        assert shares[0] < 0.1
        assert 0.4 < shares[3] < 0.6
        assert follower.share == 1.0


def test_a_file_that_begins_anew_is_read_from_its_beginning(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines))
    with Follower(path) as follower:
        assert len(follower.read()) == 30
        inode = path.stat().st_ino
        os.truncate(path, 0)
        path.write_text("".join(lines[:2]))
        assert path.stat().st_ino == inode
        assert times(follower.read()) == [1]


def test_a_foreign_file_under_the_name_is_said_and_not_read(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("".join(lines[:3]))
    with Follower(path) as follower:
        follower.read()
        path.unlink()
        path.write_text("time,rate\n1,2\n")
        assert follower.read() == []
        assert "is not a journal" in follower.trouble


def test_a_damaged_line_is_said_with_its_place(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    # Each line leans on the one before, so the steps after the damage are lost too, until a whole one.
    path.write_text("".join([*lines[:5], "{damaged\n", *lines[5:8], lines[1]]))
    with Follower(path) as follower:
        assert times(follower.read()) == [1, 2, 3, 4, 1]
        assert (follower.first_damaged, follower.damaged) == ("line 6 of run.jsonl", 4)


def test_a_step_without_its_counters_is_damaged(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(lines[0] + lines[1].replace('"arrived"', '"derived"') + lines[1])
    with Follower(path) as follower:
        assert times(follower.read()) == [1]
        assert (follower.first_damaged, follower.damaged) == ("line 2 of run.jsonl", 1)


def test_no_journal_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such journal"):
        Follower(tmp_path / "none.jsonl")
