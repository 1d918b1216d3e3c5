"""Shares of a core that operators may have: a few levels between the least and all of it (paper 4 §VII)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from penstock.core.allocation import Allocation
from penstock.core.bounds import between
from penstock.core.errors import BadInput, unknown


@dataclass(frozen=True, slots=True)
class Levels:
    """Equal steps from the least share to a whole core.

    >>> Levels(5, 0.4).shares
    (0.4, 0.55, 0.7, 0.85, 1.0)
    >>> Levels(5, 0.4).of(0.6), Levels(5, 0.4).top
    (2, 4)
    """

    count: int = 5
    least: float = 0.4

    def __post_init__(self) -> None:
        between("levels", self.count, 1, 1000)
        between("least", self.least, 1e-3, 1)

    @property
    def shares(self) -> tuple[float, ...]:
        step = (1 - self.least) / max(1, self.count - 1)
        return tuple(round(1 - step * below, 9) for below in range(self.count - 1, -1, -1))

    @property
    def top(self) -> int:
        return self.count - 1

    def of(self, share: float) -> int:
        """The lowest level that has at least this share."""
        return next((level for level, has in enumerate(self.shares) if has >= share - 1e-9), self.top)

    def seen(self, target: Allocation, operators: Collection[str]) -> dict[str, int]:
        """The level of each operator; one that was never given a share has the whole core."""
        return {name: self.of(target.cpu_share.get(name, 1.0)) for name in operators}

    def asked(self, target: Allocation, levels: Mapping[str, int]) -> Allocation:
        """The same target with these levels; the same object where nothing changes."""
        shares = {name: self.shares[level] for name, level in levels.items()}
        return target if dict(target.cpu_share) == shares else replace(target, cpu_share=shares)


def by_operator(text: str, operators: Collection[str], what: str) -> dict[str, float]:
    """Numbers by operator, as in `counter:0.4+matcher:0.7`.

    >>> by_operator("a:0.4+b:1", ["a", "b"], "shares")
    {'a': 0.4, 'b': 1.0}
    """
    found = {}
    for part in filter(None, text.split("+")):
        name, colon, number = (piece.strip() for piece in part.partition(":"))
        if name not in operators:
            raise unknown(f"operator in {what}", name, operators)
        try:
            found[name] = float(number)
        except ValueError:
            raise BadInput(f"{what}: '{part[:40]}' should be operator:number, several joined by +") from None
        if not colon or not 0 < found[name] < float("inf"):
            raise BadInput(f"{what}: '{part[:40]}': the number must be above 0")
    return found
