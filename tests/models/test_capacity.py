"""Capacity models keep the contract, and files that are none are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import BadInput
from penstock.core.job import CapacityModel
from penstock.models.capacity import Linear, Table, read_model
from penstock.testing import check_capacity_model


@pytest.mark.parametrize("model", [Linear(50.0), Linear(50.0, 2.0), Table((1, 2, 8), (10.0, 18.0, 12.0), 0.5)])
def test_every_model_keeps_the_contract(model: CapacityModel) -> None:
    check_capacity_model(model)


def test_a_table_is_flat_after_its_peak() -> None:
    falling = Table((1, 4, 8), (10.0, 30.0, 20.0))
    assert [falling.capacity(m) for m in (2, 4, 6, 8, 100)] == pytest.approx([10 + 20 / 3, 30, 30, 30, 30])


def test_batches_take_their_fixed_part() -> None:
    # 2 s of a trigger of 8 s are gone before the first row; of a trigger of 1 s nothing is left.
    assert Linear(40.0, 2.0).sustainable(1, 8.0) == 30
    assert Linear(40.0, 2.0).sustainable(1, 1.0) == 0


def test_a_model_that_breaks_the_contract_is_found() -> None:
    class Falling(Linear):
        def capacity(self, workers: float) -> float:
            return max(0.0, 10 * workers - workers**2)

    with pytest.raises(AssertionError, match="flat after its peak"):
        check_capacity_model(Falling(1.0))


@pytest.mark.parametrize(
    ("content", "model"),
    [
        ('{"model": "linear", "per_worker": 50}', Linear(50)),
        ('{"model": "table", "workers": [1, 2], "capacities": [50, 95]}', Table((1, 2), (50, 95))),
    ],
)
def test_a_model_file_is_read(tmp_path: Path, content: str, model: CapacityModel) -> None:
    path = tmp_path / "model.json"
    path.write_text(content)
    assert read_model(path) == model


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a model file"),
        ("[]", "not a model file"),
        ('{"model": "liner"}', "did you mean 'linear'"),
        ('{"model": "linear", "per_workers": 5}', "did you mean 'per_worker'"),
        ('{"model": "linear"}', "per_worker"),
        ('{"model": "linear", "per_worker": -5}', "impossible"),
        ('{"model": "linear", "per_worker": "many"}', "model.json"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=message):
        read_model(path)
