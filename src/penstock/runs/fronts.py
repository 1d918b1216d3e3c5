"""Policies by what their parameters can buy: cost against violations, and what each costs at equal violations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.policies.registry import POLICIES
from penstock.runs.saving import DEFAULT, LOOSE, STRICT

ALLOWED = (STRICT, LOOSE)
DAY_S = 86400.0
CLAIRVOYANT = "clairvoyant"


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of one policy on one trace: the mean over its seeds."""

    policy: str
    cost: float
    missed: float
    """Of the time; what nobody knows is not kept."""
    actions_a_day: float

    @property
    def family(self) -> str:
        """The policy without its parameters."""
        first, _, rest = self.policy.partition(":")
        return f"{first}:{rest.partition(':')[0]}" if first.endswith(".py") else first

    @property
    def is_default(self) -> bool:
        return self.policy == self.family


def points(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Point]]:
    """Each trace's points, from a sweep's rows; cells that failed are left out."""
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["error"] is None:
            cells[row["world"], row["policy"]].append(row)
    found: dict[str, list[Point]] = defaultdict(list)
    for (world, policy), seeds in cells.items():
        mean = {key: sum(row[key] or 0.0 for row in seeds) / len(seeds) for key in _READ}
        days = mean["duration_s"] / DAY_S or 1.0
        missed = mean["violation_share"] + mean["unknown_share"]
        found[world].append(Point(policy, mean["cost"], missed, mean["scaling_actions"] / days))
    return found


_READ = ("cost", "violation_share", "unknown_share", "scaling_actions", "duration_s")


def families(known: Sequence[Point]) -> dict[str, list[Point]]:
    """Points by policy, without the one that knows the future."""
    found: dict[str, list[Point]] = defaultdict(list)
    for point in known:
        if point.family != CLAIRVOYANT:
            found[point.family].append(point)
    return found


def front(known: Iterable[Point]) -> list[Point]:
    """Those that no other beats in both cost and violations, from the cheapest on.

    >>> def at(cost, missed): return Point(f"{cost}", cost, missed, 0.0)
    >>> [point.policy for point in front([at(3.0, 0.0), at(1.0, 0.5), at(2.0, 0.6), at(2.5, 0.1)])]
    ['1.0', '2.5', '3.0']
    """
    found: list[Point] = []
    for point in sorted(known, key=lambda each: (each.cost, each.missed)):
        if not found or point.missed < found[-1].missed:
            found.append(point)
    return found


def cheapest(known: Iterable[Point], allowed: float) -> Point | None:
    """The least cost at which no more than this is missed; None where no setting does that."""
    return min((point for point in known if point.missed <= allowed), key=lambda each: each.cost, default=None)


def tuned(trained: Sequence[Point], reported: Sequence[Point], allowed: float) -> Point | None:
    """The setting that was cheapest on the one part (or missed least, where all miss more), seen on the other."""
    if not trained:
        return None
    chosen = cheapest(trained, allowed) or min(trained, key=lambda each: (each.missed, each.cost))
    return next((point for point in reported if point.policy == chosen.policy), None)


@dataclass(frozen=True, slots=True)
class Standing:
    """The default policy on one trace, beside the best that else can be had at no more violations."""

    ours: Point
    allowed: float
    tuned: Point | None
    """The best of those tuned on the first part; without a first part, None."""
    hindsight: Point | None
    """The best setting of all, chosen on the very part that is reported."""
    default: Point | None
    """The best of those as they come."""

    def ratio(self, other: Point | None) -> float | None:
        """Our cost by another's."""
        return self.ours.cost / other.cost if other is not None and other.cost > 0 else None


def standing(known: Sequence[Point], trained: Sequence[Point], allowed: float = ALLOWED[0]) -> Standing | None:
    """Beside peers alone: what people have today. None where the default was not replayed."""
    ours = next((point for point in known if point.policy == DEFAULT), None)
    if ours is None:
        return None
    allowed = max(allowed, ours.missed)
    peers = {name: group for name, group in families(known).items() if is_peer(name)}
    before = families(trained)
    picked = [tuned(before.get(name, []), group, ALLOWED[0]) for name, group in peers.items()]
    settings = [point for group in peers.values() for point in group]
    return Standing(
        ours,
        allowed,
        cheapest((point for point in picked if point is not None), allowed),
        cheapest(settings, allowed),
        cheapest((point for point in settings if point.is_default), allowed),
    )


def is_peer(family: str) -> bool:
    return bool(getattr(POLICIES.get(family), "is_peer", False))


@dataclass(frozen=True, slots=True)
class Contest:
    """All points of one trace; `trained` are those of its first part, where settings are chosen."""

    trace: str
    points: Sequence[Point]
    trained: Sequence[Point] = ()
    bound: float | None = None
    """No plan within the objective costs less; None where that is not proven."""
    setting: Sequence[str] = ()
    """What all of them were held to, and who ran as it is."""

    def to_bound(self, point: Point) -> float | None:
        return point.cost / self.bound if self.bound else None

    def families(self) -> dict[str, list[Point]]:
        return families(self.points)

    def tuned(self, family: str) -> Point | None:
        """What was chosen on the first part, on the rest; None without a first part."""
        return tuned(families(self.trained).get(family, []), self.families()[family], ALLOWED[0])

    def standing(self) -> Standing | None:
        return standing(self.points, self.trained)
