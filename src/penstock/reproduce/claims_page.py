"""Claims as sections of a page of documentation, each claim once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.reproduce.claims import Claim

Section = tuple[str, tuple[str, ...], str]
"""A title, the beginnings of the ids of its claims, and a note below the title."""


def sections(claims: Sequence[Claim], wanted: Sequence[Section]) -> Iterator[str]:
    """Lines of Markdown. A claim that fits several sections stands in the first of them."""
    shown = set[str]()
    for title, prefixes, note in wanted:
        own = [each for each in claims if each.id.startswith(prefixes) and each.id not in shown]
        shown |= {each.id for each in own}
        yield from _section(title, note, own) if own else ()


def _section(title: str, note: str, claims: Sequence[Claim]) -> Iterator[str]:
    yield f"## {title}"
    yield from filter(None, (note,))
    yield ""
    yield "| | paper | ours | holds |"
    yield "|---|---|---|---|"
    for claim in claims:
        verdict = {True: "yes", False: "**no**", None: ""}[claim.holds]
        yield f"| {claim.text} | {shown_as(claim.paper)} | {shown_as(claim.ours)} | {verdict} |"
    for why in dict.fromkeys(claim.why for claim in claims if claim.why):
        yield f"\n*{why[0].upper()}{why[1:]}.*"
    yield ""


def failures(claims: Sequence[Claim]) -> Iterator[str]:
    """How many claims do not hold, and which."""
    failed = [claim for claim in claims if claim.holds is False]
    judged = sum(claim.holds is not None for claim in claims)
    yield f"{len(failed)} of {judged} claims that can be judged do not hold" + (":" if failed else ".")
    yield from (f"- {claim.text}: {shown_as(claim.ours)}, in the paper {shown_as(claim.paper)}." for claim in failed)


def shown_as(value: float | str | None) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
