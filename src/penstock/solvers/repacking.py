"""Instances moved together, so that machines whose paid hour ends can be given up (paper 3, Algorithm 1, line 29)."""

from __future__ import annotations

from penstock.solvers.layout import Layout


def repack(layout: Layout, low: float) -> None:
    """Empty machines whose paid hour ends within the interval, where others have room for what is on them."""
    ending = [place for place, each in enumerate(layout.machines) if each.launch is None]
    ending = [place for place in ending if layout.machines[place].ends < layout.known.steps]
    for machine in sorted(ending, key=lambda each: (layout.machines[each].ends, layout.used[each])):
        layout.advance(int(layout.machines[machine].ends))
        if layout.used[machine]:
            _empty(layout, low, machine)


def _empty(layout: Layout, low: float, machine: int) -> None:
    """Move all instances away from a machine; where that is not possible, none."""
    moved: list[tuple[int, int]] = []
    for place, where in enumerate(layout.places):
        for _ in range(where.count(machine)):
            other = layout.free(besides=machine)
            if other is None:
                break
            layout.add(place, machine, -1)
            layout.add(place, other)
            moved.append((place, other))
    if not layout.used[machine] and layout.totals().relative(layout.at) >= low:
        return
    for place, other in reversed(moved):
        layout.add(place, other, -1)
        layout.add(place, machine)
