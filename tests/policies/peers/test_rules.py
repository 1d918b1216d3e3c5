"""Each peer's rules, by decisions that are computed by hand."""

from __future__ import annotations

import pytest

from penstock.core.observation import Batch
from penstock.policies.peers import PEERS
from penstock.policies.peers.dstream import Pid
from penstock.policies.registry import Named
from tests.policies.peers.looks import Shown, job


def test_peers_are_replayed_without_our_safety_rules_and_ours_with_them() -> None:
    assert all(Named.parse(name).rules(job()) == {} for name in PEERS)
    assert "hold_while_late_s" in Named.parse("deadline").rules(job())


# HPA (Kubernetes, autoscaling/v2): ⌈ratio · ready⌉ outside of a tenth; 4 pods or 100 % in 15 s; down after 300 s.


def test_hpa_grows_in_proportion_to_the_cpu() -> None:
    assert Shown("hpa:target=0.5", 10, span_s=15.0).see(cpu=0.9) == 18  # ⌈10 · 0.9/0.5⌉


def test_hpa_does_nothing_within_a_tenth_of_its_target() -> None:
    assert Shown("hpa:target=0.5", 10, span_s=15.0).see(cpu=0.55) == 10
    assert Shown("hpa:target=0.5", 10, span_s=15.0).see(cpu=0.56) == 12  # ⌈10 · 1.12⌉


def test_hpa_counts_pods_that_start_as_idle_so_that_none_is_asked_for_twice() -> None:
    shown = Shown("hpa:target=0.5", 4, span_s=15.0)
    assert shown.see(cpu=0.9, comes=False) == 8  # ⌈4 · 1.8⌉
    # 4 ready at 0.9 and 4 at 0: 0.45 of 0.5 is below the target: nothing more, though the ready ones are hot.
    assert shown.see(cpu=0.9) == 8


def test_hpa_adds_at_most_the_larger_of_four_pods_and_a_doubling_in_15_seconds() -> None:
    assert Shown("hpa:target=0.1", 2, span_s=15.0).see(cpu=1.0) == 6  # 20 wanted, 2 + 4 allowed
    assert Shown("hpa:target=0.1", 6, span_s=15.0).see(cpu=1.0) == 12  # 60 wanted, 2 · 6 allowed


def test_hpa_syncs_four_times_within_a_tick_of_a_minute() -> None:
    # Wanted at each sync: 20 for 2 ready ones, and what is asked for already counts as idle. 2, 6, 12, 20, 20.
    assert Shown("hpa:target=0.1", 2).see(cpu=1.0) == 20


def test_hpa_gives_up_only_what_no_wish_of_five_minutes_wanted() -> None:
    shown = Shown("hpa:target=0.5", 10)
    wanted = [shown.see(cpu=0.2) for _ in range(6)]  # ⌈10 · 0.4⌉ = 4 at once, the window holds 10 for 300 s
    assert wanted == [10, 10, 10, 10, 10, 4]


# KEDA: ⌈lag / threshold⌉ by the same windows and limits, no more than partitions.


def test_keda_asks_for_a_worker_for_every_threshold_of_lag() -> None:
    assert Shown("keda:lag_threshold=100", 8, span_s=15.0).see(backlog=1150.0) == 12


def test_keda_asks_for_no_more_workers_than_partitions() -> None:
    assert Shown("keda:lag_threshold=100,partitions=10", 8, span_s=15.0).see(backlog=1e6) == 10


def test_keda_keeps_what_is_within_a_tenth() -> None:
    assert Shown("keda:lag_threshold=100", 10, span_s=15.0).see(backlog=1090.0) == 10


def test_keda_may_ask_for_its_own_most_whatever_the_tolerance() -> None:
    shown = Shown("keda:max_replica_count=20", 19)
    assert shown.see(backlog=1e6) == 20


def test_keda_counts_idle_partitions_in_whole_thresholds() -> None:
    # 1050 // 100 is 10, which is no more than 10 partitions: ⌈10.5⌉.
    assert Shown("keda:lag_threshold=100,partitions=10", 8).see(backlog=1050.0) == 11


def test_keda_sees_the_lag_on_its_way_within_a_long_tick() -> None:
    shown = Shown("keda", 10, span_s=300.0)
    assert shown.see(backlog=100.0) == 10
    # Five minutes hold what was wanted when the lag had only begun to fall: ⌈95.5/10⌉.
    assert shown.see(backlog=10.0) == 10
    assert shown.see(backlog=10.0) == 1


# Flink: rates over 15 minutes, after 5 of rest.


def flink(workers: int, extra: str = "") -> Shown:
    return Shown(f"flink{extra}", workers)


def test_flink_waits_for_its_stabilisation_and_a_whole_window() -> None:
    shown = flink(2)
    # Minutes 1 … 5 are the stabilisation; of minutes 6 … 20 the window is full at the last.
    wanted = [shown.see(cpu=1.0, rate=40.0, done=20.0) for _ in range(20)]
    assert wanted[:19] == [2] * 19
    assert wanted[19] > 2


def test_flink_sizes_for_target_utilisation_restart_and_catch_up() -> None:
    shown = flink(4)
    for _ in range(20):
        wanted = shown.see(cpu=1.0, rate=39.0, done=39.0, backlog=1800.0)
    # True rate 39/1; up below 1800/1800 + 39/1 = 40. Needed: 1 + 39 · 300/1800 + 39/0.7 = 63.2, rounded 63.
    assert wanted == 7  # ⌈4 · 63/39⌉ = ⌈6.46⌉


def test_flink_stays_within_its_utilisation_bounds() -> None:
    shown = flink(4)
    # Busy 0.7: true rate 28/0.7 = 40; up below 28, down above 28 · 300/1800 + 28/0.4 = 74.7.
    assert {shown.see(cpu=0.7, rate=28.0) for _ in range(120)} == {4}


def test_flink_scales_in_an_hour_after_it_first_would_and_to_the_most_of_that_hour() -> None:
    shown = flink(10)
    rates = [10.0] * 40 + [20.0] * 10 + [10.0] * 31
    # Of 10 workers at 10/s each: 10/s need 10 · (10/6 + 10/0.7)/100 = 1.6, but no less than 0.4 · 10 = 4;
    # 20/s held for ten minutes raise the window's mean to 16.7/s: needed 27, still ⌈max(4, 2.7)⌉ = 4.
    wanted = [shown.see(cpu=rate / 100, rate=rate) for rate in rates]
    assert wanted[:79] == [10] * 79  # first wanted at minute 20
    assert wanted[79] == 4


def test_flink_believes_what_is_processed_while_much_waits_rather_than_busy_time() -> None:
    # FLINK-33306: busy half of the time, but not more than 20/s come through while 30 s of it wait.
    shown = flink(2)
    for _ in range(20):
        wanted = shown.see(cpu=0.5, rate=20.0, done=20.0, backlog=600.0)
    # By busy time 40/s; observed 20/s < 40/1.15. Up below 600/1800 + 20 = 20.3, rounded 20: not outside.
    assert wanted == 2
    for _ in range(2):
        wanted = shown.see(cpu=0.5, rate=30.0, done=20.0, backlog=1500.0)
    # With a minute of 30/s the mean is 20.67, above the 20/s that can be done. It takes
    # 0.83 + 20.67 · (300/1800 + 1/0.7) = 33.8, rounded 34: ⌈2 · 34/20⌉. By busy time 40/s would have been enough.
    assert wanted == 4


def test_flink_rounds_a_half_up() -> None:
    shown = flink(2)
    for _ in range(20):
        wanted = shown.see(cpu=0.5, rate=20.0, done=20.0, backlog=900.0)
    # Up below 900/1800 + 20 = 20.5, rounded 21: 20/s are too few. 0.5 + 20 · (300/1800 + 1/0.7) = 32.4: ⌈2 · 32/20⌉.
    assert wanted == 4


def test_flink_gives_up_what_has_nothing_to_do() -> None:
    shown = flink(10)
    # Who does nothing could do anything: 0.4 · 10, wanted first at minute 20 and an hour later done; then 0.4 · 4.
    assert [shown.see(cpu=0.0, rate=0.0) for _ in range(80)] == [10] * 79 + [4]
    assert [shown.see(cpu=0.0, rate=0.0) for _ in range(90)][-1] == 2


def test_flink_begins_its_hour_anew_where_nothing_is_to_be_given_up_meanwhile() -> None:
    shown = flink(4)
    # Of 4 workers at 10/s each: 12/s take ⌈4 · 19/40⌉ = 2, 21.5/s take ⌈4 · 34/40⌉ = 4, as many as there are.
    rates = [12.0] * 70 + [21.5] * 30 + [12.0] * 40
    assert {shown.see(cpu=rate / 40, rate=rate) for rate in rates} == {4}


def test_flink_scales_in_only_where_the_last_of_equal_wishes_was_outside_of_its_bounds() -> None:
    shown = flink(4)
    # 14/s take ⌈4 · 22/40⌉ = 3 and are outside: 40/s are more than 14 · (300/1800 + 1/0.4) = 37.
    # 15.5/s take ⌈4 · 25/40⌉ = 3 as well and are inside: 41. An hour that ends with those gives nothing up.
    rates = [14.0] * 40 + [15.5] * 60
    assert {shown.see(cpu=rate / 40, rate=rate) for rate in rates} == {4}


# DS2: ⌈target / (true rate / p)⌉; 20 s of warm-up; 1 decision.


def test_ds2_takes_the_true_rate_of_useful_time() -> None:
    shown = Shown("ds2", 4)
    shown.see(cpu=0.5, rate=20.0)
    shown.see(cpu=0.5, rate=20.0)  # the warm-up
    # 20/s in half of the time: 40/s true, 10/s a worker. 55/s take 6.
    assert shown.see(cpu=1.0, rate=55.0, done=40.0) == 6


def test_ds2_adds_up_what_each_worker_could_do() -> None:
    shown = Shown("ds2", 4)
    for _ in range(2):
        shown.see(cpu=(1.0, 0.5, 0.5, 0.5), rate=25.0)
    # 25/s in 2.5 workers' useful time: 10/s a worker, and not 6.25 as if all were as busy as the first.
    assert shown.see(cpu=(1.0, 0.5, 0.5, 0.5), rate=25.0) == 3


def test_ds2_overprovisions_by_its_factor_and_waits_for_its_activations() -> None:
    shown = Shown("ds2:scaling_factor=0.2,activation_time=2,warm_up_time=0", 4)
    shown.see(cpu=0.5, rate=20.0)
    assert shown.see(cpu=1.0, rate=50.0, done=40.0) == 4
    assert shown.see(cpu=1.0, rate=50.0, done=40.0) == 6  # ⌈1.2 · 5⌉


def test_ds2_corrects_by_the_sources_rate_where_it_has_converged_and_still_lags() -> None:
    shown = Shown("ds2:target_rate_ratio_threshold=1.1,warm_up_time=0", 4)
    shown.see(cpu=0.5, rate=20.0)
    # Useful time says 32/0.8 = 40/s for 40/s: 4. But 32/s come through: ⌈4 · 40/32⌉ = 5.
    assert shown.see(cpu=0.8, rate=40.0, done=32.0) == 5


# Dhalion: lag that grows by more than 1000/s; below 10,000 a fifth fewer; 120 s of rest.


def test_dhalion_grows_by_what_is_not_consumed() -> None:
    shown = Shown("dhalion", 10)
    shown.see(rate=2000.0, backlog=20_000.0)
    # 90,000 more in 60 s are 1500/s, of 3000/s consumed: ⌈10 · 1.5⌉.
    assert shown.see(rate=4500.0, done=3000.0, backlog=110_000.0) == 15


def test_dhalion_gives_up_a_fifth_where_little_waits_and_then_rests() -> None:
    shown = Shown("dhalion", 10)
    assert [shown.see(rate=10.0) for _ in range(4)] == [10, 8, 8, 6]  # ⌊0.8 · 10⌋, rest, ⌊0.8 · 8⌋


def test_dhalion_waits_while_much_waits_and_does_not_grow() -> None:
    shown = Shown("dhalion", 10)
    assert [shown.see(rate=10.0, backlog=50_000.0) for _ in range(3)] == [10, 10, 10]


# Spark's dynamic allocation: 1, 2, 4 … executors a second while tasks wait.


def test_spark_doubles_what_it_adds_with_every_second_that_tasks_wait() -> None:
    shown = Shown("spark-dynamic:partitions=40", 8, batches=True)
    # Between two batches no task waits: its target is 1, though 8 stay. Then 40 tasks on 8 slots wait
    # 5 · (1 − 8/40) = 4 s: first 9, which are 8 more than the target, so that the next adds 1 again, and then 2 and 4.
    assert shown.see(batch=(100.0, 5.0)) == 16
    fresh = Shown("spark-dynamic:partitions=40", 1, batches=True)
    assert fresh.see(batch=(100.0, 4.2)) == 16  # 1 + 1 + 2 + 4 + 8 in 4.2 · (1 − 1/40) = 4.1 s


def test_spark_never_asks_for_more_than_tasks() -> None:
    shown = Shown("spark-dynamic:partitions=20", 8, batches=True)
    assert shown.see(batch=(100.0, 50.0)) == 20
    half = Shown("spark-dynamic:partitions=20,executor_allocation_ratio=0.5", 8, batches=True)
    assert half.see(batch=(100.0, 50.0)) == 10


def test_spark_gives_up_only_executors_without_a_task_for_a_minute_and_without_shuffle_files() -> None:
    for tracking, wanted in (("true", 8), ("false", 1)):
        shown = Shown(f"spark-dynamic:partitions=8,shuffle_tracking={tracking}", 8, batches=True)
        assert shown.see(batch=(100.0, 5.0), age_s=59.0) == 8
        assert shown.see(batch=(100.0, 5.0), age_s=61.0) == wanted


def test_spark_24815_counts_the_tasks_of_all_stages() -> None:
    assert Shown("spark-dynamic:partitions=8", 8, batches=True).see(batch=(100.0, 5.0)) == 8
    # 16 tasks on 8 slots wait 5 · (1 − 8/16) = 2.5 s: 8 + 1 + 1.
    assert Shown("spark-24815:partitions=8", 8, batches=True).see(batch=(100.0, 5.0)) == 10


def test_spark_24815_gives_up_a_share_of_the_idle_and_then_waits() -> None:
    extra = "shuffle_tracking=false,executor_deallocation_ratio=0.25,executor_deallocation_timeout_s=2m"
    shown = Shown(f"spark-24815:partitions=8,{extra}", 16, batches=True)
    wanted = [shown.see(batch=(100.0, 5.0), age_s=60.0 + 60.0 * number) for number in range(4)]
    assert wanted == [12, 12, 9, 9]  # 16 − ⌈4⌉, two minutes, 12 − ⌈3⌉


def test_spark_24815_waits_for_the_idle_timeout_where_no_other_is_given() -> None:
    extra = "shuffle_tracking=false,executor_deallocation_ratio=0.25,executor_idle_timeout_s=2m"
    shown = Shown(f"spark-24815:partitions=8,{extra}", 16, batches=True)
    wanted = [shown.see(batch=(100.0, 5.0), age_s=120.0 + 60.0 * number) for number in range(4)]
    assert wanted == [12, 12, 9, 9]


# DStreams: every minute, 90 % and 30 %; the PID.


@pytest.mark.parametrize(("took_s", "wanted"), [(9.0, 5), (8.9, 4), (25.0, 7), (3.1, 4), (3.0, 3)])
def test_dstream_adds_its_ratio_above_nine_tenths_and_takes_one_below_three(took_s: float, wanted: int) -> None:
    # 25 s are 2.5 intervals, which Scala rounds to 3.
    assert Shown("dstream", 4, batches=True).see(batch=(100.0, took_s)) == wanted


def test_the_pid_follows_what_a_batch_did_less_a_fifth_of_what_was_late() -> None:
    pid = Pid()
    assert pid.note(Batch(10_000.0, 10.0, 10.0, 0.0, 0.0, 1)) is None  # the first one seeds it: 1000/s
    assert pid.note(Batch(10_000.0, 10.0, 10.0, 0.0, 9.0, 1)) is None  # and does so however often it is seen
    # 9000 in 15 s are 600/s; 5 s late at 600/s of 10 s are 300/s: 1000 − 400 − 0.2 · 300.
    assert pid.note(Batch(9_000.0, 10.0, 15.0, 0.0, 0.0, 2)) == pytest.approx(540.0)
    assert pid.note(Batch(100.0, 10.0, 10.0, 0.0, 0.0, 3)) == 100.0  # never below


def test_the_pids_rate_is_the_row_limit_of_the_next_batch() -> None:
    shown = Shown("dstream", 4, batches=True)
    shown.see(batch=(10_000.0, 8.0))
    shown.see(batch=(9_000.0, 8.0))  # 1125/s, for batches of 10 s
    assert shown.target.batch is not None
    assert shown.target.batch.rows(workers=4, oldest_s=99.0) == pytest.approx(11_250.0)


# Elastic-Scaling: ⌈N · m⌉ outside of 0.75 … 1, 10 at most.


def test_elastic_scaling_weighs_batches_by_their_age() -> None:
    shown = Shown("elastic-scaling", 4, batches=True)
    # From 1/1: (0.6 + 1.8)/(0.6 + 1) = 1.5.
    assert shown.see(batch=(100.0, 18.0)) == 6
    assert Shown("elastic-scaling", 8, batches=True).see(batch=(100.0, 18.0)) == 10  # not 12


def test_elastic_scaling_waits_while_the_cluster_is_resized() -> None:
    shown = Shown("elastic-scaling", 4, batches=True)
    shown.see(batch=(100.0, 18.0), comes=False)
    assert shown.see(batch=(100.0, 30.0)) == 6


def test_elastic_scaling_decides_once_a_batch_and_not_in_between() -> None:
    shown = Shown("elastic-scaling", 4, batches=True, span_s=10.0)
    assert shown.see(batch=(100.0, 18.0)) == 6
    assert [shown.see(batch=(100.0, 18.0), age_s=10.0 * number) for number in range(1, 4)] == [6, 6, 6]


# Amazon's: 15 minutes, 6 hours.


def test_aws_flink_doubles_after_fifteen_minutes_of_three_quarters() -> None:
    shown = Shown("aws-flink", 4)
    assert [shown.see(cpu=0.75) for _ in range(15)] == [4] * 14 + [8]


def test_aws_flink_halves_after_six_hours_below_a_tenth_but_not_below_the_first_number() -> None:
    shown = Shown("aws-flink", 4)
    for _ in range(15):
        shown.see(cpu=0.9)
    assert [shown.see(cpu=0.09) for _ in range(360)] == [8] * 359 + [4]
    assert {shown.see(cpu=0.09) for _ in range(400)} == {4}


# Dataflow: clears a backlog in 150 s; 75 % CPU without one; both after two minutes.


def test_dataflow_sizes_to_clear_its_backlog() -> None:
    shown = Shown("dataflow", 4)
    for _ in range(3):
        wanted = shown.see(cpu=1.0, rate=50.0, done=40.0, backlog=1500.0)
    assert wanted == 6  # 50 + 1500/150 = 60/s at 10/s a worker


def test_dataflow_gives_up_to_three_quarters_cpu_where_nothing_waits() -> None:
    shown = Shown("dataflow", 10)
    assert [shown.see(cpu=0.3, rate=30.0) for _ in range(3)] == [10, 10, 4]  # ⌈10 · 0.3/0.75⌉
