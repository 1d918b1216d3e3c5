"""The interval of a source of counts, and whether it fits the one that is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from penstock.core.errors import BadInput
from penstock.core.first_cells import JITTER
from penstock.core.units import show_duration
from penstock.pipeline.order import with_previous
from penstock.pipeline.request import TraceRequest


@dataclass(frozen=True, slots=True)
class Spacing:
    """Counts begin at `phase_us`, `phase_us + step_us`, …"""

    step_us: int
    phase_us: int


def spacing(points: DataFrame, request: TraceRequest) -> Spacing:
    """How far apart the counts are; they may leave holes but not wander. `--step` settles it unseen."""
    if request.step_s is not None:
        step_us, first = round(request.step_s * 1e6), points.agg(fn.min("start").alias("first")).first()
        return Spacing(step_us, first["first"] % step_us if first else 0)
    known = with_previous(points, "start", "start")
    step = fn.col("start") - fn.col("previous")
    middle = fn.percentile_approx(step, 0.5, 1000)
    found = known.agg(fn.min(step).alias("step"), middle.alias("middle"), fn.min("start").alias("first")).first()
    if found is None or found["step"] is None:
        raise BadInput(f"{request.source}: one count does not show how long its interval is: pass --step")
    if found["middle"] > found["step"] * (1 + JITTER):
        # Else one row out of place would make gaps of all the others.
        least, most = (show_duration(found[name] / 1e6) for name in ("step", "middle"))
        raise BadInput(
            f"{request.source}: the counts are not evenly spaced (most are {most} apart, some {least}): "
            "pass --step, the interval of each row"
        )
    return _regular(points, request, found["step"], found["first"])


def _regular(points: DataFrame, request: TraceRequest, step_us: int, first_us: int) -> Spacing:
    off = points.where(fn.pmod(fn.col("start") - fn.lit(first_us), fn.lit(step_us)) != 0)
    odd = off.agg(fn.min("start").alias("at"), fn.count("*").alias("rows")).first()
    if odd is not None and odd["rows"]:
        raise BadInput(
            f"{request.source}: the counts are not evenly spaced ({odd['rows']} of them are not a multiple of "
            f"{show_duration(step_us / 1e6)} after the first): pass --step, the interval of each row"
        )
    return Spacing(step_us, first_us % step_us)


def fit(step_us: int, request: TraceRequest, what: str = "the counts", evenly: bool = True) -> None:
    """Refuse an interval that cannot be made from the source's own."""
    every_us = request.every_us
    if step_us > every_us:
        raise BadInput(
            f"{request.source}: {what} come every {show_duration(step_us / 1e6)}, which is coarser than "
            f"--every {show_duration(request.every_s)}: pass --every {step_us / 1e6:g}s or a multiple of it"
        )
    if evenly and every_us % step_us:
        near = max(1, round(every_us / step_us)) * step_us
        raise BadInput(
            f"{request.source}: {what} come every {show_duration(step_us / 1e6)}, of which "
            f"--every {show_duration(request.every_s)} is no multiple: pass --every {near / 1e6:g}s"
        )
