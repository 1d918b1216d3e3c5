"""Where an alternate begins, which alternates a run may have, and what an app may declare; without a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.apps.app import App, Variant
from penstock.apps.catalogue import APPS
from penstock.core.errors import BadInput, PlantError
from penstock.core.objective import Limits
from penstock.live.control_options import Wanted
from penstock.live.driver import RunPlan, controlled
from penstock.live.handover import Handover
from penstock.live.kafka import KafkaSource
from penstock.live.sinks import Sink

TOPIC = KafkaSource("127.0.0.1:9092", "clicks")


def names(plan: RunPlan) -> list[str]:
    return [each.name for each in plan.variants]


def test_a_job_goes_on_with_the_alternate_that_ran_last(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "checkpoint"
    assert Handover.found(root) == Handover(root)
    root.mkdir(parents=True)
    Handover(root, "hot").same("all").keep()
    assert Handover.found(root) == Handover(root, "all")
    assert Handover.found(root).checkpoint == root


def test_another_state_has_a_checkpoint_beside_the_first(tmp_path: Path) -> None:
    apart = Handover(tmp_path / "checkpoint", "sketch", 2, '{"clicks": {"0": 7}}')
    apart.keep()
    apart.root.mkdir()
    found = Handover.found(tmp_path / "checkpoint")
    assert found == apart
    assert found.checkpoint == tmp_path / "checkpoint.alternate-2"


def test_a_note_of_the_alternate_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.alternate.json").write_text("{}")
    with pytest.raises(PlantError, match="cannot be read: remove it to begin with the first alternate"):
        Handover.found(tmp_path / "checkpoint")


def test_alternates_of_another_state_take_a_topic_and_a_sink_that_does_not_count_batches(tmp_path: Path) -> None:
    plan = RunPlan(APPS["visitors"], Wanted(limits=Limits(1, 2)), tmp_path, tmp_path / "checkpoint")
    assert names(plan) == ["every", "sampled"]
    assert names(replace(plan, kafka=TOPIC)) == ["every", "sampled", "sketch"]
    assert names(replace(plan, kafka=TOPIC, sink=Sink("parquet", "out"))) == ["every", "sampled"]
    told = controlled(plan).job("visitors")
    assert [each.name for each in told.dataflow.operators[0].alternates] == ["every", "sampled"]
    # An app with one implementation has nothing to switch.
    plain = controlled(replace(plan, app=APPS["wordcount"])).job("wordcount")
    assert not plain.dataflow.operators[0].alternates


def test_the_first_variant_is_the_app_and_bad_ones_are_refused() -> None:
    known = APPS["patterns"]
    with pytest.raises(BadInput, match="its first variant is not what it does by itself"):
        replace(known, variants=known.variants[::-1])
    with pytest.raises(BadInput, match="selectivity is -1"):
        App("mine", "", known.transform, known.generate, variants=(Variant("a", known.transform, selectivity=-1.0),))


def test_a_checkpoint_that_was_removed_is_a_new_beginning(tmp_path: Path) -> None:
    root = tmp_path / "checkpoint"
    Handover(root, "sketch", 2, '{"clicks": {"0": 7}}').keep()
    assert Handover.found(root) == Handover(root)


def test_a_state_that_nobody_can_go_on_with_is_refused(tmp_path: Path) -> None:
    apart = Handover(tmp_path / "checkpoint", "sketch", 2, '{"clicks": {"0": 7}}')
    with pytest.raises(BadInput, match="last ran as alternate 'sketch' with a state of its own, and only every"):
        apart.need(["every", "sampled"])
    with pytest.raises(BadInput, match=r"alternate-2, in which the job last ran, is gone"):
        apart.need(["every", "sketch"])
    apart.checkpoint.mkdir()
    apart.need(["every", "sketch"])
    # In the job's own checkpoint any of those that share its state goes on.
    replace(apart, number=0).need(["every"])
