"""Types of options that are numbers: what is out of range is said with the range, before anything is done."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from penstock.core.bounds import INTERVALS_MOST, PORT_MOST, SEED_MOST, WORKERS_MOST


def integer(low: int, high: int) -> Callable[[str], int]:
    """For options that take a whole number."""

    def parsed(text: str) -> int:
        digits = text.removeprefix("-")
        # Python refuses to read more than 4,300 digits with an error of its own.
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{shown(text)} is no whole number from {low} to {high}")
        return int(text)

    return parsed


def real(low: float, high: float) -> Callable[[str], float]:
    """For options that take a number."""

    def parsed(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high or not text.isascii() or "_" in text:
            raise argparse.ArgumentTypeError(f"{shown(text)} is no number from {low:g} to {high:g}")
        return value

    return parsed


def counts(text: str) -> tuple[int, ...]:
    """For options that take worker counts: 1,2,3; each once."""
    one = integer(1, WORKERS_MOST)
    return tuple(dict.fromkeys(one(word.strip()) for word in text.split(",")))


def shown(text: str) -> str:
    """What was given, cut to what a line can hold."""
    return text if len(text) <= 40 else f"{text[:40]}…"


workers = integer(0, WORKERS_MOST)
count = integer(1, INTERVALS_MOST)
cores = real(0.01, 1024)
seed = integer(0, SEED_MOST)
port = integer(0, PORT_MOST)
