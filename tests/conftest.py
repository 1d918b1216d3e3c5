"""What all tests need."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# No test asserts a time: a busy machine is no failure.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")

# A background job of a plain shell ignores Ctrl-C, and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Headless Chromium, one for all tests."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        said = "NO CHROMIUM HERE: the report was not opened in a browser (install chromium to test it)"
        if os.environ.get("CI"):
            pytest.fail(said)
        # A skip is one letter in a quiet run; this line is not to be overlooked.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{said}", file=sys.stderr)
        pytest.skip(said)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=SWITCHES)
        yield started
        started.close()


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """Commands that run within a test set up the log for good: what comes after would be heard twice."""
    log = logging.getLogger("penstock")
    before = (log.propagate, log.level, list(log.handlers))
    yield
    log.propagate, log.level, log.handlers = before
