"""What the demo says of its measurement; that it runs is seen by `scripts/demo` itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli import demo
from penstock.live import meter
from penstock.models.samples import read_rows, write_samples
from tests.cli.test_fit_advise import row


@pytest.mark.parametrize("limited", [True, False])
def test_workers_that_nothing_limited_are_said_before_they_are_extrapolated(
    limited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(_app: object, plan: Any, output: Path, _told: object) -> list[dict[str, Any]]:
        rows = [row(m, 0, 1e5 * m, limited=limited, flags="settling not tested") for m in plan.workers]
        write_samples(rows, output)
        return read_rows(output)

    monkeypatch.setattr(meter, "measure", measured)
    demo._measure(tmp_path)
    shown = " ".join(capsys.readouterr().out.split())
    assert "8 workers would sustain" in shown
    assert "extrapolated from 1 and 2" in shown
    assert "not known to have settled: samples of 1, 2 workers" in shown
    assert ("the workers were not limited to a quarter of a core" in shown) == (not limited)
