"""What waits in a folder, by Spark's own log of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.live.folder_lag import FolderOfFiles
from penstock.live.query_progress import SourceReport


def ended(entry: int, rows: float) -> SourceReport:
    return SourceReport("FileStreamSource[file:/in]", rows, None, None, entry)


def logged(log: Path, name: str, files: dict[str, int]) -> None:
    """An entry as Spark writes it."""
    log.mkdir(exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///in/{file}", "timestamp": 1, "batchId": batch}) for file, batch in files.items()
    ]
    (log / name).write_text("\n".join(["v1", *lines]))


def test_files_that_no_batch_has_answered_wait_with_as_many_rows_for_their_bytes_as_the_others_had(
    tmp_path: Path,
) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    for name, size in {"a.txt": 1000, "b c.txt": 2000, "d.txt": 100, "e.txt": 200, ".hidden": 5000}.items():
        (folder / name).write_text("x" * size)
    (folder / "subfolder").mkdir()
    told = FolderOfFiles(folder, log)
    logged(log, "0", {"a.txt": 0, "b%20c.txt": 0})
    told.note(ended(0, 300.0))
    # 3,000 bytes had 300 rows; 300 bytes more wait.
    assert told.after(ended(0, 300.0)) == 30
    # A batch that has begun is logged, and its file waits until it is answered.
    logged(log, "1", {"d.txt": 1})
    assert told.after(ended(0, 300.0)) == 30
    (folder / "d.txt").unlink()  # archived as soon as it was read: its size was seen before
    told.note(ended(1, 10.0))
    assert told.after(ended(1, 10.0)) == pytest.approx(20)


def test_what_a_row_takes_is_followed_when_it_changes(tmp_path: Path) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    told = FolderOfFiles(folder, log)
    for batch in range(40):
        (folder / f"{batch}.txt").write_text("x" * 1000)
        logged(log, str(batch), {f"{batch}.txt": batch})
        told.note(ended(batch, 100.0 if batch < 10 else 10.0))
    (folder / "last.txt").write_text("x" * 1000)
    assert told.after(ended(39, 10.0)) == pytest.approx(10, rel=0.5)


def test_after_a_restart_all_that_was_read_before_is_known_from_the_compacted_log(tmp_path: Path) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text("x")
    logged(log, "9.compact", {f"{number}.txt": number for number in range(10)})
    logged(log, "10", {"10.txt": 10})
    told = FolderOfFiles(folder, log)
    told.note(ended(10, 50.0))
    assert told.after(ended(10, 50.0)) == 50


def test_what_waits_in_a_folder_of_which_no_batch_has_ended_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    told = FolderOfFiles(folder, tmp_path / "log")
    assert told.after(ended(0, 0.0)) == 0  # nothing is there
    (folder / "a.txt").write_text("x")
    assert told.after(ended(0, 0.0)) is None  # nobody knows how many rows


def test_partitions_and_patterns_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    for day in ("day=1", "day=2", "other"):
        (folder / day).mkdir(parents=True)
        (folder / day / "a.txt").write_text("x" * 100)
        (folder / day / "a.tmp").write_text("x" * 100)
    log.mkdir()
    first = {"path": f"file://{folder}/day%3D1/a.txt", "timestamp": 1, "batchId": 0}
    (log / "0").write_text("v1\n" + json.dumps(first))
    told = FolderOfFiles(folder, log, {"pathglobfilter": "*.txt"})
    told.note(ended(0, 50.0))
    assert told.after(ended(0, 50.0)) == 50  # day=2; `other` is no partition, and .tmp is not asked for
    deep = FolderOfFiles(folder, log, {"pathglobfilter": "*.txt", "recursivefilelookup": "true"})
    deep.note(ended(0, 50.0))
    assert deep.after(ended(0, 50.0)) == 100


def test_rows_of_files_that_were_read_twice_by_a_stage_that_ran_again_count_once(tmp_path: Path) -> None:
    folder, log = tmp_path / "in", tmp_path / "log"
    folder.mkdir()
    told = FolderOfFiles(folder, log)
    for batch in range(4):
        (folder / f"{batch}.txt").write_text("x" * 1000)
        logged(log, str(batch), {f"{batch}.txt": batch})
        if batch < 3:
            told.note(ended(batch, 100.0))
    assert told.rows(ended(3, 163.0)) == 100  # 63 of them once more
    assert told.rows(ended(3, 104.0)) == 104  # lines differ
