"""Paper 2's whole space as a Spark job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.pipeline.fugu_sweep import sweep_space
from penstock.policies.fugu_search import best
from penstock.policies.fugu_window import Window

pytestmark = pytest.mark.spark


def test_spark_finds_what_one_process_finds() -> None:
    window = replace(Window.figure_3(), bound_ms=3000).arrays()
    assert sweep_space(window, end=40_000) == best(window, 0, 40_000)
