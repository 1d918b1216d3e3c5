"""Figures 5 to 7 of paper 3 as SVG, from the claims: what is drawn is what the page's tables say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.core.errors import BadInput
from penstock.core.files import whole, writable
from penstock.report.charts import Bars, Lines, bar_chart, line_chart
from penstock.reproduce.claims import Claim
from penstock.reproduce.plasticc import slug
from penstock.reproduce.plasticc_runs import BIASES, COMPARED, ERROR_MINUTES, ERRORS, JOINT, PREDICTING

# Places in a row of the table: Γ, μ, Ω, Θ, steps out of band.
RELATIVE, PROFIT, OUT = 2, 3, 4
FIGURES = {
    "figure-5.svg": "Figure 5: relative throughput (asked: 0.8), profit, and steps out of band, each at its own target",
    "figure-6.svg": "Figure 6: profit by interval and error of the forecast (`variance`)",
    "figure-7.svg": "Figure 7: profit by error and bias of the forecast, 20 minutes ahead (`variance`)",
}


def folder_for_plots(folder: Path) -> None:
    """Make it before any run: what cannot be written is said at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte
        raise BadInput(f"--plots {folder}: {getattr(error, 'strerror', None) or error}") from None
    for name in FIGURES:
        writable(folder / name)


def write_plots(folder: Path, claims: Sequence[Claim]) -> None:
    """All three; claims of a quick run lack what the last two need."""
    try:
        drawn = dict(zip(FIGURES, plots(claims), strict=True))
    except (LookupError, ValueError) as error:
        raise BadInput(f"--plots needs the claims of a whole run of plasticc: {error} is missing") from None
    for name, svg in drawn.items():
        with whole(folder / name) as scratch:
            scratch.write_text(svg, encoding="utf-8")


def plots(claims: Sequence[Claim]) -> Iterator[str]:
    ours = {claim.id: _figures(claim.ours) for claim in claims}
    yield bar_chart(list(_compared(ours)))
    yield line_chart([_intervals(ours)])
    yield line_chart([_bias(ours, bias) for bias in BIASES])


def _compared(ours: Mapping[str, list[float]]) -> Iterator[Bars]:
    names = {name: ours[key] for name in COMPARED | JOINT if (key := f"table-{slug(name)}") in ours}
    for title, place, mark, digits in (
        ("relative throughput Ω", RELATIVE, 0.8, 2),
        ("profit Θ", PROFIT, None, 3),
        ("steps out of band, of 144", OUT, None, 0),
    ):
        yield Bars(title, {name: row[place] for name, row in names.items()}, mark, digits)


def _intervals(ours: Mapping[str, list[float]]) -> Lines:
    minutes = ERROR_MINUTES["variance"]
    rows = [ours[f"fig6-variance-{each}"] for each in minutes]
    lines = {f"error {error:.0%}": [row[place] for row in rows] for place, error in enumerate(ERRORS)}
    return Lines("profit Θ", "minutes ahead", tuple(map(str, minutes)), lines)


def _bias(ours: Mapping[str, list[float]], bias: float) -> Lines:
    # Each profit has its Ω behind it.
    lines = {name: ours[f"fig7-{bias}-{slug(name)}"][: 2 * len(ERRORS) : 2] for name in ("PLAStiCC", *PREDICTING)}
    if any(len(line) < len(ERRORS) for line in lines.values()):
        raise LookupError(f"an error of bias {bias}")
    points = tuple(f"{error:.0%}" for error in ERRORS)
    return Lines(f"profit Θ, bias {bias:+.0%}", "error", points, {_shown(name): line for name, line in lines.items()})


def _shown(name: str) -> str:
    return name if name == "PLAStiCC" else name.upper()


def _figures(shown: float | str | None) -> list[float]:
    """The figures of a claim, in their order."""
    return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?", str(shown))]
