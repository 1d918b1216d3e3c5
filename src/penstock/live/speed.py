"""How fast this machine is right now: what a core does in a second depends on what others do on the same chip.

On a shared machine the same instructions took from 17 to 30 ms of CPU time within one minute, with nothing else running
(most likely a neighbour on the core's other hardware thread). A quota is in CPU time, so samples follow it: two of one
point, a minute apart, were 29 % apart, and the machine was 22 % slower in the second.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import numpy as np

EVERY_S = 0.4
LOOPS = 15_000  # 0.6 ms undisturbed: 0.15 % of a core
UNDISTURBED = 10  # percentile: neighbours rest often enough for that


class SpeedProbe:
    """Times a fixed piece of work, again and again, in a thread."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-speed", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def since(self, begun_s: float) -> float:
        """The mean speed since then (monotonic), as a share of the undisturbed machine's; 1 where nobody knows."""
        taken = np.array(self._taken).reshape(-1, 2)
        lately = taken[taken[:, 0] >= begun_s, 1]
        return float(np.percentile(taken[:, 1], UNDISTURBED) / lately.mean()) if lately.size else 1.0

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            self._taken.append((time.monotonic(), _work_s()))


def _work_s() -> float:
    """CPU seconds, so that waiting for a core does not count."""
    begun, total = time.thread_time(), 0
    for number in range(LOOPS):
        total += number * number
    return time.thread_time() - begun
