"""`penstock policies`: what there is."""

from __future__ import annotations

import argparse
import json

from rich.table import Table

from penstock.cli.progress import page
from penstock.policies.guards import GUARDS, OPTIONS
from penstock.policies.parameters import parameters_of
from penstock.policies.registry import POLICIES

ABOUT = """\
The policies, their parameters and where they come from. A policy is named name[:key=value,…],
or file.py:Class[:key=value,…] for one of your own. Every policy takes the guards, too.
"""
FORMS = {"float": "TIME", "int": "N", "str": "FILE"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("policies", help="list the policies", description=ABOUT, formatter_class=form)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    rows = [
        (name, maker.__doc__ or "", _parameters(maker), getattr(maker, "source", ""))
        for name, maker in POLICIES.items()
    ]
    guards = [
        (f"…:{name}={FORMS[OPTIONS[name]]}", maker.__doc__ or "", "", "a guard") for name, maker in GUARDS.items()
    ]
    if options.output == "json":
        keys = ("name", "what", "parameters", "source")
        print(json.dumps([dict(zip(keys, row, strict=True)) for row in rows + guards], indent=1, ensure_ascii=False))
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("policy", "what it does", "parameters", "source"):
        table.add_column(heading)
    for name, what, parameters, source in rows + guards:
        table.add_row(name, what.split("\n")[0], parameters, source)
    page().print(table)
    return 0


def _parameters(maker: type) -> str:
    shown = []
    for name, parameter in parameters_of(maker).items():
        default = "…" if parameter.default is parameter.empty else f"{parameter.default}"
        shown.append(f"{name}={default}")
    return ", ".join(shown)
