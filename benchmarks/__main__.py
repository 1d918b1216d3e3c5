"""`python -m benchmarks [NAME…] [--OPTION VALUE]`: run the benchmarks, all or some; options are the last one's."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = ("replay", "bound", "report", "sweep", "trace", "subsets", "decide", "arrivals", "fugu", "plasticc", "mead")
LONG = (
    "mst",
    "live",
    "live_policies",
    "fleet",
    "tuned",
    "alternates",
    "shares",
    "quota",
    "foreign",
    "faults",
    "bound_traces",
    "deadline",
    "deadline_forecasts",
)  # by name only: they take long, or need files


def main(words: list[str]) -> int:
    first = next((place for place, word in enumerate(words) if word.startswith("--")), len(words))
    wanted, options = words[:first], words[first:]
    wrong = [name for name in wanted if name not in (*NAMES, *LONG)]
    if wrong:
        print(f"no benchmark '{wrong[0]}': there are {', '.join((*NAMES, *LONG))}", file=sys.stderr)
        return 2
    for name in wanted or NAMES:
        print(f"== {name}", flush=True)
        import_module(f"benchmarks.{name}").main(*(options if wanted and name == wanted[-1] else ()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
