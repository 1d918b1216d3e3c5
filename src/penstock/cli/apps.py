"""`penstock apps`: what there is to measure."""

from __future__ import annotations

import argparse
import json

from rich.table import Table

from penstock.cli.progress import page

ABOUT = """\
The applications that `penstock measure` can run: those of the papers, and yours, as module:function.
The function takes a streaming DataFrame with the columns value and timestamp and returns another.
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("apps", description=ABOUT, formatter_class=form)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.apps.catalogue import APPS

    rows = [
        (
            app.name,
            app.about,
            app.bytes_per_row,
            app.output_mode,
            app.paper,
            ", ".join(each.name for each in app.variants),
        )
        for app in APPS.values()
    ]
    headings = ("app", "what it does", "bytes a row", "output", "source", "alternates")
    if options.output == "json":
        print(json.dumps([dict(zip(headings, row, strict=True)) for row in rows], indent=1))
        return 0
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(str, row))
    page().print(table)
    return 0
