"""Paper 4's result as a page of documentation: every figure in it is a claim's."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.reproduce.claims import Claim
from penstock.reproduce.claims_page import failures, sections

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
    streams = ("SYNT", "BC", "LM")
    wanted = [
        (title, tuple(dict.fromkeys(each.format(stream) for each in prefixes for stream in streams)), note)
        for title, prefixes, note in SECTIONS
    ]
    return "\n".join([HEAD, *sections(claims, wanted), *failures(claims)])
