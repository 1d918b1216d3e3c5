"""Synthetic images of cells, and the filters that count them (paper 5 §3.2): plain functions on arrays.

A cell is a round blob that glows in one colour, its marker; cells keep their size, and a larger image has more of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Pixels = NDArray[np.uint8]
"""Rows, columns and the three colours."""
Floats = NDArray[np.float32]

MARGIN = 24  # a blob ends here: four deviations of the largest
RADII = (4, 5, 6)
BRIGHTNESS = (140, 230)
GROUND, GRAIN = 12.0, 4.0
BLUR = 1.5
# The faintest, widest blob has slopes of 107 after the blur, in the units of a Sobel filter; the grain's stay below 15.
EDGE = 35.0


@dataclass(frozen=True, slots=True)
class Blob:
    """A cell: its middle, the deviation of its glow, and its marker (0 red, 1 green, 2 blue)."""

    row: int
    column: int
    radius: int
    marker: int
    brightness: float


def cells(side: int, count: int, seed: int) -> Pixels:
    """A square image of so many cells at random places; they may overlap.

    >>> cells(64, 3, seed=1).shape
    (64, 64, 3)
    """
    draw = np.random.default_rng(seed)
    places, radii = draw.integers(0, side, (count, 2)).tolist(), draw.choice(RADII, count).tolist()
    markers, lights = draw.integers(0, 3, count).tolist(), draw.uniform(*BRIGHTNESS, count).tolist()
    each = zip(places, radii, markers, lights, strict=True)
    return painted(side, (Blob(row, column, *rest) for (row, column), *rest in each), draw)


def painted(side: int, blobs: Iterable[Blob], draw: np.random.Generator) -> Pixels:
    """These cells on a dark ground with some grain."""
    wide = side + 2 * MARGIN  # so that a blob at the border needs no cutting
    canvas = np.zeros((wide, wide, 3), np.float32)
    for blob in blobs:
        patch = canvas[blob.row : blob.row + 2 * MARGIN + 1, blob.column : blob.column + 2 * MARGIN + 1, blob.marker]
        patch += blob.brightness * _glow(blob.radius)
    image = canvas[MARGIN : MARGIN + side, MARGIN : MARGIN + side]
    image += GROUND + GRAIN * draw.standard_normal(image.shape, np.float32)
    return np.clip(image, 0, 255).astype(np.uint8)


@functools.cache
def _glow(radius: int) -> Floats:
    across = np.exp(-0.5 * (np.arange(-MARGIN, MARGIN + 1, dtype=np.float32) / radius) ** 2)
    return np.outer(across, across)


def blurred(image: Pixels) -> Floats:
    """The image without its grain; colours do not mix."""
    return np.asarray(ndimage.gaussian_filter(image.astype(np.float32), (BLUR, BLUR, 0)), np.float32)


def split(image: Floats) -> tuple[Floats, Floats, Floats]:
    """The red, green and blue channels, each by itself."""
    red, green, blue = (np.ascontiguousarray(image[:, :, colour]) for colour in range(3))
    return red, green, blue


def edges(channel: Floats) -> Floats:
    """How steep the channel is at each pixel: the length of both Sobel slopes."""
    down, across = (ndimage.sobel(channel, axis) for axis in (0, 1))
    return np.asarray(np.hypot(down, across), np.float32)


def objects(steepness: Floats) -> int:
    """Outlines, filled and counted; an outline within another is a part of it."""
    filled = ndimage.binary_fill_holes(steepness > EDGE)
    return int(ndimage.label(filled)[1])


def analysed(image: Pixels) -> tuple[tuple[int, int, int], Floats]:
    """How many cells have each marker, and the image without its grain."""
    smooth = blurred(image)
    red, green, blue = (objects(edges(channel)) for channel in split(smooth))
    return (red, green, blue), smooth
