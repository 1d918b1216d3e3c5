"""`penstock calibrate`: a simulator that behaves as the live job did."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from rich.table import Table
from rich.text import Text

from penstock.cli.json_output import as_json
from penstock.cli.main import say
from penstock.cli.progress import bar, page
from penstock.core.errors import BadInput
from penstock.core.files import reads, writable
from penstock.core.text import one_line
from penstock.models.calibration import Calibration, calibrate
from penstock.models.evidence import Evidence
from penstock.report import show
from penstock.report.calibration_text import in_short, learnt_record, rows
from penstock.runs.calibrated_replay import MeasuredVsSimulated, read_evidence, simulate, total
from penstock.sim.calibrated_file import need_series, write_scenario
from penstock.sim.toml import read_scenario

ABOUT = """\
Learn the simulator's parameters from journals of a live job: how long a worker takes to start, how slow
it is at first, what a batch takes, how much each number of workers can do, how the CPU shows it. They
become a scenario file. Then the journals' own load is replayed in it with the same policy, and what was
measured stands beside what was simulated.
"""
EXAMPLES = """\
examples:
  penstock calibrate run.jsonl -o scenario.toml               # rotated files (run.jsonl.1, …) are read along
  penstock calibrate monday.jsonl tuesday.jsonl -o scenario.toml --output json
  penstock replay --scenario scenario.toml --policy mst --policy threshold
  penstock calibrate run.jsonl -o world.toml --no-load && penstock replay rates.csv --scenario world.toml
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("calibrate", description=ABOUT, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("journals", nargs="+", type=Path, metavar="JOURNAL", help="of one job; several teach more")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="the scenario, as TOML")
    parser.add_argument("--no-load", action="store_true", help="leave the load out: for replays of other series")
    code = "load policies that a journal names by file: it runs that code"
    parser.add_argument("--allow-code", action="store_true", help=code)
    parser.add_argument("--output", choices=("table", "json"), default="table", help="on stdout (table)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    for journal in options.journals:
        reads(journal)
    writable(options.out)
    if options.out.suffix == ".csv":
        raise BadInput(f"{options.out}: the scenario is TOML, and its load a CSV file beside it; name it scenario.toml")
    if not options.no_load:
        need_series(options.out)
    paths = _journals(options.journals)
    evidence = _read(paths)
    found = calibrate(evidence)
    write_scenario(options.out, found, evidence, with_load=not options.no_load)
    with redirect_stdout(sys.stderr):  # what a user's policy prints is not part of the result
        runs = _replayed(paths, evidence, options.out, options.allow_code)
    if options.output == "json":
        print(as_json(_record(options.out, found, runs), 2))
    else:
        _print(options.out, found, runs)
    return 0


def _journals(given: Sequence[Path]) -> list[Path]:
    """Each once: `run.jsonl*` names rotated files too, which are read with the journal that they belong to."""
    paths = list(dict.fromkeys(given))
    return [path for path in paths if not (path.suffix[1:].isdigit() and path.with_suffix("") in paths)]


def _read(paths: Sequence[Path]) -> list[Evidence]:
    evidence = []
    with bar("reading journals", total=len(paths)) as done:
        for number, path in enumerate(paths, 1):
            read, damaged = read_evidence(path)
            if damaged:
                lines = "1 damaged line was" if damaged == 1 else f"{damaged} damaged lines were"
                say(f"{lines} left out of {path}")
            evidence.append(read)
            done(number)
    return evidence


def _need_no_code(policy: str, allow_code: bool) -> None:
    """A journal is data: what it says is not run unless somebody asked for that."""
    if policy.partition(":")[0].endswith(".py") and not allow_code:
        raise BadInput(f"its policy {policy} is code in a file; --allow-code loads it")


def _replayed(
    paths: Sequence[Path], evidence: Sequence[Evidence], scenario: Path, allow_code: bool
) -> list[MeasuredVsSimulated]:
    """The file is read again, so that what is compared is what was written."""
    file = read_scenario(scenario)
    runs = []
    with bar("replaying", total=len(paths)) as done:
        for number, (path, each) in enumerate(zip(paths, evidence, strict=True)):

            def told(share: float, before: int = number) -> None:
                done(before + share)

            try:
                _need_no_code(each.header.policy, allow_code)
                runs.append(simulate(path.name, each, file, told))
            except BadInput as error:  # a policy whose file is not here: what was learnt stays right
                say(f"{path} is not replayed: {error}")
    return runs


def _record(out: Path, found: Calibration, runs: Sequence[MeasuredVsSimulated]) -> dict[str, object]:
    return {
        "scenario": str(out),
        "learnt": learnt_record(found),
        "journals": [run.record() for run in runs],
        "total": total(runs).record() if runs else None,
    }


def _print(out: Path, found: Calibration, runs: Sequence[MeasuredVsSimulated]) -> None:
    console = page()
    for line in _learnt_lines(found):
        console.print(Text(one_line(line)))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("journal", "", "measured", "simulated", "between", "off"):
        table.add_column(heading, justify="left" if heading in ("journal", "") else "right")
    for run in [*runs, *([total(runs)] if len(runs) > 1 else [])]:
        for number, row in enumerate(rows(run)):
            table.add_row(Text(one_line("" if number > 1 else run.policy if number else run.name, 40)), *row)
    if runs:
        console.print(table)
    if len(runs) > 1:
        console.print(Text(in_short(runs, total(runs))), soft_wrap=True)
    print(f"scenario: {one_line(str(out))}", file=sys.stderr)


def _learnt_lines(found: Calibration) -> Iterator[str]:
    starts, service = found.starts, found.service
    if starts is not None:
        yield f"a worker starts in {starts.low_s:.3g} … {starts.high_s:.3g} s ({show.several(starts.seen, 'start')})"
    if service is not None:
        counts = ", ".join(f"{count}: {show.count(found.capacity.capacity(count))}/s" for count in sorted(service.seen))
        fixed = found.capacity.fixed
        tasks = f", and {fixed.shared_s:.3g} s of task-launch overhead that workers share" if fixed.shared_s else ""
        yield f"workers can do {counts}; a batch takes {fixed.base_s:.3g} s before its first row{tasks}"
        total = show.several(sum(service.seen.values()), "settled batch")
        yield f"predicted batch times are off by {show.share(service.error)} in the median ({total})"
        if service.warm_s:
            yield f"a young worker runs at {service.warm_speed:.0%} for {service.warm_s:g} s"
        if service.first_s:
            yield f"a new worker's first task takes {service.first_s:.3g} s, and its batch waits for it"
    if found.cpu is not None:
        yield f"the CPU shows {found.cpu.idle:.0%} idle, {found.cpu.busy:.0%} at work, noise {found.cpu.noise:.3g}"
    yield from (f"not learnt: {what}" for what in found.unknown)
