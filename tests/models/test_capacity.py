"""Capacity models keep the contract, are what their file says, and files that are none are refused."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from penstock.core.errors import BadInput
from penstock.models.capacity import About, Capacity, Fixed, linear, read_model, write_model
from penstock.models.throughput_curves import InverseTime, Linear, Quadratic, Scalability, Table
from penstock.testing import check_capacity_model


@pytest.mark.parametrize(
    "model",
    [
        linear(50.0),
        linear(50.0, 2.0),
        Capacity(Table((1, 2, 8), (10.0, 18.0, 12.0)), Fixed(0.5)),
        Capacity(InverseTime(0.11, 1.6, 0.0, 0.00004), Fixed(1.0, 0.1)),
        Capacity(Quadratic(0.6, 0.7, 0.01)),
        Capacity(Scalability(10.0, 0.05, 0.001)),
    ],
    ids=str,
)
def test_every_model_keeps_the_contract(model: Capacity) -> None:
    check_capacity_model(model)


def test_a_model_that_breaks_the_contract_is_found() -> None:
    class Falling:
        kind: ClassVar[str] = "falling"

        def rate(self, workers: float) -> float:
            return max(0.0, 10 * workers - workers**2)

    with pytest.raises(AssertionError, match="flat after its peak"):
        check_capacity_model(Capacity(Falling()))


def test_a_table_is_flat_after_its_peak() -> None:
    falling = Table((1, 4, 8), (10.0, 30.0, 20.0))
    assert [falling.rate(m) for m in (2, 4, 6, 8, 100)] == pytest.approx([10 + 20 / 3, 30, 30, 30, 30])


def test_batches_take_their_fixed_part() -> None:
    # 2 s of a trigger of 8 s are gone before the first row; of a trigger of 1 s nothing is left.
    assert linear(40.0, 2.0).sustainable(1, 8.0) == 30
    assert linear(40.0, 2.0).sustainable(1, 1.0) == 0


def test_a_fixed_time_that_grows_with_the_workers_takes_more() -> None:
    model = Capacity(Linear(40.0), Fixed(1.0, 0.5))
    assert model.sustainable(2, 8.0) == pytest.approx(80 * (1 - 2 / 8))


def test_the_fewest_workers_that_sustain_a_rate_or_none() -> None:
    model = Capacity(Table((1, 2, 4), (10.0, 18.0, 20.0)))
    assert [model.workers_for(rate) for rate in (10.0, 10.1, 19.0, 20.1)] == [1, 2, 3, None]


def test_an_interval_comes_from_the_other_fits() -> None:
    model = Capacity(Linear(10.0), others=tuple(Linear(9.0 + i / 50) for i in range(101)))
    assert model.interval(2, None, 0.90) == pytest.approx((18.2, 21.8))


def test_a_model_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    about = About("wordcount", "files", 60.0, 0.25, None, 2.0, (1, 2, 3))
    model = Capacity(InverseTime(0.1, 2.0), Fixed(1.0, 0.1), about, (InverseTime(0.1, 2.1),))
    write_model(model, tmp_path / "model.json")
    assert read_model(tmp_path / "model.json") == model


def test_a_model_file_by_hand_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text('{"curve": {"kind": "linear", "per_worker": 50}, "fixed": {"base_s": 2}}')
    assert read_model(path) == linear(50, 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a model file"),
        ("[]", "not a model file"),
        ('{"curve": {"kind": "liner"}}', "did you mean 'linear'"),
        ('{"curve": {"kind": "linear", "per_workers": 5}}', "did you mean 'per_worker'"),
        ('{"curve": {"kind": "linear"}}', r"\[linear\] needs the key per_worker"),
        ('{"curve": {"kind": "linear", "per_worker": -5}}', "per_worker is -5: it must be at least"),
        ('{"curve": {"kind": "linear", "per_worker": "many"}}', "it must be a number"),
        ('{"curve": {"kind": "linear", "per_worker": 5}, "fixd": 1}', "did you mean 'fixed'"),
        ('{"curve": {"kind": "linear", "per_worker": 5}, "penstock_model": 9}', "schema 9"),
        ('{"curve": {"kind": "table", "workers": [2, 1], "rates": [1, 2]}}', "rising"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        read_model(path)
