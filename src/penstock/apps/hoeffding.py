"""A Hoeffding tree over nominal attributes (Domingos and Hulten 2000), in parts that can be computed apart.

Each group of attributes proposes its best split of a leaf; the proposals are merged, and the tree grows. A new leaf
inherits the class counts of its branch, as in MOA, SAMOA's VHT and river.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Floats = NDArray[np.float64]
LEAF = -1


@dataclass(frozen=True, slots=True)
class Rules:
    """What rows look like, and when a leaf splits; the numbers are those of MOA and river.

    >>> Rules(grace=500).delta
    1e-07
    """

    attributes: int = 200
    values: int = 5
    classes: int = 10
    grace: int = 200
    delta: float = 1e-7
    tau: float = 0.05


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes by number, the root first: what each asks, where each answer leads, and the classes that came by.

    >>> tree = Tree.of_one_leaf(Rules(attributes=2, values=2, classes=2))
    >>> tree.leaf_of(np.array([[0, 1], [1, 1]]))
    array([0, 0], dtype=int32)
    """

    attribute: Ints
    child: Ints  # node × value
    seen: Ints  # node × class
    tried: Ints  # rows that a leaf had seen when it was last tried

    @classmethod
    def of_one_leaf(cls, rules: Rules) -> Tree:
        child, seen = np.full((1, rules.values), LEAF), np.zeros((1, rules.classes), np.int64)
        return cls(np.full(1, LEAF), child, seen, np.zeros(1, np.int64))

    def leaf_of(self, x: Ints) -> Ints:
        """The leaf that each row falls into."""
        node = np.zeros(len(x), np.int32)
        inner = np.flatnonzero(self.attribute[node] != LEAF)
        while len(inner):
            at = node[inner]
            node[inner] = self.child[at, x[inner, self.attribute[at]]]
            inner = inner[self.attribute[node[inner]] != LEAF]
        return node

    def class_at(self, leaf: Ints) -> Ints:
        """The class seen most often at a leaf."""
        common: Ints = self.seen.argmax(axis=1)[leaf]
        return common

    def fed(self, leaf: Ints, y: Ints) -> Tree:
        """The tree after rows of class `y` came to these leaves."""
        classes = self.seen.shape[1]
        came = np.bincount(leaf * np.int64(classes) + y, minlength=self.seen.size)
        return replace(self, seen=self.seen + came.reshape(-1, classes))

    def due(self, grace: int) -> Ints:
        """Leaves that have seen a grace period's rows since they were last tried."""
        return np.flatnonzero((self.attribute == LEAF) & (self.seen.sum(axis=1) - self.tried >= grace))


@dataclass(frozen=True, slots=True)
class Proposals:
    """One split for each of some leaves: its gain, the next best gain, and the classes of its branches.

    >>> Proposals(np.array([0]), np.array([7]), np.array([0.4]), np.array([0.1]), np.zeros((1, 5, 10))).attribute
    array([7])
    """

    leaf: Ints
    attribute: Ints
    gain: Floats
    second: Floats
    branches: Ints  # leaf × value × class


@dataclass(frozen=True, slots=True)
class Statistics:
    """The counts n_ijk of a group of neighbouring attributes, by leaf.

    >>> Statistics.none(range(0, 10), Rules()).n.shape
    (0, 10, 5, 10)
    """

    first: int
    leaf: Ints
    n: Ints  # leaf × attribute × value × class

    @classmethod
    def none(cls, group: range, rules: Rules) -> Statistics:
        return cls(group.start, np.zeros(0, np.int64), np.zeros((0, len(group), rules.values, rules.classes), np.int64))

    def counted(self, tree: Tree, leaf: Ints, x: Ints, y: Ints) -> Statistics:
        """With these rows; without the leaves that have been split. `x` has the group's attributes only."""
        kept = tree.attribute[self.leaf] == LEAF
        leaves, slot = np.unique(np.concatenate([self.leaf[kept], leaf]), return_inverse=True)
        old, came = np.split(slot, [np.count_nonzero(kept)])
        _, attributes, values, classes = self.n.shape
        cell = (came[:, None] * attributes + np.arange(attributes)) * values + x
        flat = np.bincount((cell * classes + y[:, None]).ravel(), minlength=len(leaves) * attributes * values * classes)
        n = flat.reshape(len(leaves), attributes, values, classes)
        n[old] += self.n[kept]
        return replace(self, leaf=leaves, n=n)

    def proposals(self, tree: Tree, grace: int) -> Proposals:
        """The best split of each leaf that is due, among the group's attributes."""
        due = tree.due(grace)
        n = self.n[np.searchsorted(self.leaf, due)]
        gain = information_gain(tree.seen[due], n)
        best, second = _best_two(gain)
        rows = np.arange(len(due))
        return Proposals(due, self.first + best, gain[rows, best], second, n[rows, best])


@dataclass(frozen=True, slots=True)
class Split:
    """A leaf that became a node.

    >>> Split(leaf=0, attribute=7, gain=0.4, rows=2200).attribute
    7
    """

    leaf: int
    attribute: int
    gain: float
    rows: int


def entropy(counts: Ints) -> Floats:
    """Bits of a distribution given by counts along the last axis: log₂ n − Σ nₖ log₂ nₖ / n."""
    n = np.maximum(counts.sum(axis=-1), 1)
    bits: Floats = np.log2(n) - (counts * np.log2(np.maximum(counts, 1))).sum(axis=-1) / n
    return bits


def information_gain(seen: Ints, n: Ints) -> Floats:
    """What knowing each attribute saves in bits; −∞ where only one of its values was seen. Leaf × attribute."""
    rows = n.sum(axis=-1)
    after = (rows * entropy(n)).sum(axis=-1) / np.maximum(rows.sum(axis=-1), 1)
    return np.where((rows > 0).sum(axis=-1) > 1, entropy(seen)[:, None] - after, -np.inf)


def hoeffding_bound(spread: Floats, delta: float, rows: Ints) -> Floats:
    """How far the mean of so many draws may be from the truth, but for a chance `delta`: R √(ln(1/δ) / 2n)."""
    bound: Floats = spread * np.sqrt(np.log(1 / delta) / (2 * rows))
    return bound


def merged(groups: Sequence[Proposals]) -> Proposals:
    """The best proposal for each leaf, and the best of the rest. Every group proposes for the same leaves."""
    gain = np.stack([group.gain for group in groups], axis=1)
    best, others = _best_two(gain)
    rows = np.arange(len(best))
    attribute, second, branches = (
        np.stack([getattr(group, name) for group in groups], axis=1)[rows, best]
        for name in ("attribute", "second", "branches")
    )
    return Proposals(groups[0].leaf, attribute, gain[rows, best], np.maximum(second, others), branches)


def grown(tree: Tree, proposals: Proposals, rules: Rules) -> tuple[Tree, list[Split]]:
    """Split each leaf whose best attribute leads by the Hoeffding bound, or whose bound is below τ."""
    seen = tree.seen[proposals.leaf]
    rows, classes = seen.sum(axis=1), (seen > 0).sum(axis=1)
    bound = hoeffding_bound(np.log2(np.maximum(classes, 2)), rules.delta, rows)
    is_better = (proposals.gain > proposals.second + bound) | (bound < rules.tau)
    sure = np.flatnonzero((classes > 1) & (proposals.gain > -np.inf) & is_better)
    tried = tree.tried.copy()
    tried[proposals.leaf] = rows
    leaf, attribute = proposals.leaf[sure], proposals.attribute[sure]
    made = zip(leaf.tolist(), attribute.tolist(), proposals.gain[sure].tolist(), rows[sure].tolist(), strict=True)
    tree = _branched(replace(tree, tried=tried), leaf, attribute, proposals.branches[sure])
    return tree, [Split(*split) for split in made]


def learn(
    tree: Tree, groups: Sequence[Statistics], rows: tuple[Ints, Ints], rules: Rules
) -> tuple[Tree, list[Statistics], list[Split]]:
    """One batch through all groups, in one process: what the app does on many."""
    x, y = rows
    leaf = tree.leaf_of(x)
    fed = tree.fed(leaf, y)
    ends = [group.first + group.n.shape[1] for group in groups]
    after = [g.counted(tree, leaf, x[:, g.first : end], y) for g, end in zip(groups, ends, strict=True)]
    grew, splits = grown(fed, merged([group.proposals(fed, rules.grace) for group in after]), rules)
    return grew, after, splits


def _best_two(gain: Floats) -> tuple[Ints, Floats]:
    """Where the largest of each row is, the first of equals; and the second largest, −∞ if there is none."""
    best = gain.argmax(axis=1)
    rest = gain.copy()
    rest[np.arange(len(gain)), best] = -np.inf
    return best, rest.max(axis=1)


def _branched(tree: Tree, leaf: Ints, attribute: Ints, branches: Ints) -> Tree:
    """The tree with a new leaf for every value of the attributes that these leaves now ask."""
    values, classes = branches.shape[1:]
    new = len(tree.attribute) + np.arange(branches.shape[0] * values)
    asks = np.concatenate([tree.attribute, np.full(len(new), LEAF)])
    child = np.concatenate([tree.child, np.full((len(new), values), LEAF)])
    asks[leaf], child[leaf] = attribute, new.reshape(-1, values)
    seen = np.concatenate([tree.seen, branches.reshape(-1, classes)])
    tried = np.concatenate([tree.tried, branches.sum(axis=2).ravel()])
    return Tree(asks, child, seen, tried)
