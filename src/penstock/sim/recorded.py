"""A recorded run as a plant: a policy sees again what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.core.allocation import Allocation, Knob
from penstock.core.loop import Step
from penstock.core.observation import Observation


class RecordedPlant:
    """Shows what was seen, step by step. Whatever is asked for changes nothing.

    A restarted controller warms its policy up on the tail of its own journal in this way.
    """

    knobs = frozenset(Knob)

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = iter(steps)
        self._seen: Observation | None = None

    def ticks(self) -> Iterator[None]:
        for step in self._steps:
            self._seen = step.seen
            yield

    def observe(self) -> Observation | None:
        return self._seen

    def apply(self, target: Allocation) -> None:
        """Nothing: the past is over."""
