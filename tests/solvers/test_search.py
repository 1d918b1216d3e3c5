"""Recursive random search, against functions whose least value is known."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.errors import BadInput
from penstock.solvers.search import Tuning, exhaustive, recursive_random
from penstock.solvers.space import Choice, Point, Range, Space, grid, size

SQUARE: Space = {"x": Range(-5.0, 5.0), "y": Range(-5.0, 5.0)}
MIXED: Space = {"x": Range(0, 40, 1), "y": Range(0.0, 1.0, 0.05), "way": Choice(("a", "b", "c", "d"))}


def number(point: Point, key: str) -> float:
    value = point[key]
    assert isinstance(value, int | float)
    return value


def bowl(point: Point) -> float:
    return (number(point, "x") - 1.3) ** 2 + (number(point, "y") + 2.1) ** 2


def stairs(point: Point) -> float:
    """Plateaus, as costs of whole hosts have; least, 0, for x from 28 to 32, y from 0.65 to 0.75, way c."""
    return (
        abs(round((number(point, "x") - 30) / 5)) + abs(round((number(point, "y") - 0.7) * 8)) + (point["way"] != "c")
    )


def many_valleys(point: Point) -> float:
    """Rastrigin's: 121 valleys, the deepest, 0, at (0, 0)."""
    both = number(point, "x"), number(point, "y")
    return sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in both)


def by_chance(space: Space, seed: int, budget: int) -> float:
    rng = random.Random(seed)
    return min(many_valleys({key: axis.at(rng.random()) for key, axis in space.items()}) for _ in range(budget))


def test_a_bowl_is_searched_to_its_ground() -> None:
    for seed in range(20):
        found = recursive_random(bowl, SQUARE, budget=500, seed=seed)
        # Boxes end at 1 % of the axes, 0.1: a sample in there is 0.05 away on each axis at most, mostly less.
        assert found.value < 0.005
        assert found.point["x"] == pytest.approx(1.3, abs=0.1)
        assert found.evaluations == 500


def test_on_many_valleys_the_search_beats_chance_in_the_median() -> None:
    searched = [recursive_random(many_valleys, SQUARE, 500, seed).value for seed in range(30)]
    assert statistics.median(searched) < 0.7 * statistics.median(by_chance(SQUARE, seed, 500) for seed in range(30))


def test_the_least_plateau_of_a_mixed_space_is_mostly_found_with_a_tenth_of_its_points() -> None:
    best = exhaustive(stairs, MIXED)
    assert (best.value, best.evaluations) == (0.0, 41 * 21 * 4)
    found = [recursive_random(stairs, MIXED, 344, seed).value for seed in range(40)]
    assert found.count(0.0) >= 36


def test_an_option_that_is_better_only_near_the_best_number_is_found() -> None:
    def hidden(point: Point) -> float:
        """Way a is better but for x from 0.49 to 0.51, where b goes down to −0.02."""
        away = abs(number(point, "x") - 0.5)
        return away if point["way"] == "a" else 3 * away - 0.02

    space: Space = {"x": Range(0.0, 1.0), "way": Choice(("a", "b"))}
    # 26 of 40 if options were redrawn no more often than the box is wide.
    assert sum(recursive_random(hidden, space, 100, seed).point["way"] == "b" for seed in range(40)) >= 36


def test_the_search_goes_on_over_plateaus() -> None:
    def steps(point: Point) -> float:
        return float(sum(round(abs(number(point, key) - 71) / 8) for key in point))

    space: Space = {key: Range(0, 100, 1) for key in "uvwxyz"}
    # 9 of 40 if only better points were followed; one point in two million is as good.
    assert [recursive_random(steps, space, 400, seed).value for seed in range(40)].count(0.0) >= 15


def test_ten_axes_are_searched_with_boxes_that_follow_what_is_better() -> None:
    space: Space = {key: Range(0.0, 1.0) for key in "abcdefghij"}

    def away(point: Point) -> float:
        return sum((number(point, key) - 0.3) ** 2 for key in point)

    # 0.00025 if a success did not begin the count of failures anew.
    assert statistics.median(recursive_random(away, space, 500, seed).value for seed in range(40)) < 0.0002


@given(seed=st.integers(0, 2**53), budget=st.integers(1, 120))
@settings(max_examples=40, deadline=None)
def test_the_same_seed_finds_the_same_within_the_budget(seed: int, budget: int) -> None:
    seen: list[Point] = []

    def watched(point: Point) -> float:
        seen.append(point)
        return stairs(point)

    found = recursive_random(watched, MIXED, budget, seed)
    assert found == recursive_random(stairs, MIXED, budget, seed)
    assert found.evaluations == len(seen) <= budget
    assert found.value == min(map(stairs, seen)) == stairs(found.point)
    # No point is paid for twice.
    assert len({tuple(point.values()) for point in seen}) == len(seen)
    every = [axis.values() for axis in MIXED.values()]
    assert all(setting in values for point in seen for setting, values in zip(point.values(), every, strict=True))


@given(seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_only_the_order_of_values_counts(seed: int) -> None:
    plain = recursive_random(bowl, SQUARE, 150, seed)
    steep = recursive_random(lambda point: math.exp(bowl(point)), SQUARE, 150, seed)
    pair = recursive_random(lambda point: (0.0, bowl(point)), SQUARE, 150, seed)
    assert plain.point == steep.point == pair.point


def test_a_constraint_comes_before_the_cost() -> None:
    def late_then_cost(point: Point) -> tuple[float, ...]:
        x = number(point, "x")
        return max(0.0, 2.0 - x), x

    found = recursive_random(late_then_cost, {"x": Range(0.0, 10.0, 0.5)}, budget=21, seed=3)
    assert (found.point, found.value) == ({"x": 2.0}, (0.0, 2.0))


def test_a_small_grid_is_searched_whole_and_then_the_search_ends() -> None:
    space: Space = {"x": Range(1, 3, 1), "way": Choice(("a", "b"))}
    found = recursive_random(lambda point: -number(point, "x"), space, budget=500, seed=0)
    assert (found.value, found.evaluations) == (-3, 6)


def test_a_range_of_one_number_ends_the_search() -> None:
    assert recursive_random(bowl, {"x": Range(1.0, 1.0), "y": Range(2.0, 2.0)}, budget=50, seed=0).evaluations == 1


def test_other_seeds_look_elsewhere() -> None:
    assert len({recursive_random(bowl, SQUARE, 10, seed).value for seed in range(10)}) == 10


def test_a_grid_has_both_ends_and_no_tails_of_digits() -> None:
    assert Range(0.75, 0.79, 0.01).values() == (0.75, 0.76, 0.77, 0.78, 0.79)
    assert Range(0.0, 1.0, 0.3).values() == (0.0, 0.3, 0.6, 0.9)
    assert Range(3, 10, 1).values() == (3, 4, 5, 6, 7, 8, 9, 10)
    assert len(set(Range(0, 0.999, 0.001).values())) == 1000
    points = list(grid({"x": Range(1, 2, 1), "way": Choice(("a", "b"))}))
    assert points == [{"x": 1, "way": "a"}, {"x": 1, "way": "b"}, {"x": 2, "way": "a"}, {"x": 2, "way": "b"}]
    assert size(SQUARE) is None


def test_each_value_of_a_grid_is_drawn_equally_often() -> None:
    rng, axis = random.Random(5), Range(2, 4, 1)
    drawn = [axis.at(rng.random()) for _ in range(3000)]
    # 1000 each, give or take four standard deviations of 26.
    assert all(abs(drawn.count(value) - 1000) < 104 for value in (2, 3, 4))


def test_bad_input_is_one_line() -> None:
    with pytest.raises(BadInput, match="without a step has no grid"):
        exhaustive(bowl, SQUARE)
    with pytest.raises(BadInput, match=r"no number at \{'x': "):
        recursive_random(lambda point: math.nan, SQUARE, 10, 1)
    with pytest.raises(BadInput, match="from 2 to 1 is empty"):
        Range(2, 1)
    with pytest.raises(BadInput, match="step is 0"):
        Range(1, 2, 0)
    with pytest.raises(BadInput, match="each once"):
        Choice(("a", "a"))
    with pytest.raises(BadInput, match="budget of a search is 0"):
        recursive_random(bowl, SQUARE, 0, 1)
    with pytest.raises(BadInput, match="at least one range or choice"):
        recursive_random(bowl, {}, 5, 1)
    with pytest.raises(BadInput, match="shrink is 1"):
        Tuning(shrink=1.0)
