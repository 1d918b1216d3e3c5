"""Errors that reach a person: one line that says what was wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from penstock.core.text import one_line, some_of


class PenstockError(Exception):
    """Something that one line explains; the command ends with `exit_code`."""

    exit_code = 3


class BadInput(PenstockError):
    """What was given is wrong: a file, an option, a key, a name."""

    exit_code = 2


class ExternalError(PenstockError):
    """What was given is right, but Spark, a broker or a disk failed."""


class PlantError(ExternalError):
    """A plant can no longer be observed or changed."""


def unknown(what: str, given: str, known: Iterable[str]) -> BadInput:
    """An error for a name that does not exist, with the nearest one that does.

    >>> print(unknown("policy", "treshold", ["static", "threshold"]))
    unknown policy 'treshold': did you mean 'threshold'? (known: static, threshold)
    """
    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f": did you mean '{near[0]}'?" if near else ""
    return BadInput(f"unknown {what} '{one_line(given, 80)}'{hint} (known: {some_of(names, 40)})")
