"""Guards, on a policy whose wishes are written down."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.core.allocation import Allocation, Knob
from penstock.core.errors import BadInput
from penstock.core.loop import Decision
from penstock.core.observation import Observation
from penstock.policies.guards import Guards


class Wishes:
    """Wants so many workers, one number a tick."""

    needs = frozenset({Knob.WORKERS})
    memory_s = 60.0

    def __init__(self, wishes: Sequence[int]) -> None:
        self._wishes = iter(wishes)

    def decide(self, seen: Observation) -> Decision:
        return Decision(seen.target.resized(next(self._wishes)), "as wished")


def asked(guards: Guards, wishes: Sequence[int], at_start: int = 1) -> list[int]:
    """What is asked for after each minute."""
    policy, target, counts = guards.around(Wishes(wishes)), Allocation.of(at_start), []
    for minute in range(1, len(wishes) + 1):
        seen = Observation(60.0 * minute, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, target, target)
        target = policy.decide(seen).target
        counts.append(len(target.workers))
    return counts


def test_without_guards_a_policy_has_its_way() -> None:
    assert asked(Guards(), [3, 1, 4]) == [3, 1, 4]


def test_a_cooldown_holds_every_change_for_a_while_after_the_last() -> None:
    assert asked(Guards(cooldown_s=120.0), [3, 5, 6, 6, 2]) == [3, 3, 6, 6, 2]


def test_a_change_that_was_held_does_not_start_a_cooldown() -> None:
    guards = Guards(cooldown_s=120.0, confirm_s=60.0)
    assert asked(guards, [3, 3, 3, 3]) == [1, 3, 3, 3]


def test_a_change_must_be_wanted_for_a_while() -> None:
    assert asked(Guards(confirm_s=120.0), [3, 1, 3, 3, 3]) == [1, 1, 1, 1, 3]


def test_the_window_keeps_the_most_that_was_wanted_within_it() -> None:
    # The 5 of minute 2 is forgotten at minute 5, the 3 of minute 3 at minute 6.
    assert asked(Guards(down_window_s=180.0), [2, 5, 3, 1, 1, 1], at_start=5) == [2, 5, 5, 5, 3, 1]


def test_the_window_never_delays_growth() -> None:
    assert asked(Guards(down_window_s=600.0), [2, 5, 9]) == [2, 5, 9]


def test_nothing_changes_while_warming_up() -> None:
    assert asked(Guards(warm_up_s=180.0), [4, 4, 4, 4]) == [1, 1, 4, 4]


def test_a_guard_remembers_as_long_as_it_holds() -> None:
    guarded = Guards(cooldown_s=300.0, confirm_s=100.0).around(Wishes([]))
    assert (guarded.memory_s, guarded.needs) == (460.0, frozenset({Knob.WORKERS}))


def test_a_held_decision_says_so() -> None:
    policy, one = Guards(cooldown_s=100.0).around(Wishes([2, 3])), Allocation.of(1)
    first = policy.decide(Observation(60.0, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, one, one)).target
    held = policy.decide(Observation(120.0, 60.0, 0, 0, 0, 0, 0, 0, 0, 0, one, first))
    assert held.reason == "as wished (held: cooling down, 40 s left)"


def test_a_guard_that_holds_for_less_than_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="cooldown_s=-5"):
        Guards(cooldown_s=-5.0)
