"""Runs a user's script up to where its queries would run, and notes what it asks Spark for.

    python -m penstock.live.script_probe SCRATCH SCRIPT WORDS...

Its session is a small one on this machine, whatever master it names; `start()` and `attach()` are noted and not done
(`script_hooks`); nothing but SCRATCH can be written and no network is reached (`sandbox`). What was noted is
SCRATCH/probe.json, written anew whenever there is something new.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


class Enough(BaseException):
    """The script waits for its queries: there is nothing more to see."""


@dataclass
class Noted:
    """What was seen."""

    file: Path
    has_session: bool = False
    is_connect: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    """Of the session, as the script and this machine's defaults make them."""
    queries: list[dict[str, Any]] = field(default_factory=list)
    attached: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What would have written something, and was not done."""
    failed: str = ""

    def save(self) -> None:
        scratch = self.file.with_suffix(".new")
        scratch.write_text(json.dumps(asdict(self), default=str))
        scratch.replace(self.file)


def probe(noted: Noted, script: str, words: list[str], given: dict[str, str]) -> None:
    """Run the script; whatever it does, what was noted until then is kept."""
    from penstock.live.script_hooks import install

    install(noted, given)
    sys.argv = [script, *words]
    sys.path[0] = str(Path(script).resolve().parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except Enough:
        """All its queries are started."""
    except SystemExit as ended:
        noted.failed = f"it ended with {ended.code}" if ended.code else ""
    except BaseException as error:
        first = (str(error).strip().splitlines() or [""])[0][:300]
        noted.failed = f"{type(error).__name__}: {first}{_where(error, script)}"
    noted.save()


def _where(error: BaseException, script: str) -> str:
    here = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script]
    line = here[-1] if here else getattr(error, "lineno", None)
    return f" (line {line})" if line else ""


def main(words: list[str]) -> None:
    from penstock.live.sandbox import forbid_writing, leave_network

    scratch, script = Path(words[0]), words[1]
    given, noted = json.loads((scratch / "given.json").read_text()), Noted(scratch / "probe.json")
    try:
        leave_network()
        forbid_writing([scratch])
    except OSError as error:
        noted.failed = f"it was not run, as this machine cannot keep it from writing: {error.strerror}"
        noted.save()
    else:
        probe(noted, script, words[2:], given)
    os._exit(0)  # threads of the script, and its JVM, are the caller's to end


if __name__ == "__main__":
    # As a module of its own name, so that `Enough` is one class here and in the hooks.
    from penstock.live import script_probe

    script_probe.main(sys.argv[1:])
