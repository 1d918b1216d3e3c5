"""What is set in a policy's name, as in `threshold:upper=0.7,cooldown_s=5m`: read, checked, old names understood."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown
from penstock.core.units import duration_s
from penstock.policies.guards import OPTIONS

NUMBER_MOST = 1e15
# What journals and commands written before call otherwise, and what its value is worth today.
RENAMED: Mapping[str, tuple[str, float]] = {
    "late_s": ("hold_while_late_s", 1.0),
    "arrive_s": ("start_timeout_s", 1.0),
    "over": ("spare", 0.01),
}


def parameters_of(maker: type) -> dict[str, inspect.Parameter]:
    """What may be set, beyond the job."""
    return dict(list(inspect.signature(maker).parameters.items())[1:])


def renamed(given: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The same by today's names.

    >>> renamed({"over": 20, "late_s": 300.0}, ["spare", "hold_while_late_s"])
    {'spare': 0.2, 'hold_while_late_s': 300.0}
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        name, factor = RENAMED.get(key, (key, 1.0))
        is_old = key not in known and name in known
        found[name if is_old else key] = value * factor if is_old and factor != 1.0 else value
    return found


def read_parameters(text: str, rest: str, known: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise BadInput(f"policy {text}: '{part}' should be key=value")
        given = _value(text, key, value)
        [(key, given)] = renamed({key: given}, [*known, *OPTIONS]).items()
        if key not in known and key not in OPTIONS:
            raise unknown(f"parameter of policy {text}", key, [*known, *OPTIONS])
        if key in found:
            raise BadInput(f"policy {text}: {key} is given twice")
        found[key] = given
        kind = known[key].annotation if key in known else OPTIONS[key]
        _check(text, key, found[key], kind)
    return found


def _value(text: str, key: str, value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    is_plain = value.isascii() and "_" not in value
    for kind in (int, float) if is_plain else ():
        try:
            number = kind(value)
        except ValueError:
            continue
        if not abs(number) <= NUMBER_MOST:
            raise BadInput(f"policy {text}: {key} is {value[:40]}: it must be a finite number")
        return number
    return duration_s(value, f"policy {text}: {key}") if key.endswith("_s") else value


def _check(text: str, key: str, value: Any, kind: Any) -> None:
    name = (kind if isinstance(kind, str) else getattr(kind, "__name__", "")).removesuffix(" | None")
    fits = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}.get(name)
    if fits and (not isinstance(value, fits) or (isinstance(value, bool) and name != "bool")):
        wanted = {"int": "a whole number", "float": "a number", "bool": "true or false"}.get(name, "text")
        raise BadInput(f"policy {text}: {key} must be {wanted}, not '{value}'")
    if key.endswith("_s") and isinstance(value, (int, float)):
        between(f"policy {text}: {key}", value, 0)
