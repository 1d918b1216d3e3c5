"""The way to the plant: one act at a time, and none after it was closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from penstock.core.allocation import Allocation
from penstock.core.loop import Plant
from penstock.core.observation import Observation


class Stopped(BaseException):
    """The controller was told to stop. No `Exception`: no guard may take it for a policy that failed."""


class LivePlant(Plant, Protocol):
    """A plant that is real: something goes on in it between two ticks, and there is more to tell than figures."""

    @property
    def awaited(self) -> list[str]:
        """What has not shown anything yet."""
        ...

    def tend(self) -> None:
        """Called several times a second: whatever must not wait for the next tick."""
        ...

    def take_notes(self) -> list[str]:
        """What a person should know, since the last call."""
        ...

    def leave(self) -> None:
        """Nobody controls it from now on: undo what must not last."""
        ...


class Gate:
    """Lets what is done to the plant through, until `close`."""

    def __init__(self, plant: LivePlant) -> None:
        self._plant, self.knobs = plant, plant.knobs
        self._acting = threading.Lock()
        self._is_closed = False

    def observe(self) -> Observation | None:
        """To look is always allowed."""
        return self._plant.observe()

    def apply(self, target: Allocation) -> None:
        self._act(lambda: self._plant.apply(target))

    def tend(self) -> None:
        self._act(self._plant.tend)

    def close(self, patience_s: float) -> bool:
        """Nothing is begun from now on; False if what was begun has not ended within this time."""
        self._is_closed = True
        if not self._acting.acquire(timeout=patience_s):
            return False
        self._acting.release()
        return True

    def _act(self, what: Callable[[], None]) -> None:
        with self._acting:
            if self._is_closed:
                raise Stopped
            what()
