"""A query is on one host at a time, whatever hosts say and in whatever order they fail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.live.homes import Homes, Order, Phase, spread

HOSTS = ("w1", "w2", "w3")


def settled(places: dict[str, str]) -> Homes:
    homes = Homes.of(places)
    for order in homes.orders(HOSTS, 0.0):
        homes.resumed(order.query, order.host, 1.0)
    return homes


def test_a_query_is_started_elsewhere_only_after_its_host_said_that_it_stopped() -> None:
    homes = settled({"q": "w1"})
    homes.want({"q": "w2"})
    assert homes.orders(HOSTS, 2.0) == [Order("stop", "q", "w1")]
    assert homes.orders(HOSTS, 3.0) == []
    homes.stopped("q", "w1")
    assert homes.orders(HOSTS, 4.0) == [Order("start", "q", "w2")]
    assert homes.using("w1")  # it may have to come back
    homes.resumed("q", "w2", 5.0)
    assert (homes.moves, homes.pauses_s, homes.using("w1")) == (1, [3.0], False)


def test_one_that_fails_on_resume_goes_back_to_where_it_ran_and_that_is_said() -> None:
    homes = settled({"q": "w1"})
    homes.want({"q": "w2"})
    homes.orders(HOSTS, 2.0)
    homes.stopped("q", "w1")
    homes.orders(HOSTS, 3.0)
    assert homes.failed("q", "w2", "no such class", 4.0, HOSTS)
    assert homes.orders(HOSTS, 5.0) == [Order("start", "q", "w1")]
    assert homes.notes == ["q failed on resume on w2, and goes back to w1: no such class"]
    homes.resumed("q", "w1", 6.0)
    assert homes.moves == 0


def test_one_that_fails_where_it_ran_is_started_again_after_longer_and_longer() -> None:
    homes = settled({"q": "w1"})
    assert not homes.failed("q", "w1", "bad row", 10.0, HOSTS)
    assert homes.orders(HOSTS, 14.9) == []
    assert homes.orders(HOSTS, 15.0) == [Order("start", "q", "w1")]
    homes.failed("q", "w1", "bad row", 16.0, HOSTS)
    assert homes.orders(HOSTS, 25.9) == []
    assert homes.orders(HOSTS, 26.0)


def test_nothing_leaves_for_a_host_that_is_not_ready() -> None:
    homes = settled({"q": "w1"})
    homes.want({"q": "w4"})
    assert homes.orders(HOSTS, 2.0) == []
    assert homes.by_query["q"].phase is Phase.RUNNING


def test_what_a_host_says_late_does_not_count() -> None:
    homes = settled({"q": "w1"})
    homes.lost("w1")
    homes.want({"q": "w2"})
    homes.orders(HOSTS, 2.0)
    homes.resumed("q", "w1", 2.5)  # its last words
    homes.stopped("q", "w1")
    assert homes.on() == {"q": "w2"}
    assert homes.by_query["q"].phase is Phase.STARTING


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.sampled_from(HOSTS)), max_size=60))
def test_no_query_is_ever_started_on_two_hosts(events: list[tuple[str, int, str]]) -> None:
    homes = Homes.of(dict.fromkeys("abc", "w1"))
    running: dict[str, set[str]] = {name: set() for name in "abc"}
    for number, (query, what, host) in enumerate(events):
        if what == 0:
            homes.want({query: host})
        elif what == 1 and host in running[query]:
            homes.resumed(query, host, number)
        elif what == 2 and host in running[query] and homes.by_query[query].phase is Phase.STOPPING:
            running[query].discard(host)
            homes.stopped(query, host)
        elif what == 3 and host in running[query]:
            running[query].discard(host)
            homes.failed(query, host, "why", number, HOSTS)
        elif what == 4:
            for each in running.values():
                each.discard(host)
            homes.lost(host)
        for order in homes.orders(HOSTS, float(number)):
            if order.do == "start":
                running[order.query].add(order.host)
        assert all(len(hosts) <= 1 for hosts in running.values())
        assert homes.on() == {name: host for name, hosts in running.items() for host in hosts}


@given(st.integers(1, 30), st.integers(1, 6), st.data())
def test_queries_are_spread_evenly_and_stay_where_they_can(queries: int, hosts: int, data: st.DataObject) -> None:
    names, places = [f"q{n}" for n in range(queries)], [f"w{n}" for n in range(hosts)]
    before = {name: data.draw(st.sampled_from([*places, "gone"])) for name in names}
    found = spread(names, places, before)
    counts = [list(found.values()).count(place) for place in places]
    assert list(found) == names
    assert max(counts) <= -(-queries // hosts)
    assert spread(names, places, found) == found
