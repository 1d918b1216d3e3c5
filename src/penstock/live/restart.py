"""A controller that goes on where an earlier one of the same job stopped, from the journal that it left."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from penstock.core.loop import Policy, Step, control
from penstock.core.objective import Limits
from penstock.live.plant import SparkPlant
from penstock.live.recorder import Recorder
from penstock.sim.recorded import RecordedPlant

log = logging.getLogger("penstock")
REMIND_S = 60.0  # what a policy gets to see its past again: 10,000 steps take one of ours 2 s


def go_on(recorder: Recorder, plant: SparkPlant, policy: Policy, limits: Limits) -> None:
    """The plant with its clock, counters and target, and the policy with all that it knew."""
    if recorder.past:
        plant.go_on(recorder.past[-1], recorder.header.origin_s or plant.origin_s)
        remind(policy, recorder.past, limits)


def remind(policy: Policy, past: Sequence[Step], limits: Limits) -> None:
    """Make the policy what it was: it sees the journal's tail again, in the loop that it saw it in."""
    plant = RecordedPlant(past)
    ticks = _within(REMIND_S, _told(policy, past, plant.ticks()), len(past))
    for _ in past:  # a step at which the policy fails ends the loop, not what it is reminded of
        with suppress(Exception):
            for _ in control(plant, policy, limits, ticks):
                pass


def _told(policy: object, past: Sequence[Step], ticks: Iterable[None]) -> Iterator[None]:
    """Each tick, once the policy, within its guards, has been told the signals of what was decided then."""
    layers = [policy]
    while (inside := getattr(layers[-1], "inside", None)) is not None:
        layers.append(inside)
    wanted = [recall for each in layers if (recall := getattr(each, "recall", None)) is not None]
    for step, tick in zip(past, ticks, strict=True):
        for recall in wanted:
            with suppress(Exception):
                recall(step.decision.signals)
        yield tick


def _within(patience_s: float, ticks: Iterable[None], total: int) -> Iterator[None]:
    until_s = time.monotonic() + patience_s
    for number, tick in enumerate(ticks):
        if time.monotonic() > until_s:
            log.warning("the policy is slow: it saw %d of the journal's last %d steps again", number, total)
            return
        yield tick
