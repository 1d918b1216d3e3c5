"""Paper 5 (Borkowski et al.): scaling events with and without a filter, theirs beside ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from penstock.core.errors import BadInput
from penstock.reproduce import ekf_lags, ekf_queries
from penstock.reproduce import ekf_paper as paper
from penstock.reproduce.claims import Claim, near
from penstock.reproduce.ekf_cost import thresholds, when_it_pays
from penstock.reproduce.ekf_runs import ASIDES, PAPERS_OWN, PER_WORKER, calibration, policies, run
from penstock.reproduce.ekf_scores import METRICS, SCENARIOS, Runs

SEEDS, GRID_SEEDS, QUICK_SEEDS = 20, 2, 3
LEVEL = 0.01
# EKF's mean is at most this much of the other's, and significantly so.
BOUNDS = (
    ("events", "PURE", 0.20),
    ("events", "GW", 0.25),
    ("vm", "PURE", 1.15),
    ("image", "PURE", 1.0),
    ("sla", "PURE", 1.0),
)
LAB_VM = 1.25
_FLUID = "a fluid simulation, and a stand-in for the lab's trace: ratios and order are compared, not amounts"
_FEWER_VMS = (
    "the paper's EKF rents more because its a and b make it ask for too many (§4.1); ours fit here, so it asks"
    " for what is needed and gives it back at once, where steps of one take a minute"
)
_GW_IS_LATE = (
    "EKF is first here too; but GW, which looks back 2.4 s on average and steps by one as PURE does, is no faster than"
    " PURE, and the paper's is"
)
_COUNTS = "an event of EKF starts many VMs: read this beside the events"
_OURS = "our EKF counts the workers that are under way before it asks for more"
_EAGER = "sized anew whenever a worker arrives, as the paper reads: each arrival may be an event"
_ASIDES = {
    "independent": "not in the paper: errors that are each worker's own average out, and PURE is calmer",
    "smooth": (
        "not in the paper: without steps the rate's change tells little, and PURE, which its noise makes scale before"
        " the load is above the threshold, is hardly ever late"
    ),
}
_LUCK = (
    "equation 18 takes Q from 20 samples of one instance: where they happen to vary more than R, the filter follows"
    " its meter and forgets the rate's change within a second"
)
_ANSWER = "mean of three scenarios; alone against PURE with steps of one. The paper credits the filter with all of it"
_CALIBRATED = "least squares on an offline run of steps at a fixed size (§2.3); the noise at a steady rate (§2.4)"


def claims(
    seeds: int = SEEDS, quick: bool = False, done: Callable[[float], None] | None = None, kept: Path | None = None
) -> list[Claim]:
    """All claims. `quick`: three seeds at most, and no grid of thresholds."""
    if seeds < 2:
        raise BadInput(f"--seeds {seeds}: a test of significance needs at least 2")
    grid_seeds = 0 if quick else min(GRID_SEEDS, seeds)
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    rows = run(seeds, grid_seeds, ekf_lags.worlds(), done, kept)
    asked = ekf_queries.ask(1 if quick else seeds)
    return [*judged(Runs(rows), grid_seeds), *ekf_queries.claims(asked), *ekf_lags.claims(rows)]


def judged(runs: Runs, grid_seeds: int) -> Iterator[Claim]:
    """What the runs say, in the paper's order, and then what it did not ask."""
    yield Claim("runs", "runs in all, 45 minutes each", 180, sum(map(len, runs.rows.values())), None)
    for scenario in SCENARIOS:
        yield from _table(runs, scenario)
    for scenario in SCENARIOS:
        yield from _ratios(runs, scenario, "EKF", _OURS)
    yield from (_spread(runs, scenario) for scenario in SCENARIOS)
    yield from _significance(runs)
    yield from thresholds(runs, grid_seeds)
    yield from when_it_pays(runs)
    yield from _calibrated()
    for scenario in SCENARIOS:
        yield from _ratios(runs, scenario, "EKF eager", _EAGER)
    for scenario in SCENARIOS:
        yield from _ablation(runs, scenario)
    yield from _is_it_the_filter(runs)
    for world in ASIDES:
        yield from _ratios(runs, world.name, "EKF", _ASIDES[world.name])


def _table(runs: Runs, scenario: str) -> Iterator[Claim]:
    """Tables 3 to 5: means (σ) of PURE, GW, EKF. Holds where the filters come in the paper's order."""
    printed = paper.TABLES[scenario]
    for key in ("vm", "events", "started", "stopped", "image", "sla"):
        text = f"{scenario}: {METRICS[key]}"
        ours = " ".join(runs.cell(scenario, name, key) for name in PAPERS_OWN)
        if key not in printed:
            yield Claim(f"{scenario}-{key}", text, None, ours, None, _COUNTS)
            continue
        order = np.argsort([mean for mean, _ in printed[key]])
        holds = bool((order == np.argsort([runs.mean(scenario, name, key) for name in PAPERS_OWN])).all())
        why = _FLUID if holds else _FEWER_VMS if key == "vm" else _GW_IS_LATE
        yield Claim(f"{scenario}-{key}", text, _printed(scenario, key), ours, holds, why)


def _printed(scenario: str, key: str) -> str:
    return " ".join(f"{mean:g} ({spread:g})" for mean, spread in paper.TABLES[scenario][key])


def _ratios(runs: Runs, scenario: str, name: str, why: str) -> Iterator[Claim]:
    for key, base, most in BOUNDS:
        bound = LAB_VM if (scenario, key) == ("lab", "vm") else most
        ours, p = runs.ratio(scenario, key, name, base), runs.p(scenario, key, name, base)
        # A bound on a cost is kept by costing no more; only what is claimed to shrink must do so significantly.
        holds = ours <= bound and (key == "vm" or p < LEVEL)
        text = f"{scenario}: {METRICS[key].label}, {name} / {base} <= {bound:g} (p = {p:.1g})"
        theirs = paper.ratio(scenario, key, "EKF", base) if scenario in paper.TABLES else None
        shown = ours if math.isfinite(ours) else f"{runs.mean(scenario, name, key):.3g} against 0"
        yield Claim(f"{scenario}-{key}-{slug(name)}-{base.lower()}", text, theirs, shown, holds, why)


def slug(name: str) -> str:
    """A name as it stands in a claim's id."""
    return name.lower().replace("±1", "step").replace("δd", "change").replace(" ", "-")


def _significance(runs: Runs) -> Iterator[Claim]:
    pairs = paper.printed_pairs()
    p = pairs["square", "vm", "GW", "EKF"]
    text = "square: VM time of GW and EKF, p from the printed means and deviations"
    yield Claim("printed-square-vm", text, 0.1092, p, near(0.1092, p, 0.01))
    sure = sum(p < 0.004 for p in pairs.values())
    yield Claim("printed-pairs", f"pairs of Tables 3-5 with p < 0.004, of {len(pairs)}", 44, sure, sure == 44)
    ours = [runs.p(scenario, key, one, other) for scenario, key, one, other in pairs if key in METRICS]
    text = f"the same in our runs, of {len(ours)} (no queries)"
    yield Claim("our-pairs", text, None, sum(p < 0.004 for p in ours), None)


def _spread(runs: Runs, scenario: str) -> Claim:
    """How much luck there is in a run."""
    events, (mean, spread) = runs.of(scenario, "EKF", "events"), paper.TABLES[scenario]["events"][2]
    text = f"{scenario}: EKF's scaling events, fewest and most of the runs"
    return Claim(
        f"{scenario}-spread", text, f"{mean:g} ({spread:g})", f"{min(events):g} to {max(events):g}", None, _LUCK
    )


def _calibrated() -> Iterator[Claim]:
    known = calibration()
    a, b, noise = float(known.a[0]), float(known.b[0]), float(known.r[0, 0]) ** 0.5
    right = near(1 / PER_WORKER, b, 0.1)
    yield Claim("model-b", f"b, where one image a second is 1/{PER_WORKER} of a worker", None, b, right, _CALIBRATED)
    yield Claim("model-a", "a, where a steady rate changes nothing", None, a, None, _CALIBRATED)
    yield Claim("model-noise", "deviation of the CPU meter, where it is 0.15", None, noise, None, _CALIBRATED)


def _ablation(runs: Runs, scenario: str) -> Iterator[Claim]:
    for name in policies():
        cells = [f"{runs.mean(scenario, name, key):.3g}" for key in ("events", "started", "vm", "image", "sla")]
        text = f"{scenario}, {name}: events, VMs started, VM hours, image s, violations [1000]"
        yield Claim(f"ablation-{scenario}-{slug(name)}", text, None, " ".join(cells), None)


def _is_it_the_filter(runs: Runs) -> Iterator[Claim]:
    """The ablation's answer: what each part does alone."""
    for name in policies():
        for key, bound in (("events", 0.20), ("sla", 1.0)):
            if name == "PURE":
                continue
            ours = float(np.mean([runs.ratio(scenario, key, name, "PURE") for scenario in SCENARIOS]))
            theirs = [paper.ratio(each, key, name, "PURE") for each in SCENARIOS] if name in PAPERS_OWN else []
            text = f"is it the filter? {METRICS[key].label}, {name} / PURE <= {bound:g}"
            printed = float(np.mean(theirs)) if theirs else None
            yield Claim(f"answer-{key}-{slug(name)}", text, printed, ours, ours <= bound, _ANSWER)
