"""Loads over time: shapes, noise, a trace. Several add up; noise multiplies what stands before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from penstock.core.bounds import EVENTS_MOST, INTERVALS_MOST, SPAN_MOST_S, TICK_LEAST_S, between
from penstock.core.errors import BadInput
from penstock.sim.noise import Noise

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """Arrivals interval by interval. Times are the ends of the intervals; a jump in them is a gap."""

    arrivals: Floats = field(repr=False)
    times_s: Floats = field(repr=False)
    tick_s: float
    origin_s: float | None = None
    by_source: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    """Arrivals at each source; without them, sources share the arrivals evenly."""

    @classmethod
    def of(cls, arrivals: Floats, tick_s: float) -> Load:
        return cls(arrivals, np.arange(1, len(arrivals) + 1, dtype=np.float64) * tick_s, tick_s)

    @property
    def peak(self) -> float:
        """Events per second in the busiest interval."""
        return float(self.arrivals.max()) / self.tick_s


class Shape(Protocol):
    """Events per second at some times, given what other shapes make already."""

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate all the time."""

    shape: ClassVar[str] = "constant"
    rate: float

    def __post_init__(self) -> None:
        between("workload.rate", self.rate, 0, EVENTS_MOST)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        return so_far + self.rate


@dataclass(frozen=True, slots=True)
class Steps:
    """Rates one after the other, each held for a while; then again from the first."""

    shape: ClassVar[str] = "steps"
    levels: tuple[float, ...]
    hold_s: float

    def __post_init__(self) -> None:
        between("workload.hold_s", self.hold_s, 1e-3)
        if not self.levels:
            raise BadInput("workload.levels is empty: it must hold at least one rate")
        for level in self.levels:
            between("workload.levels", level, 0, EVENTS_MOST)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        which = (times_s // self.hold_s).astype(int) % len(self.levels)
        return np.asarray(so_far + np.take(self.levels, which), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Sine:
    """A wave between two rates that begins at the lower one: a day."""

    shape: ClassVar[str] = "sine"
    low: float
    high: float
    period_s: float = 86400.0

    def __post_init__(self) -> None:
        between("workload.low", self.low, 0, EVENTS_MOST)
        between("workload.high", self.high, self.low, EVENTS_MOST)
        between("workload.period_s", self.period_s, 1e-3)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        wave = (1 - np.cos(2 * np.pi * times_s / self.period_s)) / 2
        return so_far + self.low + (self.high - self.low) * wave


@dataclass(frozen=True, slots=True)
class Pyramid:
    """Up in equal steps and down again, each step held (paper 5: 0 … 60 by 15, 130 s each)."""

    shape: ClassVar[str] = "pyramid"
    high: float
    step: float
    hold_s: float
    low: float = 0.0

    def __post_init__(self) -> None:
        between("workload.low", self.low, 0, EVENTS_MOST)
        between("workload.high", self.high, self.low, EVENTS_MOST)
        between("workload.step", self.step, max(1e-9, (self.high - self.low) / 100_000), EVENTS_MOST)
        between("workload.hold_s", self.hold_s, 1e-3)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:
        up = np.append(np.arange(self.low, self.high, self.step), self.high)
        levels = tuple(np.concatenate([up, up[-2:0:-1]]).tolist())
        return Steps(levels, self.hold_s).rates(times_s, so_far, rng)


@dataclass(frozen=True, slots=True)
class Square:
    """Two rates in turn, each held (paper 5: 1 and 65, 370 s each)."""

    shape: ClassVar[str] = "square"
    low: float
    high: float
    hold_s: float

    def __post_init__(self) -> None:
        between("workload.low", self.low, 0, EVENTS_MOST)
        between("workload.high", self.high, self.low, EVENTS_MOST)
        between("workload.hold_s", self.hold_s, 1e-3)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:
        return Steps((self.low, self.high), self.hold_s).rates(times_s, so_far, rng)


@dataclass(frozen=True, slots=True)
class FlashCrowd:
    """A crowd that comes within `rise_s` and fades: after `fade_s` a 1/e of it is left."""

    shape: ClassVar[str] = "flash"
    peak: float
    at_s: float
    rise_s: float = 300.0
    fade_s: float = 1800.0

    def __post_init__(self) -> None:
        between("workload.peak", self.peak, 0, EVENTS_MOST)
        for key in ("at_s", "rise_s", "fade_s"):
            between(f"workload.{key}", getattr(self, key), 0)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        since = times_s - self.at_s
        rising = np.clip(since / max(self.rise_s, 1e-9), 0.0, 1.0)
        fading = np.exp(-np.maximum(since - self.rise_s, 0.0) / max(self.fade_s, 1e-9))
        return so_far + self.peak * rising * fading


@dataclass(frozen=True, slots=True)
class Jitter:
    """Noise on the load itself: relative, correlated over `correlation_s`, never below 0."""

    shape: ClassVar[str] = "noise"
    size: float
    correlation_s: float = 0.0

    def __post_init__(self) -> None:
        between("workload.size", self.size, 0, 1000)
        between("workload.correlation_s", self.correlation_s, 0)

    def rates(self, times_s: Floats, so_far: Floats, rng: np.random.Generator) -> Floats:
        tick_s = float(times_s[1] - times_s[0]) if len(times_s) > 1 else 1.0
        noise = Noise.fading(1, tick_s, self.correlation_s, rng)
        factors = np.array([1.0 + self.size * float(noise.row()[0]) for _ in times_s])
        return np.asarray(np.maximum(so_far * factors, 0.0), dtype=np.float64)


SHAPES = {shape.shape: shape for shape in (Constant, Steps, Sine, Pyramid, Square, FlashCrowd, Jitter)}


def make_load(shapes: tuple[Shape, ...], duration_s: float, tick_s: float, seed: int) -> Load:
    """The sum of some shapes, interval by interval."""
    between("tick_s", tick_s, TICK_LEAST_S)
    between("duration_s", duration_s, tick_s, min(SPAN_MOST_S, INTERVALS_MOST * tick_s))
    return shaped(Load.of(np.zeros(round(duration_s / tick_s)), tick_s), shapes, seed)


def shaped(load: Load, shapes: tuple[Shape, ...], seed: int) -> Load:
    """A load with shapes added to it."""
    middles_s = load.times_s - load.tick_s / 2
    rates = load.arrivals / load.tick_s
    # The load has a random source of its own: another policy or another noise must meet the same load.
    rng = np.random.default_rng([seed, 1])
    for shape in shapes:
        rates = shape.rates(middles_s, rates, rng)
    return replace(load, arrivals=rates * load.tick_s)
