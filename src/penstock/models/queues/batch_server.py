"""Micro-batches fed by a MAP: a server that takes all that waits, n rows, and needs c0 + c1·n seconds for them.

The rows of the next batch are the arrivals during this one: a Markov chain of (rows, arrival phase) at the starts of
batches (`batch_chain.py`). A row's response is the rest of the batch in which it came, and the whole of the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.core.errors import BadInput
from penstock.models.markov.chains import Floats
from penstock.models.markov.map import Map
from penstock.models.queues.batch_chain import BatchChain, batch_chain


@dataclass(frozen=True, slots=True)
class BatchServer:
    """c0 + c1·n seconds for n rows. With a trigger a batch starts at its multiples, or as soon as the last one ends."""

    fixed_s: float
    per_row_s: float
    trigger_s: float = 0.0

    def __post_init__(self) -> None:
        for name in ("fixed_s", "per_row_s", "trigger_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise BadInput(f"micro-batches: {name} is {value:g}; it must be 0 or more")
        if not self.fixed_s + self.trigger_s > 0:
            raise BadInput("micro-batches: fixed_s or trigger_s must be above 0, or batches take no time at all")

    def takes_s(self, rows: Floats) -> Floats:
        return np.asarray(self.fixed_s + self.per_row_s * rows, dtype=np.float64)

    def until_next_s(self, rows: Floats) -> Floats:
        """From the start of a batch to that of the next; no rows take no time, but the trigger's."""
        busy = np.where(rows > 0, self.takes_s(rows), 0.0) if self.trigger_s else self.takes_s(rows)
        return np.asarray(np.maximum(busy, self.trigger_s), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BatchResponse:
    """From a row's arrival to the end of its batch. With a utilisation of 1 or more all times are infinite."""

    utilisation: float
    """Of the time for rows: rate · c1."""
    rows: float
    """In a batch, in the mean."""
    spans_s: Floats
    """Time in which rows of the next batch gather: rows of the table below."""
    ends_s: Floats
    """What the next batch takes: columns of it."""
    weights: Floats
    """How many rows arrive so, as shares of all."""

    @property
    def is_stable(self) -> bool:
        return self.utilisation < 1

    @cached_property
    def mean_s(self) -> float:
        if not self.is_stable:
            return math.inf
        return float((self.weights * (self.spans_s[:, np.newaxis] / 2 + self.ends_s)).sum())

    def exceeds(self, bound_s: float) -> float:
        """The share of rows whose response takes longer: rows are taken to arrive evenly within a batch."""
        if not self.is_stable:
            return 1.0
        over = self.spans_s[:, np.newaxis] + self.ends_s - bound_s
        share = np.clip(over / np.maximum(self.spans_s, 1e-12)[:, np.newaxis], 0.0, 1.0)
        return float((self.weights * share).sum())

    def percentile_s(self, p: float) -> float:
        """What a share p of the rows does not exceed."""
        if not 0 < p < 1:
            raise BadInput(f"percentile {p:g}: it is a share above 0 and below 1, such as 0.95")
        if not self.is_stable:
            return math.inf
        low, high = 0.0, float(self.spans_s.max() + self.ends_s.max())
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.exceeds(middle) > 1 - p else (low, middle)
        return high


def micro_batches(arrivals: Map, server: BatchServer) -> BatchResponse:
    """Mean and percentiles of a row's response.

    >>> steady = micro_batches(Map([[-100.0]], [[100.0]]), BatchServer(fixed_s=0.5, per_row_s=0.002))
    >>> round(steady.rows, 1), round(steady.mean_s, 2)  # n = 100 (0.5 + 0.002 n); half a batch and a whole one
    (62.5, 0.94)
    """
    load = arrivals.rate * server.per_row_s
    if load >= 1:
        return BatchResponse(load, math.inf, np.empty(0), np.empty(0), np.empty((0, 0)))
    usual = arrivals.rate * max(server.fixed_s / (1 - load), server.trigger_s)
    chain = batch_chain(arrivals, server.until_next_s, usual, rests=not server.trigger_s)
    return _response(server, chain, load)


def _response(server: BatchServer, chain: BatchChain, load: float) -> BatchResponse:
    rows = chain.rows
    # The last row of the table: those that came to an idle server gather in no time.
    table = np.vstack([chain.flows, np.zeros(len(rows))])
    table[-1, 1] = chain.rested
    mean = float((table * rows).sum())
    spans = np.append(server.until_next_s(rows), 0.0)
    # With a trigger some starts find nothing: those are no batches.
    batches = float(table[:, rows > 0].sum())
    return BatchResponse(load, mean / batches, spans, server.takes_s(rows), table * rows / mean)
