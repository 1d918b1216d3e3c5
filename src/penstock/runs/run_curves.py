"""A run as curves that a screen can show, in constant memory whatever its length."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.core.loop import Step
from penstock.core.objective import Objective
from penstock.runs.actions import Actions
from penstock.runs.buckets import Buckets

Array = npt.NDArray[np.float64]

MEASURES = ("rate", "capacity", "running", "target", "latency", "backlog", "load", "missed")
# Policies publish a handful of signals; a policy that invents a new name each step must not fill the memory.
SIGNALS_MAX = 12
# Steps put into the buckets at once: one by one, numpy's overhead alone would be 40 µs a step.
ROWS = 1024


@dataclass(frozen=True, slots=True)
class Band:
    """One curve: least, greatest and mean value of each bucket; NaN where there is none."""

    low: Array
    high: Array
    mean: Array


class Curves:
    """Takes steps as they come, like a Scorer; the curves can be read at any time.

    >>> from penstock.core.objective import Objective
    >>> Curves(Objective(latency_s=120.0)).names
    ()
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._arrived = 0.0
        self._rows: list[tuple[float, ...]] = []
        self._signals: list[Mapping[str, float]] = []
        self._buckets = Buckets()
        self._signal_names: list[str] = []
        self._target: object = None
        self.steps = 0
        self.actions = Actions()

    def add(self, step: Step) -> None:
        seen = step.seen
        workers, arrived = seen.workers, seen.arrived
        self._rows.append(
            (
                seen.time_s,
                seen.span_s,
                seen.input_rate,
                seen.capacity,
                len(seen.running.workers),
                len(seen.target.workers),
                _known(seen.latency_s),
                _known(seen.backlog),
                workers.mean("cpu") if workers.columns else math.nan,
                self._missed(step, arrived - self._arrived),
            )
        )
        self._arrived = arrived
        self._signals.append(step.decision.signals)
        self.steps += 1
        if step.target is not self._target:
            self._target = step.target
            self.actions.note(step, self.steps)
        if len(self._rows) == ROWS:
            self._settle()

    def _missed(self, step: Step, arrived: float) -> float:
        """The part of a step's time in which the objective is missed."""
        missed = self._objective.missed(step.seen, arrived, step.could)
        return math.nan if missed is None else self._objective.missed_s(step.seen, missed) / (step.seen.span_s or 1.0)

    @property
    def names(self) -> tuple[str, ...]:
        """The curves that have values: the measures, then the signals as `signal …`."""
        self._settle()
        return self._buckets.names

    @property
    def width_s(self) -> float:
        """The time that one bucket covers."""
        self._settle()
        return self._buckets.width_s

    @property
    def starts_s(self) -> Array:
        """When each bucket begins; empty buckets are left out."""
        self._settle()
        return self._buckets.starts_s

    @property
    def end_s(self) -> float:
        """When the last step ended."""
        self._settle()
        return self._buckets.end_s

    @property
    def resumes(self) -> npt.NDArray[np.bool_]:
        """Does a gap in time lie before this bucket?"""
        self._settle()
        return self._buckets.resumes

    def band(self, name: str) -> Band:
        self._settle()
        return Band(*self._buckets.band(name))

    def _settle(self) -> None:
        if not self._rows:
            return
        rows = np.array(self._rows, dtype=np.float64).T
        columns: dict[str, Any] = dict(zip(MEASURES, rows[2:], strict=True))
        self._buckets.fill(rows[0], rows[1], columns | self._signal_columns())
        self._rows.clear()
        self._signals.clear()

    def _signal_columns(self) -> dict[str, Array]:
        for name in {name: None for signals in self._signals if signals for name in signals}:
            if name not in self._signal_names and len(self._signal_names) < SIGNALS_MAX:
                self._signal_names.append(name)
        return {
            f"signal {name}": np.array([signals.get(name, math.nan) for signals in self._signals], dtype=np.float64)
            for name in self._signal_names
        }


def _known(value: float | None) -> float:
    """What is not known is absent from a curve."""
    return math.nan if value is None else value
