"""`penstock serve` as a person runs it: a real server, a real browser, a journal that grows."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from penstock.core.journal import JournalWriter
from penstock.core.loop import Step
from tests.report.conftest import Made

MADE = Made(count=900, span_s=1.0, signals=True)
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Served:
    """A journal that grows, and the command that shows it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._steps = MADE.steps()
        self._file = path.open("a", encoding="utf-8")
        self._writer = JournalWriter(self._file, MADE.header(), flush=True)
        self.grow(40)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock", "serve", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        self.url = re.findall(r"http://127\.0\.0\.1:\d+/", self.said)[0]

    def grow(self, steps: int) -> Step:
        for _ in range(steps):
            step = next(self._steps)
            self._writer.write(step)
        return step

    def interrupt(self) -> tuple[int, str]:
        os.kill(self.process.pid, signal.SIGINT)
        _, err = self.process.communicate(timeout=5)
        return self.process.returncode, err

    def close(self) -> None:
        self._file.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    started = Served(tmp_path / "run.jsonl")
    yield started
    started.close()


def line_of(page: Page, measure: str) -> str:
    return page.locator(f'svg.plot[aria-label^="{measure}"] path.line').last.get_attribute("d") or ""


@pytest.fixture
def watched(browser: Browser, served: Served) -> Iterator[tuple[Page, list[str], list[str]]]:
    """The page, what it asked for, and what it complained about."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page, asked, complaints = context.new_page(), list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text))
    page.goto(served.url)
    page.wait_for_selector("html[data-drawn=yes]", timeout=20_000)
    page.evaluate("window.notReloaded = true")
    yield page, asked, complaints
    context.close()


def wait_for(page: Page, text: str) -> None:
    page.get_by_text(text).first.wait_for(timeout=15_000)


@pytest.mark.browser
def test_the_page_shows_a_growing_journal_without_a_reload(
    served: Served, watched: tuple[Page, list[str], list[str]]
) -> None:
    page, asked, complaints = watched
    wait_for(page, "step 40 ")
    before = line_of(page, "Rate"), page.locator("#decisions").inner_text()
    last = served.grow(60)
    wait_for(page, "step 100 ")
    assert line_of(page, "Rate") != before[0]
    assert page.locator("#decisions").inner_text() != before[1]
    assert last.decision.reason in page.locator("#decisions li").first.inner_text()
    assert page.locator("#figures .tile strong").first.inner_text() == str(len(last.seen.running.workers))
    for measure in ("Rate", "Workers", "Backlog", "Latency", "Signals"):
        assert line_of(page, measure).count(" ") > 90
    assert page.evaluate("window.notReloaded")
    assert {address.partition("?")[0] for address in asked} == {served.url, f"{served.url}news"}
    assert complaints == []


@pytest.mark.browser
def test_a_zoom_stays_while_the_journal_grows_and_half_a_line_waits(
    served: Served, watched: tuple[Page, list[str], list[str]]
) -> None:
    page, _, complaints = watched
    wait_for(page, "step 40 ")
    page.evaluate("zoomTo([10, 20])")
    held = page.locator("#range").inner_text()
    with served.path.open("a") as half:
        half.write('{"time_s":')
    page.wait_for_timeout(1500)
    assert page.locator("#state").inner_text().count("step 40 ")
    with served.path.open("a") as half:
        half.write("41.0}\n")
    wait_for(page, "step 41 ")
    assert page.locator("#range").inner_text() == held
    page.locator("#reset").click()
    served.grow(1)
    wait_for(page, "step 42 ")
    assert page.locator("#range").inner_text() == "1995-07-01 00:00:00 – 1995-07-01 00:00:41 UTC · 41 s"
    assert complaints == []


@pytest.mark.browser
def test_the_last_minutes_can_be_followed(served: Served, watched: tuple[Page, list[str], list[str]]) -> None:
    page, _, complaints = watched
    served.grow(660)
    wait_for(page, "step 700 ")
    page.locator(".follow select").select_option("10 min")
    served.grow(30)
    wait_for(page, "step 730 ")
    # 730 steps of a second: what is followed ends with the last of them.
    assert page.locator("#range").inner_text() == "1995-07-01 00:02:10 – 1995-07-01 00:12:10 UTC · 10 min"
    assert complaints == []


@pytest.mark.browser
def test_a_hidden_page_asks_nothing_and_silence_is_said(
    served: Served, watched: tuple[Page, list[str], list[str]]
) -> None:
    page, asked, _ = watched
    wait_for(page, "step 40 ")
    page.evaluate(HIDE, True)
    page.wait_for_timeout(500)
    before = len(asked)
    served.grow(5)
    page.wait_for_timeout(2500)
    assert len(asked) == before
    page.evaluate(HIDE, False)
    wait_for(page, "step 45 ")
    an_hour_ago = served.path.stat().st_mtime - 3600
    os.utime(served.path, (an_hour_ago, an_hour_ago))
    wait_for(page, "no new step for 60")
    assert served.interrupt()[0] == 130
    wait_for(page, "penstock serve has ended")


def test_ctrl_c_ends_it_at_once(served: Served) -> None:
    assert served.said == f"{served.path} is at {served.url} (Ctrl-C ends it)\n"
    assert served.interrupt() == (130, "penstock: interrupted\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such journal: run.jsonl"),
        ("", "run.jsonl is not a journal: its first line should be a header"),
        ("a,b\n1,2\n", "run.jsonl is not a journal: its first line should be a header"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "status"])
def test_bad_input_is_one_line(tmp_path: Path, command: str, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "run.jsonl").write_text(content)
    words = [sys.executable, "-m", "penstock", command, "run.jsonl"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"penstock: {said}\n")


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    MADE.journal(tmp_path / "run.jsonl")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = [sys.executable, "-m", "penstock", "serve", "run.jsonl", "--port", str(port)]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = f"penstock: port {port} is in use: give another, or 0 for any that is free\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
