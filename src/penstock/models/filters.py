"""Filters that part a load's course from its noise: none, Gauss–Weierstrass, extended Kalman (paper 5 §2.2–2.4).

Each is a pure function of arrays and a thin shell that keeps one filter for each instance. A measurement has a row
for each instance and a column for each metric; the input is `u = (D, ΔD)`, the rate for one instance and its change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from penstock.core.errors import BadInput

Floats = npt.NDArray[np.float64]
# Below this no meter can tell two loads apart; without it a noiseless metric would make R singular.
NOISE_LEAST = 1e-6
# Q = P₀ − R must stay positive. A hundredth of R, at 2 samples a second, lets the filter follow within 5 s.
SYSTEM_LEAST = 0.01
WEIERSTRASS_S2 = 9.0
WINDOW_S = 60.0


class Filter(Protocol):
    """Estimates of all instances, from the measurements so far."""

    def step(self, time_s: float, names: tuple[str, ...], z: Floats, u: Floats) -> Floats:
        """What to believe of each instance, after this measurement."""
        ...

    @property
    def is_ready(self) -> bool:
        """May its estimates be used?"""
        ...


@dataclass(frozen=True, slots=True)
class Motion:
    """How a state follows from the last one and its input (eq 5), and the derivative of that by the state."""

    f: Callable[[Floats, Floats], Floats]
    jacobian: Callable[[Floats, Floats], Floats]


def driven(a: Floats, b: Floats) -> Motion:
    """f(x, u) = x + a·D + b·ΔD (§2.3); its Jacobian is the identity.

    >>> driven(np.array([0.0]), np.array([0.2])).f(np.array([0.5]), np.array([10.0, 2.0])).tolist()
    [0.9]
    """
    same = np.eye(len(a))
    return Motion(lambda x, u: x + a * u[0] + b * u[1], lambda _x, _u: same)


def kernel(ages_s: Floats, variance_s2: float = WEIERSTRASS_S2) -> Floats:
    """Weights of the past (eq 19). Only half of the kernel is past, so they are made to sum to one.

    >>> kernel(np.array([3.0, 0.0])).round(3).tolist()  # e^(-9/18) = 0.607 of 1.607
    [0.378, 0.622]
    """
    weights = np.exp(-(ages_s**2) / (2 * variance_s2))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def predict(x: Floats, p: Floats, u: Floats, motion: Motion, q: Floats) -> tuple[Floats, Floats]:
    """The a priori state and its error (eq 10, 12)."""
    slope = motion.jacobian(x, u)
    return motion.f(x, u), slope @ p @ np.swapaxes(slope, -1, -2) + q


def update(x: Floats, p: Floats, z: Floats, r: Floats) -> tuple[Floats, Floats]:
    """The a posteriori state and its error (eq 13, 14, with h(x) = x).

    The paper leaves out P ← (I − G)·P, without which P cannot shrink as its text says.
    """
    gain = p @ np.linalg.inv(p + r)
    step = gain @ (z - x)[..., np.newaxis]
    return x + step[..., 0], p - gain @ p


def first_state(z: Floats) -> Floats:
    """x̂₀: the mean of the dead time, weighted by recency (eq 16)."""
    weights = np.arange(1.0, len(z) + 1)
    return np.asarray(weights @ z / weights.sum(), dtype=np.float64)


def first_error(z: Floats, x0: Floats) -> Floats:
    """P₀: the weighted covariance around x̂₀ (eq 17), by outer products."""
    weights = np.arange(1.0, len(z) + 1)
    away = z - x0
    return np.asarray((away * weights[:, np.newaxis]).T @ away / (weights.sum() - 1), dtype=np.float64)


def system_noise(p0: Floats, r: Floats, least: float = SYSTEM_LEAST) -> Floats:
    """Q = P₀ − R (eq 18), at least a hundredth of R in every direction."""
    sizes, axes = eigh(p0 - r, r)
    scaled = r @ axes
    return np.asarray(scaled * np.maximum(sizes, least) @ scaled.T, dtype=np.float64)


def measurement_noise(changes: Floats) -> Floats:
    """R from changes between samples at a steady rate: half of their covariance, as two errors make a change."""
    least = NOISE_LEAST * np.eye(changes.shape[-1])
    if not len(changes):
        return least
    r = changes.T @ changes / (2 * len(changes))
    return np.asarray(np.diag(np.maximum(np.diag(r), NOISE_LEAST)), dtype=np.float64)


class Pure:
    """No filter: what is measured is what is believed."""

    is_ready = True

    def step(self, _time_s: float, _names: tuple[str, ...], z: Floats, _u: Floats) -> Floats:
        return z


class Weierstrass:
    """Each instance's past minute, weighted by a Gaussian of its age.

    >>> gw = Weierstrass()
    >>> gw.step(0.0, ("w1",), np.array([[0.0]]), np.zeros(2)).tolist()
    [[0.0]]
    >>> gw.step(3.0, ("w1", "w2"), np.array([[1.0], [0.5]]), np.zeros(2)).round(3).tolist()
    [[0.622], [0.5]]
    """

    is_ready = True

    def __init__(self, variance_s2: float = WEIERSTRASS_S2, window_s: float = WINDOW_S) -> None:
        self._variance_s2, self._window_s = variance_s2, window_s
        self._names: tuple[str, ...] = ()
        self._times_s: Floats = np.empty(0)
        # By sample, instance and metric: what was measured, and whether the instance was there; 0 where it was not.
        self._past: Floats = np.empty((0, 0, 0))
        self._was_there: Floats = np.empty((0, 0, 0))

    def step(self, time_s: float, names: tuple[str, ...], z: Floats, _u: Floats) -> Floats:
        if names != self._names:
            self._join(names, z.shape[1])
        first = int(np.searchsorted(self._times_s, time_s - self._window_s))
        self._times_s = np.append(self._times_s[first:], time_s)
        self._past = np.concatenate([self._past[first:], z[np.newaxis]])
        self._was_there = np.concatenate([self._was_there[first:], np.ones((1, len(names), 1))])
        weights, count = kernel(time_s - self._times_s, self._variance_s2), len(self._times_s)
        total = weights @ self._past.reshape(count, -1)
        return np.asarray(total.reshape(z.shape) / (weights @ self._was_there[:, :, 0])[:, np.newaxis])

    def _join(self, names: tuple[str, ...], width: int) -> None:
        place = {name: row for row, name in enumerate(self._names)}
        kept = [(row, place[name]) for row, name in enumerate(names) if name in place]
        past = np.zeros((len(self._times_s), len(names), width))
        was_there = np.zeros((len(self._times_s), len(names), 1))
        for row, old in kept:
            past[:, row], was_there[:, row] = self._past[:, old], self._was_there[:, old]
        self._names, self._past, self._was_there = names, past, was_there


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How long a Kalman filter only listens, and how long it runs before it is believed (§2.4)."""

    dead_s: float = 10.0
    ease_s: float = 10.0
    samples_least: int = 3
    r: Floats | None = None
    """The measurement noise where it is known; else what the dead time shows."""
    least: float = SYSTEM_LEAST

    def __post_init__(self) -> None:
        if not (self.dead_s >= 0 and self.ease_s >= 0):
            raise BadInput(f"dead time {self.dead_s:g} s, ease-in {self.ease_s:g} s: neither may be negative")


class Kalman:
    """One extended Kalman filter for each instance, bootstrapped from a dead time; it tells the *next* state (§2.3).

    `moves` says of each metric whether the others take over what an instance that leaves carried.

    >>> ekf = Kalman(driven(np.zeros(1), np.array([0.2])), Bootstrap(dead_s=2.0, ease_s=1.0))
    >>> for second in range(40):
    ...     load = ekf.step(float(second), ("w1",), np.array([[0.5]]), np.array([2.5, 0.0]))
    >>> load.tolist(), ekf.step(40.0, ("w1",), np.array([[0.5]]), np.array([5.0, 2.5])).tolist()
    ([[0.5]], [[1.0]])
    """

    def __init__(self, motion: Motion, bootstrap: Bootstrap | None = None, moves: Floats | None = None) -> None:
        self.motion = motion
        self._bootstrap = bootstrap or Bootstrap()
        self._moves = moves
        self._dead: list[tuple[tuple[str, ...], Floats]] = []
        self._begun_s: float | None = None
        self._names: tuple[str, ...] = ()
        self._x, self._p = np.empty((0, 0)), np.empty((0, 0, 0))
        self._p0, self._q, self._r = np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0))
        self.is_ready = False

    def step(self, time_s: float, names: tuple[str, ...], z: Floats, u: Floats) -> Floats:
        self._begun_s = time_s if self._begun_s is None else self._begun_s
        age_s, boot = time_s - self._begun_s, self._bootstrap
        if not self._names:
            self._dead.append((names, z))
            if age_s < boot.dead_s or len(self._dead) < boot.samples_least:
                return z
            self._begin(names)
        else:
            if names != self._names:
                self._join(names, z)
            self._x, self._p = update(self._x, self._p, z, self._r)
            self.is_ready = self.is_ready or age_s >= boot.dead_s + boot.ease_s
        self._x, self._p = predict(self._x, self._p, u, self.motion, self._q)
        return self._x

    def _begin(self, names: tuple[str, ...]) -> None:
        """x̂₀ of each instance; P₀, R and Q from all of them together."""
        series = [np.array([z[held.index(name)] for held, z in self._dead if name in held]) for name in names]
        states = [first_state(one) for one in series]
        width = len(states[0])
        long = [(one, x0) for one, x0 in zip(series, states, strict=True) if len(one) > 1]
        errors = [first_error(one, x0) for one, x0 in long] or [np.zeros((width, width))]
        changes = [np.diff(one, axis=0) for one, _ in long] or [np.empty((0, width))]
        known = self._bootstrap.r
        self._r = measurement_noise(np.concatenate(changes)) if known is None else known
        self._p0 = np.mean(errors, axis=0) + NOISE_LEAST * np.eye(width)
        # Where R is a guess from the same few samples, P₀ exceeds it by chance: two deviations of that are no system
        # noise. With the paper's known R that luck doubles the scaling events of some runs (docs/ekf.md).
        chance = 2 * math.sqrt(2 / max(1, sum(map(len, series)))) if known is None else 0.0
        self._q = system_noise(self._p0, (1 + chance) * self._r, self._bootstrap.least / (1 + chance))
        self._names, self._x = names, np.array(states)
        self._p = np.repeat(self._p0[np.newaxis], len(names), axis=0)
        self._dead.clear()

    def _join(self, names: tuple[str, ...], z: Floats) -> None:
        """Instances that stay keep their filter, and share what others left; a new one begins at their mean."""
        place = {name: row for row, name in enumerate(self._names)}
        kept = [place[name] for name in names if name in place]
        mean = self._x[kept].mean(axis=0) if kept else z.mean(axis=0)
        x = np.array([self._x[place[name]] if name in place else mean for name in names])
        self._p = np.array([self._p[place[name]] if name in place else self._p0 for name in names])
        moves = np.ones(z.shape[1]) if self._moves is None else self._moves
        # Without this the filter, 5 s behind, would see each scale-in as not enough and ask for another.
        self._x = x * (1 + moves * (len(self._names) / len(kept) - 1)) if kept else x
        self._names = names
