"""Small changes that make good inputs bad: one value, one line, one byte."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

NESTED = "[" * 100_000 + "]" * 100_000
HUGE = 10**30
WORDS = (
    "",
    "x",
    "\x1b[31m",
    "a\nb",
    "[/x]",
    "[bold]",
    "é" * 300,
    "\x00",
    "..",
    "1e999",
    "-1",
    "nan",
    "0",
    "🙂",
    "${x}",
    "%s",
)
NUMBERS = (0, -1, 1, 0.5, -0.0, 1e-320, 1e-9, 1e12, 1e18, 1e308, -1e308, HUGE, float("nan"), float("inf"), True, False)
SHAPES: tuple[Any, ...] = (None, [], {}, [1], [1, 2, 3], [[]], [None], {"a": 1}, [{}], ["x"] * 3, {"": {}})


def value(rng: random.Random) -> Any:
    """Something that is seldom right."""
    return copy.deepcopy(rng.choice(rng.choice((WORDS, NUMBERS, SHAPES))))


def near(number: float, rng: random.Random) -> float:
    """A number of the same kind that is still possible, or nearly: these get past the door."""
    factor = rng.choice((0, 0.001, 0.1, 0.5, 1.5, 2, 10, 1000, 1_000_000))
    return type(number)(number * factor + rng.choice((0, 0, 1)))


def tree(good: Any, rng: random.Random) -> Any:
    """A copy of a JSON value with one to three places changed."""
    changed = json.loads(json.dumps(good))
    for _ in range(rng.randint(1, 3)):
        changed = _changed(changed, rng)
    return changed


def _changed(node: Any, rng: random.Random) -> Any:
    inside = node if isinstance(node, dict) else dict(enumerate(node)) if isinstance(node, list) else {}
    if not inside and isinstance(node, (int, float)) and rng.random() < 0.7:
        return near(node, rng)
    if not inside or rng.random() < 0.05:
        return value(rng)
    key = rng.choice(list(inside))
    roll = rng.random()
    if roll < 0.1 and isinstance(node, dict):
        del node[key]
    elif roll < 0.2 and isinstance(node, dict):
        node[rng.choice(WORDS) or "extra"] = value(rng)
    elif roll < 0.3 and isinstance(node, list):
        node.insert(int(key), value(rng))
    else:
        node[key] = _changed(node[key], rng)
    return node


def line(fields: Any, rng: random.Random) -> str:
    """JSON as text; now and then with what no encoder writes."""
    text = json.dumps(fields)
    roll = rng.random()
    if roll < 0.03:
        return text.replace(":", f':{NESTED},"x":', 1)
    if roll < 0.06:
        return text.replace(":", ":" + "9" * 5000 + ',"x":', 1)
    return text


def text(good: str, rng: random.Random) -> bytes:
    """A text with some lines or bytes cut, doubled, swapped or replaced."""
    data = bytearray(good.encode())
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        roll = rng.random()
        if roll < 0.25:
            del data[at : at + rng.choice((1, 2, 10, 1000))]
        elif roll < 0.5:
            data[at:at] = rng.choice((b"\0", b"\xff\xfe", b"\n", b",", b'"', b"1e400", b"\x1b[2J", b"-", b"\r"))
        elif roll < 0.75:
            data[at:at] = str(value(rng)).encode()[:400]
        else:
            lines = bytes(data).split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            data = bytearray(b"\n".join(lines))
    return bytes(data)
