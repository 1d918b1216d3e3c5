"""A journal at an address that Spark can write: what is there is gone on with, and what is written gets there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.core.errors import BadInput
from penstock.core.journal import Journal
from penstock.live.recorder import Recorder
from penstock.live.remote import RemoteRecorder, Store, recorder_at
from penstock.pipeline.session import session
from tests.live.test_recorder import header, steps


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session("local[1]", "journals") as running:
        yield running


@pytest.mark.spark
def test_a_journal_elsewhere_is_sent_and_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    made, address = steps()[:10], f"file://{tmp_path}/far/journal.jsonl"
    with recorder_at(spark, address, header(), 0.0) as recorder:
        assert isinstance(recorder, RemoteRecorder)
        for step in made[:6]:
            recorder.write(step)
    assert list(Journal.open(tmp_path / "far" / "journal.jsonl")) == made[:6]
    with recorder_at(spark, address, header(), 120.0) as recorder:
        assert [step.seen.time_s for step in recorder.past] == [step.seen.time_s for step in made[3:6]]
        for step in made[6:]:
            recorder.write(step)
    assert list(Journal.open(tmp_path / "far" / "journal.jsonl")) == made


@pytest.mark.spark
def test_rotated_files_go_too_and_what_a_crash_left_half_renamed_is_found(spark: SparkSession, tmp_path: Path) -> None:
    here, far, back = tmp_path / "here", tmp_path / "far", tmp_path / "back"
    here.mkdir()
    store, path = Store(spark, f"file:{far}/journal.jsonl"), here / "journal.jsonl"
    path.write_text("new")
    (here / "journal.jsonl.1").write_text("old")
    (here / "journal.jsonl.lock").write_text("")
    store.send(path)
    assert {each.name for each in far.iterdir() if each.name[0] != "."} == {"journal.jsonl", "journal.jsonl.1"}
    (far / "journal.jsonl").rename(far / "journal.jsonl.new")
    back.mkdir()
    Store(spark, f"file:{far}/journal.jsonl").fetch(back / "journal.jsonl")
    assert (back / "journal.jsonl").read_text() == "new"
    assert (back / "journal.jsonl.1").read_text() == "old"


@pytest.mark.spark
def test_a_place_that_cannot_be_written_and_another_jobs_journal_are_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"the journal nofs://host/j\.jsonl cannot be written: .*nofs"):
        recorder_at(spark, "nofs://host/j.jsonl", header(), 0.0)
    (tmp_path / "taken").write_text("a file, and no folder")
    with pytest.raises(BadInput, match=r"taken/j\.jsonl cannot be written"):
        recorder_at(spark, f"file:{tmp_path}/taken/j.jsonl", header(), 0.0)
    address = f"file:{tmp_path}/journal.jsonl"
    with recorder_at(spark, address, header("clicks"), 0.0):
        pass
    with pytest.raises(BadInput, match="is of the job clicks, not views"):
        recorder_at(spark, address, header("views"), 0.0)


def test_a_plain_path_is_a_file(tmp_path: Path) -> None:
    with recorder_at(None, tmp_path / "a:b.jsonl", header(), 0.0) as recorder:  # type: ignore[arg-type]
        assert type(recorder) is Recorder
