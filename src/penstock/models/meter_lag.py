"""How many samples a meter is behind its input: chosen from the data, and allowed for (paper 5 §2.3)."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from penstock.models.filters import Floats

# Equation 5 moves a state by the input of the sample before.
PAPERS_LAG = 1.0
# Two seconds and a half at the paper's two samples a second.
LAGS = 5
# Samples with changes of the rate: an hour of changes at every sample. A lag counts at three times its own error.
HORIZON = 7200.0
SURE = 3.0
# Seven coefficients from fewer samples fit chance: 24 ticks of a live run "showed" a lag of 100 s.
SAMPLES_LEAST = 50
# At a rate that changes by less than this share between samples, what changes is noise.
STEADY = 0.05
# A meter at its end shows no change: what comes meets full workers.
FULL = 0.95


def shown(lag: float, samples: Floats) -> Floats:
    """How much of a change the meter shows, so many samples after it.

    >>> shown(1.25, np.arange(4.0)).tolist()
    [0.0, 0.75, 1.0, 1.0]
    """
    return np.clip(samples + 1 - lag, 0.0, 1.0)


def lagged(inputs: Floats, lag: float) -> Floats:
    """(D, ΔD) as a meter that is so late shows them, from D and the changes now and 1 … LAGS samples ago.

    >>> lagged(np.array([7.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 1.0).tolist()
    [7.0, 2.0]
    """
    weights = np.diff(shown(lag, np.arange(-1.0, LAGS + 1)))
    return np.array([inputs[0], weights @ inputs[1:]])


class MeterLag:
    """Follows samples of load and input, and says how far apart they are: in samples, the paper's 1 until it is sure.

    >>> meter, rates = MeterLag(), [1.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0] * 9
    >>> for before, now in zip(rates, rates[1:]):
    ...     meter.follow(("w1",), np.array([[0.2 * now]]), np.array([now, now - before]))
    >>> round(meter.lag, 3)
    0.0
    """

    def __init__(self, lag: float | None = None) -> None:
        self._given, self._chosen = lag, PAPERS_LAG
        self._names: tuple[str, ...] = ()
        self._load = math.nan
        self._rates = (0.0, 0.0)
        # Changes of the whole rate, the youngest first, and the rate then: a worker that leaves makes each part larger.
        self._changes: deque[tuple[float, float]] = deque([(0.0, 0.0)] * (LAGS + 1), maxlen=LAGS + 1)
        self._xx, self._xy = np.zeros((LAGS + 2, LAGS + 2)), np.zeros(LAGS + 2)
        self._yy = self._count = 0.0

    @property
    def lag(self) -> float:
        return self._chosen if self._given is None else self._given

    def follow(self, names: tuple[str, ...], z: Floats, u: Floats) -> None:
        """A sample: who ran, each one's metrics (the first counts), and the input for one of them."""
        before, self._load = self._load, float(z[:, 0].mean())
        self._rates = (self._rates[1], float(u[0]))
        self._changes.appendleft((float(u[1]) * len(names), float(u[0]) * len(names)))
        is_same, self._names = names == self._names, names
        # Where nothing has changed there is nothing to see, and a day at a steady rate would drown what was.
        if self._given is None and is_same and max(self._load, before) < FULL and not self.is_quiet:
            self._take(self.inputs(), self._load - before)

    def inputs(self) -> Floats:
        """D of the sample before, and ΔD now and 1 … LAGS samples ago, all for one instance."""
        return np.append(self._rates[0], self._parts())

    @property
    def is_quiet(self) -> bool:
        """Did the rate hold for as long as a meter lags, as far as noise goes?"""
        return all(abs(change) <= STEADY * abs(rate) for change, rate in self._changes)

    def ahead(self) -> float:
        """ΔD that a measurement lacks, or has too early: equation 5 adds the last sample's to it by itself."""
        if self.lag == PAPERS_LAG:
            return 0.0
        parts, seen = self._parts(), shown(self.lag, np.arange(LAGS + 1.0))
        return float((1 - seen[1:]) @ parts[1:] - seen[0] * parts[0])

    def _parts(self) -> Floats:
        return np.array([change for change, _ in self._changes]) / max(1, len(self._names))

    def _take(self, x: Floats, y: float) -> None:
        keep = math.exp(-1 / HORIZON)
        self._xx = keep * self._xx + np.outer(x, x)
        self._xy = keep * self._xy + x * y
        self._yy, self._count = keep * self._yy + y * y, keep * self._count + 1
        if self._count >= SAMPLES_LEAST:
            self._choose()

    def _choose(self) -> None:
        """Where the load answers a change most surely, and beside it, if it is sure there too."""
        inverse = np.linalg.pinv(self._xx, hermitian=True)
        slopes = inverse @ self._xy
        left = max(self._yy - float(slopes @ self._xy), 0.0) / (self._count - len(slopes))
        error = np.sqrt(left * np.maximum(np.diag(inverse), 0.0))[1:] + 1e-9
        b = slopes[1:]
        sure = np.where(b > SURE * error, b / error, 0.0)
        best = int(sure.argmax())
        if sure[best] > 0:
            near = [k for k in (best - 1, best, best + 1) if 0 <= k <= LAGS and sure[k] > 0]
            self._chosen = float(np.average(near, weights=b[near]))
