"""Paper 5's Table 2 (violations by thresholds) and equations 20–23 (when the filter pays)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.core.objective import break_even, break_even_as_printed
from penstock.reproduce import ekf_paper as paper
from penstock.reproduce.claims import Claim, near
from penstock.reproduce.ekf_runs import PAPERS_OWN
from penstock.reproduce.ekf_scores import SCENARIOS, Runs

_PRINTED = "equations 20-23 compare percentages of unlike amounts; the printed dollars are rounded up"
_CORRECTED = "corrected: extra VM hours x price < violations saved x penalty"
_IDLE = "fewer violations are bought with idle VMs; nothing here has a price, so the lowest upper threshold wins"


def thresholds(runs: Runs, seeds: int) -> Iterator[Claim]:
    """Table 2: violations, the mean over filters and scenarios."""
    if not seeds:
        yield Claim("table2", "violations by thresholds (Table 2)", None, None, None, "left out by --quick")
        return
    why = f"{seeds} runs a cell, where the paper has 20; relations only"
    ours = {pair: _violations(runs, pair) for pair in paper.TABLE_2}
    for (lower, upper), theirs in paper.TABLE_2.items():
        text = f"thresholds {lower} % and {upper} %: violations, thousands (Table 2)"
        yield Claim(f"table2-{lower}-{upper}", text, theirs, ours[lower, upper], None, why)
    best = min(ours, key=ours.__getitem__)
    best_printed = min(paper.TABLE_2, key=paper.TABLE_2.__getitem__)
    holds = best == best_printed
    text = "thresholds with the fewest violations"
    yield Claim("table2-best", text, _shown(best_printed), _shown(best), holds, "" if holds else _IDLE)


def _violations(runs: Runs, pair: tuple[int, int]) -> float:
    shares = (pair[0] / 100, pair[1] / 100)
    means = [runs.of(each, name, "sla", shares).mean() for each in SCENARIOS for name in PAPERS_OWN]
    return float(np.mean(means))


def _shown(pair: tuple[int, int]) -> str:
    return f"{pair[0]} % and {pair[1]} %"


def when_it_pays(runs: Runs) -> Iterator[Claim]:
    """EKF against GW: what a violation must cost, as printed, corrected, and in our runs."""
    price = paper.CORE_HOUR
    for number, theirs, gain, what in (
        ("eq21", 0.059, paper.SLA_GAIN, "a violation must cost"),
        ("eq23", 0.038, paper.SPEED_GAIN, "an image must earn"),
    ):
        ours = break_even_as_printed(price, paper.VM_RISE, gain)
        yield Claim(number, f"dollars {what}, as printed", theirs, ours, near(theirs, ours, 0.03), _PRINTED)
    hours = paper.total("vm", "EKF") - paper.total("vm", "GW")
    saved = 1000 * (paper.total("sla", "GW") - paper.total("sla", "EKF"))
    ours = break_even(hours * price, saved)
    text = "dollars a violation must cost, from Tables 3-5"
    yield Claim("eq21-corrected", text, 0.059, ours, near(0.059, ours, 0.03), _CORRECTED)
    hours = runs.total("EKF", "vm") - runs.total("GW", "vm")
    ours = break_even(hours * price, 1000 * (runs.total("GW", "sla") - runs.total("EKF", "sla")))
    why = f"{_CORRECTED}; 0 where EKF needs no more VM hours"
    yield Claim("eq21-ours", "dollars a violation must cost, in our runs", None, ours, None, why)
    more = runs.total("EKF", "processed") / runs.total("GW", "processed") - 1
    text = "share of images that EKF processes more than GW (eq 22)"
    why = "a stream is as long as it is: shorter times bring no more images"
    yield Claim("eq22-ours", text, paper.SPEED_GAIN, more, near(paper.SPEED_GAIN, more, 0.1), why)
