"""Loops that numpy cannot vectorise, compiled by Numba at their first call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(plain: Function) -> Function:
    """The same function, as machine code; `plain` stays reachable as `__wrapped__`, and a test compares the two.

    Numba is imported at the first call, not with the module: it takes 0.5 s.
    """
    return compiled_with()(plain)


def compiled_with(*parts: Callable[..., Any]) -> Callable[[Function], Function]:
    """The same for a function that calls others: those are compiled with it, and stay plain functions as they are."""

    def decorated(plain: Function) -> Function:
        made: list[Callable[..., Any]] = []

        @functools.wraps(plain)
        def first_compiles(*arguments: Any) -> Any:
            if not made:
                made.append(_machine_code(plain, parts))
            return made[0](*arguments)

        return cast(Function, first_compiles)

    return decorated


def _machine_code(plain: Callable[..., Any], parts: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    import numba
    from numba.extending import register_jitable

    for part in parts:
        register_jitable(part)
    # Division by zero gives infinity, as in numpy: the check that Python has would keep loops from being vectorised.
    try:
        return cast(Callable[..., Any], numba.njit(cache=True, error_model="numpy")(plain))
    except RuntimeError:  # nowhere to keep it: neither the installation nor the user's cache folder can be written
        return cast(Callable[..., Any], numba.njit(error_model="numpy")(plain))
