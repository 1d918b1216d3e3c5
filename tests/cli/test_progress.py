"""Whoever waits for long work is told that it goes on, also where stderr is no terminal."""

from __future__ import annotations

import io
import threading

import pytest

from penstock.cli import progress


class Heard(io.StringIO):
    """A stderr that is no terminal; `line` is set once something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.line = threading.Event()

    def flush(self) -> None:
        if self.getvalue().endswith("\n"):
            self.line.set()


def test_without_a_terminal_a_plain_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr("sys.stderr", heard)
    monkeypatch.setattr(progress, "FIRST_S", 0.01)
    monkeypatch.setattr(progress, "LINE_S", 0.01)
    with progress.bar("measuring", total=8) as done:
        done(2, "3 workers")
        heard.truncate(heard.seek(0))
        heard.line.clear()
        assert heard.line.wait(60)
    assert heard.getvalue().splitlines()[-1].startswith("measuring: 3 workers, 25% (")
    assert "\x1b" not in heard.getvalue()


def test_short_work_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr("sys.stderr", heard)
    with progress.bar("measuring", total=8) as done:
        done(8)
    assert heard.getvalue() == ""
