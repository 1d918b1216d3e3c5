"""The comparison as table, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from penstock.report.comparison_table import as_csv, as_json, as_table
from penstock.report.markup import table
from penstock.report.verdict import headline
from penstock.runs.comparison import Comparison, Run

Made = Callable[..., Any]
KEYS = {
    "name", "cost", "violation_share", "violations", "late_events", "scaling_actions", "workers_started",
    "workers_stopped", "latency_p50_s", "latency_p95_s", "latency_p99_s", "cost_to_bound",
    "arrived", "processed", "backlog",
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(made: Made) -> tuple[Run, ...]:
    return tuple(made(count=200, policy=name, margin=margin).run() for name, margin in (("mst", 1.1), ("static", 2.0)))


def printed(comparison: Comparison, width: int = 100) -> str:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(as_table(comparison))
    return text.getvalue()


def test_names_that_begin_alike_are_told_apart(runs: tuple[Run, ...]) -> None:
    names = [f"deadline:without={part}" for part in ("allowance", "alternates")]
    two = [replace(run, header=replace(run.header, policy=name)) for run, name in zip(runs, names, strict=True)]
    for width in (60, 80, 100):
        text = printed(Comparison("t", "latency<=30s", tuple(two)), width)
        assert "deadline:without=all" in text
        assert "deadline:without=alt" in text


def test_the_json_has_the_promised_keys_and_the_scores_numbers(runs: tuple[Run, ...]) -> None:
    content = json.loads(as_json(Comparison("nasa", "latency<=120s", runs, bound_lower=0.5, bound_cost=0.6)))
    assert (content["trace"], content["objective"]) == ("nasa", "latency<=120s")
    assert content["bound"] == {"cost": 0.6, "lower": 0.5, "note": ""}
    for record, run in zip(content["policies"], runs, strict=True):
        assert record.keys() >= KEYS
        assert record["name"] == run.header.policy
        assert record["late_events"] == run.score.late_events
        assert record["cost_to_bound"] == run.score.cost / 0.5


def test_less_than_the_bound_is_marked_where_the_objective_was_missed(runs: tuple[Run, ...]) -> None:
    cheap = replace(runs[0], score=replace(runs[0].score, cost=4.0, violation_share=0.2))
    fair = replace(runs[1], score=replace(runs[1].score, cost=6.0, violation_share=0.2))
    both = Comparison("nasa", "latency<=120s", (cheap, fair), bound_lower=5.0)
    for text in (printed(both), table(both)):
        assert "0.80×*" in text
        assert "1.20×*" not in text
        assert "it missed the objective" in text
    assert "*" not in printed(replace(both, runs=(fair,)))


@pytest.mark.parametrize("lower", [None, 0.0, math.inf, math.nan])
def test_without_a_usable_bound_the_ratio_is_null(runs: tuple[Run, ...], lower: float | None) -> None:
    content = json.loads(as_json(Comparison("nasa", "rate", runs, bound_lower=lower)))
    ratios = [record["cost_to_bound"] for record in content["policies"]]
    assert ratios == [None, None]


def test_what_is_not_finite_is_null_in_json_and_empty_in_csv(runs: tuple[Run, ...]) -> None:
    broken = replace(runs[0], score=replace(runs[0].score, latency_p99_s=math.inf, cost=math.nan))
    comparison = Comparison("nasa", "rate", (broken,), bound_lower=math.nan)
    text = as_json(comparison)
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["policies"][0]["cost"] is None
    (record,) = csv.DictReader(io.StringIO(as_csv(comparison)))
    assert record["latency_p99_s"] == record["cost"] == ""


def test_the_csv_has_a_line_a_policy_even_when_a_name_has_commas(runs: tuple[Run, ...]) -> None:
    odd = replace(runs[0], header=replace(runs[0].header, policy='mst:spare=1.1,"x"'))
    records = list(csv.DictReader(io.StringIO(as_csv(Comparison("nasa", "rate", (odd, runs[1]))))))
    assert [record["name"] for record in records] == ['mst:spare=1.1,"x"', "static"]
    assert float(records[1]["cost"]) == runs[1].score.cost


def test_the_table_fits_a_hundred_columns_with_the_policy_first(runs: tuple[Run, ...]) -> None:
    long = replace(runs[0], header=replace(runs[0].header, policy="threshold:upper=0.75,lower=0.40,cooldown=600s"))
    large = replace(long, score=replace(long.score, cost=123_456.7, workers_started=123_456, workers_stopped=123_450))
    lines = printed(Comparison("nasa", "latency<=120s", (large, *runs), 0.5, 0.6)).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("policy")
    assert [line.split()[0] for line in lines[2:4]] == ["mst", "static"]
    assert "$123,457" in lines[1]
    assert "…" not in lines[2] + lines[3]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_loses_columns_and_never_a_digit(runs: tuple[Run, ...], width: int) -> None:
    text = printed(Comparison("nasa", "latency<=120s", runs, 0.5, 0.6), width)
    assert max(map(len, text.splitlines())) <= width
    for needed in ("cost", "missed", "actions", f"${runs[0].score.cost:.2f}", f" {runs[0].score.scaling_actions}"):
        assert needed in text
    assert "…" not in text


def test_a_policy_named_like_markup_is_shown_as_it_is_named(runs: tuple[Run, ...]) -> None:
    odd = replace(runs[0], header=replace(runs[0].header, policy="[red]x[/red]"))
    assert "[red]x[/red]" in printed(Comparison("nasa", "rate", (odd,)))


def test_time_of_which_nobody_knows_is_said_and_no_praise(runs: tuple[Run, ...]) -> None:
    one, other = runs
    blind = replace(
        one, score=replace(one.score, violation_share=0.0, unknown_share=0.4, latency_p95_s=None, cost=0.01)
    )
    comparison = Comparison("nasa", "latency<=120s", (blind, other))
    assert f"nobody knew whether the objective held: {blind.name} 40 %" in printed(comparison)
    assert json.loads(as_json(comparison))["policies"][0]["latency_p95_s"] is None
    page = table(comparison)
    assert "Unknown" in page
    assert "Unknown" not in table(Comparison("nasa", "latency<=120s", runs))
    assert f"<b>{blind.name}</b>" not in headline(comparison)
    alone = headline(Comparison("nasa", "latency<=120s", (replace(blind, score=replace(blind.score, violations=0)),)))
    assert "was not seen to be missed. Unknown 40 % of the time." in alone
