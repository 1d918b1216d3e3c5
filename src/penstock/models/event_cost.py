"""What an event costs an operator, where nobody declared it: learnt from the CPU that it used while it served."""

from __future__ import annotations

# With each measurement those before weigh this much less: about ten of them count.
KEPT = 0.9
# Rates that scatter by less than this part of their mean do not tell what is due to events, and what to batches.
SCATTER = 0.2


class EventCost:
    """Cores that an operator needs for a rate: `base + rate · seconds an event`, the least squares of what was seen.

    A micro-batch takes CPU whatever its size. Before rates have differed, all of it counts as the events'.

    >>> cost = EventCost()
    >>> cost.note(rate=100.0, cores=0.3)
    >>> cost.needed(200.0)
    0.6
    >>> cost.note(rate=300.0, cores=0.5)
    >>> round(cost.needed(200.0), 2), round(cost.needed(500.0), 2)
    (0.4, 0.7)
    """

    def __init__(self) -> None:
        self._weight = self._rates = self._cores = self._squares = self._products = 0.0

    def note(self, rate: float, cores: float) -> None:
        """So many events a second were served by so many cores."""
        self._weight = KEPT * self._weight + 1
        self._rates = KEPT * self._rates + rate
        self._cores = KEPT * self._cores + cores
        self._squares = KEPT * self._squares + rate * rate
        self._products = KEPT * self._products + rate * cores

    def needed(self, rate: float) -> float:
        if not self._weight:
            return 0.0
        mean, cores = self._rates / self._weight, self._cores / self._weight
        if mean <= 0:
            return cores
        spread = self._squares / self._weight - mean * mean
        slope = cores / mean
        if spread > (SCATTER * mean) ** 2:
            slope = min(slope, max(0.0, (self._products / self._weight - mean * cores) / spread))
        return cores + slope * (rate - mean)
