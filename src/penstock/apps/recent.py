"""What was seen at each position in the last images: a count window with a slide of one image (paper 5 §3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.apps.cell_images import Floats, Pixels

LAST = 1000
# Positions lie on a grid over the image, whatever its size; 4 x 4 of them are a region, and a region has one owner.
GRID, BLOCK = 16, 4
REGIONS = (GRID // BLOCK) ** 2
POSITIONS = BLOCK * BLOCK
Ints = NDArray[np.int64]


def sampled(image: Floats) -> Pixels:
    """The colours at the middle of each cell of the grid."""
    side = len(image)
    at = (2 * np.arange(GRID) + 1) * side // (2 * GRID)
    return np.rint(image[np.ix_(at, at)]).clip(0, 255).astype(np.uint8)


def by_region(samples: Pixels) -> Pixels:
    """Samples of some images, cut: regions, images, positions, colours."""
    blocks = samples.reshape(-1, GRID // BLOCK, BLOCK, GRID // BLOCK, BLOCK, 3)
    return blocks.transpose(1, 3, 0, 2, 4, 5).reshape(REGIONS, -1, POSITIONS, 3)


def owner(x: int, y: int) -> tuple[int, int]:
    """The region that owns a position of the grid, and its place there.

    >>> owner(0, 0), owner(5, 0), owner(15, 15)
    ((0, 0), (1, 1), (15, 15))
    """
    return y // BLOCK * (GRID // BLOCK) + x // BLOCK, y % BLOCK * BLOCK + x % BLOCK


def position(region: int, place: int) -> tuple[int, int]:
    """The x and y of a region's place: `owner`, turned round."""
    blocks = GRID // BLOCK
    return region % blocks * BLOCK + place % BLOCK, region // blocks * BLOCK + place // BLOCK


@dataclass(frozen=True, slots=True)
class Recent:
    """The colours at a region's positions in the last images, oldest first.

    >>> recent = Recent.none().after(np.full((999, POSITIONS, 3), 7, np.uint8))
    >>> len(recent.values), len(recent.after(np.zeros((2, POSITIONS, 3), np.uint8)).values)
    (999, 1000)
    """

    values: Pixels

    @classmethod
    def none(cls) -> Recent:
        return cls(np.zeros((0, POSITIONS, 3), np.uint8))

    @classmethod
    def restored(cls, content: bytes) -> Recent:
        return cls(np.frombuffer(content, np.uint8).reshape(-1, POSITIONS, 3))

    def after(self, values: Pixels) -> Recent:
        """The window when these images have come, too."""
        return Recent(np.concatenate((self.values, values[-LAST:]))[-LAST:])

    def answers(self, came: tuple[Ints, Pixels], asked: Sequence[tuple[int, int]]) -> list[Pixels]:
        """For each query (its number, a place): the colours there in the last images that came before it.

        Images and queries of a batch are numbered in the order in which they were sent; numbers of images rise.
        """
        numbers, values = came
        history = np.concatenate((self.values, values))
        ends = len(self.values) + np.searchsorted(numbers, [number for number, _ in asked])
        return [history[max(0, end - LAST) : end, place] for end, (_, place) in zip(ends, asked, strict=True)]
