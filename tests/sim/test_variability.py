"""Speeds that vary: what paper 3 §II reports, met over many seeds; and recorded ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from penstock.core.errors import BadInput
from penstock.policies.static import Static
from penstock.runs.replayed import replay
from penstock.sim.derive import Given, World
from penstock.sim.recorded_speeds import RecordedSpeeds, read_speeds
from penstock.sim.variability import (
    EC2_BANDWIDTH,
    EC2_CORES,
    FUTUREGRID_CORES,
    GeneratedSpeeds,
    Observed,
    Variability,
    link,
    observed,
)

DAY = 288  # steps of 5 minutes


def over_seeds(spec: Variability, seeds: int = 60) -> tuple[float, float]:
    """Means, over many fleets of 10 machines in a day, of the part that is slow and of the part that jumps."""
    found = [of_fleet(spec, seed) for seed in range(seeds)]
    return float(np.mean([each.slow for each in found])), float(np.mean([each.jumps for each in found if each.jumps]))


def of_fleet(spec: Variability, seed: int) -> Observed:
    speeds = GeneratedSpeeds(spec, seed)
    return observed({f"w{number}": speeds.readings(f"w{number}", DAY) for number in range(10)})


class TestWhatSection2Reports:
    def test_of_ec2_cores_23_percent_are_slow_and_25_percent_jump(self) -> None:
        assert over_seeds(EC2_CORES) == pytest.approx((0.23, 0.25), abs=0.01)

    def test_of_ec2_bandwidths_22_percent_are_slow_and_20_to_30_percent_jump(self) -> None:
        slow, jumps = over_seeds(EC2_BANDWIDTH)
        assert slow == pytest.approx(0.22, abs=0.01)
        assert 0.20 < jumps < 0.30

    def test_of_futuregrid_cores_less_than_10_percent_are_slow(self) -> None:
        assert 0.05 < over_seeds(FUTUREGRID_CORES)[0] < 0.10

    def test_dips_are_far_below_the_middle_of_their_machine(self) -> None:
        readings = GeneratedSpeeds(EC2_CORES, 1).readings("w1", 2000)
        lower, upper = np.percentile(readings, [25, 75])
        assert min(readings) < lower - 1.5 * (upper - lower)  # the outliers of Figure 1(c)

    def test_machines_differ_by_more_than_chance(self) -> None:
        def spread(spec: Variability) -> float:
            fleets = [of_fleet(spec, seed).machines for seed in range(20)]
            return float(np.mean([high - low for low, high in fleets]))

        assert spread(EC2_CORES) > 1.5 * spread(replace(EC2_CORES, spread=0.0))


class TestGenerated:
    def test_a_machine_is_the_same_whoever_asks_and_in_whatever_order(self) -> None:
        one, other = GeneratedSpeeds(EC2_CORES, 7), GeneratedSpeeds(EC2_CORES, 7)
        other.speed("w9", 90_000.0)
        assert [one.speed("w2", 300.0 * step) for step in (900, 3, 0)] == [
            other.speed("w2", 300.0 * step) for step in (900, 3, 0)
        ]
        assert one.readings("w2", DAY) != GeneratedSpeeds(EC2_CORES, 8).readings("w2", DAY)
        assert one.readings("w2", DAY) != one.readings("w3", DAY)

    def test_speeds_stay_within_the_two_ranges_and_hold_for_a_step(self) -> None:
        speeds = GeneratedSpeeds(EC2_CORES, 3)
        readings = speeds.readings("w1", 1000)
        assert all(0.45 <= each <= 0.75 or 0.88 <= each <= 1.0 for each in readings)
        assert speeds.speed("w1", 599.9) == readings[1] == speeds.speed("w1", 300.0)

    def test_a_machine_without_dips_has_none(self) -> None:
        assert min(GeneratedSpeeds(replace(EC2_CORES, dips=0.0), 3).readings("w1", 1000)) >= 0.88

    def test_a_link_has_one_name_in_both_directions(self) -> None:
        assert link("w2", "w1") == link("w1", "w2") != link("w1", "w3")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"dips": 0.9}, r"dips · \(1 \+ spread\)"),
            ({"leaves": 0.0}, "leaves"),
            ({"slow": (0.7, 0.5)}, "slow, its upper bound"),
            ({"rated": (0.9, 1.1)}, "rated, its upper bound"),
        ],
    )
    def test_what_cannot_be_is_refused(self, change: dict[str, float], message: str) -> None:
        with pytest.raises(BadInput, match=message):
            replace(EC2_CORES, **change)  # type: ignore[arg-type]


class TestRecorded:
    def table(self, folder: Path, text: str) -> Path:
        path = folder / "speeds.csv"
        path.write_text(text)
        return path

    def test_a_reading_holds_until_the_next_and_rows_may_be_in_any_order(self, tmp_path: Path) -> None:
        found = read_speeds(self.table(tmp_path, "worker,time,speed\na,60,0.5\nb,0,2\na,0,1\na,120,0.8\n"))
        assert [found.speed("a", time_s) for time_s in (0, 59, 60, 119, 500)] == [1.0, 1.0, 0.5, 0.5, 0.8]
        assert found.speed("b", 1e6) == 2.0
        assert found.table == {"a": [1.0, 0.5, 0.8], "b": [2.0]}

    def test_before_the_first_reading_the_first_holds(self) -> None:
        assert RecordedSpeeds({"a": [(100.0, 0.7), (200.0, 0.9)]}).speed("a", 0.0) == 0.7

    def test_parts_of_the_best_are_as_the_paper_has_them(self) -> None:
        found = RecordedSpeeds({"a": [(0.0, 50.0), (1.0, 200.0)], "b": [(0.0, 150.0)]}).relative()
        assert found.table == {"a": [0.25, 1.0], "b": [0.75]}

    def test_seconds_since_1970_can_be_counted_from_the_first_reading(self, tmp_path: Path) -> None:
        text = "time,worker,speed\n1700000060,a,2000\n1700000000,b,1000\n1700000120,a,500\n"
        found = read_speeds(self.table(tmp_path, text)).from_zero()
        assert [found.speed("a", time_s) for time_s in (0, 119, 120)] == [2000.0, 2000.0, 500.0]

    def test_a_worker_that_was_not_recorded_is_refused_or_has_one_stand_in(self) -> None:
        readings = {"a": [(0.0, 0.5)], "b": [(0.0, 0.9)]}
        with pytest.raises(BadInput, match="unknown worker in the recorded speeds 'w1'"):
            RecordedSpeeds(readings).speed("w1", 0.0)
        stood_in = RecordedSpeeds(readings, stand_ins=True)
        found = [stood_in.speed(f"w{number}", 0.0) for number in range(20)]
        assert set(found) == {0.5, 0.9}
        assert found == [stood_in.speed(f"w{number}", 5.0) for number in range(20)]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("time,worker\n0,a\n", "has no column speed: speeds are a table of time, worker, speed"),
            ("time,worker,speed\n0,a,fast\n", "line 2: speed is 'fast': it must be a number"),
            ("time,worker,speed\n0,a,1\n1,a,0\n", "line 3: speed is 0: it must be at least 1e-09"),
            ("time,worker,speed\n-5,a,1\n", "line 2: time is -5: it must be at least 0"),
            ("time,worker,speed\n0,a,nan\n", "line 2: speed is nan"),
            ("time,worker,speed\n0,,1\n", "line 2: no worker is named"),
            ("time,worker,speed\n0,a,1\n0,a,2\n", "readings of 'a' are not in the order of time, or two"),
            ("time,worker,speed\n", "no row"),
            ("", "is empty"),
        ],
    )
    def test_a_bad_table_is_one_clear_line(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(BadInput, match=message) as raised:
            read_speeds(self.table(tmp_path, text))
        assert "speeds.csv" in str(raised.value)
        assert "\n" not in str(raised.value)

    def scenario(self, folder: Path, text: str, more: str = "") -> World:
        self.table(folder, text)
        path = folder / "world.toml"
        path.write_text(
            "duration_s = 600\n[worker]\nstart_s = 0\n[capacity]\nper_worker = 10\n"
            f'[variability]\nfile = "speeds.csv"\n{more}[[workload]]\nshape = "constant"\nrate = 100\n'
        )
        return World.of_file(path, Given())

    def test_a_scenario_has_workers_as_fast_as_they_were(self, tmp_path: Path) -> None:
        table = "time,worker,speed\n1700000000,a,1\n1700000120,a,0.5\n1700000300,a,0.25\n"
        scenario = self.scenario(tmp_path, table).scenario()
        served = [step.seen.processed for step in replay(scenario, Static(scenario.job(), 1))]
        # Ten a second and worker, far less than comes: two minutes at once, three at half, and a quarter since.
        assert [after - before for before, after in pairwise(served)][:6] == pytest.approx(
            [600, 300, 300, 300, 150, 150]
        )

    def test_operations_a_second_are_parts_of_the_best_where_a_scenario_says_so(self, tmp_path: Path) -> None:
        table = "time,worker,speed\n0,a,400\n0,b,200\n"
        found = self.scenario(tmp_path, table, "relative = true\n").scenario().speeds
        assert found is not None
        assert {found.speed(f"w{number}", 0.0) for number in range(20)} == {0.5, 1.0}
        with pytest.raises(BadInput, match=r"speeds.csv has a speed of 400: .* relative = true"):
            self.scenario(tmp_path, table)
        with pytest.raises(BadInput, match=r"variability.*dips"):
            self.scenario(tmp_path, table, "dips = 0.2\n")

    def test_no_file_is_one_clear_line(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no such file"):
            read_speeds(tmp_path / "none.csv")


def test_one_reading_of_each_machine_tells_nothing_of_changes() -> None:
    assert observed({"a": [1.0], "b": [0.5]}) == Observed(0.5, None, (0.5, 1.0))
