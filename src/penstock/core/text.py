"""Text from outside, shown as one harmless line."""

from __future__ import annotations

from collections.abc import Iterable

LINE_MOST = 1500
_HIDDEN: set[str] = set()


def hide(secret: str) -> None:
    """From now on no line, log or journal shows this."""
    if len(secret) > 3:  # shorter ones are words, and masking them would spoil every line
        _HIDDEN.add(secret)


def masked(text: str) -> str:
    """The text without what is to be hidden."""
    for secret in sorted(_HIDDEN, key=len, reverse=True):  # one may stand in another
        text = text.replace(secret, "***")
    return text


def one_line(text: str, most: int = LINE_MOST) -> str:
    """The text on one line: line breaks, escape codes and other control characters are shown, not sent.

    >>> print(one_line("a\\nb\\x1b[31m"))
    a\\nb\\x1b[31m
    """
    seen = masked(text)[: most + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in seen)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def some_of(names: Iterable[str], most: int = 12) -> str:
    """The first of many names, and how many more there are.

    >>> some_of(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    known = [one_line(name, 60) for name in names]
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more
