"""`penstock serve`: a journal as a live page."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from penstock.cli.numbers import port
from penstock.core.text import one_line
from penstock.report.live import LiveRun
from penstock.report.server import LiveServer

ABOUT = """\
Shows a journal as a page that follows it while it grows: rate, capacity, workers, backlog, latency, signals, and the
last decisions with their reasons. The journal may be live, simulated or finished. The page is served on this machine
alone (127.0.0.1), can only be read, and needs no network. Ctrl-C ends it.
"""
EXAMPLES = """\
examples:
  penstock serve run.jsonl                     prints an address to open in a browser
  penstock serve run.jsonl --port 8080
  ssh -L 8080:127.0.0.1:8080 HOST              then http://localhost:8080/ here shows what runs there
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    help_ = "a journal as a live page, on this machine alone"
    parser = commands.add_parser("serve", help=help_, description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("journal", type=Path, metavar="JOURNAL", help="a journal (JSON lines), finished or not")
    parser.add_argument("--port", type=port, default=0, metavar="N", help="where (any that is free)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C, which `main` turns into its exit code."""
    with LiveRun(options.journal) as live, LiveServer(live, options.port, time.time) as server:
        print(f"{one_line(str(options.journal))} is at {server.url} (Ctrl-C ends it)", flush=True)
        server.serve_forever(poll_interval=0.2)
    return 0
