"""The plant of CPU shares, on records that are made up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.apps.logs import COUNTED, LINES, MATCHED, PARSED
from penstock.core.errors import BadInput, ExternalError, PlantError
from penstock.core.objective import Objective
from penstock.live.log_fleet import need_groups
from penstock.live.log_records import Records
from penstock.live.resources import hold
from penstock.live.share_demand import Interval, costs_s, demand_of, settled_demand, watched
from penstock.live.share_plant import SharePlant
from penstock.live.share_run import SharesWanted, checked, completed
from penstock.models.arrivals.spaced import SpacedArrivals
from penstock.models.queues.demand import Demand
from penstock.policies.registry import Named

NONE = Records(np.zeros(0), np.zeros(0))
SILENT = dict.fromkeys((LINES, PARSED, COUNTED, MATCHED), NONE)


class Fleet:
    """Applications that use CPU as they are told."""

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}
        self.used = dict.fromkeys(("parser", "counter", "matcher"), 0.0)
        self.ended = ""

    def limit(self, name: str, share: float) -> None:
        self.shares[name] = share

    def cpu_seconds(self) -> Mapping[str, float]:
        return dict(self.used)

    def need_alive(self) -> None:
        if self.ended:
            raise ExternalError(f"{self.ended} has ended")


class Reader:
    """Records that were put here."""

    def __init__(self) -> None:
        self.next: dict[str, Records] = dict(SILENT)

    def take(self) -> Mapping[str, Records]:
        taken, self.next = self.next, dict(SILENT)
        return taken


def plant(bound_s: float = 0.25) -> tuple[SharePlant, Fleet, Reader]:
    fleet, reader = Fleet(), Reader()
    job = SharesWanted(objective=Objective(bound_s)).job({"parser": 0.003, "matcher": 0.004})
    return SharePlant(fleet, reader, job), fleet, reader


def records(sent: list[float], takes_s: float) -> Records:
    return Records(np.asarray(sent) + takes_s, np.asarray(sent))


def test_nothing_is_seen_before_a_line_was_matched() -> None:
    found, _, reader = plant()
    assert found.observe() is None
    now_s = time.time() - 1
    reader.next = {**SILENT, LINES: records([now_s], 0.0)}
    assert found.observe() is None
    assert found.awaited == ["parser", "counter", "matcher"]


def test_lines_are_followed_to_the_matcher_and_their_gaps_kept() -> None:
    found, fleet, reader = plant()
    begin_s = time.time() - 2.0
    sent = [begin_s, begin_s + 0.1, begin_s + 0.3]
    reader.next = {
        LINES: records(sent, 0.0),
        PARSED: records(sent[:2], 0.01),
        COUNTED: NONE,
        MATCHED: Records(np.array([begin_s + 0.5]), np.array(sent[:1])),
    }
    fleet.used["matcher"] = 1.0
    seen = found.observe()
    assert seen is not None
    assert (seen.arrived, seen.processed, seen.backlog) == (3, 1, 2)
    assert seen.paths["matcher"].mean == pytest.approx(0.5, abs=1e-6)
    assert (seen.operators["matcher"].backlog, seen.operators["counter"].backlog) == (1, 2)
    assert isinstance(seen.arrivals, SpacedArrivals)
    assert seen.arrivals.gaps_s == pytest.approx([0.1, 0.2], abs=1e-6)
    # The whole share of the matcher is half a core.
    assert seen.operators["matcher"].load == pytest.approx(1.0 / seen.span_s / 0.5)


def test_a_record_from_after_the_look_belongs_to_the_next_interval() -> None:
    found, _, reader = plant()
    now_s = time.time()
    sent = [now_s - 1.0, now_s + 0.3]
    reader.next = {**SILENT, LINES: records(sent, 0.0), PARSED: records(sent, 0.01), MATCHED: records(sent, 0.02)}
    first = found.observe()
    time.sleep(0.4)
    second = found.observe()
    assert first is not None
    assert second is not None
    assert (first.arrived, first.backlog, second.arrived, second.processed) == (1, 0, 2, 2)


def test_a_share_is_set_once_and_a_dry_run_sets_none() -> None:
    found, fleet, _ = plant()
    assert fleet.shares == dict.fromkeys(fleet.used, 1.0)
    fleet.shares.clear()
    found.apply(replace(found.target, cpu_share={"parser": 1.0, "counter": 1.0, "matcher": 0.55}))
    assert fleet.shares == {"matcher": 0.55}
    found.leave()
    assert fleet.shares == dict.fromkeys(fleet.used, 1.0)
    job = SharesWanted().job({"parser": 0.003, "matcher": 0.004})
    dry = SharePlant(fleet, Reader(), job, is_dry=True)
    fleet.shares.clear()
    dry.apply(replace(dry.target, cpu_share={"matcher": 0.4}))
    assert fleet.shares == {}


def test_an_application_that_has_ended_is_said() -> None:
    found, fleet, _ = plant()
    fleet.ended = "matcher"
    with pytest.raises(PlantError, match="matcher has ended"):
        found.observe()


def test_without_lines_no_cost_is_learnt() -> None:
    with pytest.raises(ExternalError, match="0 lines were parsed"):
        watched(Fleet(), Reader(), 0.01, sleep=lambda _: None)


def test_cpu_that_falls_as_lines_grow_is_put_down_to_the_lines() -> None:
    """As while code is compiled: no line through the two says what a line costs."""
    fleet, reader, sent = Fleet(), Reader(), list[float]()

    def sleep(_: float) -> None:
        before_s = time.time()
        time.sleep(0.02)
        sent.extend(np.linspace(before_s, time.time(), 20 + len(sent)))
        for name in fleet.used:
            fleet.used[name] += 20.0 / len(sent)
        reader.next = {**SILENT, PARSED: records(sent, 0.0), MATCHED: records(sent, 0.0)}

    found = demand_of(watched(fleet, reader, 0.2, sleep)["matcher"])
    assert found.idle == 0
    assert 0.9 < found.mean_s * len(sent) / fleet.used["matcher"] < 1.1


def test_a_cost_is_measured_until_lines_get_no_cheaper() -> None:
    fleet, reader = Fleet(), Reader()
    costs, windows = iter([1.0, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1]), list[float]()

    def sleep(_: float) -> None:
        before_s, cost = time.time(), next(costs)
        time.sleep(0.02)
        for name in fleet.used:
            fleet.used[name] += 100 * cost
        sent = list(np.linspace(before_s, time.time(), 100))
        reader.next = {**SILENT, PARSED: records(sent, 0.0), MATCHED: records(sent, 0.0)}
        windows.append(cost)

    assert settled_demand(fleet, reader, 0.001, sleep)["parser"].mean_s == pytest.approx(0.1, rel=0.1)
    assert windows == [1.0, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1]  # two beside a third that is no dearer


def test_a_cost_is_that_of_the_last_two_windows_together(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each window alone tells no line, as its rate hardly varies: the last two tell 2 ms a line, and 0.05 cores without.
    fleet, reader, counts, sent, now_s = Fleet(), Reader(), iter([200, 200, 600]), list[float](), [0.0]
    lines = [0]
    monkeypatch.setattr("penstock.live.share_demand.time", SimpleNamespace(time=lambda: now_s[0]))

    def sleep(seconds: float) -> None:
        if not len(reader.next[PARSED].time_s):  # a new window
            sent.clear()
            lines[0] = next(counts)
        sent.extend(np.linspace(now_s[0], now_s[0] + 0.99 * seconds, lines[0]))
        now_s[0] += seconds
        for name in fleet.used:
            fleet.used[name] += 0.05 * seconds + 0.002 * lines[0]
        reader.next = {**SILENT, PARSED: records(sent, 0.0), MATCHED: records(sent, 0.0)}

    found = settled_demand(fleet, reader, 30.0, sleep)["parser"]
    assert found.mean_s == pytest.approx(0.002)
    assert found.idle == pytest.approx(0.05)
    assert not caplog.text  # it has settled: no more windows were needed, and nothing is said


def test_a_look_that_came_late_is_a_longer_interval() -> None:
    # 2 ms a line and 0.1 cores without lines, whatever the lengths of the intervals.
    spans = [1.0, 2.5, 1.0, 1.5, 4.0, 1.0]
    rates = [50.0, 60.0, 100.0, 150.0, 80.0, 120.0]
    seen = [Interval(rate * span, (0.1 + 0.002 * rate) * span, span) for rate, span in zip(rates, spans, strict=True)]
    assert demand_of(seen).mean_s == pytest.approx(0.002)
    assert demand_of(seen).idle == pytest.approx(0.1)


def test_costs_that_never_settle_are_said(caplog: pytest.LogCaptureFixture) -> None:
    fleet, reader, cost = Fleet(), Reader(), [1.0]

    def sleep(_: float) -> None:
        before_s = time.time()
        time.sleep(0.02)
        cost[0] *= 0.5
        for name in fleet.used:
            fleet.used[name] += 100 * cost[0]
        sent = list(np.linspace(before_s, time.time(), 100))
        reader.next = {**SILENT, PARSED: records(sent, 0.0), MATCHED: records(sent, 0.0)}

    settled_demand(fleet, reader, 0.001, sleep)
    assert "still falling" in caplog.text


def test_an_operator_that_needs_more_than_the_least_share_without_lines_is_refused() -> None:
    # 40 % of half a core is 0.2.
    with pytest.raises(BadInput, match=r"matcher uses 0\.250 cores"):
        costs_s({"matcher": Demand(0.002, 0.0, 0.25)}, least=0.4)


def test_a_policy_is_told_that_shares_are_quotas_and_which_is_the_least() -> None:
    found = checked(SharesWanted(policy="mead:percentile=0.95,every_s=10", least=0.5))
    given = Named.parse(found.policy).parameters
    assert given["service"] == "quota"
    assert given["cores"] == "parser:0.25+counter:0.25+matcher:0.5"
    assert given["least"] == 0.5
    for stays in ("mead:service=core,percentile=0.95", "mead:model=gi"):
        assert Named.parse(completed(stays, 0.4)).parameters.get("service", "core") == "core"
    assert completed("static-share:share=0.7", 0.5) == "static-share:share=0.7"
    with pytest.raises(BadInput, match="not that of --least"):
        checked(SharesWanted(policy="share-threshold:least=0.4", least=0.5))


def test_a_policy_of_workers_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadInput, match="only CPU shares"):
        checked(SharesWanted(policy="threshold"))


def test_without_the_right_to_make_cgroups_it_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.live.log_fleet.find_groups", list)
    with hold("test") as holding, pytest.raises(BadInput, match="no right to make cgroups"):
        need_groups(holding)


def test_one_record_with_a_time_to_come_does_not_hold_back_what_stands_behind_it() -> None:
    found, _, reader = plant()
    now_s = time.time()
    lines = Records(
        np.array([now_s - 2.0, now_s + 1e6, now_s - 1.0]), np.array([now_s - 2.0, now_s - 1.5, now_s - 1.0])
    )
    reader.next = {**SILENT, LINES: lines, PARSED: lines, MATCHED: records([now_s - 1.0], 0.1)}
    seen = found.observe()
    assert seen is not None
    assert (seen.arrived, seen.processed) == (3, 3)
