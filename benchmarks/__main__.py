"""`python -m benchmarks [NAME…]`: run the benchmarks, all of them or some."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("replay", "bound", "report", "sweep", "trace", "subsets", "decide")
LONG = ("mst", "live", "foreign", "faults")  # by name only: these take the best part of an hour


def main(wanted: list[str]) -> int:
    wrong = [name for name in wanted if name not in (*NAMES, *LONG)]
    if wrong:
        print(f"no benchmark '{wrong[0]}': there are {', '.join((*NAMES, *LONG))}", file=sys.stderr)
        return 2
    for name in wanted or NAMES:
        print(f"== {name}", flush=True)
        import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
