"""A run that grows: read step by step it is what the report reads at once; a page gets only what it lacks."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.core.allocation import Allocation
from penstock.core.journal import JournalWriter
from penstock.report.decided import ENTRIES_MAX, Decisions
from penstock.report.delta import Known, delta
from penstock.report.live import LiveRun
from penstock.report.livepage import live_page
from penstock.report.run_state import figures, silence, standing
from penstock.runs.comparison import run_of_journal

Made = Callable[..., Any]


@pytest.fixture
def growing(tmp_path: Path, made: Made) -> Iterator[Callable[..., tuple[LiveRun, Iterator[None]]]]:
    """`live, grow = growing(count=…)`: each `next(grow)` writes and reads as many steps as `at_once`."""
    opened: list[Any] = []

    def begin(at_once: int = 50, **how: Any) -> tuple[LiveRun, Iterator[None]]:
        run, path = made(**how), tmp_path / "run.jsonl"
        writer = JournalWriter.at(path, run.header(), flush=True)
        writer._file.flush()
        live = LiveRun(path)
        opened.extend([writer, live])

        def grow() -> Iterator[None]:
            for number, step in enumerate(run.steps(), start=1):
                writer.write(step)
                if number % at_once == 0:
                    while live.advance():
                        pass
                    yield

        return live, grow()

    yield begin
    for each in opened:
        each.__exit__(None, None, None)


class Page:
    """What the script of the page does with each reply."""

    def __init__(self, live: LiveRun) -> None:
        self._live, self.known, self.starts = live, "", np.array([])
        self.curves: dict[str, Any] = {}
        self.marks: list[Any] = []
        self.letters: list[int] = []

    def ask(self) -> dict[str, Any]:
        reply = delta(self._live, Known.parse(self.known), now_s=0.0)
        self.known = reply["known"]
        if "run" in reply:
            self.letters.append(len(json.dumps(reply, allow_nan=False)))
            self._take(reply, reply["run"], reply["since"])
        return reply

    def _take(self, reply: dict[str, Any], run: dict[str, Any], since: int) -> None:
        blobs = [np.frombuffer(base64.b64decode(text), "<u2").astype(float) for text in reply["blobs"]]
        self.starts = np.concatenate((self.starts[:since], run["first_s"] + blobs[run["places"]] * run["width_s"]))
        self.marks = self.marks[: reply["marks_since"]] + run["marks"]
        for name, parts in run["curves"].items():
            old = self.curves.get(name, [np.array([])] * len(parts))
            new = [self._decoded(blobs, coded) for coded in parts]
            self.curves[name] = [np.concatenate((o[:since], n)) for o, n in zip(old, new, strict=True)]

    @staticmethod
    def _decoded(blobs: list[Any], coded: list[Any]) -> Any:
        blob, kind, offset, step = coded
        codes = np.where(blobs[blob] == 65535, np.nan, blobs[blob])
        return np.where(codes > 0, np.exp(offset + step * (codes - 1)), 0.0) if kind else offset + step * codes


def test_step_by_step_it_comes_to_what_the_report_reads_at_once(growing: Any) -> None:
    live, grow = growing(count=2500, at_once=7, flap_every=3, signals=True)
    for _ in grow:
        _ = live.curves.names  # whoever looks settles the curves, at any number of rows
    live.advance()
    whole, damaged = run_of_journal(live.path)
    assert (live.run().score, live.steps, damaged) == (whole.score, 2500, 0)
    assert live.curves.actions.marks() == whole.curves.actions.marks()
    for name in whole.curves.names:
        np.testing.assert_allclose(live.curves.band(name).mean, whole.curves.band(name).mean)


def test_a_page_that_takes_every_delta_has_the_whole_run(growing: Any) -> None:
    # 2,048 buckets are full after 2,048 steps: the merge in between makes all that the page has outdated.
    live, grow = growing(count=2400, at_once=40, flap_every=4, signals=True, gap_after=300)
    page = Page(live)
    for _ in grow:
        page.ask()
    assert page.known == str(Known.now(live))
    np.testing.assert_allclose(page.starts, live.curves.starts_s)
    assert set(page.curves) == set(live.curves.names) > {"signal raw rate", "signal filtered rate", "backlog"}
    for name, parts in page.curves.items():
        band = live.curves.band(name)
        for got, want in zip(parts, (band.mean, band.low, band.high), strict=False):
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-9)
    assert [mark[1] for mark in page.marks] == [mark.step for mark in live.curves.actions.marks()]


def test_a_delta_is_small_and_an_unchanged_run_sends_no_curves(growing: Any) -> None:
    live, grow = growing(count=2000, at_once=10, signals=True)
    page = Page(live)
    for _ in grow:
        page.ask()
    # Ten buckets of ten curves, and the last 40 decisions at 200 letters each; a whole run has 2,000 buckets.
    assert max(page.letters[1:]) < 16_000
    again = page.ask()
    assert "run" not in again
    assert "decisions" not in again
    assert len(json.dumps(again)) < 200
    assert delta(live, Known.parse("1-2-3-4"), 0.0)["since"] == 0


@pytest.mark.parametrize("text", ["", "1-2-3", "-1-2-3-4", "1-2-3-x", "1" * 400, "٣-٣-٣-٣", "../../etc"])
def test_what_is_no_position_is_the_beginning(text: str) -> None:
    assert Known.parse(text) == Known()


def test_decisions_that_change_nothing_share_a_line_and_few_are_kept(made: Made) -> None:
    decisions = Decisions()
    for number, step in enumerate(made(count=3000).steps(), start=1):
        decisions.add(step, number)
    entries = decisions.last()
    assert len(entries) == ENTRIES_MAX
    assert entries[0].step == 3000
    assert [entry.step for entry in entries] == sorted((entry.step for entry in entries), reverse=True)
    folded = [entry for entry in entries if entry.count > 1]
    assert folded
    assert {entry.way for entry in folded} == {"kept"}
    assert {entry.way for entry in entries} > {"up", "down"}
    for younger, older in pairwise(entries):
        # Nothing between two entries is left out: a kept stretch begins where the action before it ended.
        assert younger.step - younger.count == older.step


def test_what_the_limits_cut_is_said(made: Made) -> None:
    step = next(iter(made(count=1).steps()))
    cut = replace(step, target=Allocation.of(5), decision=replace(step.decision, target=Allocation.of(9)))
    decisions = Decisions()
    decisions.add(cut, 1)
    assert decisions.last()[0].outcome == "2 → 5 workers, 9 wanted"


def test_a_rotated_journal_goes_on_and_another_run_begins_anew(tmp_path: Path, made: Made) -> None:
    path, run = tmp_path / "run.jsonl", made(count=60)
    steps = list(run.steps())

    def write(part: list[Any], header: Any) -> None:
        with JournalWriter.at(tmp_path / "next", header) as writer:
            for step in part:
                writer.write(step)
        if path.exists():
            path.rename(tmp_path / "run.jsonl.1")
        (tmp_path / "next").rename(path)

    write(steps[:40], run.header())
    with LiveRun(path) as live:
        live.advance()
        write(steps[40:], run.header())
        live.advance()
        assert (live.steps, live.generation) == (60, 1)
        assert live.run().score.arrived == steps[-1].seen.arrived
    with LiveRun(path) as fresh:
        while fresh.advance():
            pass
        assert fresh.run().score == live.run().score  # begun later, it reads what was rotated first
        write(steps[:5], replace(run.header(), policy="other"))
        fresh.advance()
        assert (fresh.steps, fresh.header.policy, fresh.generation) == (5, "other", 2)


def test_the_figures_say_what_runs_and_whether_the_objective_holds(growing: Any) -> None:
    live, grow = growing(count=300, at_once=300, margin=0.5)
    assert figures(live, live.run().score) == []
    assert silence(live, 5.0) == "no step yet"
    assert delta(live, Known(), 0.0)["figures"] == []
    next(grow)
    named = {figure.label: figure for figure in figures(live, live.run().score)}
    assert named["Workers"].value == str(len(live.last.seen.running.workers))
    assert named["Latency"].is_bad == live.missed
    assert "latency ≤ 120 s" in named["Latency"].beside
    assert not named["Rate"].is_bad
    # Three ticks of 60 s without a step are silence.
    assert silence(live, 180.0) == "last step 3 min ago"
    assert silence(live, 181.0) == "no new step for 3.02 min"
    changed_s = live.path.stat().st_mtime
    assert standing(live, changed_s + 7.0)["silent_s"] == pytest.approx(7.0)


def test_what_is_unknown_does_not_break_the_page(made: Made, tmp_path: Path) -> None:
    step = next(iter(made(count=1).steps()))
    odd = replace(step, seen=replace(step.seen, backlog=None, latency_s=None))
    with JournalWriter.at(tmp_path / "odd.jsonl", made().header()) as writer:
        writer.write(odd)
    with LiveRun(tmp_path / "odd.jsonl") as live:
        live.advance()
        text = json.dumps(delta(live, Known(), 0.0), allow_nan=False)
    assert "unknown" in json.dumps(json.loads(text), ensure_ascii=False)


def test_the_page_asks_its_own_server_alone_and_names_stay_text(made: Made) -> None:
    text = live_page(replace(made().header(), policy="</h1><script>alert(1)</script>"))
    assert "connect-src 'self'" in text
    assert "default-src 'none'" in text
    assert "<script>alert" not in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text
