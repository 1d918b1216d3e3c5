"""What paper 5's result leans on: how late the CPU meter is, and what a scaling operation costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from penstock.reproduce.claims import Claim
from penstock.reproduce.ekf_runs import (
    NOISE,
    PAPERS_OWN,
    PYRAMID,
    SQUARE,
    Rows,
    a_world,
    calibration,
    common,
    policies,
    steered,
)
from penstock.sim.derive import World
from penstock.sim.specs import PauseSpec

LATE_S = (0.0, 0.25, 0.5, 1.0, 2.0)
PAUSES_S = (0.0, 0.25, 0.5, 1.0, 2.0)
SHAPES = {"pyramid": PYRAMID, "square": SQUARE}
RUNNERS = ("PURE", "EKF as printed", "EKF", "EKF that learns")
# Violations stay below PURE's, give or take a quarter. As printed, with a meter on time, they are 31.7 times PURE's.
MOST = 1.25
_LAGS = (
    "as printed, equation 5 regresses on the input of the sample before: it finds b only if the meter is one sample"
    " late; we take the lag from the data. 'that learns' has no offline run and begins with the capacity model's b"
)
_PAUSE = "all serving stops for so long whenever a VM joins or leaves; the paper counts operations and prices none"


def worlds() -> list[tuple[World, Mapping[str, str]]]:
    """Worlds and the policies that are tried there."""
    late = [(late_world(name, late_s), by_lag(late_s)) for name in SHAPES for late_s in LATE_S]
    own = {name: policies()[name] for name in PAPERS_OWN}
    return late + [(paused_world(name, pause_s), own) for name in SHAPES for pause_s in PAUSES_S]


def late_world(name: str, late_s: float) -> World:
    return a_world(f"{name}, meter {late_s:g} s late", SHAPES[name], noise=replace(NOISE, cpu_late_s=late_s))


def paused_world(name: str, pause_s: float) -> World:
    return a_world(f"{name}, {pause_s:g} s an operation", SHAPES[name], pause=PauseSpec(reconfigure_s=pause_s))


def by_lag(late_s: float) -> Mapping[str, str]:
    """PURE, and three ways to know how the load follows the rate."""
    return {
        "PURE": policies()["PURE"],
        "EKF as printed": f"filtered:{common()},{steered(calibration(late_s, lag=1.0))}",
        "EKF": f"filtered:{common()},{steered(calibration(late_s))}",
        "EKF that learns": f"filtered:{common()}",
    }


def claims(rows: Rows) -> Iterator[Claim]:
    """Events and violations over lags and pauses."""
    for name in SHAPES:
        for late_s in LATE_S:
            yield from _late(rows, name, late_s)
    for name in SHAPES:
        for pause_s in PAUSES_S:
            yield _paused(rows, name, pause_s)


def _late(rows: Rows, name: str, late_s: float) -> Iterator[Claim]:
    world, known = late_world(name, late_s).name, by_lag(late_s)
    cells = {each: _cell(rows, world, policy) for each, policy in known.items()}
    text = f"{world}: events and violations [1000] of {', '.join(RUNNERS)}"
    shown = "; ".join(f"{events:.3g} {late:.3g}" for events, late in (cells[each] for each in RUNNERS))
    yield Claim(f"late-{name}-{late_s:g}", text, None, shown, None, _LAGS)
    for each in RUNNERS[2:]:
        ratio = cells[each][1] / cells["PURE"][1]
        slug = each.lower().replace(" ", "-")
        text = f"{world}: violations, {each} / PURE <= {MOST:g}"
        yield Claim(f"late-{name}-{late_s:g}-{slug}", text, None, ratio, ratio <= MOST, _LAGS)
    b, lag = float(calibration(late_s).b[0]), calibration(late_s).lag
    if name == "pyramid":
        text = f"meter {late_s:g} s late: b and lag in samples from the data; b as printed"
        shown = f"{b:.3g} {lag:.2g}; {float(calibration(late_s, lag=1.0).b[0]):.3g}"
        yield Claim(f"late-b-{late_s:g}", text, None, shown, None, _LAGS)


def _paused(rows: Rows, name: str, pause_s: float) -> Claim:
    world = paused_world(name, pause_s).name
    cells = [_cell(rows, world, policies()[each]) for each in PAPERS_OWN]
    text = f"{world}: events and violations [1000] of {', '.join(PAPERS_OWN)}"
    shown = "; ".join(f"{events:.3g} {late:.3g}" for events, late in cells)
    # The paper's premise: where operations cost, who scales less is late less.
    return Claim(f"pause-{name}-{pause_s:g}", text, None, shown, cells[2][1] < min(cells[0][1], cells[1][1]), _PAUSE)


def _cell(rows: Rows, world: str, policy: str) -> tuple[float, float]:
    """Mean scaling events, and thousands of late images."""
    runs = rows[world, policy]
    events = np.mean([row["scaling_actions"] for row in runs])
    return float(events), float(np.mean([row["late_events"] for row in runs])) / 1000
