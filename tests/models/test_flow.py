"""Messages through a placed dataflow; every expected number is worked out beside it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.dataflow import Alternate, Dataflow, Operator
from penstock.core.errors import BadInput
from penstock.models.flow import Conditions, Deployed, Links, over, over_provisioned, step
from penstock.models.flow_result import Waiting

# parse doubles messages; count and store both read all of them; store halves.
FLOW = Dataflow(
    (
        Operator("parse", 0.1, selectivity=2.0),
        Operator("count", after=("parse",), alternates=(Alternate("exact", 0.25), Alternate("rough", 0.05, value=0.7))),
        Operator("store", 0.05, selectivity=0.5, after=("parse",)),
    )
)
PLACES = {"parse": ("w1",), "count": ("w1", "w2"), "store": ("w2",)}
SPEEDS = {"w1": 1.0, "w2": 0.5}


def at(rate: float, span_s: float = 10.0, links: Links | None = None) -> Conditions:
    return Conditions(span_s, {"parse": rate}, SPEEDS, links)


class TestAStep:
    def test_messages_follow_selectivities_and_powers(self) -> None:
        done = step(Deployed(FLOW, PLACES), at(4.0))
        # parse: 4/s · 10 s = 40 of 1.0 · 10 / 0.1 = 100; twice as many go to count and store.
        # count: 80 of (1.0 + 0.5) · 10 / 0.25 = 60. store: 80 of 0.5 · 10 / 0.05 = 100.
        assert done.nominal == {"parse": 40.0, "count": 80.0, "store": 80.0}
        assert done.could == pytest.approx({"parse": 100.0, "count": 60.0, "store": 100.0})
        assert done.served == pytest.approx({"parse": 40.0, "count": 60.0, "store": 80.0})
        assert done.waiting.backlog == pytest.approx({"count": 20.0})
        assert done.waiting.under_way == {}

    def test_relative_throughput_is_results_to_those_the_arrivals_lead_to(self) -> None:
        done = step(Deployed(FLOW, PLACES), at(4.0))
        # Results: 60 · 1 + 80 · 0.5 = 100 of 80 · 1 + 80 · 0.5 = 120.
        assert (done.delivered, done.deliverable) == pytest.approx((100.0, 120.0))
        assert done.throughput == pytest.approx(10.0)
        assert done.relative == pytest.approx(100 / 120)

    def test_a_cheaper_alternate_serves_more_on_the_same_cores(self) -> None:
        done = step(Deployed(FLOW.switched({"count": "rough"}), PLACES), at(4.0))
        assert done.could["count"] == pytest.approx(1.5 * 10 / 0.05)
        assert done.relative == 1.0
        assert done.bottleneck is None

    def test_the_bottleneck_lacks_the_most_of_what_would_reach_it(self) -> None:
        done = step(Deployed(FLOW, PLACES), at(20.0))
        # parse: 200 of 100; count: 400 of 60, though only 200 reach it now: more of parse alone would bring no result.
        assert done.needs == pytest.approx({"parse": 2.0, "count": 400 / 60, "store": 4.0})
        assert done.came["count"] == pytest.approx(200.0)
        assert done.bottleneck == "count"

    def test_a_worker_that_is_not_up_serves_nothing(self) -> None:
        done = step(Deployed(FLOW, {**PLACES, "store": ("w9",)}), at(4.0))
        assert done.could["store"] == 0.0
        assert done.needs["store"] == math.inf
        assert done.bottleneck == "store"

    def test_an_operator_without_a_cost_needs_no_core(self) -> None:
        flow = Dataflow((Operator("tag"), Operator("count", 0.1, after=("tag",))))
        done = step(Deployed(flow, {"count": ("w1",)}), Conditions(10.0, {"tag": 5.0}, SPEEDS))
        assert done.relative == 1.0
        assert done.needs["tag"] == 0.0

    def test_without_arrivals_relative_throughput_is_unknown(self) -> None:
        assert step(Deployed(FLOW, PLACES), at(0.0)).relative is None


class TestSteps:
    def test_backlog_is_carried_and_worked_off(self) -> None:
        period = over([Deployed(FLOW, PLACES)] * 2, [at(4.0), at(1.0)])
        # 20 messages wait for count; then 20 new ones come: 40 of 60. Results 40 + 20 · 0.5 = 50 of 30.
        assert period.steps[1].served["count"] == pytest.approx(40.0)
        assert period.steps[1].relative == pytest.approx(50 / 30)
        assert period.relatives == pytest.approx((100 / 120, 1.0))
        assert period.relative == pytest.approx(1.0)
        assert period.waiting.total == 0.0

    def test_what_is_shed_never_comes_back(self) -> None:
        period = over([Deployed(FLOW, PLACES)] * 2, [at(4.0), at(1.0)], shed=True)
        assert [each.shed for each in period.steps] == pytest.approx([20.0, 0.0])
        assert period.steps[1].relative == 1.0
        assert period.relative == pytest.approx((100 + 30) / (120 + 30))

    def test_backlog_counts_once_in_what_is_asked(self) -> None:
        period = over([Deployed(FLOW, PLACES)] * 3, [at(4.0)] * 3, Waiting({"parse": 10.0}))
        # 10 that waited and 3 · 40 that came, doubled by parse: 260 for count, which could do 3 · 60.
        assert period.asked == pytest.approx({"parse": 130.0, "count": 260.0, "store": 260.0})
        assert period.needs["count"] == pytest.approx(260 / 180)
        assert period.bottleneck == "count"

    def test_enough_on_the_whole_but_too_late_blames_the_worst_step(self) -> None:
        period = over([Deployed(FLOW, PLACES)] * 2, [at(0.5), at(4.0)])
        # count: 10 + 80 of 120, but only 60 of 80 in the second step.
        assert max(period.needs.values()) < 1
        assert period.bottleneck == "count"

    def test_deployments_may_change_from_step_to_step(self) -> None:
        rough = Deployed(FLOW.switched({"count": "rough"}), PLACES)
        period = over([Deployed(FLOW, PLACES), rough], [at(4.0), at(4.0)])
        # The 20 that waited and 80 more, of 300.
        assert period.steps[1].served["count"] == pytest.approx(100.0)
        assert period.relative == pytest.approx(1.0)

    def test_as_many_deployments_as_steps_are_needed(self) -> None:
        with pytest.raises(BadInput, match="2 deployments for 1 steps"):
            over([Deployed(FLOW, PLACES)] * 2, [at(1.0)])


class TestLinks:
    # parse is on w1. Of count's power 1.0 is on w1 and 0.5 on w2: a third of its messages cross, and all of store's.
    def test_a_slow_link_holds_messages_back(self) -> None:
        done = step(Deployed(FLOW, PLACES), at(3.0, links=Links({("w1", "w2"): 4.0}, message_mb=1.0)))
        # 60 messages for each: 60 / 3 + 60 = 80 MB for a link of 4 · 10 = 40 MB: half of each edge's goes through.
        assert done.came["count"] == pytest.approx(30.0)
        assert done.came["store"] == pytest.approx(30.0)
        assert done.waiting.under_way == pytest.approx({("parse", "count"): 30.0, ("parse", "store"): 30.0})
        assert done.bottleneck is None  # no operator lacks power

    def test_messages_under_way_come_later(self) -> None:
        links = Links({("w1", "w2"): 4.0}, 1.0)
        period = over([Deployed(FLOW, PLACES)] * 2, [at(3.0, links=links), at(0.0, links=links)])
        # The 30 + 30 left need 10 + 30 = 40 MB: they just fit.
        assert period.steps[1].came["store"] == pytest.approx(30.0)
        assert period.waiting.total == pytest.approx(0.0, abs=1e-9)
        assert period.relative == pytest.approx(1.0)

    def test_messages_under_way_need_the_link_again(self) -> None:
        links = Links({("w1", "w2"): 4.0}, 1.0)
        period = over([Deployed(FLOW, PLACES)] * 2, [at(6.0, links=links), at(0.0, links=links)])
        # 120 each are 40 + 120 = 160 MB, of which 40 go: 30 each. The 90 left are 120 MB, a third of which goes.
        assert [each.came["store"] for each in period.steps] == pytest.approx([30.0, 30.0])
        assert period.waiting.under_way[("parse", "store")] == pytest.approx(60.0)

    def test_operators_on_one_worker_need_no_network(self) -> None:
        places = dict.fromkeys(PLACES, ("w1",))
        done = step(Deployed(FLOW, places), at(1.0, links=Links({("w1", "w2"): 0.0, ("w1", "w1"): 0.0}, 1.0)))
        assert done.relative == 1.0

    def test_a_wide_link_changes_nothing(self) -> None:
        wide = step(Deployed(FLOW, PLACES), at(4.0, links=Links({("w1", "w2"): 1e6}, 1.0)))
        assert wide == step(Deployed(FLOW, PLACES), at(4.0))


class TestOverProvisioned:
    def test_those_that_can_lose_an_instance_are_named_with_the_most_to_spare_first(self) -> None:
        places = {"parse": ("w1", "w1"), "count": ("w1", "w1", "w2"), "store": ("w1", "w1", "w1")}
        deployed, steps = Deployed(FLOW, places), [at(4.0)]
        seen = over([deployed], steps)
        # parse asks 40 · 0.1 = 4 core-seconds and keeps 10 of 20: 6 to spare. count asks 80 · 0.25 = 20 and keeps
        # 20 of 25: none to spare, and none short. store asks 4 and keeps 20 of 30.
        assert over_provisioned(deployed, steps, seen) == ("store", "parse", "count")
        assert over_provisioned(deployed, [at(4.1)], over([deployed], [at(4.1)])) == ("store", "parse")

    def test_a_target_below_one_asks_for_less(self) -> None:
        deployed = Deployed(FLOW, {**PLACES, "count": ("w1", "w1")})
        steps = [at(2.5)]
        # 50 · 0.25 = 12.5 core-seconds of 10 that one instance has; 0.8 of them are 10.
        assert over_provisioned(deployed, steps, over([deployed], steps)) == ()
        assert over_provisioned(deployed, steps, over([deployed], steps), target=0.8) == ("count",)

    def test_the_last_instance_stays(self) -> None:
        deployed, steps = Deployed(FLOW, dict.fromkeys(PLACES, ("w1",))), [at(0.0)]
        assert over_provisioned(deployed, steps, over([deployed], steps)) == ()


class TestBadInput:
    def test_rates_belong_to_sources(self) -> None:
        with pytest.raises(BadInput, match="unknown source 'count'"):
            step(Deployed(FLOW, PLACES), Conditions(10.0, {"count": 1.0}, SPEEDS))
        with pytest.raises(BadInput, match="unknown source 'prase'"):
            step(Deployed(FLOW, PLACES), Conditions(10.0, {"prase": 1.0}, SPEEDS))

    def test_instances_belong_to_operators(self) -> None:
        with pytest.raises(BadInput, match="unknown operator with instances 'cuont'"):
            Deployed(FLOW, {"cuont": ("w1",)})

    @pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
    def test_rates_speeds_and_bandwidths_are_finite_and_not_negative(self, value: float) -> None:
        with pytest.raises(BadInput, match="rate at source 'parse'"):
            Conditions(10.0, {"parse": value}, SPEEDS)
        with pytest.raises(BadInput, match="speed of worker 'w1'"):
            Conditions(10.0, {}, {"w1": value})
        with pytest.raises(BadInput, match="bandwidth from w1 to w2"):
            Links({("w1", "w2"): value}, 1.0)


amounts = st.floats(0, 50).map(lambda value: round(value, 3))


@given(rates=st.lists(amounts, min_size=1, max_size=5), speeds=st.tuples(amounts, amounts), mb_s=amounts)
@settings(max_examples=60, deadline=None)
def test_nothing_is_lost_or_made(rates: list[float], speeds: tuple[float, float], mb_s: float) -> None:
    powers, links = dict(zip(("w1", "w2"), speeds, strict=True)), Links({("w1", "w2"): mb_s}, 1.0)
    steps = [Conditions(10.0, {"parse": rate}, powers, links) for rate in rates]
    period = over([Deployed(FLOW, PLACES)] * len(steps), steps)
    served = {name: sum(each.served[name] for each in period.steps) for name in FLOW.order}
    left = period.waiting
    assert served["parse"] + left.backlog.get("parse", 0.0) == pytest.approx(sum(rates) * 10)
    for name in ("count", "store"):
        kept = left.backlog.get(name, 0.0) + left.under_way.get(("parse", name), 0.0)
        assert served[name] + kept == pytest.approx(2 * served["parse"], abs=1e-6)
    assert period.relative is None or period.relative <= 1 + 1e-9
