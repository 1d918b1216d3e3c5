"""The live controller: observe, decide, limit, apply, journal, once a tick, in one thread beside the job."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.core.errors import PenstockError, PlantError
from penstock.core.job import Job
from penstock.core.loop import Faults, Policy, Step, control
from penstock.core.units import show_duration
from penstock.live.control_log import ControlLog
from penstock.live.gate import Gate, LivePlant, Stopped
from penstock.live.metrics import Metrics
from penstock.live.metrics_server import MetricsServer
from penstock.live.pause import Pause
from penstock.live.policy_thread import PolicyThread
from penstock.live.recorder import Recorder

log = logging.getLogger("penstock")
TEND_S = 0.2
AWAITED = 8  # ticks without a report, two minutes by default: a first batch on a cold cluster takes one
LATE = 0.1  # of a tick: one that comes later than this waits for the next
LEAVE_S = 1.0  # what a thread gets to close its journal where a tick is shorter


@dataclass(frozen=True, slots=True)
class ControllerParts:
    """What a controller is made of."""

    plant: LivePlant
    policy: Policy
    job: Job
    faults: Faults
    recorder: Recorder | None = None
    metrics: Metrics | None = None
    server: MetricsServer | None = None
    is_dry: bool = False
    asked: PolicyThread | None = None
    """Within the policy's guards: so that executors are tended, and `stop` is obeyed, while it thinks."""
    pause: Pause = field(default_factory=Pause)


@dataclass(slots=True)
class Cost:
    """What the controller itself took: a whole tick is to observe, decide, apply and journal."""

    ticks: int = 0
    skipped: int = 0
    """Ticks that were left out, because the one before took so long."""
    waited_s: float = 0.0
    slowest_s: float = 0.0
    cpu_s: float = 0.0
    """Of its thread and its policy's; Spark answers in threads of its own."""

    def note(self, seconds: float, policy_cpu_s: float) -> None:
        self.ticks += 1
        self.waited_s += seconds
        self.slowest_s = max(self.slowest_s, seconds)
        self.cpu_s = time.thread_time() + policy_cpu_s

    def text(self, seconds: float) -> str:
        figures = f"tick={1e3 * self.waited_s / self.ticks:.0f}ms slowest={1e3 * self.slowest_s:.0f}ms"
        return f"ticks={self.ticks} skipped={self.skipped} {figures} cpu={100 * self.cpu_s / seconds:.2f}% of a core"


class Controller:
    """Keeps a job at the right size until `stop`. It raises nothing into the job: a failure is logged and retried."""

    def __init__(self, parts: ControllerParts, told: Callable[[Step], None] = lambda _: None) -> None:
        self._parts, self._told = parts, told
        self._gate = Gate(parts.plant)
        if parts.asked:
            parts.asked.meanwhile = self._meanwhile
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock", daemon=True)
        self._log = ControlLog(parts.is_dry)
        self._is_late = False
        self.cost = Cost()

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience_s: float | None = None) -> None:
        """Leave the job as it is. Returns within a tick; nothing is asked for, and nobody ended, after that."""
        patience_s = max(LEAVE_S, self._parts.job.tick_s) if patience_s is None else patience_s
        until_s = time.monotonic() + patience_s
        self._stopped.set()
        self._parts.pause.end()
        if not self._gate.close(patience_s):
            log.warning(
                "stopped while Spark has not answered for %s: what it was asked last may still be done",
                show_duration(patience_s),
            )
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(max(0.0, until_s - time.monotonic()))

    def pause(self) -> None:
        """Change nothing, and end nobody, until `go_on`; SIGUSR1 does the same."""
        self._parts.pause.set(True)

    def go_on(self) -> None:
        self._parts.pause.set(False)

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive() and not self._stopped.is_set()

    def _run(self) -> None:
        begun_s = time.monotonic()
        try:
            while not self._stopped.is_set():
                try:
                    self._control()
                except (Exception, SystemExit) as error:
                    self._note_failure(error)
                    self._stopped.wait(self._parts.job.tick_s)
        except Stopped:
            """In the middle of a tick: what it would have done is left undone."""
        finally:
            self._close(time.monotonic() - begun_s)

    def _close(self, seconds: float) -> None:
        parts = self._parts
        if self.cost.ticks:
            log.info("ended %s", self.cost.text(seconds))
        with suppress(Exception):  # the JVM may have gone before us
            parts.plant.leave()
        if parts.asked:
            parts.asked.end()
        if parts.server:
            parts.server.__exit__(None, None, None)
        if parts.recorder:
            parts.recorder.__exit__(None, None, None)

    def _control(self) -> None:
        parts = self._parts
        for step in control(self._gate, parts.policy, parts.job.limits, self._ticks(), parts.faults):
            if parts.metrics:
                parts.metrics.note(step, parts.is_dry)
            self._record(step)
            self._log.note(step)
            self._told(step)

    def _ticks(self) -> Iterator[None]:
        """A tick every `tick_s`, or none where the one before took too long; between them executors are tended."""
        next_s, asked = time.monotonic(), self._parts.asked
        while not self._stopped.is_set():
            next_s = self._next_s(next_s)
            while (left_s := next_s - time.monotonic()) > 0:
                if self._stopped.wait(min(TEND_S, left_s)):
                    return
                self._tend()
            began_s = time.monotonic()
            yield
            self.cost.note(time.monotonic() - began_s, asked.cpu_s if asked else 0.0)
            self._note_unseen()
            self._note_plant()

    def _next_s(self, last_s: float) -> float:
        """When the next tick is due: those that are past are skipped, and that is said."""
        tick_s, now_s = self._parts.job.tick_s, time.monotonic()
        skipped = max(0, math.ceil((now_s - last_s) / tick_s - 1 - LATE))
        self.cost.skipped += skipped
        if skipped and not self._is_late:
            took = f"the last one took {now_s - last_s:.1f} s, and one is due every {show_duration(tick_s)}"
            self._parts.faults.note(f"{skipped} ticks skipped: {took}")
        self._is_late = bool(skipped)
        if self._parts.metrics:
            self._parts.metrics.skipped = self.cost.skipped
        return last_s + (skipped + 1) * tick_s

    def _meanwhile(self) -> None:
        """While the policy thinks."""
        if self._stopped.is_set():
            raise Stopped
        self._tend()

    def _tend(self) -> None:
        if self._parts.pause.is_on():  # who was to leave stays, too, until the pause is over
            return
        try:
            self._gate.tend()
        except (PenstockError, OSError) as error:
            self._log.wrong(f"executors cannot be ended: {error}")
        except Exception as error:  # py4j, when the JVM goes
            self._log.wrong(f"executors cannot be ended: {type(error).__name__}")

    def _record(self, step: Step) -> None:
        """A full disk must not stop the control."""
        if self._parts.recorder is None:
            return
        try:
            self._parts.recorder.write(step)
        except Exception as error:
            if self._parts.metrics:
                self._parts.metrics.note_error()
            self._log.unwritten(str(error) if isinstance(error, PenstockError) else f"the journal: {error}")
        else:
            self._log.unwritten("")

    def _note_unseen(self) -> None:
        faults = self._parts.faults
        if faults.unseen == 1:
            self._note_failure(PlantError(faults.why))
        # Where none is awaited any more, a batch has just ended, and the next tick decides.
        if faults.awaited == AWAITED and (names := ", ".join(self._parts.plant.awaited)):
            self._note_failure(PlantError(f"no batch of {names} has ended yet: there is nothing to decide on"))

    def _note_plant(self) -> None:
        """For the journal, and so for the log."""
        for note in self._parts.plant.take_notes():
            self._parts.faults.note(note)

    def _note_failure(self, error: BaseException) -> None:
        if self._parts.metrics:
            self._parts.metrics.note_error()
        self._log.failed(error)
