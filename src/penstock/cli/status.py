"""`penstock status`: how a run stands, on one screen of a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.live import Live

from penstock.cli.json_output import finite
from penstock.cli.main import say
from penstock.cli.progress import bar, page
from penstock.report.live import LiveRun
from penstock.report.run_state import standing
from penstock.report.screen import Screen

EVERY_S = 1.0
ABOUT = """\
Says how a run stands, from its journal, live, simulated or finished: what runs and what was asked for, rate, capacity,
load, backlog, latency, the objective, the cost so far, the signals, and the last decisions with their reasons.
"""
EXAMPLES = """\
examples:
  penstock status run.jsonl
  penstock status run.jsonl --watch                       goes on until Ctrl-C
  penstock status run.jsonl --output json | jq .now.backlog
  penstock status run.jsonl --output json --watch         a line for each change
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    help_ = "how a run stands, on one screen"
    parser = commands.add_parser("status", help=help_, description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("journal", type=Path, metavar="JOURNAL", help="a journal (JSON lines), finished or not")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="how it is printed")
    parser.add_argument("--watch", action="store_true", help="follow the journal until Ctrl-C")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print how it stands, once or again and again."""
    with LiveRun(options.journal) as live:
        with bar(f"reading {options.journal.name}", total=1.0) as done:
            while live.advance():
                done(live.share)
        if options.watch and options.output == "text" and sys.stdout.isatty():
            _follow_on_screen(live)
            return 0
        for _ in _changes(live) if options.watch else (None,):
            _print(live, options.output == "json", options.watch)
        if live.trouble and options.output == "text":
            say(live.trouble)
    return 0


def _print(live: LiveRun, as_json: bool, in_a_line: bool) -> None:
    if as_json:
        content = finite(standing(live, time.time()))
        print(json.dumps(content, indent=None if in_a_line else 2, allow_nan=False), flush=True)
    else:
        page().print(Screen(live, time.time()))


def _changes(live: LiveRun) -> Iterator[None]:
    """Now, and whenever there are new steps."""
    yield
    while True:
        time.sleep(EVERY_S)
        if live.advance():
            yield


def _follow_on_screen(live: LiveRun) -> None:
    console = page()
    with Live(Screen(live, time.time()), console=console, screen=True, auto_refresh=False) as shown:
        while True:
            shown.update(Screen(live, time.time()), refresh=True)
            time.sleep(EVERY_S)
            while live.advance():
                pass
