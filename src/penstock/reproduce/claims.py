"""A claim of a paper, and what we found: the same form for every paper."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from penstock.core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, what we get, and whether it holds; None where it cannot be told, with the reason."""

    id: str
    text: str
    paper: float | str | None
    ours: float | str | None
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
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list) or not entries:
            raise TypeError
        return [Claim(**entry) for entry in entries]
    except FileNotFoundError:
        raise BadInput(f"no such file of claims: {path}") from None
    except (OSError, TypeError, ValueError, RecursionError):
        raise BadInput(f"{path} holds no claims: it should be what --output json printed") from None


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
