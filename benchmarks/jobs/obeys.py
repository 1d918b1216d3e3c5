"""Beside a disturbed job: a policy that hangs while there is a file `hang`, and a stop by a file `stop`."""

import os
import sys
import threading
import time
from pathlib import Path

from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.live.controller import Controller
from penstock.policies.filtered import Filtered


class Hangs(Filtered):
    """The default policy, as long as nobody holds it."""

    def decide(self, seen: Observation) -> Decision:
        while Path("hang").exists():
            time.sleep(0.1)
        return super().decide(seen)


def listen(controller: Controller | None) -> None:
    Path("pid").write_text(str(os.getpid()), encoding="utf-8")
    threading.Thread(target=_obey, args=(controller,), daemon=True).start()


def _obey(controller: Controller) -> None:
    while not Path("stop").exists():
        time.sleep(0.1)
    begun_s = time.monotonic()
    controller.stop()
    print(f"penstock: stop() returned after {time.monotonic() - begun_s:.2f} s", file=sys.stderr, flush=True)
