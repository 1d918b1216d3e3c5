"""The page in a real browser: it draws, answers to the pointer and to keys, and asks no network for anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from penstock.core.objective import Objective
from penstock.report.page import write_page
from penstock.runs.comparison import Comparison

pytestmark = pytest.mark.browser
Made = Callable[..., Any]
EVIL = "</script><img src=x onerror=alert(1)>"


@dataclass
class Opened:
    """A page, and what it did that it should not have."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def plots(self, measure: str) -> Locator:
        return self.page.locator(f'svg.plot[aria-label^="{measure}"]')

    def tip(self) -> str:
        return self.page.locator("#tip.on").inner_text()

    def at_mark(self, number: int) -> tuple[float, float]:
        """Where on the screen the first run's action stands."""
        self.plots("Workers").first.scroll_into_view_if_needed()
        box = self.plots("Workers").first.bounding_box()
        assert box is not None
        left = self.page.evaluate(f"GUTTER.left + timeline.x(timeline.report.runs[0].marks[{number}].time)")
        return box["x"] + left, box["y"] + 20


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def at(comparison: Comparison, **options: Any) -> Opened:
        write_page(tmp_path / "page.html", comparison)
        context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True, **options)
        contexts.append(context)
        view = Opened(context.new_page())
        view.page.on("request", lambda request: view.requests.append(request.url))
        view.page.on("pageerror", lambda error: view.errors.append(str(error)))
        view.page.on("dialog", lambda dialog: view.errors.append(dialog.message))
        view.page.on("console", lambda line: view.errors.append(line.text))
        view.page.goto((tmp_path / "page.html").as_uri())
        view.page.wait_for_selector("html[data-drawn=yes]", timeout=20_000)
        return view

    yield at
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def three(made: Made) -> Comparison:
    runs = (
        made(count=3000, policy="tight", margin=0.5).run(),
        made(count=3000, policy="flapping", flap_every=2, signals=True).run(),
        made(count=3000, policy="ample", margin=2.0, gap_after=1500).run(),
    )
    return Comparison("three days", "latency<=120s", runs, bound_lower=40.0, bound_cost=42.0)


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]


def line(plot: Locator, look: str) -> str:
    return plot.locator(f"g.series.{look} path.line").first.get_attribute("d") or ""


def test_plots_are_drawn_from_the_data(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    for measure, look in (
        ("Rate", "demand"),
        ("Rate", "own"),
        ("Workers", "own"),
        ("Workers", "asked"),
        ("Latency", "own"),
    ):
        plots = view.plots(measure)
        assert plots.count() == 3
        for number in range(3):
            drawn = points(line(plots.nth(number), look))
            assert len(drawn) > 500
            assert len({x for x, _ in drawn}) > 500
            assert len({y for _, y in drawn}) > 2
    assert view.plots("Signals").count() == 1
    assert view.page.locator("#scatter .point").count() == 3
    assert view.page.locator("path.objective").count() == 3
    assert view.errors == []


def test_no_request_leaves_the_page(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    view.page.mouse.move(600, 600)
    view.page.wait_for_timeout(200)
    assert [address[:5] for address in view.requests] == ["file:"]
    assert view.errors == []


def test_violated_stretches_are_shaded_and_a_gap_is_not_drawn_across(
    opened: Callable[..., Opened], three: Comparison
) -> None:
    view = opened(three)
    shaded = [view.plots("Rate").nth(n).locator("path.missed").get_attribute("d") or "" for n in range(3)]
    assert shaded[0].count("M") >= 1
    assert shaded[2] == ""
    assert [line(view.plots("Rate").nth(n), "demand").count("M") for n in range(3)] == [1, 1, 2]


def test_pointing_at_an_action_shows_its_reason(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    mark = three.runs[0].curves.actions.marks(1000)[5]
    view.page.mouse.move(*view.at_mark(5))
    assert mark.reason in view.tip()
    assert f"step {mark.step}" in view.tip()
    assert "1995-07-0" in view.tip()


def test_the_crosshair_and_its_values_are_shared_by_all_plots(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    view.plots("Workers").first.hover()
    crosses = view.page.locator("path.cross")
    assert {crosses.nth(n).get_attribute("visibility") for n in range(crosses.count())} == {"visible"}
    assert len({crosses.nth(n).get_attribute("transform") for n in range(crosses.count())}) == 1
    values = view.page.locator(".legend .item b").all_inner_texts()
    assert len(values) == 3 * 5 + 2
    assert all(re.match(r"[\d.<–]", value) for value in values)


def test_dragging_zooms_all_plots_and_a_double_click_shows_all_again(
    opened: Callable[..., Opened], three: Comparison
) -> None:
    view = opened(three)
    plot = view.plots("Rate").first
    plot.scroll_into_view_if_needed()
    before, whole = line(plot, "demand"), view.page.locator("#range").inner_text()
    box = plot.bounding_box()
    assert box is not None
    view.page.mouse.move(box["x"] + 300, box["y"] + 40)
    view.page.mouse.down()
    view.page.mouse.move(box["x"] + 380, box["y"] + 60, steps=4)
    view.page.mouse.up()
    # 80 of 1,266 pixels of two days, five hours and a gap: a few hours.
    assert re.search(r"· [\d.]+ h$", view.page.locator("#range").inner_text())
    shown = [len(points(line(view.plots("Rate").nth(n), "demand"))) for n in range(3)]
    assert all(10 < count < len(points(before)) / 8 for count in shown)
    view.plots("Rate").first.dblclick()
    assert view.page.locator("#range").inner_text() == whole
    assert line(view.plots("Rate").first, "demand") == before


def test_keys_move_zoom_and_jump_from_action_to_action(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    whole = view.page.locator("#range").inner_text()
    view.plots("Workers").first.focus()
    view.page.keyboard.press("n")
    assert "workers" in view.tip()
    first = view.tip()
    view.page.keyboard.press("n")
    assert view.tip() != first
    view.page.keyboard.press("ArrowRight")
    assert view.page.locator("path.cross").first.get_attribute("visibility") == "visible"
    view.page.keyboard.press("+")
    assert view.page.locator("#range").inner_text() != whole
    view.page.keyboard.press("0")
    assert view.page.locator("#range").inner_text() == whole
    assert view.errors == []


def test_the_table_sorts_by_click(opened: Callable[..., Opened], three: Comparison) -> None:
    view = opened(three)
    names = view.page.locator("#scores tbody th")
    view.page.get_by_role("button", name="Cost", exact=True).click()
    rising = names.all_inner_texts()
    assert rising == [run.name for run in sorted(three.runs, key=lambda run: run.score.cost)]
    view.page.get_by_role("button", name="Cost", exact=True).click()
    assert names.all_inner_texts() == rising[::-1]
    view.page.get_by_role("button", name="Policy").click()
    assert names.all_inner_texts() == ["ample", "flapping", "tight"]


def test_policies_and_curves_can_be_chosen_and_laid_over_each_other(
    opened: Callable[..., Opened], three: Comparison
) -> None:
    view = opened(three)
    view.page.get_by_role("checkbox", name="flapping").uncheck(force=True)
    assert view.page.locator(".panel h3").all_inner_texts() == ["tight", "ample"]
    view.page.get_by_role("checkbox", name="Backlog").check(force=True)
    assert view.plots("Backlog").count() == 2
    view.page.get_by_role("checkbox", name="overlay").check(force=True)
    assert view.plots("Workers").count() == 1
    assert view.plots("Workers").locator("path.line").count() == 2
    view.page.get_by_role("button", name="none").click()
    assert "No policy is selected." in view.page.locator("#panels").inner_text()


def test_what_users_write_is_shown_and_never_run(opened: Callable[..., Opened], made: Made) -> None:
    run = made(count=60, policy=EVIL, reason=EVIL).run()
    view = opened(Comparison(EVIL, "latency<=120s", (run, run)))
    view.page.mouse.move(*view.at_mark(2))
    assert EVIL in view.tip()
    assert view.page.locator("img").count() == 0
    assert view.page.locator("h1").inner_text() == f"2 policies on {EVIL}"
    assert view.errors == []


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_one_short_quiet_run_without_dates_fits_any_window(
    opened: Callable[..., Opened], made: Made, width: int
) -> None:
    steady = Comparison("short", "latency<=120s", (made(count=1, margin=0.1, origin_s=None).run(),))
    view = opened(steady, color_scheme="dark", has_touch=True)
    view.page.set_viewport_size({"width": width, "height": 800})
    view.page.wait_for_timeout(100)
    assert view.page.evaluate("document.documentElement.scrollWidth") <= width
    assert not view.page.locator("#scatter-card").is_visible()
    assert "0:00:00 – 0:01:00 · 1 min" in view.page.locator("#range").inner_text()
    assert points(line(view.plots("Rate").first, "demand"))
    assert view.errors == []


def test_an_objective_on_the_rate_has_no_line_in_the_latency(opened: Callable[..., Opened], made: Made) -> None:
    run = made(count=40, margin=0.8, objective=Objective()).run()
    view = opened(Comparison("short", "rate", (run,)))
    assert "The objective rate ≤ capacity was missed" in view.page.locator(".lead").inner_text()
    assert view.page.locator("path.objective").count() == 0
    assert (view.plots("Rate").locator("path.missed").get_attribute("d") or "").count("M") == run.score.violations
    assert view.errors == []
