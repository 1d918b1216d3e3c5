"""Values that came from a file (JSON, TOML, Parquet), as the types that the program declares, or one clear error."""

from __future__ import annotations

import math
import re
import reprlib
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock.core.errors import BadInput, unknown
from penstock.core.files import reads

T = TypeVar("T")
_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_SAID = re.compile(r"(?P<what>.*?)(?: - at `(?:key in )?\$(?P<path>[^`]*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`(?P<more>[^,]*), got .*", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


def typed(value: object, kind: type[T], where: str = "") -> T:
    """The value as `kind`: whole numbers serve as floats, lists as tuples, tables as dataclasses with their own checks.

    >>> typed([1, 2.5], tuple[float, float], "start_s")
    (1.0, 2.5)
    >>> typed({"rate": "x"}, dict[str, float], "signals")
    Traceback (most recent call last):
    penstock.core.errors.BadInput: signals[...]: it must be a number
    """
    known_keys(value, kind, where)
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise BadInput(_explained(str(error), value, where)) from None
    except RecursionError:
        raise BadInput(f"{where or 'a value'} is nested too deeply") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(reads(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadInput(f"no such {what} file: {path}") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no TOML, no text, a number of 5,000 digits
        raise BadInput(f"{path} is not a TOML file: {error}") from None


def known_keys(value: object, kind: type, where: str = "") -> None:
    """Refuse keys that a dataclass does not have, with the nearest one that it has."""
    if not is_dataclass(kind):
        return
    if not isinstance(value, Mapping):
        raise BadInput(f"{where} must be a table, as in [{where}]")
    known = {field.name: field for field in fields(kind) if field.init}
    for key in value:
        if key not in known:
            raise unknown(f"key in [{where}]" if where else "key", str(key), known)


def finite(value: float, where: str) -> float:
    """The number, unless it is infinite or none."""
    if not math.isfinite(value):
        raise BadInput(f"{where} is {value}: it must be a finite number")
    return value


def _explained(said: str, value: object, where: str) -> str:
    """What msgspec says, with the key and the value, in our words."""
    match = _SAID.fullmatch(said)
    assert match is not None
    path = match["path"] or ""
    key = f"{where}{path}".lstrip(".") or "the value"
    found: Any = value
    for name, number in _STEP.findall(path if "[...]" not in path else ""):
        found = found[int(number) if number else name]
    expected = _EXPECTED.fullmatch(match["what"])
    if expected:
        wanted = [_WORDS.get(word, word) for word in expected["types"].split(" | ") if word != "null"]
        shown = key if "[...]" in path else f"{key} is {reprlib.repr(found)}"
        return f"{shown}: it must be {' or '.join(wanted)}{expected['more']}"
    missing = re.fullmatch(r"Object missing required field `(\w+)`", match["what"])
    return f"[{key}] needs the key {missing[1]}" if missing else f"{key}: {match['what']}"
