"""Where the command begins. From here on Ctrl-C and SIGTERM end in one line, also while modules are loaded.

Nothing heavy is imported first: on a busy machine the imports of a command take seconds.
"""

from __future__ import annotations

import os
from signal import SIG_IGN, SIGINT, SIGTERM, getsignal, signal
from typing import NoReturn

INTERRUPTED = 130


def run() -> NoReturn:
    """The console script, and `python -m penstock`."""
    for number in (SIGINT, SIGTERM):
        if getsignal(number) is not SIG_IGN:  # a shell's background jobs ignore Ctrl-C, and so do we
            signal(number, _leave)
    from penstock.cli.main import run as run_command

    run_command()


def _leave(*_: object) -> NoReturn:
    """Nothing was begun, so there is nothing to end in order."""
    os.write(2, b"penstock: interrupted\n")
    os._exit(INTERRUPTED)
