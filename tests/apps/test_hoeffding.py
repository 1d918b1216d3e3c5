"""The Hoeffding tree makes river's splits on the same rows, and its parts are what their formulas say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from river.tree import HoeffdingTreeClassifier

from penstock.apps.hoeffding import (
    LEAF,
    Ints,
    Proposals,
    Rules,
    Split,
    Statistics,
    Tree,
    entropy,
    grown,
    hoeffding_bound,
    information_gain,
    learn,
    merged,
)

SMALL = Rules(attributes=8, values=3, classes=4, grace=50, delta=1e-4, tau=0.05)
Path = tuple[tuple[int, int], ...]


def random_rows(count: int, rules: Rules, seed: int) -> tuple[Ints, Ints]:
    """Rows whose class hangs on attribute 5 and, by its value, on 1, 2 or 6; one in five has any class.

    Attribute 0, of another group, mostly tells the same as 5: the root's second best.
    """
    draw = np.random.default_rng(seed)
    x = draw.integers(0, rules.values, (count, rules.attributes), dtype=np.uint8)
    x[:, 0] = np.where(draw.random(count) < 0.7, x[:, 5], x[:, 0])
    second = np.array([1, 2, 6])[x[:, 5]]
    y = (x[:, 5] + 2 * x[np.arange(count), second]) % rules.classes
    return x, np.where(draw.random(count) < 0.2, draw.integers(0, rules.classes, count), y).astype(np.uint8)


def groups_of(size: int, rules: Rules) -> list[Statistics]:
    return [Statistics.none(range(at, at + size), rules) for at in range(0, rules.attributes, size)]


def ours(tree: Tree, node: int = 0, path: Path = ()) -> dict[Path, int]:
    """What the tree asks, by the answers that lead there."""
    asks = int(tree.attribute[node])
    if asks == LEAF:
        return {}
    below = [ours(tree, int(to), (*path, (asks, value))) for value, to in enumerate(tree.child[node])]
    return {path: asks} | {at: attribute for part in below for at, attribute in part.items()}


def rivers(node: Any, path: Path = ()) -> dict[Path, int]:
    if not hasattr(node, "feature"):
        return {}
    below = [rivers(to, (*path, (node.feature, value))) for value, to in zip(node._mapping, node.children, strict=True)]
    return {path: node.feature} | {at: attribute for part in below for at, attribute in part.items()}


@pytest.mark.parametrize(("seed", "tau"), [(1, 0.0), (2, 0.05), (3, 0.25)])
def test_the_splits_are_rivers_row_by_row(seed: int, tau: float) -> None:
    rules = replace(SMALL, tau=tau)
    x, y = random_rows(4000, rules, seed)
    # Ours has no minimum for a branch and splits on no majority: river's are turned off, not its defaults.
    river: Any = HoeffdingTreeClassifier(
        grace_period=rules.grace, delta=rules.delta, tau=rules.tau, split_criterion="info_gain", leaf_prediction="mc",
        nominal_attributes=list(range(rules.attributes)), min_branch_fraction=0.0, max_share_to_split=1.0,
    )  # fmt: skip
    tree, groups = Tree.of_one_leaf(rules), groups_of(4, rules)
    for number in range(len(x)):
        river.learn_one(dict(enumerate(x[number].tolist())), int(y[number]))
        tree, groups, splits = learn(tree, groups, (x[number : number + 1], y[number : number + 1]), rules)
        if splits or number % 500 == 0:
            assert ours(tree) == rivers(river._root), f"after {number + 1} rows"
    assert ours(tree) == rivers(river._root)
    assert len(ours(tree)) >= 4  # the root and its three branches, at least
    assert ours(tree)[()] == 5
    assert [ours(tree)[((5, value),)] for value in range(3)] == [1, 2, 6]
    assert (len(ours(tree)) > 4) == (tau == 0.25)  # below that there is but noise, and only ties are split


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 4, 8]))
def test_however_attributes_are_grouped_the_tree_is_the_same(seed: int, size: int) -> None:
    x, y = random_rows(1500, SMALL, seed)
    tree, apart_tree = Tree.of_one_leaf(SMALL), Tree.of_one_leaf(SMALL)
    whole, apart = groups_of(8, SMALL), groups_of(size, SMALL)
    for start in range(0, 1500, 300):
        rows = x[start : start + 300], y[start : start + 300]
        tree, whole, all_splits = learn(tree, whole, rows, SMALL)
        apart_tree, apart, splits = learn(apart_tree, apart, rows, SMALL)
        assert splits == all_splits
    assert tree.seen.tolist() == apart_tree.seen.tolist()


def test_a_batch_is_sorted_by_the_tree_of_the_batch_before() -> None:
    x, y = random_rows(3000, SMALL, 1)
    tree, groups, splits = learn(Tree.of_one_leaf(SMALL), groups_of(4, SMALL), (x, y), SMALL)
    assert [(split.leaf, split.attribute, split.rows) for split in splits] == [(0, 5, 3000)]
    tree, groups, splits = learn(tree, groups, (x, y), SMALL)
    assert {split.leaf for split in splits} == {1, 2, 3}
    assert groups[0].leaf.tolist() == [1, 2, 3]  # the root's counts are gone


def test_counts_are_of_the_rows_at_a_leaf() -> None:
    rules = Rules(attributes=2, values=2, classes=2)
    x, y = np.array([[0, 1], [0, 0], [1, 1]]), np.array([0, 1, 1])
    counted = Statistics.none(range(2), rules).counted(Tree.of_one_leaf(rules), np.zeros(3, np.int64), x, y)
    # attribute 0: value 0 has one row of each class, value 1 one of class 1; attribute 1 likewise, by its own column
    assert counted.n.tolist() == [[[[1, 1], [0, 1]], [[0, 1], [1, 1]]]]


def test_the_bound_is_that_of_hoeffding() -> None:
    # R = log2(10) = 3.321928, ln(1/1e-7) = 16.118096: 3.321928 · √(16.118096 / 2000) = 3.321928 · 0.0897722 = 0.298217
    assert hoeffding_bound(np.array([math.log2(10)]), 1e-7, np.array([1000]))[0] == pytest.approx(0.298217, abs=1e-6)
    # Four times the rows, half the bound.
    assert hoeffding_bound(np.array([1.0]), 0.05, np.array([400]))[0] == pytest.approx(
        hoeffding_bound(np.array([1.0]), 0.05, np.array([100]))[0] / 2
    )


def test_information_gain_is_what_an_attribute_saves() -> None:
    # Before: 4 and 4 rows, 1 bit. A tells all, B nothing; C sets 2 of 8 rows apart, pure, and leaves 4 and 2:
    # H(4, 2) = (2/3)·log2(3/2) + (1/3)·log2(3) = 0.389975 + 0.528321 = 0.918296; 1 − 6/8 · 0.918296 = 0.311278.
    a, b, c = [[4, 0], [0, 4]], [[2, 2], [2, 2]], [[4, 2], [0, 2]]
    gain = information_gain(np.array([[4, 4]]), np.array([[a, b, c]]))
    assert gain[0] == pytest.approx([1.0, 0.0, 0.311278], abs=1e-6)


def test_an_attribute_with_one_value_cannot_be_split() -> None:
    assert information_gain(np.array([[4, 4]]), np.array([[[[4, 4], [0, 0]]]])).tolist() == [[-math.inf]]


@given(arrays(np.int64, (3, 4), elements=st.integers(0, 1000)))
def test_information_gain_is_never_negative_nor_above_the_entropy(branches: Ints) -> None:
    seen = branches.sum(axis=0, keepdims=True)
    gain = information_gain(seen, branches[None, None])[0, 0]
    assert gain == -math.inf or -1e-9 <= gain <= entropy(seen)[0] + 1e-9
    assert -1e-9 <= entropy(seen)[0] <= math.log2(4) + 1e-9


def proposal(gain: float, second: float, attribute: int = 0) -> Proposals:
    branches = np.array([[[25, 25], [25, 25]]])
    return Proposals(np.array([0]), np.array([attribute]), np.array([gain]), np.array([second]), branches)


def test_the_best_of_all_groups_wins_and_the_best_of_the_rest_is_second() -> None:
    first = merged([proposal(0.5, 0.1, 3), proposal(0.3, 0.2, 11)])
    assert (first.attribute[0], first.gain[0], first.second[0]) == (3, 0.5, 0.3)
    within = merged([proposal(0.5, 0.4, 3), proposal(0.3, 0.2, 11)])
    assert (within.attribute[0], within.gain[0], within.second[0]) == (3, 0.5, 0.4)


# 100 rows of two classes, δ = 0.05: the bound is 1 · √(ln 20 / 200) = √(2.995732 / 200) = 0.122387.
@pytest.mark.parametrize(
    ("gain", "second", "tau", "splits"),
    [(0.3, 0.177, 0.05, 1), (0.3, 0.178, 0.05, 0), (0.3, 0.3, 0.123, 1), (-math.inf, -math.inf, 0.123, 0)],
    ids=["leads by more", "leads by less", "a tie below tau", "nothing to split by"],
)
def test_a_leaf_splits_when_the_lead_is_above_the_bound(gain: float, second: float, tau: float, splits: int) -> None:
    rules = Rules(attributes=2, values=2, classes=2, delta=0.05, tau=tau)
    leaf = Tree.of_one_leaf(rules).fed(np.zeros(100, np.int64), np.arange(100) % 2)
    tree, made = grown(leaf, proposal(gain, second, 1), rules)
    assert made == [Split(0, 1, gain, 100)] * splits
    assert tree.attribute.tolist() == ([1, LEAF, LEAF] if splits else [LEAF])
    assert tree.tried[0] == 100


def test_a_leaf_of_one_class_stays() -> None:
    rules = Rules(attributes=2, values=2, classes=2, tau=10.0)
    leaf = Tree.of_one_leaf(rules).fed(np.zeros(100, np.int64), np.zeros(100, np.int64))
    assert grown(leaf, proposal(0.3, 0.1), rules)[1] == []


def test_a_new_leaf_inherits_its_branchs_classes_and_waits_for_its_own_rows() -> None:
    rules = Rules(attributes=2, values=2, classes=2, delta=0.05, grace=50)
    leaf = Tree.of_one_leaf(rules).fed(np.zeros(100, np.int64), np.arange(100) % 2)
    tree, _ = grown(leaf, proposal(0.3, 0.1), rules)
    assert tree.seen[1:].tolist() == [[25, 25], [25, 25]]
    assert tree.due(50).tolist() == []
    assert tree.fed(np.ones(50, np.int64), np.zeros(50, np.int64)).due(50).tolist() == [1]
    assert tree.class_at(np.array([1])).tolist() == [0]
