"""A fitted model as a picture: samples, curves, and how sure the chosen one is. One small SVG file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from penstock.core.files import whole
from penstock.models.curve_fitting import Fitted
from penstock.models.training import Samples

WIDTH, HEIGHT, LEFT, BOTTOM = 760, 440, 70, 50
# Colour-blind safe (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


@dataclass(frozen=True, slots=True)
class _Axes:
    most_workers: float
    most_rate: float

    def at(self, workers: float, rate: float) -> str:
        x = LEFT + (WIDTH - LEFT - 20) * workers / self.most_workers
        y = HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 30) * rate / self.most_rate
        return f"{x:.1f},{y:.1f}"


def write_plot(path: Path, fitted: Fitted, samples: Samples) -> None:
    """Draw it; the file opens in any browser."""
    with whole(path) as scratch:
        scratch.write_text(plot(fitted, samples), encoding="utf-8")


def plot(fitted: Fitted, samples: Samples) -> str:
    most = max(samples.counts) * 1.5
    steps = [1 + (most - 1) * step / 120 for step in range(121)]
    known = ((m, fitted.model.interval(m, None, 0.95)) for m in steps)
    bands = [(m, *bounds) for m, bounds in known if bounds]
    curves = max(fit.curve.rate(most) for fit in fitted.fits)
    axes = _Axes(most, 1.1 * max([high for _, _, high in bands] + [curves, float(samples.rates.max())]))
    band = [axes.at(m, high) for m, _, high in bands] + [axes.at(m, low) for m, low, _ in reversed(bands)]
    parts = [f'<polygon points="{" ".join(band)}" fill="{COLOURS[0]}" opacity="0.15"/>'] if band else []
    chosen = fitted.model.curve
    for colour, fit in zip(COLOURS, sorted(fitted.fits, key=lambda fit: fit.curve is not chosen), strict=False):
        parts.append(_line(axes, steps, fit.curve.rate, colour, bold=fit.curve is chosen))
    for workers, rate in zip(samples.workers.tolist(), samples.rates.tolist(), strict=True):
        x, y = axes.at(workers, rate).split(",")
        parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="#222" opacity="0.7"/>')
    about = "; the band holds 95 % of the resampled fits" if band else "; no repeats, so no band"
    return _svg([*_frame(axes, samples, about), *parts, *_legend(fitted)])


def _line(axes: _Axes, steps: list[float], rate: Callable[[float], float], colour: str, bold: bool) -> str:
    points = " ".join(axes.at(m, rate(m)) for m in steps)
    style = 'stroke-width="2.5"' if bold else 'stroke-width="1.2" stroke-dasharray="5 4"'
    return f'<polyline points="{points}" fill="none" stroke="{colour}" {style}/>'


def _frame(axes: _Axes, samples: Samples, about: str) -> Iterable[str]:
    yield f'<path d="M {LEFT},20 V {HEIGHT - BOTTOM} H {WIDTH - 20}" fill="none" stroke="#888"/>'
    for count in samples.counts:
        x = axes.at(count, 0).split(",")[0]
        yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{count}</text>'
    for share in (0.25, 0.5, 0.75, 1.0):
        rate = axes.most_rate * share / 1.1
        y = axes.at(0, rate).split(",")[1]
        yield f'<text x="{LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{rate:,.0f}</text>'
    yield f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">workers</text>'
    yield f'<text x="{LEFT}" y="14">rows per second, as delivered{about}</text>'


def _legend(fitted: Fitted) -> Iterable[str]:
    ordered = sorted(fitted.fits, key=lambda fit: fit.curve is not fitted.model.curve)
    for row, (colour, fit) in enumerate(zip(COLOURS, ordered, strict=False)):
        name = escape(fit.curve.kind) + (" (chosen)" if row == 0 else "")
        yield f'<text x="{LEFT + 20}" y="{44 + 18 * row}" fill="{colour}">{name}</text>'


def _svg(parts: Iterable[str]) -> str:
    style = 'font-family="system-ui, sans-serif" font-size="12" fill="#333"'
    inside = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}>'
    return f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'
