"""Tasks for the tests: tiny ones for brute force, and days of minutes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from penstock.solvers.schedule import Floats, Ints, Task

ARRIVALS = st.lists(st.sampled_from([0.0, 0.0, 4.2, 5.0, 10.0, 12.3, 20.0, 27.0, 31.0]), min_size=1, max_size=6)
STEPS = st.lists(st.sampled_from([0.0, 3.0, 7.0, 10.0, 13.7]), min_size=7, max_size=7)
LINEAR = 10.0 * np.arange(8.0)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Up to six ticks and three workers, with everything that can differ."""
    most = draw(st.integers(1, 3))
    curved = st.builds(lambda steps: np.concatenate([[0.0], np.cumsum(steps)]), STEPS)
    return Task(
        arrivals=np.array(draw(ARRIVALS)),
        capacity=draw(st.one_of(st.just(LINEAR), curved)),
        at_start=draw(st.integers(0, 4)),
        most=most,
        least=draw(st.integers(0, most)),
        start=draw(st.sampled_from([0.0, 0.5, 0.77, 1.0, 1.5, 2.3, 3.0])),
        within=draw(st.sampled_from([None, 0.3, 0.5, 1.0, 2.0, 3.7])),
        unit=draw(st.sampled_from([1.0, 1 / 60, 2.5, 3.0, 60.0])),
    )


def all_schedules(task: Task) -> Iterator[Ints]:
    for rest in itertools.product(range(task.least, task.most + 1), repeat=task.ticks - 1):
        yield np.array([task.at_start, *rest], dtype=np.int64)


def schedules(task: Task) -> st.SearchStrategy[tuple[Task, Ints]]:
    later = st.lists(st.integers(task.least, task.most), min_size=task.ticks - 1, max_size=task.ticks - 1)
    return later.map(lambda rest: (task, np.array([task.at_start, *rest], dtype=np.int64)))


def days(count: int, seed: int = 0) -> Floats:
    """A daily cycle in minutes, with noise of 29 % and a flash crowd that triples the load."""
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * np.arange(count * 1440) / 1440
    level = 600 * (1.2 + np.sin(angle - 1.5) + 0.3 * np.sin(2 * angle))
    arrivals = rng.gamma(12.0, level / 12.0)
    crowd = int(0.6 * len(arrivals))
    arrivals[crowd : crowd + 90] += 3000 * np.exp(-np.arange(90) / 25)
    return np.round(arrivals)
