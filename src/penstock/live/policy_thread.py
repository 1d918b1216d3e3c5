"""A policy asked in a thread of its own: a slow one holds nobody up, one that hangs is left behind and has failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TypeVar, cast

from penstock.core.errors import BadInput, PenstockError
from penstock.core.loop import Decision, Policy
from penstock.core.observation import Observation

LOOK_S = 0.2
# To load a file and to build what is in it: a model that is read takes seconds.
BUILD_S = 60.0
Made = TypeVar("Made")


class PolicyHangs(PenstockError):
    """A policy that has not answered in time."""


@dataclass(slots=True)
class _Question:
    seen: Observation
    answered: threading.Event = field(default_factory=threading.Event)
    decision: object = None
    error: BaseException | None = None


def built(policy: str, make: Callable[[], Made]) -> Made:
    """What `make` makes of a user's code; code that hangs is left behind, and the job goes on without it."""
    made: list[Made] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            made.append(make())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="penstock-build", daemon=True)
    thread.start()
    thread.join(BUILD_S)
    if thread.is_alive():
        raise BadInput(f"policy {policy} was not built within {BUILD_S:g} s: its module or its constructor hangs")
    for error in failed:
        raise error
    return made[0]


class PolicyThread:
    """The policy, asked so that whoever waits can do something meanwhile.

    >>> from penstock.policies.static import Static
    >>> from penstock.sim.scenario import Scenario
    >>> job = Scenario.constant(rate=1.0, capacity_per_worker=10.0).job()
    >>> PolicyThread(Static(job, workers=2), deadline_s=10.0).needs == Static(job, workers=2).needs
    True
    """

    def __init__(self, policy: Policy, deadline_s: float) -> None:
        self.inside, self.needs, self.memory_s = policy, policy.needs, policy.memory_s
        self.meanwhile: Callable[[], None] = lambda: None
        """Done several times a second while the policy thinks; what it raises ends the wait."""
        self.cpu_s = 0.0
        """What the policy took of a processor so far."""
        self._deadline_s = deadline_s
        self._questions: SimpleQueue[_Question | None] = SimpleQueue()
        self._last: _Question | None = None
        self._thread: threading.Thread | None = None

    def decide(self, seen: Observation) -> Decision:
        # Its state is not made for two threads: while it hangs it is not asked, and what it says too late is dropped.
        if self._last is not None and not self._last.answered.is_set():
            raise PolicyHangs("it still has not answered the question before")
        question = self._last = _Question(seen)
        self._ask(question)
        # Looks are counted, not seconds: a process that was stopped for a minute gave its policy no time.
        for _ in range(max(1, round(self._deadline_s / LOOK_S))):
            if question.answered.wait(LOOK_S):
                return _answer(question)
            self.meanwhile()
        raise PolicyHangs(f"it did not answer within {self._deadline_s:g} s, and is left behind until it does")

    def end(self) -> None:
        """Let the thread go, once the policy has answered."""
        self._questions.put(None)

    def _ask(self, question: _Question) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._think, name="penstock-policy", daemon=True)
            self._thread.start()
        self._questions.put(question)

    def _think(self) -> None:
        while (question := self._questions.get()) is not None:
            try:
                question.decision = self.inside.decide(question.seen)
            except BaseException as error:
                question.error = error
            self.cpu_s = time.thread_time()
            question.answered.set()


def _answer(question: _Question) -> Decision:
    """What the policy returned, right or wrong, or raised."""
    error = question.error
    if error is None:
        return cast(Decision, question.decision)  # the guard around it looks whether it is one
    if isinstance(error, (Exception, SystemExit)):
        raise error
    # A KeyboardInterrupt of the policy's own making is no one's Ctrl-C.
    raise RuntimeError(f"{type(error).__name__}: {error}") from error
