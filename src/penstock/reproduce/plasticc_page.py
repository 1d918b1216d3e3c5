"""Paper 3's result as a page of documentation: every figure in it is a claim's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.reproduce.claims import Claim

HEAD = """\
# Looking ahead (paper 3)
Each run: 30 operators in ten stages, some 45 alternates, three streams on the rising half of a day, twelve hours;
machines of six kinds whose speed varies as EC2's did; hours billed in full. Γ: mean value of the active alternates.
μ: dollars. Ω: relative throughput, asked: 0.8. Θ = Γ − σμ. Every figure was computed by these commands ({runs} runs):
```
penstock reproduce plasticc --output json > docs/plasticc.json
penstock reproduce plasticc --claims docs/plasticc.json --output page > docs/plasticc.md
```
"""
SECTIONS = (
    (
        "Every policy at its own target of 0.8",
        ("table-",),
        "Repeats share dataflow, streams and machines.",
    ),
    ("How far to look ahead", ("interval-",), "The same figures; a perfect forecast."),
    ("At equal throughput", ("equal-",), "Γ, μ and Θ where Ω is 0.8, on a line between runs for other targets."),
    ("The paper's claims", ("fig5", "first-", "gain-", "fig7-wp"), ""),
    ("Forecasts that err", ("fig6-", "fig7-"), "`variance` is the paper's text to the letter."),
    ("Workers that start in five minutes", ("start-",), ""),
    ("An hour against an interval", ("charge-",), ""),
)


def as_page(claims: Sequence[Claim]) -> str:
    """The page, in Markdown."""
    runs = next(claim.ours for claim in claims if claim.id == "runs")
    lines = [HEAD.format(runs=runs)]
    shown: set[str] = set()
    for title, prefixes, note in SECTIONS:
        own = [each for each in claims if each.id.startswith(prefixes) and each.id not in shown]
        shown |= {each.id for each in own}
        lines += _section(title, note, own) if own else ()
    return "\n".join([*lines, *_not(claims)])


def _section(title: str, note: str, claims: Sequence[Claim]) -> Iterator[str]:
    yield f"## {title}"
    yield from filter(None, (note,))
    yield ""
    yield "| | paper | ours | holds |"
    yield "|---|---|---|---|"
    for claim in claims:
        verdict = {True: "yes", False: "**no**", None: ""}[claim.holds]
        yield f"| {claim.text} | {_shown(claim.paper)} | {_shown(claim.ours)} | {verdict} |"
    for why in dict.fromkeys(claim.why for claim in claims if claim.why):
        yield f"\n*{why[0].upper()}{why[1:]}.*"
    yield ""


def _not(claims: Sequence[Claim]) -> Iterator[str]:
    failed = [claim for claim in claims if claim.holds is False]
    if failed:
        yield "## What does not hold"
        yield ""
    for why in dict.fromkeys(claim.why for claim in failed):
        told = "; ".join(f"{claim.text}: {_shown(claim.ours)}" for claim in failed if claim.why == why)
        yield f"- {told}. *{why or 'No reason found'}.*"


def _shown(value: float | str | None) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
