"""What a controller says by itself, under the logger `penstock`: each scaling action, what is wrong, a summary."""

from __future__ import annotations

import logging
import re
import sys
from typing import TextIO

from penstock.core.allocation import Allocation
from penstock.core.errors import PenstockError
from penstock.core.loop import Step
from penstock.core.observation import Observation
from penstock.core.units import show_duration

log = logging.getLogger("penstock")
FORM = "%(asctime)s %(name)s %(message)s"
SUMMARY_S = 600.0


def be_heard() -> None:
    """See that what is said reaches a person where nobody has set up logging.

    Python's last resort shows warnings alone, and the default level of the root is WARNING; a level that somebody
    chose, for us or (ERROR and above) for all, is left alone.
    """
    if log.level == logging.NOTSET and logging.getLogger().level <= logging.WARNING:
        log.setLevel(logging.INFO)
    if not log.hasHandlers():
        log.addHandler(ToStderr(logging.Formatter(FORM)))


class ToStderr(logging.StreamHandler[TextIO]):
    """Writes to what stderr is when something is said: one that was replaced, or closed, since is nobody's any more."""

    def __init__(self, form: logging.Formatter) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(form)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


class ControlLog:
    """One line for a scaling action; a reason or a fault that was told within ten minutes is not told again."""

    def __init__(self, is_dry: bool = False) -> None:
        self._is_dry = is_dry
        self._told_s: dict[tuple[object, ...], float] = {}
        self._now_s = 0.0
        self._summary = Summary(None)
        self._wrong = self._unwritten = ""

    def note(self, step: Step) -> None:
        """Say what this step changes, if anything, and every ten minutes how it went."""
        self._now_s = step.seen.time_s
        if step.target.alternate != step.seen.target.alternate and not self._is_dry:
            named = " ".join(f"{name}={kind}" for name, kind in step.target.alternate.items())
            log.info("switching alternates %s reason=%s", named, step.decision.reason)
        (what, asked), (_, wanted), reason = size(step.seen.target), size(step.target), step.decision.reason
        if asked == wanted:
            if self._is_new(asked, wanted, re.sub(r"[\d.,]+", "#", reason)):
                log.info("keeping %s=%s reason=%s", what, asked, reason)
        elif not self._is_dry or self._is_new(asked, wanted, re.sub(r"[\d.,]+", "#", reason)):
            event = "would scale" if self._is_dry else "scaling"
            figures = shown(step.seen)
            log.info("%s %s=%s->%s %s reason=%s", event, what, asked, wanted, figures, reason)
        self._summary.add(step, self._is_dry)
        if self._summary.span_s >= SUMMARY_S:
            log.info("%s", self._summary.text())
            self._summary = Summary(step.seen)

    def failed(self, error: BaseException) -> None:
        self.wrong(str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}")

    def wrong(self, words: str) -> None:
        """Once, until something else is wrong."""
        if words != self._wrong:
            log.warning("%s: what runs is kept", words)
            self._wrong = words

    def unwritten(self, words: str) -> None:
        """The journal's failure, or, with no words, that it is written: once each."""
        if words and not self._unwritten:
            log.warning("%s: the control goes on without it", words)
        elif self._unwritten and not words:
            log.warning("the journal is written again")
        self._unwritten = words

    def _is_new(self, *kind: object) -> bool:
        told_s = self._told_s.get(kind)
        if told_s is not None and self._now_s - told_s < SUMMARY_S:
            return False
        if len(self._told_s) > 1000:  # reasons of a policy that never says the same twice
            self._told_s.clear()
        self._told_s[kind] = self._now_s
        return True


class Summary:
    """What went on since some observation."""

    def __init__(self, since: Observation | None) -> None:
        self._since = self._last = since
        self._ticks = self._out = self._in = 0
        self._fewest, self._most = sys.maxsize, 0

    @property
    def span_s(self) -> float:
        return self._last.time_s - self._since.time_s if self._last and self._since else 0.0

    def add(self, step: Step, is_dry: bool) -> None:
        seen, asked, wanted = step.seen, len(step.seen.target.workers), len(step.target.workers)
        self._since, self._last = self._since or seen, seen
        self._ticks += 1
        self._out += wanted > asked and not is_dry
        self._in += wanted < asked and not is_dry
        running = len(seen.running.workers)
        self._fewest, self._most = min(self._fewest, running), max(self._most, running)

    def text(self) -> str:
        assert self._last is not None
        executors = f"executors={self._fewest}…{self._most} now={len(self._last.running.workers)}"
        scaled = f"scaled_out={self._out} scaled_in={self._in} decisions={self._ticks}"
        return f"summary of {show_duration(self.span_s)}: {executors} {scaled} {shown(self._last)}"


def size(target: Allocation) -> tuple[str, str]:
    """What is scaled, and how much of it there is.

    >>> size(Allocation.of(2)), size(Allocation((), cpu_share={"a": 0.4, "b": 1.0}))
    (('executors', '2'), ('shares', 'a:40%,b:100%'))
    """
    if target.cpu_share:
        return "shares", ",".join(f"{name}:{share:.0%}" for name, share in target.cpu_share.items())
    return "executors", str(len(target.workers))


def shown(seen: Observation) -> str:
    """What came and what waits; what nobody knows is said to be unknown."""
    backlog = "unknown" if seen.backlog is None else f"{seen.backlog:.0f}"
    latency = "unknown" if seen.latency_s is None else f"{seen.latency_s:.1f}s"
    return f"rate={seen.input_rate:.0f}/s backlog={backlog} latency={latency}"
