"""Paper 4's result as a page of documentation: every figure in it is a claim's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.reproduce.claims import Claim

HEAD = """\
# CPU shares under bursts (paper 4)
A parser, a counter and a matcher as queues, each event by itself; three streams: SYNT (generated), BC (packets of
August 1989, `--trace`, not part of this repository; without it a stand-in) and LM, a stand-in for Live Maps. Cells are
seconds of response along the matcher's path @ mean CPU share in percent, the start at 100 % included, means over the
seeds; then in how many of them the bound is kept on both paths. The figures are those of
```
penstock reproduce mead --trace bc_paug89_iat_us.csv.gz --output json > docs/mead.json
penstock reproduce mead --claims docs/mead.json --output page > docs/mead.md
```
"""
TOGETHER = ("kept-", "saving", "dearer-than-fixed")
SECTIONS = (
    ("What it comes to", TOGETHER, ""),
    ("Models of one queue (Figure 3)", ("figure-3",), ""),
    ("How much margin (`safety`)", ("SYNT-safety", "BC-safety", "LM-safety"), "1 is the paper's way."),
    ("Thresholds", ("SYNT-threshold", "BC-threshold", "LM-threshold"), ""),
    ("One window (Table III)", ("SYNT-window", "BC-window", "LM-window"), ""),
    ("Analysed more often, decided late, quotas, the paper's fit", ("{}-often", "{}-delay", "{}-quota", "{}-kpc"), ""),
    ("Bounds (Tables I and II)", ("SYNT-", "BC-", "LM-"), "`gi` gives no percentile, so it is not asked for one."),
)


def as_page(claims: Sequence[Claim]) -> str:
    """The page, in Markdown."""
    lines, shown = [HEAD], set[str]()
    for title, prefixes, note in SECTIONS:
        starts = tuple(each.format(stream) for each in prefixes for stream in ("SYNT", "BC", "LM"))
        own = [each for each in claims if each.id.startswith(starts) and each.id not in shown]
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
    judged = sum(claim.holds is not None for claim in claims)
    yield f"{len(failed)} of {judged} claims that can be judged do not hold" + (":" if failed else ".")
    yield from (f"- {claim.text}: {_shown(claim.ours)}, in the paper {_shown(claim.paper)}." for claim in failed)


def _shown(value: float | str | None) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
