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
    made: list[Callable[..., Any]] = []

    @functools.wraps(plain)
    def first_compiles(*arguments: Any) -> Any:
        if not made:
            made.append(_machine_code(plain))
        return made[0](*arguments)

    return cast(Function, first_compiles)


def _machine_code(plain: Callable[..., Any]) -> Callable[..., Any]:
    import numba

    # Division by zero gives infinity, as in numpy: the check that Python has would keep loops from being vectorised.
    try:
        return cast(Callable[..., Any], numba.njit(cache=True, error_model="numpy")(plain))
    except RuntimeError:  # nowhere to keep it: neither the installation nor the user's cache folder can be written
        return cast(Callable[..., Any], numba.njit(error_model="numpy")(plain))
