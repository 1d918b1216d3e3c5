"""The `penstock` command: finds the subcommand, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import NoReturn

import penstock
from penstock.core.errors import BadInput, PenstockError
from penstock.core.files import sparing_inputs
from penstock.core.text import one_line
from penstock.entry import INTERRUPTED

TRACEBACK = "PENSTOCK_TRACEBACK"
# What is wrong with a path that was given, and not with the machine.
GIVEN_PATHS = (
    errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EINVAL,
)  # fmt: skip
COMMANDS = {
    "trace": "make a rate series of a raw log (a Spark job)",
    "replay": "compare policies on a rate series: cost, violations, scaling actions",
    "run": "run a streaming app that scales itself",
    "fleet": "run many queries on several hosts, placed by a policy",
    "shares": "run a log analysis whose CPU shares follow its load",
    "measure": "measure how much an app can take, on a real Spark cluster",
    "doctor": "check the configuration of a job, a script or this machine",
    "apps": "list the apps that can be measured",
    "plan-measurements": "say which worker counts to measure, for a budget",
    "fit": "make a capacity model of measured samples",
    "advise": "say how many workers a rate needs",
    "reproduce": "recompute a paper's claims: theirs beside ours",
    "tune": "search a policy's parameters on a load of your own",
    "compare": "traces × policies × parameters: cost at equal violations (a Spark job)",
    "sweep": "thousands of replays as one Spark job",
    "arrivals": "how bursty a stream is, and what that costs",
    "forecast": "rank forecasters on a rate series, with intervals",
    "calibrate": "make a scenario of live journals, and say how far it is off",
    "serve": "a journal as a live page, on this machine alone",
    "status": "how a run stands, on one screen",
    "explain": "say why a step was taken",
    "policies": "list the policies",
    "cluster": "a Spark cluster (and a Kafka broker) to try things on",
    "demo": "all of it, on a generated log",
}

ABOUT = """\
Capacity planning and autoscaling for Spark Structured Streaming.

  penstock demo                                  all of it, on a generated log
  penstock trace access.log -o rates.parquet     a raw log becomes a rate series (a Spark job)
  penstock replay rates.parquet                  what would each policy have cost, and missed?

Exit codes: 0 done, 1 the objective was missed (--check), 2 bad input, 3 an external failure, 130 interrupted.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (try {self.prog} --help)")


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser. Only the command that was asked for is loaded: SciPy and Arrow take half a second."""
    form = argparse.RawDescriptionHelpFormatter
    top = Parser(prog="penstock", description=ABOUT, formatter_class=form)
    top.add_argument("--version", action="version", version=f"penstock {penstock.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == chosen:
            import_module(f"penstock.cli.{name.replace('-', '_')}").add(commands)
        else:
            commands.add_parser(name, help=summary)
    return top


def say(message: str) -> None:
    """One line on stderr, whatever is in it."""
    print(f"penstock: {one_line(message)}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None, ready: Callable[[], None] = lambda: None) -> int:
    """Run one command; returns its exit code. `ready` is called when all is loaded and the work begins."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        for word in words:
            _need_text(word)
        options = parser(words).parse_args(words)
        ready()
        with sparing_inputs():
            return int(options.run(options))
    except PenstockError as error:
        say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # `penstock … | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        say(f"{error.strerror or error}{where}")
        return BadInput.exit_code if error.errno in GIVEN_PATHS else PenstockError.exit_code
    except MemoryError:
        say("this takes more memory than there is: give a shorter series, or fewer workers (--max)")
        return PenstockError.exit_code
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        say(f"internal error, a fault of penstock: {described(error)}; {TRACEBACK}=1 shows where it comes from")
        return PenstockError.exit_code


def _need_text(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{word.encode(errors='surrogateescape')!r} is not UTF-8: rename what it names") from None
    if "\0" in word:
        raise BadInput(f"{word!r} holds a null byte: no file or name does")


def described(error: Exception) -> str:
    """What was raised, and where."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {str(error)[:300]} ({Path(frame.filename).name}, line {frame.lineno})"


def run() -> NoReturn:
    """The console script, once it is loaded. SIGTERM ends a command as Ctrl-C does, so that it cleans up."""
    # py4j logs a traceback of every interrupted call; the one line that we print says it all.
    logging.getLogger().addHandler(logging.NullHandler())
    _need_streams()
    code = main(ready=_interruptible)
    for number in (signal.SIGINT, signal.SIGTERM):  # all is done: what comes now comes too late
        signal.signal(number, signal.SIG_IGN)
    # Python remembers that an `exec` was interrupted, as dataclasses use it, and would end itself by SIGINT for it,
    # not with our code. The next `exec` makes it forget.
    exec("")
    sys.exit(code)


def _need_streams() -> None:
    """A closed stdout takes nothing, and one of few letters shows what it lacks by its number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        getattr(sys, name).reconfigure(errors="backslashreplace")


def _interruptible() -> None:
    """From now on there is work to end in order."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
