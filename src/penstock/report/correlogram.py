"""The autocorrelation of gaps between arrivals as a picture: the stream's, and that of the MAP fitted to it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.files import whole

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 440, 70, 50, 30
# Colour-blind safe (Okabe and Ito).
SEEN, MODEL = "#0072b2", "#d55e00"
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Correlogram:
    """Lags from 1 on, in ascending order, and what is drawn over them."""

    lags: Sequence[int]
    seen: Sequence[float]
    fitted: Sequence[float]
    noise: float
    """What a correlation of independent gaps stays within, 95 times in 100."""


def log_lags(most: int, count: int = 60) -> list[int]:
    """Lags for a logarithmic axis.

    >>> log_lags(8), log_lags(1000, 4)
    ([1, 2, 3, 4, 5, 6, 7, 8], [1, 10, 100, 1000])
    """
    return sorted({round(most ** (step / (count - 1))) for step in range(count)})


def write_correlogram(path: Path, shown: Correlogram) -> None:
    """Draw it; the file opens in any browser."""
    with whole(path) as scratch:
        scratch.write_text(correlogram(shown), encoding="utf-8")


def correlogram(shown: Correlogram) -> str:
    values = [*shown.seen, *shown.fitted, shown.noise, -shown.noise]
    axes = _Axes(shown.lags[-1], min(values), max(values))
    band = [axes.at(1, shown.noise), axes.at(shown.lags[-1], shown.noise)]
    band += [axes.at(shown.lags[-1], -shown.noise), axes.at(1, -shown.noise)]
    dots = (axes.at(lag, value).split(",") for lag, value in zip(shown.lags, shown.seen, strict=True))
    line = " ".join(axes.at(lag, value) for lag, value in zip(shown.lags, shown.fitted, strict=True))
    parts = [
        f'<polygon points="{" ".join(band)}" fill="#888" opacity="0.2"/>',
        *axes.frame(),
        *(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{SEEN}"/>' for x, y in dots),
        f'<polyline points="{line}" fill="none" stroke="{MODEL}" stroke-width="2"/>',
        f'<text x="{WIDTH - 20}" y="{TOP + 16}" text-anchor="end" fill="{SEEN}">all gaps seen</text>',
        f'<text x="{WIDTH - 20}" y="{TOP + 34}" text-anchor="end" fill="{MODEL}">the MAP fitted to the latest</text>',
    ]
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
    inside = "\n".join(parts)
    return f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'


@dataclass(frozen=True, slots=True)
class _Axes:
    most_lag: int
    low: float
    high: float

    def at(self, lag: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - 20) * math.log(lag) / max(math.log(self.most_lag), 1e-9)
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - self.low) / (self.high - self.low)
        return f"{x:.1f},{y:.1f}"

    def frame(self) -> Iterable[str]:
        yield f'<path d="M {LEFT},{TOP} V {HEIGHT - BOTTOM} H {WIDTH - 20}" fill="none" stroke="#888"/>'
        for power in range(math.floor(math.log10(self.most_lag)) + 1):
            x = self.at(10**power, self.low).split(",")[0]
            yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{10**power}</text>'
        for share in SHARES:
            value = self.low + share * (self.high - self.low)
            y = self.at(1, value).split(",")[1]
            yield f'<text x="{LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{value:.3f}</text>'
        yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">lag</text>'
        about = "autocorrelation of the gaps; within the band are 95 of 100 values of independent gaps"
        yield f'<text x="{LEFT}" y="16">{about}</text>'
