"""A job that nobody here wrote, with one line put in: what is seen of it is what was fed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.foreign import JOBS, run
from benchmarks.foreign_output import all_tables, last_table, listed
from benchmarks.foreign_run import attached

from penstock.core.journal import Journal

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_spark_s_own_kafka_word_count_is_seen_exactly_and_scaled_in_when_the_load_has_gone(tmp_path: Path) -> None:
    job = replace(JOBS[0], load=((400.0, 20.0),), workers=2, partitions=4)
    found = run(job, tmp_path)
    assert found.exact, found.log[-3000:]  # all that was fed was answered once
    assert found.output == found.expected == 40 * found.feeder.fed  # and so says what it put out, 40 words a line
    seen = [step.seen for step in found.steps]
    assert seen[-1].arrived - seen[0].arrived == found.feeder.fed > 0
    assert all(later.arrived >= earlier.arrived for earlier, later in pairwise(seen))
    # Nobody told it where the lag is.
    for each in seen:
        assert each.backlog == pytest.approx(each.arrived - each.processed)
    assert max(each.backlog or 0.0 for each in seen) > 0
    counts = [len(each.running.workers) for each in seen]
    assert counts[-1] == 1 < max(counts)
    assert Journal.open(tmp_path / "journal.jsonl").header.facts["trigger_s"] is None


def test_the_examples_are_there_and_wait_for_their_query_once(tmp_path: Path) -> None:
    for job in JOBS:
        text = attached(job, tmp_path, tmp_path / "journal.jsonl").read_text()
        line = next(line for line in text.splitlines() if "penstock.attach(" in line)
        assert line.strip().startswith("import penstock; penstock.attach(spark, query, limits=(1, 4)")


def test_what_a_job_put_out_is_counted_from_its_console_and_from_its_own_list(tmp_path: Path) -> None:
    rule, head = "+----+-----+", "|word|count|"
    first = [rule, head, rule, "|w1  |3    |", "2026-11-16 penstock keeping executors=4", "|w2  |4    |", rule]
    half = [rule, head, rule, "|w1  |9    |"]
    (tmp_path / "out.log").write_text("\n".join(["Batch: 0", *first, "Batch: 1", *first[:4], rule, "Batch: 2", *half]))
    assert (last_table(tmp_path), all_tables(tmp_path)) == (3, 10)
    assert listed(tmp_path) == 0
    (tmp_path / "answered.txt").write_text("0 5\n1 7\n1 7\n2 ")  # batch 1 ran again, batch 2 is being written
    assert listed(tmp_path) == 12
