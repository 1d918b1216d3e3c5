"""Measurement noise with a size and a memory."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

_BLOCK = 512


class Noise:
    """Rows of normal noise, one a tick, each column a first-order autoregression with variance 1.

    Drawn in blocks: one row at a time would cost a replay more than all else it does.
    """

    def __init__(self, width: int, memory: float, rng: np.random.Generator) -> None:
        self._width = width
        self._memory = memory
        self._rng = rng
        self._state = rng.standard_normal(width)
        self._block: npt.NDArray[np.float64] = np.empty((0, width))
        self._row = 0

    @classmethod
    def fading(cls, width: int, tick_s: float, correlation_s: float, rng: np.random.Generator) -> Noise:
        """Noise that has faded to 1/e after `correlation_s`."""
        return cls(width, math.exp(-tick_s / correlation_s) if correlation_s else 0.0, rng)

    def row(self) -> npt.NDArray[np.float64]:
        if self._row == len(self._block):
            self._draw()
        self._row += 1
        row: npt.NDArray[np.float64] = self._block[self._row - 1]
        return row

    def _draw(self) -> None:
        fresh = self._rng.standard_normal((_BLOCK, self._width)) * math.sqrt(1 - self._memory**2)
        if self._memory:
            carried = (self._memory * self._state)[np.newaxis, :]
            fresh, _ = lfilter([1.0], [1.0, -self._memory], fresh, axis=0, zi=carried)
        self._block, self._state, self._row = fresh, fresh[-1], 0
