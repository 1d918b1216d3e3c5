"""The page as text: whole, inert, small."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.core.objective import Objective
from penstock.core.score import Scorer
from penstock.report.page import page, write_page
from penstock.report.payload import Blobs
from penstock.runs.comparison import Comparison, Run, run_of_journal
from penstock.runs.run_curves import Curves

Made = Callable[..., Any]
EVIL = "</script><img src=x onerror=alert(1)>&\"'<!--"


class Tags(HTMLParser):
    """Counts tags, and gathers what addresses a page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "style", "onerror")]


def tags(text: str) -> Tags:
    found = Tags()
    found.feed(text)
    return found


def carried(text: str) -> Any:
    return json.loads(re.search(r'id="run-data">(.*?)</script>', text, re.S).group(1))  # type: ignore[union-attr]


def decoded(content: Any, coded: list[float]) -> np.ndarray[Any, Any]:
    blob, kind, offset, step = coded
    codes = np.frombuffer(base64.b64decode(content["blobs"][int(blob)]), "<u2").astype(float)
    codes = np.where(codes == 65535, np.nan, codes)
    exact = np.where(codes > 0, np.exp(offset + step * (codes - 1)), 0.0) if kind else offset + step * codes
    return np.where(np.isnan(codes), np.nan, exact)


def test_names_and_reasons_of_users_stay_text(made: Made) -> None:
    run = made(count=60, policy=EVIL, reason=EVIL, signals=True).run()
    run = replace(run, header=replace(run.header, facts={EVIL: EVIL}, parameters={EVIL: EVIL}))
    text = page(Comparison(EVIL, "latency<=120s", (run,), assumed={EVIL: EVIL}))
    found = tags(text)
    assert "img" not in found.counts
    assert found.counts["script"] == 2
    assert carried(text)["runs"][0]["name"] == EVIL
    assert carried(text)["runs"][0]["marks"][0][4] == EVIL


def test_a_name_that_is_no_unicode_does_not_lose_the_report(made: Made, tmp_path: Path) -> None:
    run = made(count=5, policy="odd \ud800 name").run()
    write_page(tmp_path / "page.html", Comparison("x", "rate", (run,)))
    assert "odd ? name" in (tmp_path / "page.html").read_text("utf-8")


def test_the_page_names_no_address_and_forbids_what_it_does_not_carry(made: Made) -> None:
    text = page(Comparison("nasa", "rate", (made(count=5).run(),)))
    assert [address[:5] for address in tags(text).addresses] == ["data:"]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_six_policies_over_ninety_days_stay_below_a_megabyte(made: Made) -> None:
    # 16,200 steps of 8 min give as many buckets and marks as 129,600 of 1 min: 2,025 and 500.
    runs = tuple(
        made(count=16_200, span_s=480.0, policy=f"p{i}", flap_every=i % 3, margin=1 + i / 10).run() for i in range(6)
    )
    assert all(len(run.curves.starts_s) == 2025 for run in runs)
    assert len(page(Comparison("nasa", "latency<=120s", runs, 10.0, 11.0))) < 1_000_000


def test_long_reasons_cost_marks_and_not_size(made: Made) -> None:
    runs = tuple(made(count=4000, flap_every=2, reason="because " * 60 + "{rate:.0f}").run() for _ in range(3))
    marks = [run["marks"] for run in carried(page(Comparison("nasa", "rate", runs)))["runs"]]
    assert all(20 <= len(some) < 600 for some in marks)
    assert all(len(mark[4]) <= 300 for some in marks for mark in some)


def test_the_page_carries_the_curves(made: Made) -> None:
    run = made(count=500, margin=0.9).run()
    content = carried(page(Comparison("nasa", "latency<=120s", (run,))))
    for name in ("rate", "capacity", "running", "latency", "backlog"):
        mean, low, high = (decoded(content, coded) for coded in content["runs"][0]["curves"][name])
        band = run.curves.band(name)
        np.testing.assert_allclose(mean, band.mean, rtol=1e-3)
        np.testing.assert_allclose(low, band.low, rtol=1e-3)
        np.testing.assert_allclose(high, band.high, rtol=1e-3)


@pytest.mark.parametrize(
    "values",
    [[0.0, 0.0], [3.0, 70_000.0], [0.0, 1e-6, 1e9], [-5.0, 2.5], [np.nan, 4.5], [np.nan], [7.25], [1.0, 65_535.0]],
)
def test_coded_values_come_back(values: list[float]) -> None:
    blobs, given = Blobs(), np.array(values)
    coded = blobs.values(given)
    np.testing.assert_allclose(decoded({"blobs": blobs.texts}, coded), given, rtol=1e-3, atol=1e-4)


def test_runs_over_one_trace_carry_its_rate_once(made: Made) -> None:
    runs = tuple(made(count=100, margin=margin).run() for margin in (1.0, 1.5))
    first, second = (run["curves"] for run in carried(page(Comparison("nasa", "rate", runs)))["runs"])
    assert first["rate"] == second["rate"]
    assert first["running"] != second["running"]


def test_a_comparison_names_the_cheapest_that_keeps_the_objective(made: Made) -> None:
    runs = tuple(
        made(count=2000, policy=name, margin=margin).run() for name, margin in (("tight", 0.5), ("ample", 2.0))
    )
    assert runs[0].score.cost < runs[1].score.cost
    assert runs[0].score.violation_share > 0.01
    lead = re.search(r'class="lead">(.*?)</p>', page(Comparison("nasa", "latency<=120s", runs)))
    assert lead is not None
    assert lead[1].startswith("Cheapest that keeps the objective at least 99 % of the time: <b>ample</b>")


def test_a_policy_that_knows_the_future_is_not_praised(made: Made) -> None:
    runs = tuple(
        made(count=200, policy=name, margin=margin).run() for name, margin in (("clairvoyant", 1.0), ("mst", 2.0))
    )
    text = page(Comparison("nasa", "latency<=120s", runs))
    assert "99 % of the time: <b>mst</b>" in text
    assert "clairvoyant <em>knows the future</em>" in text


def test_a_run_without_steps_or_no_run_at_all_still_gives_a_page(made: Made) -> None:
    header = made().header()
    empty = Run(header, Scorer(header.objective, header.price).result(), Curves(Objective()))
    assert "steady on nothing" in page(Comparison("nothing", "rate", (empty,)))
    assert "Nothing was run." in page(Comparison("nothing", "rate", ()))


def test_a_journal_becomes_the_page_of_its_run(made: Made, tmp_path: Path) -> None:
    made_run = made(count=50)
    run, damaged = run_of_journal(made_run.journal(tmp_path / "run.jsonl"))
    assert damaged == 0
    shown = (page(Comparison("made up", "latency<=120s", (each,))) for each in (run, made_run.run()))
    assert next(shown) == next(shown)


def test_damaged_lines_are_counted_and_a_journal_without_steps_is_refused(made: Made, tmp_path: Path) -> None:
    journal = made(count=50).journal(tmp_path / "run.jsonl")
    with journal.open("a") as file:
        file.write('{"time_s": 12')
    assert run_of_journal(journal)[1] == 1
    journal.write_text(journal.read_text().splitlines()[0] + "\n")
    with pytest.raises(BadInput, match="has no steps"):
        run_of_journal(journal)


def test_a_page_that_cannot_be_written_leaves_the_old_one(made: Made, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        write_page(tmp_path / "nowhere" / "page.html", Comparison("x", "rate", ()))
