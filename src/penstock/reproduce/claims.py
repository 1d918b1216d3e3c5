"""A claim of a paper, and what we found: the same form for every paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.core.errors import BadInput
from penstock.core.files import reads
from penstock.core.text import one_line
from penstock.core.typed import typed

TEXT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, what we get, and whether it holds; None where it cannot be told, with the reason."""

    id: str
    text: str
    paper: int | float | str | None
    ours: int | float | str | None
    holds: bool | None
    why: str = ""


def near(paper: float, ours: float, within: float) -> bool:
    """Is ours within a share of the paper's?"""
    return abs(ours - paper) <= within * abs(paper)


def as_json(claims: Sequence[Claim]) -> str:
    return json.dumps([asdict(claim) for claim in claims], indent=1, ensure_ascii=False)


def read_claims(path: Path) -> list[Claim]:
    """Claims that an earlier run wrote as JSON."""
    try:
        # Unlike json, msgspec takes no NaN and no half of a character: neither could be printed as JSON again.
        entries = msgspec.json.decode(reads(path).read_bytes())
        if not isinstance(entries, list) or not entries:
            raise TypeError
    except FileNotFoundError:
        raise BadInput(f"no such file of claims: {path}") from None
    except (OSError, TypeError, ValueError, RecursionError):
        raise BadInput(f"{path} holds no claims: it should be what --output json printed") from None
    return [_read(entry, f"{path}: claim {number}") for number, entry in enumerate(entries, start=1)]


def _read(entry: Any, where: str) -> Claim:
    claim = typed(entry, Claim, where)
    lines: dict[str, Any] = {
        key: one_line(each, TEXT_MOST) for key, each in asdict(claim).items() if isinstance(each, str)
    }
    return replace(claim, **lines)


def as_table(claims: Sequence[Claim]) -> Group:
    """The claims, and below them the reasons they share."""
    reasons = list(dict.fromkeys(claim.why for claim in claims if claim.why))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("what")
    for heading in ("paper", "ours"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("holds", "why"):
        table.add_column(heading, no_wrap=True)
    for claim in claims:
        verdict = {True: "yes", False: "NO", None: "-"}[claim.holds]
        note = f"{reasons.index(claim.why) + 1}" if claim.why else ""
        table.add_row(*map(Text, (claim.text, _shown(claim.paper), _shown(claim.ours), verdict, note)))
    return Group(table, *(Text(f"{number}: {why}") for number, why in enumerate(reasons, start=1)))


def _shown(value: float | str | None) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
