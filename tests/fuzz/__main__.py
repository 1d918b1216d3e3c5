"""`scripts/fuzz [CASES] [--seed N] [--only N]`: spoilt inputs, as many as you like."""

from __future__ import annotations

import argparse
import atexit
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.progress import track

from tests.fuzz.harness import Fuzzer, judged


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("cases", nargs="?", type=int, default=2000, help="(2000)")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other cases (1)")
    parser.add_argument("--only", type=int, metavar="N", help="run case N alone, and keep its folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="penstock-fuzz-"))
    if options.only is None:
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fuzzer = Fuzzer(folder, options.seed)
    numbers = range(options.cases) if options.only is None else [options.only]
    failures = 0
    ended: Counter[tuple[str, object]] = Counter()
    for number in track(numbers, disable=not sys.stdout.isatty()):
        if number and number % 1000 == 0 and not sys.stdout.isatty():
            print(f"{number} cases, {failures} failed", flush=True)
        case = fuzzer.case(number)
        verdict = judged(case)
        ended[case.words[0], verdict.code] += 1
        if verdict.wrong or options.only is not None:
            failures += bool(verdict.wrong)
            print(f"case {number}: {verdict.wrong}: penstock {shlex.join(case.words)[:300]}\n{verdict.said[-1500:]}")
    print(", ".join(f"{command} {code}: {count}" for (command, code), count in sorted(ended.items(), key=str)))
    print(f"{len(numbers) - failures} passed, {failures} failed")
    if options.only is not None:
        print(f"files: {folder / 'case'}")
    return 1 if failures else 0


sys.exit(main())
