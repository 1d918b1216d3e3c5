"""Paper 4 (Russo Russo et al.): bounds on the response under bursts, by model and baseline, theirs beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

from penstock.reproduce import mead_figure_3
from penstock.reproduce.claims import Claim
from penstock.reproduce.mead_paper import TABLE_3, THRESHOLDS, Cell, cell
from penstock.reproduce.mead_runs import ONE_WINDOW, SAFETIES, Goal, Outcome, Results, goals, middle, run
from penstock.reproduce.mead_worlds import STREAMS, Stream, read_packets

SEEDS = 10
NAMES = {"m": "M/G/1", "gi": "GI/G/1", "map": "MAP/G/1"}
_HERE = (
    "simulated queues; service times, rates, SYNT's processes and Live Maps' bursts are not published, so relations"
    " can be compared and not values. Seconds@CPU percent, means over the seeds; then in how many the bound is kept"
)
_KEPT = "kept means: in every seed, on both paths"
_DRIFT = "the load drifts within a window, so that even a perfect fit of the past needs a margin: safety"
_FIXED = "chosen after the fact from all 125; nobody knows it beforehand"


class Table:
    """Runs by stream and name, over their seeds."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def __contains__(self, key: tuple[str, str]) -> bool:
        return bool(self.runs(*key))

    def runs(self, stream: str, called: str) -> list[Outcome]:
        """In the order of their seeds."""
        own = [(seed, run) for (of, seed, each), run in self._results.items() if (of, each) == (stream, called)]
        return [run for _, run in sorted(own, key=lambda pair: pair[0])]

    def seeds(self, stream: str) -> int:
        return len({seed for of, seed, _ in self._results if of == stream})

    def cell(self, stream: str, called: str, goal: Goal) -> Cell:
        """Response and CPU percent, means over the seeds."""
        runs = self.runs(stream, called)
        return fmean(each.response_s(goal) for each in runs), 100 * fmean(each.cpu for each in runs)

    def kept(self, stream: str, called: str, goal: Goal) -> tuple[int, int]:
        """In how many seeds, of how many."""
        runs = self.runs(stream, called)
        return sum(each.keeps(goal) for each in runs), len(runs)

    def is_kept(self, stream: str, called: str, goal: Goal) -> bool:
        kept, of = self.kept(stream, called, goal)
        return kept == of > 0

    def shown(self, stream: str, called: str, goal: Goal) -> str:
        kept, of = self.kept(stream, called, goal)
        return f"{pair(self.cell(stream, called, goal))}, {kept}/{of}" if of else "none keeps it"


def pair(found: Cell) -> str:
    return f"{found[0]:.3f}@{found[1]:.1f}"


def claims(
    trace: Path | None = None, seeds: int = SEEDS, quick: bool = False, done: Callable[[float], None] | None = None
) -> list[Claim]:
    """All claims. `quick`: two seeds, and no analysis every 10 s."""
    if trace is not None:
        read_packets(trace)  # what is wrong with it is said now, and not after an hour
    results = run(trace, min(2, seeds), 0, done) if quick else run(trace, seeds, done=done)
    return list(judged(results, is_real=trace is not None))


def judged(results: Results, is_real: bool = False) -> Iterator[Claim]:
    """What the runs say, in the paper's order, and then what it did not ask."""
    yield from mead_figure_3.claims()
    table = Table(results)
    for stream in STREAMS.values():
        real = "recorded" if is_real and stream.name == "BC" else "generated"
        for goal in goals(stream):
            yield from _models(table, stream, goal, real)
        yield from _windows(table, stream)
        yield from _thresholds(table, stream)
    yield from _together(table)
    yield from _safety(table)
    yield from _variants(table)


def _models(table: Table, stream: Stream, goal: Goal, real: str) -> Iterator[Claim]:
    """Tables I and II, with the best fixed shares beside."""
    name = stream.name
    for model, called in NAMES.items():
        if goal.percentile and model == "gi":
            continue
        theirs = cell(name, goal.percentile, goal.bound_s, model)
        agrees = table.is_kept(name, f"{model} {goal}", goal) == (theirs[0] <= goal.bound_s)
        text = f"{name} ({real}), {goal} s, {called}"
        ours = table.shown(name, f"{model} {goal}", goal)
        yield Claim(f"{name}-{goal}-{model}".replace(" ", "-"), text, pair(theirs), ours, agrees, _HERE)
    text = f"{name}, {goal} s, best fixed shares in hindsight"
    yield Claim(
        f"{name}-{goal}-fixed".replace(" ", "-"), text, None, table.shown(name, f"fixed {goal}", goal), None, _FIXED
    )


def _windows(table: Table, stream: Stream) -> Iterator[Claim]:
    """Table III."""
    goal = middle(stream)
    for size in ONE_WINDOW:
        called = f"window-{size} {goal}"
        if (stream.name, called) in table:
            theirs = TABLE_3[stream.name, size]
            agrees = table.is_kept(stream.name, called, goal) == (theirs[0] <= goal.bound_s)
            text = f"{stream.name}, {goal} s, one window of {size:,} (Table III)"
            ours = table.shown(stream.name, called, goal)
            yield Claim(f"{stream.name}-window-{size}", text, pair(theirs), ours, agrees, _HERE)


def _thresholds(table: Table, stream: Stream) -> Iterator[Claim]:
    """§VII-A: thresholds beside MEAD, favourable or not."""
    name, ours = stream.name, f"{stream.name}, thresholds 0.7 and 0.5 of the share every 10 s"
    found = table.cell(name, "threshold", middle(stream))
    missed = [str(goal) for goal in goals(stream) if not table.is_kept(name, "threshold", goal)]
    text = f"{ours}: response, CPU; bounds that they miss: {', '.join(missed) or 'none'}"
    yield Claim(f"{name}-threshold", text, pair(THRESHOLDS[name]), pair(found), None, _HERE)
    every = goals(stream)
    beats = [g for g in every if _is_beaten(table.cell(name, f"map {g}", g), table.cell(name, "threshold", g))]
    text = f"{name}: bounds of {len(every)} at which thresholds respond faster than MEAD with less CPU"
    yield Claim(f"{name}-threshold-beats", text, 1, len(beats), None, _HERE)


def _is_beaten(ours: Cell, others: Cell) -> bool:
    return others[0] <= ours[0] and others[1] <= ours[1]


def _together(table: Table) -> Iterator[Claim]:
    """What is said of all traces at once."""
    every = [(stream.name, goal) for stream in STREAMS.values() for goal in goals(stream)]
    for model, paper in (("map", 15), ("m", 0), ("gi", 1)):
        asked = [(name, goal) for name, goal in every if model != "gi" or not goal.percentile]
        kept = sum(table.is_kept(name, f"{model} {goal}", goal) for name, goal in asked)
        text = f"bounds of {len(asked)} that {NAMES[model]} keeps in every seed (Tables I and II)"
        yield Claim(f"kept-{model}", text, paper, kept, kept == paper, f"{_DRIFT}. {_KEPT}" if kept != paper else _KEPT)
    saving = max(100 - table.cell(name, f"map {goal}", goal)[1] for name, goal in every)
    yield Claim("saving", "CPU saved against 100 % shares, the most, percent", 52.0, saving, saving >= 45, _HERE)
    dearer = [
        table.cell(name, f"map {goal}", goal)[1] - table.cell(name, f"fixed {goal}", goal)[1]
        for name, goal in every
        if (name, f"fixed {goal}") in table
    ]
    text = "CPU of MEAD above the best fixed shares in hindsight, percentage points: least, mean, most"
    shown = f"{min(dearer):+.1f}, {fmean(dearer):+.1f}, {max(dearer):+.1f}"
    yield Claim("dearer-than-fixed", text, None, shown, None, _FIXED)


def _safety(table: Table) -> Iterator[Claim]:
    """The sweep: what is planned for, as a part of the bound; 1 is the paper."""
    for stream in STREAMS.values():
        for safety in (1.0, *SAFETIES):
            ways = {goal: f"map {goal}" if safety == 1 else f"safety-{safety:g} {goal}" for goal in goals(stream)}
            kept = sum(table.is_kept(stream.name, called, goal) for goal, called in ways.items())
            share = fmean(table.cell(stream.name, called, goal)[0] / goal.bound_s for goal, called in ways.items())
            cpu = fmean(table.cell(stream.name, called, goal)[1] for goal, called in ways.items())
            text = f"{stream.name}, safety {safety:g}: bounds of {len(ways)} kept in every seed; response/bound; CPU %"
            yield Claim(f"{stream.name}-safety-{safety:g}", text, None, f"{kept}; {share:.2f}; {cpu:.1f}", None, _DRIFT)


def _variants(table: Table) -> Iterator[Claim]:
    """Another fit, a late decision, a quota, an analysis every 10 s: the same seeds of the paper's way beside."""
    ways = {
        "kpc": "fitted by moments and autocorrelations alone (the paper's way)",
        "delay": "decided 30 s late",
        "quota": "a quota of each 5 ms in place of a slower core",
        "often": "analysed every 10 s",
        "often-0.5": "analysed every 10 s, safety 0.5",
        "often-delay": "analysed every 10 s, decided 30 s late",
    }
    for stream in STREAMS.values():
        for way, what in ways.items():
            for goal in goals(stream):
                called = f"{way} {goal}"
                if (stream.name, called) in table:
                    runs = len(table.runs(stream.name, called))
                    text = f"{stream.name}, {goal} s, {what}; beside it as above, the same seeds"
                    beside = _first(table.runs(stream.name, f"map {goal}"), runs, goal)
                    ours = f"{table.shown(stream.name, called, goal)}; {beside}"
                    yield Claim(f"{stream.name}-{called}".replace(" ", "-"), text, None, ours, None)


def _first(runs: Sequence[Outcome], count: int, goal: Goal) -> str:
    some = runs[:count]
    found = fmean(each.response_s(goal) for each in some), 100 * fmean(each.cpu for each in some)
    return f"{pair(found)}, {sum(each.keeps(goal) for each in some)}/{len(some)}"
