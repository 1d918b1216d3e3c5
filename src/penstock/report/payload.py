"""Curves and actions of a comparison in a form small enough to put into a page."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.runs.actions import ACTIONS_MAX, Action
from penstock.runs.comparison import Comparison, Run

Array = npt.NDArray[np.float64]
Coded = list[float]

# 16 bits a value, 2.7 characters in the page: six policies over 90 days are then 0.6 MB instead of 1.5 with floats.
ABSENT = 65535
CODES = 65534
LINEAR, LOGARITHMIC = 0, 1
# Six policies still get 500 marks each. Reasons would else be the larger part of a page whose policies flap.
MARKS_MAX = 3000
MARKS_TEXT_MAX = 300_000
REASON_MAX = 300


class Blobs:
    """Coded arrays, each kept once: the runs of a comparison share their input rate."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[bytes, int] = {}

    def add(self, codes: npt.NDArray[np.generic]) -> int:
        content = codes.astype("<u2").tobytes()
        if content not in self._known:
            self._known[content] = len(self.texts)
            self.texts.append(base64.b64encode(content).decode("ascii"))
        return self._known[content]

    def values(self, values: Array) -> Coded:
        """An array as [blob, kind, offset, step]: integers exact, the rest to three digits at least.

        >>> blobs = Blobs()
        >>> blobs.values(np.array([3.0, 5.0, np.nan])), blobs.texts
        ([0, 0, 3.0, 1.0], ['AAACAP//'])
        """
        known = np.isfinite(values)
        kind, offset, step = _coding(values[known])
        with np.errstate(divide="ignore", invalid="ignore"):
            exact = (np.log(values) if kind == LOGARITHMIC else values) - offset
            codes = np.rint(exact / step) + kind
        # Code 0 of a logarithmic array is zero itself, which has no logarithm.
        codes = np.where(values > 0, codes, 0.0) if kind == LOGARITHMIC else codes
        codes = np.where(known, np.clip(codes, 0, CODES), ABSENT)
        return [self.add(codes), kind, offset, step]


def _coding(known: Array) -> tuple[int, float, float]:
    if not known.size:
        return LINEAR, 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if high - low <= CODES and not (known % 1).any():
        return LINEAR, low, 1.0
    positive = known[known > 0]
    if low < 0 or not positive.size:
        return LINEAR, low, (high - low) / CODES or 1.0
    least = math.log(float(positive.min()))
    return LOGARITHMIC, least, (math.log(high) - least) / (CODES - 1) or 1.0


def packed(comparison: Comparison) -> dict[str, Any]:
    """Everything that the page's script draws."""
    blobs = Blobs()
    marks_max = _marks_max(comparison.runs)
    runs = [packed_run(run, blobs, run.curves.actions.marks(marks_max)) for run in comparison.runs]
    bound = {"lower": _plain(comparison.bound_lower), "cost": _plain(comparison.bound_cost)}
    latency_s = comparison.runs[0].header.objective.latency_s if comparison.runs else None
    return {"objective": comparison.objective, "latency_s": latency_s, "bound": bound, "runs": runs} | {
        "blobs": blobs.texts
    }


def _marks_max(runs: tuple[Run, ...]) -> int:
    """How many marks each run may have, so that all their reasons fit."""
    even = min(ACTIONS_MAX, MARKS_MAX // max(1, len(runs)))
    marks = [mark for run in runs for mark in run.curves.actions.marks(even)]
    letters = sum(min(len(mark.reason), REASON_MAX) + min(len(mark.last_reason), REASON_MAX) for mark in marks)
    return even if letters <= MARKS_TEXT_MAX else max(20, even * MARKS_TEXT_MAX // letters)


def packed_run(run: Run, blobs: Blobs, marks: Sequence[Action], since: int = 0) -> dict[str, Any]:
    """One run, from the bucket `since` on: a page that has those before needs no more."""
    curves = run.curves
    starts_s, width_s = curves.starts_s[since:], curves.width_s
    first_s = float(starts_s[0]) if starts_s.size else 0.0
    return {
        "name": run.name,
        "knows_future": run.knows_future,
        "cost": _plain(run.score.cost),
        "share": _plain(run.score.violation_share),
        "origin_s": run.header.origin_s,
        "steps": curves.steps,
        "first_s": first_s,
        "last_s": curves.end_s if starts_s.size else 0.0,
        "width_s": width_s,
        "places": blobs.add(np.rint((starts_s - first_s) / (width_s or 1.0))),
        "resumes": np.flatnonzero(curves.resumes[since:]).tolist(),
        "curves": {name: _curve(run, name, blobs, since) for name in curves.names},
        "marks": [_mark(action) for action in marks],
        "actions": curves.actions.count,
        "parameters": ", ".join(f"{name} = {value}" for name, value in run.header.parameters.items()),
    }


def _curve(run: Run, name: str, blobs: Blobs, since: int) -> list[Coded]:
    band = run.curves.band(name)
    parts = (band.mean,) if name == "missed" else (band.mean, band.low, band.high)
    return [blobs.values(part[since:]) for part in parts]


def _mark(action: Action) -> list[Any]:
    single = [action.time_s, action.step, action.before, action.after, action.reason[:REASON_MAX]]
    return single if action.count == 1 else [*single, action.count, action.until_s, action.last_reason[:REASON_MAX]]


def _plain(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
