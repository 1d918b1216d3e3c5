"""How long a decision takes: the policies with their safety rules, shown what live runs saw."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from penstock.core.journal import Journal
from penstock.live.control_options import Wanted
from penstock.policies.registry import Named

JOURNALS = Path("docs/live")
POLICIES = ("deadline", "threshold", "filtered", "filtered:filter=pure,sizing=step")


def main() -> None:
    """Milliseconds, not ratios: 10 ms is what a controller beside a job may take, 2 ms were asked of `deadline`."""
    for path in sorted(JOURNALS.glob("*.jsonl")):
        journal = Journal.open(path)
        job = Wanted(limits=journal.header.limits, trigger=f"{journal.header.facts['trigger_s']:g}s").job("images")
        seen = [step.seen for step in journal]
        for name in POLICIES:
            policy, taken_s = Named.parse(name).build_safe(job), []
            for each in seen:
                begun = time.perf_counter()
                policy.decide(each)
                taken_s.append(time.perf_counter() - begun)
            figures = f"median {1e3 * median(taken_s):.3f} ms, slowest {1e3 * max(taken_s):.2f} ms"
            print(f"{path.stem}, {name}: {len(seen)} decisions, {figures} (10 ms asked)")
