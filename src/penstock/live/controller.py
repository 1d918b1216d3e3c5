"""The live controller: observe, decide, limit, apply, journal, once a tick, in one thread beside the job."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.server import ThreadingHTTPServer

from penstock.core.errors import PenstockError, PlantError
from penstock.core.job import Job
from penstock.core.loop import Faults, Policy, Step, control
from penstock.live.metrics import Metrics
from penstock.live.plant import SparkPlant
from penstock.live.recorder import Recorder

log = logging.getLogger("penstock")
TEND_S = 0.2
AWAITED = 8  # ticks without a report, two minutes by default: a first batch on a cold cluster takes one


@dataclass(frozen=True, slots=True)
class Parts:
    """What a controller is made of."""

    plant: SparkPlant
    policy: Policy
    job: Job
    faults: Faults
    recorder: Recorder | None = None
    metrics: Metrics | None = None
    server: ThreadingHTTPServer | None = None
    is_dry: bool = False


@dataclass(slots=True)
class Cost:
    """What the controller itself took: a whole tick is to observe, decide, apply and journal."""

    ticks: int = 0
    waited_s: float = 0.0
    slowest_s: float = 0.0
    cpu_s: float = 0.0
    """Of its thread; Spark answers in threads of its own."""

    def note(self, seconds: float) -> None:
        self.ticks += 1
        self.waited_s += seconds
        self.slowest_s = max(self.slowest_s, seconds)
        self.cpu_s = time.thread_time()


class Controller:
    """Keeps a job at the right size until `stop`. It raises nothing into the job: a failure is logged and retried."""

    def __init__(self, parts: Parts, told: Callable[[Step], None] = lambda _: None) -> None:
        self._parts, self._told = parts, told
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._said = ""
        self._logged: tuple[int, int, str] | None = None
        self._folded = 0
        self._unknown: set[str] = set()
        self._lost = 0
        self.cost = Cost()

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience_s: float = 10.0) -> None:
        """Leave the job as it is."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(patience_s)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        parts, begun_s = self._parts, time.monotonic()
        try:
            while not self._stopped.is_set():
                try:
                    self._control()
                except Exception as error:
                    self._note_failure(error)
                    self._stopped.wait(parts.job.tick_s)
        finally:
            self._log_cost(time.monotonic() - begun_s)
            if parts.server:
                parts.server.shutdown()
                parts.server.server_close()
            if parts.recorder:
                parts.recorder.__exit__(None, None, None)

    def _control(self) -> None:
        parts = self._parts
        for step in control(parts.plant, parts.policy, parts.job.limits, self._ticks(), parts.faults):
            if parts.metrics:
                parts.metrics.note(step, parts.is_dry)
            self._record(step)
            self._log(step)
            self._told(step)

    def _ticks(self) -> Iterator[None]:
        """A tick every `tick_s`; between ticks, executors that nobody wants are ended."""
        next_s = time.monotonic()
        while True:
            next_s = max(next_s + self._parts.job.tick_s, time.monotonic())
            while (left_s := next_s - time.monotonic()) > 0:
                if self._stopped.wait(min(TEND_S, left_s)):
                    return
                self._tend()
            began_s = time.monotonic()
            yield
            self.cost.note(time.monotonic() - began_s)
            self._note_unseen()
            self._note_plant()

    def _tend(self) -> None:
        try:
            self._parts.plant.tend()
        except (PenstockError, OSError) as error:
            self._say(f"executors cannot be ended: {error}")
        except Exception as error:  # py4j, when the JVM goes
            self._say(f"executors cannot be ended: {type(error).__name__}")

    def _record(self, step: Step) -> None:
        """A full disk must not stop the control."""
        if self._parts.recorder is None:
            return
        try:
            self._parts.recorder.write(step)
        except Exception as error:
            self._note_failure(error)

    def _log(self, step: Step) -> None:
        """One line for a change, or for something new to say; the same again, but for its numbers, is folded."""
        asked, wanted, reason = len(step.seen.target.workers), len(step.target.workers), step.decision.reason
        said = (asked, wanted, re.sub(r"[\d.,]+", "#", reason))
        if said == self._logged and (asked == wanted or self._parts.is_dry):
            self._folded += 1
            return
        if self._folded:
            log.info("the same %d times more", self._folded)
        self._logged, self._folded = said, 0
        if asked == wanted:
            log.info("keeping executors=%d reason=%s", asked, reason)
            return
        seen, event = step.seen, "would scale" if self._parts.is_dry else "scaling"
        lag = "lag=unknown"
        if seen.backlog is not None and seen.latency_s is not None:
            lag = f"backlog={seen.backlog:.0f} latency={seen.latency_s:.1f}s"
        figures = f"rate={seen.input_rate:.0f}/s {lag}"
        log.info("%s executors=%d->%d %s reason=%s", event, asked, wanted, figures, reason)

    def _log_cost(self, seconds: float) -> None:
        cost = self.cost
        if cost.ticks:
            figures = f"tick={1e3 * cost.waited_s / cost.ticks:.0f}ms slowest={1e3 * cost.slowest_s:.0f}ms"
            log.info("ended ticks=%d %s cpu=%.2f%% of a core", cost.ticks, figures, 100 * cost.cpu_s / seconds)

    def _note_unseen(self) -> None:
        faults = self._parts.faults
        if faults.unseen == 1:
            self._note_failure(PlantError(faults.why))
        if faults.awaited == AWAITED:
            names = ", ".join(self._parts.plant.awaited)
            self._note_failure(PlantError(f"no batch of {names} has ended yet: there is nothing to decide on"))

    def _note_plant(self) -> None:
        """What the plant cannot see, and executors that went by themselves: for the journal, and so for the log."""
        plant, faults = self._parts.plant, self._parts.faults
        unknown = plant.unknown_backlog
        for name in set(unknown) - self._unknown:
            faults.note(f"{name} does not tell what waits in it: the backlog is unknown")
        self._unknown |= set(unknown)
        for note in plant.take_notes():
            faults.note(note)
        if plant.lost > self._lost:
            faults.note(f"{plant.lost - self._lost} executors were lost, not ended by us")
        self._lost = plant.lost

    def _note_failure(self, error: Exception) -> None:
        if self._parts.metrics:
            self._parts.metrics.note_error()
        self._say(f"{type(error).__name__}: {error}" if not isinstance(error, PenstockError) else str(error))

    def _say(self, words: str) -> None:
        """Once, until something else is said."""
        if words != self._said:
            log.warning("%s: what runs is kept", words)
            self._said = words


def reminded(policy: Policy, past: Sequence[Step]) -> Policy:
    """The policy as it was when an earlier controller stopped: it sees the journal's tail again."""
    for step in past:
        with suppress(Exception):
            policy.decide(step.seen)
    return policy
