"""Every configuration of paper 2's space on one recorded window, as a Spark job."""

from __future__ import annotations

from collections.abc import Callable

from penstock.pipeline.spread import spread
from penstock.policies.fugu_packing import Arrays
from penstock.policies.fugu_search import WHOLE, Best, best, spans

# Tasks of half a second or so, for two cores as for a cluster of 16.
PARTS = 32


def sweep_space(
    window: Arrays, master: str | None = None, done: Callable[[float], None] | None = None, end: int = WHOLE
) -> Best:
    """The best of the first `end` configurations; what `best` finds in one process."""
    return min(spread(lambda span: best(window, *span), spans(PARTS, end), master, done))
