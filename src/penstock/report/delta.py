"""What a live page does not have yet: the last buckets, the new marks, how the run stands."""

from __future__ import annotations

import re
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from penstock.report import run_state as now
from penstock.report import show
from penstock.report.live import LiveRun
from penstock.report.payload import Blobs, packed_run


@dataclass(frozen=True, slots=True)
class Known:
    """How much of a run a page has. The page hands it back as it got it: the server remembers nothing of a page.

    >>> Known.parse(str(Known(7, 120, 3, 2000))), Known.parse("made up")
    (Known(epoch=7, buckets=120, marks=3, steps=2000), Known(epoch=-1, buckets=0, marks=0, steps=0))
    """

    epoch: int = -1
    """Changes whenever something that a page has is no longer so: merged buckets or marks, a new curve, another run."""
    buckets: int = 0
    marks: int = 0
    steps: int = 0

    @classmethod
    def parse(cls, text: str) -> Known:
        match = re.fullmatch(r"(\d{1,12})-(\d{1,12})-(\d{1,12})-(\d{1,12})", text, re.ASCII)
        return cls(*map(int, match.groups())) if match else cls()

    @classmethod
    def now(cls, live: LiveRun) -> Known:
        """All that there is."""
        curves = live.curves
        kept = (live.header, live.generation, curves.width_s, curves.names, curves.actions.merged)
        marks = curves.actions.count - curves.actions.merged
        return cls(zlib.crc32(repr(kept).encode()), len(curves.starts_s), marks, live.steps)

    def __str__(self) -> str:
        return f"{self.epoch}-{self.buckets}-{self.marks}-{self.steps}"


def delta(live: LiveRun, known: Known, now_s: float) -> dict[str, Any]:
    """How the run stands, and of its curves what the page lacks; all of them where what it has is outdated."""
    current, silent_s = Known.now(live), live.silent_s(now_s)
    reply = {
        "known": str(current),
        "share": live.share,
        "silent_s": silent_s,
        "is_silent": now.is_silent(live, silent_s),
        "trouble": live.trouble,
    }
    if current == known:
        return reply
    return reply | _standing(live) | _curves(live, known if known.epoch == current.epoch else Known())


def _standing(live: LiveRun) -> dict[str, Any]:
    header, step = live.header, live.last
    run = live.run()
    moment = show.moment(step.seen.time_s, header.origin_s) if step else ""
    return {
        "steps": live.steps,
        "moment": f"{moment} UTC" if moment and header.origin_s is not None else moment,
        "title": f"{header.policy} on {header.job}",
        "figures": [asdict(figure) for figure in now.figures(live, run.score)],
        "decisions": [now.decision_record(entry, header) for entry in live.decisions.last()],
        "latency_s": header.objective.latency_s,
    }


def _curves(live: LiveRun, known: Known) -> dict[str, Any]:
    if not live.steps:
        return {}
    # The last bucket that the page has may have been filled further since.
    since = max(0, known.buckets - 1)
    blobs = Blobs()
    marks = live.curves.actions.marks()[known.marks :]
    packed = packed_run(live.run(), blobs, marks, since)
    return {"since": since, "marks_since": known.marks, "run": packed, "blobs": blobs.texts}
