"""Cells that are painted are found again, each under its own marker."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.apps.cell_images import (
    BRIGHTNESS,
    EDGE,
    RADII,
    Blob,
    analysed,
    blurred,
    cells,
    edges,
    objects,
    painted,
    split,
)


def grid(count: int, seed: int) -> list[Blob]:
    """Cells 40 pixels apart, and 20 from the border: they touch neither it nor each other."""
    draw = np.random.default_rng(seed)
    places = [(row, column) for row in range(20, 200, 40) for column in range(20, 200, 40)][:count]
    lights = draw.uniform(*BRIGHTNESS, count)
    return [
        Blob(row, column, int(draw.choice(RADII)), at % 3, float(lights[at])) for at, (row, column) in enumerate(places)
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 25])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_separate_cells_are_counted_by_marker(count: int, seed: int) -> None:
    image = painted(200, grid(count, seed), np.random.default_rng(seed))
    # Markers take turns: of 7 cells three are red, two green, two blue.
    assert analysed(image)[0] == (-(-count // 3), -(-(count - 1) // 3), -(-(count - 2) // 3))


def test_the_faintest_cell_stands_out_and_grain_does_not() -> None:
    draw = np.random.default_rng(0)
    faint = painted(128, [Blob(64, 64, max(RADII), 0, BRIGHTNESS[0])], draw)
    red, green, blue = (float(edges(channel).max()) for channel in split(blurred(faint)))
    assert red > 2.5 * EDGE
    assert max(green, blue) < EDGE / 2


def test_cells_that_touch_are_one_object_and_a_cell_at_the_border_is_one() -> None:
    draw = np.random.default_rng(0)
    touching = [Blob(60, 60, 5, 2, 200.0), Blob(60, 66, 5, 2, 200.0)]
    assert analysed(painted(128, touching, draw))[0] == (0, 0, 1)
    for row, column in ((64, 0), (127, 64), (40, 127)):
        assert analysed(painted(128, [Blob(row, column, 5, 1, 200.0)], draw))[0] == (0, 1, 0)


def test_edges_are_the_length_of_both_slopes() -> None:
    # A plane that rises by 3 a row and 4 a column: Sobel weighs a slope 8 times, and 8 · √(9 + 16) = 40.
    row, column = np.mgrid[0:9, 0:9]
    plane = (3.0 * row + 4.0 * column).astype(np.float32)
    assert edges(plane)[1:-1, 1:-1] == pytest.approx(np.full((7, 7), 40.0))


def test_outlines_are_filled_before_they_are_counted() -> None:
    steep = np.zeros((20, 20), np.float32)
    steep[2:9, 2:9] = 2 * EDGE
    steep[4:7, 4:7] = 0.0
    steep[5, 5] = 2 * EDGE  # within the ring: a part of it
    steep[15, 15] = 2 * EDGE
    assert objects(steep) == 2


def test_a_blur_keeps_the_light_and_mixes_no_colours() -> None:
    image = painted(128, [Blob(64, 64, 5, 0, 200.0)], np.random.default_rng(0))
    smooth = blurred(image)
    assert smooth.mean(axis=(0, 1)) == pytest.approx(image.mean(axis=(0, 1)), abs=0.05)
    assert smooth[:, :, 1].max() < 20  # the ground is at 12, the grain's deviation 4 before the blur


def test_an_image_is_the_same_for_a_seed_and_of_the_size_that_was_asked() -> None:
    assert np.array_equal(cells(96, 10, seed=5), cells(96, 10, seed=5))
    assert not np.array_equal(cells(96, 10, seed=5), cells(96, 10, seed=6))
    assert cells(300, 0, seed=1).shape == (300, 300, 3)
    assert cells(16, 50, seed=1).dtype == np.uint8
