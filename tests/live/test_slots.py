"""Executors in slots: they come late, go when told, and are lost when not."""

from __future__ import annotations

from penstock.core.allocation import Allocation
from penstock.live.slots import Slots


def names(allocation: Allocation) -> list[str]:
    return [worker.name for worker in allocation.workers]


def test_executors_fill_the_oldest_empty_slots_and_a_late_one_is_still_awaited() -> None:
    slots = Slots(Allocation.of(1))
    slots.settle(["0"])
    slots.retarget(slots.target.resized(3))
    slots.settle(["0", "1"])
    assert names(slots.running) == ["w1", "w2"]
    assert names(slots.target) == ["w1", "w2", "w3"]
    assert (slots.executor("w2"), slots.executor("w3")) == ("1", None)
    assert slots.to_end() == []


def test_a_slot_that_is_given_up_runs_until_its_executor_is_gone() -> None:
    slots = Slots(Allocation.of(2))
    slots.settle(["0", "1"])
    slots.retarget(slots.target.resized(1))
    assert names(slots.running) == ["w1", "w2"]
    assert slots.to_end() == ["1"]
    slots.tell(["1"])
    slots.settle(["0", "1"])  # the list lags
    assert (names(slots.running), slots.to_end()) == (["w1", "w2"], [])
    slots.settle(["0"])
    assert (names(slots.running), slots.lost) == (["w1"], 0)


def test_a_lost_executor_is_counted_and_its_slot_goes_to_the_one_that_replaces_it() -> None:
    slots = Slots(Allocation.of(2))
    slots.settle(["0", "1"])
    slots.settle(["0"])
    assert (names(slots.running), slots.lost) == (["w1"], 1)
    slots.settle(["0", "2"])
    assert (names(slots.running), slots.executor("w2")) == (["w1", "w2"], "2")


def test_an_executor_that_comes_after_its_slot_was_given_up_is_ended() -> None:
    slots = Slots(Allocation.of(1))
    slots.settle(["0"])
    slots.retarget(slots.target.resized(2))
    slots.retarget(slots.target.resized(1))
    slots.settle(["0", "1"])
    assert (names(slots.running), slots.to_end()) == (["w1"], ["1"])


def test_an_executor_that_was_to_leave_and_was_not_told_yet_stays_when_the_target_rises_again() -> None:
    slots = Slots(Allocation.of(4))
    slots.settle(["0", "1", "2", "3"])
    slots.retarget(slots.target.resized(3))
    assert slots.to_end() == ["3"]
    slots.retarget(slots.target.resized(4))  # before any gap between batches
    assert slots.to_end() == []
    # The slot is a new one, as a name is never used twice; the executor in it is the warm one.
    assert (names(slots.running), slots.executor("w5")) == (["w1", "w2", "w3", "w5"], "3")
    slots.settle(["0", "1", "2", "3"])
    assert (slots.to_end(), slots.lost) == ([], 0)


def test_one_that_was_told_to_go_does_not_stay_and_another_takes_its_place() -> None:
    slots = Slots(Allocation.of(2))
    slots.settle(["0", "1"])
    slots.retarget(slots.target.resized(1))
    slots.tell(slots.to_end())
    slots.retarget(slots.target.resized(2))
    slots.settle(["0", "1"])  # the list lags
    assert (names(slots.running), slots.executor("w3")) == (["w1", "w2"], None)
    slots.settle(["0", "2"])
    assert (names(slots.running), slots.executor("w3"), slots.lost) == (["w1", "w3"], "2", 0)


def test_of_several_that_are_to_leave_as_many_stay_as_are_wanted() -> None:
    slots = Slots(Allocation.of(5))
    slots.settle(list("01234"))
    slots.retarget(slots.target.resized(1))
    slots.retarget(slots.target.resized(3))
    assert slots.to_end() == ["3", "4"]
    assert [slots.executor(name) for name in names(slots.target)] == ["0", "1", "2"]


def test_one_that_came_late_stays_when_it_is_wanted_again_and_a_dying_one_takes_no_slot() -> None:
    slots = Slots(Allocation.of(1))
    slots.settle(["0", "1"])
    assert slots.to_end() == ["1"]
    slots.retarget(slots.target.resized(2))
    assert (slots.to_end(), slots.executor("w2")) == ([], "1")
    slots.retarget(slots.target.resized(1))
    slots.settle(["0", "1", "2"])
    assert slots.to_end() == ["1", "2"]
    slots.tell(["1", "2"])
    slots.retarget(slots.target.resized(3))
    slots.settle(["0", "1", "2"])
    assert [slots.executor(name) for name in names(slots.target)] == ["0", None, None]
    slots.settle(["0"])
    assert slots.lost == 0


def test_where_somebody_else_scales_what_is_there_is_the_target_and_no_name_comes_twice() -> None:
    slots = Slots(Allocation.of(2))
    slots.follow(["0", "1"], 0.0)
    slots.follow(["0", "1", "2"], 10.0)
    assert (names(slots.target), slots.asked_s("w3"), slots.pending) == (["w1", "w2", "w3"], 10.0, {})
    slots.follow(["1", "2"], 20.0)  # dynamic allocation ends the one that idles, which may be the oldest
    assert (names(slots.running), slots.lost, slots.to_end()) == (["w2", "w3"], 0, [])
    slots.follow(["1", "2", "5"], 30.0)
    assert (names(slots.running), slots.executor("w4")) == (["w2", "w3", "w4"], "5")
    slots.follow([], 40.0)
    assert names(slots.target) == []
