"""Paper 5's result as a page of documentation: every figure in it is a claim's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.reproduce.claims import Claim
from penstock.reproduce.ekf import slug
from penstock.reproduce.ekf_lags import LATE_S, PAUSES_S, RUNNERS, SHAPES
from penstock.reproduce.ekf_runs import PAPERS_OWN
from penstock.reproduce.ekf_scores import SCENARIOS

ABLATION = {
    "PURE": "nothing: raw CPU, steps of one",
    "GW": "smoothing",
    "EKF ±1": "smoothing and the rate's change",
    "PURE sized": "sizing",
    "GW sized": "smoothing, sizing",
    "EKF without ΔD": "smoothing, sizing",
    "EKF": "smoothing, sizing, the rate's change",
    "EKF unshared": "the same, as printed: nobody takes over the estimate of a VM that leaves",
    "EKF eager": "the same, sized anew as each worker arrives",
}


_VERDICT = {True: "yes", False: "**no**", None: ""}


class Known:
    """Claims by id."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self.claims = claims
        self._by_id = {claim.id: claim for claim in claims}

    def __contains__(self, name: str) -> bool:
        return name in self._by_id

    def __getitem__(self, name: str) -> Claim:
        return self._by_id[name]

    def number(self, name: str) -> float:
        value = self[name].ours
        return value if isinstance(value, (int, float)) else float("nan")


def as_page(claims: Sequence[Claim]) -> str:
    """The page, in Markdown."""
    known = Known(claims)
    parts = (_answer, _ablation, _lags, _operations, _tables, _ratios, _grid, _cost, _not)
    lines = [line for part in parts for line in part(known)]
    more = QUERIES if "pyramid-query-late" in known else ""
    return "\n".join([*lines, WORLD.format(a=known.number("model-a"), b=known.number("model-b"), more=more)])


ANSWER = """\
# Is it the filter?
Paper 5 cuts scaling events by 80 to 90 % and credits an extended Kalman filter. Is it the filter?
**{verdict}** Below, events and violations are shares of PURE's, the mean of three scenarios.

- **Smoothing**, with steps of one, leaves {events[EKF ±1]} of the scaling events (EKF ±1); a plain Gaussian
  leaves {events[GW]} (GW). Violations are {late[EKF ±1]} and {late[GW]} times PURE's.
- **Sizing** from the sum, many workers at once, leaves {events[PURE sized]} on the raw load; on a smoothed one
  {events[GW sized]} (GW) or {events[EKF without ΔD]} (EKF): which filter it is hardly matters. But violations are
  {late[PURE sized]}, {late[GW sized]} and {late[EKF without ΔD]} times PURE's: a full worker hides how much is missing,
  and the overshoot of small steps no longer makes up for it.
- **The rate's change** (b·ΔD) is what only the Kalman filter takes in. It tells how much is missing before a
  meter can: events {events[EKF]}, violations {late[EKF]} times PURE's.

So fewer events come from smoothing *and* sizing, with any filter; fewer violations come from the rate. An event is
one decision, whatever its size: the VMs started and stopped stand beside it.

Every figure here was computed by these commands ({runs} runs as one Spark job):
```
penstock reproduce ekf --output json > docs/ekf.json
penstock reproduce ekf --claims docs/ekf.json --output page > docs/ekf.md
```"""
LAGS = """\
Equation 5 moves a load by the rate of the sample before, so its regression finds b only if the meter is just one
sample (half a second) late, as in all other tables here. With a meter on time, or one that is later, b comes out near
0, and EKF as printed sizes without the rate. So we take the lag from the data (where the load answers the rate's
changes most surely), and allow for what a meter shows already or not yet. `EKF that learns` is the plain `filtered`
policy: no offline run, b from the capacity model until its own line is sure.
"""
OPERATIONS = """\
The paper's premise is that each operation costs something; its experiment prices none. Here all serving stops for a
while whenever a VM joins or leaves (one that joins later than others stops it again). Queries wait for the state of
regions that move: see *time for a query* below.
"""
QUERIES = """\
Queries, one per 100 images, are answered from the last 1,000 images' pixels, shared evenly among the VMs; a VM's part
moves at 125 MB/s (assumed), and who asks for what moves, waits.
"""
WORLD = """
## How it was simulated
2,700 s a run, sampled twice a second, a decision every 2 s; workers of 4.5 images/s start in 5 to 25 s, one at first
and 32 at most. CPU meters err by 0.15, all workers alike, as neighbours on one host do, and are half a second late.
The lab's trace is not published: ours is a stand-in of steps, a wave and noise. Each run's load begins up to 2 s
later, so that no policy profits from decisions that happen to fall on a step. PURE and GW step by one, as in the
paper. a and b are learnt from an offline run of steps at a fixed size: b = {b:.3g}, a = {a:.1g}.
When a VM leaves, those who stay take over its part of the load, so their estimates are scaled by it at once: our
addition to the paper, without which (`EKF unshared`) the filter, some seconds behind, asks for another scale-in.
{more}`independent`: each worker's meter has errors of its own. `smooth`: a load without steps."""


def _answer(known: Known) -> Iterator[str]:
    """The plain answer. Its words are fixed; a test holds them against the figures."""
    others = [name for name in ABLATION if f"answer-events-{slug(name)}" in known]
    yield ANSWER.format(
        verdict="Yes." if known["answer-events-ekf-step"].holds else "Not by itself: three things come with it.",
        events={name: f"{100 * known.number(f'answer-events-{slug(name)}'):.0f} %" for name in others},
        late={name: f"{known.number(f'answer-sla-{slug(name)}'):.2g}" for name in others},
        runs=known["runs"].ours,
    )


def _ablation(known: Known) -> Iterator[str]:
    yield ""
    yield "## The ablation"
    for scenario in SCENARIOS:
        yield ""
        yield f"| {scenario} | what it has | events | VMs started | VM hours | image, s | violations, 1000 |"
        yield "|---|---|--:|--:|--:|--:|--:|"
        for name, what in ABLATION.items():
            if f"ablation-{scenario}-{slug(name)}" not in known:
                continue
            cells = str(known[f"ablation-{scenario}-{slug(name)}"].ours).split(" ")
            yield f"| {name} | {what} | {' | '.join(cells)} |"


def _lags(known: Known) -> Iterator[str]:
    if f"late-b-{LATE_S[0]:g}" not in known:
        return  # claims of an earlier version
    yield ""
    yield "## How late is the meter?"
    yield LAGS
    names = " | ".join(f"{name}: events | violations, 1000" for name in RUNNERS)
    yield f"| {' | '.join(['', names])} |"
    yield f"|---|{'--:|' * (2 * len(RUNNERS))}"
    for shape in SHAPES:
        for late_s in LATE_S:
            yield f"| {shape}, {late_s:g} s late | {_pairs(known[f'late-{shape}-{late_s:g}'])} |"
    yield ""
    yield "| meter late by | b from the data | its lag, samples | b as printed |"
    yield "|---|--:|--:|--:|"
    for late_s in LATE_S:
        b, lag, printed = str(known[f"late-b-{late_s:g}"].ours).replace(";", "").split(" ")
        yield f"| {late_s:g} s | {b} | {lag} | {printed} |"
    yield ""
    yield "| | ours | holds |"
    yield "|---|--:|---|"
    for claim in known.claims:
        if claim.id.startswith("late-") and claim.holds is not None:
            yield f"| {claim.text} | {_shown(claim.ours)} | {_VERDICT[claim.holds]} |"


def _operations(known: Known) -> Iterator[str]:
    if f"pause-pyramid-{PAUSES_S[0]:g}" not in known:
        return
    yield ""
    yield "## What a scaling operation costs"
    yield OPERATIONS
    yield f"| | {' | '.join(f'{name}: events | violations, 1000' for name in PAPERS_OWN)} | EKF is late least |"
    yield f"|---|{'--:|' * (2 * len(PAPERS_OWN))}---|"
    for shape in SHAPES:
        for pause_s in PAUSES_S:
            claim = known[f"pause-{shape}-{pause_s:g}"]
            yield f"| {shape}, {pause_s:g} s | {_pairs(claim)} | {_VERDICT[claim.holds]} |"


def _pairs(claim: Claim) -> str:
    return " | ".join(str(claim.ours).replace(";", "").split(" "))


def _tables(known: Known) -> Iterator[str]:
    yield ""
    yield "## Tables 3 to 5: PURE, GW, EKF, mean (σ) of the runs"
    yield ""
    yield "| | paper | ours | in the paper's order |"
    yield "|---|---|---|---|"
    for scenario in SCENARIOS:
        for key in ("vm", "events", "started", "stopped", "image", "sla", "query", "query-late"):
            if f"{scenario}-{key}" in known:
                yield _row(known[f"{scenario}-{key}"])


def _ratios(known: Known) -> Iterator[str]:
    yield ""
    yield "## How much less, and how sure"
    yield "`EKF` counts the workers under way before it asks for more; `EKF eager` does not, as the paper reads."
    yield ""
    yield "| | paper | ours | holds |"
    yield "|---|--:|--:|---|"
    yield from (_row(claim) for claim in known.claims if " <= " in claim.text and "(p = " in claim.text)
    yield from (_row(known[name]) for name in ("printed-square-vm", "printed-pairs", "our-pairs"))
    yield from (_row(known[f"{scenario}-spread"]) for scenario in SCENARIOS)
    yield ""
    yield f"The spread of EKF's events is luck: {known['square-spread'].why}."


def _grid(known: Known) -> Iterator[str]:
    cells = [claim for claim in known.claims if claim.id.startswith("table2")]
    yield ""
    yield "## Table 2: violations by thresholds"
    yield ""
    yield "| | paper | ours | |"
    yield "|---|--:|--:|---|"
    yield from map(_row, cells)


def _cost(known: Known) -> Iterator[str]:
    yield ""
    yield "## When it pays (equations 20 to 23)"
    yield ""
    yield "| | paper | ours | holds |"
    yield "|---|--:|--:|---|"
    yield from (_row(known[name]) for name in ("eq21", "eq23", "eq21-corrected", "eq21-ours", "eq22-ours"))


def _not(known: Known) -> Iterator[str]:
    failed = [claim for claim in known.claims if claim.holds is False and not claim.id.startswith("answer-")]
    yield ""
    yield "## What does not hold"
    yield ""
    for why in dict.fromkeys(claim.why for claim in failed):
        yield f"- {'; '.join(claim.text for claim in failed if claim.why == why)}. *{why or 'no reason found'}.*"


def _row(claim: Claim) -> str:
    return f"| {claim.text} | {_shown(claim.paper)} | {_shown(claim.ours)} | {_VERDICT[claim.holds]} |"


def _shown(value: float | str | None) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
