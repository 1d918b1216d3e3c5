"""Claims that are read back: typed, one line if wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.core.errors import BadInput
from penstock.reproduce.claims import read_claims

GOOD = {"id": "model-a", "text": "a", "paper": 1.5, "ours": 12_345, "holds": True, "why": ""}


def written(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps([GOOD, GOOD | changes]))
    return path


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ({"holds": "x"}, "claim 2.holds is 'x': it must be true or false"),
        ({"holds": [1]}, "it must be true or false"),
        ({"why": [1]}, "it must be text"),
        ({"id": 5}, "id is 5: it must be text"),
        ({"paper": {"a": 1}}, "it must be a whole number or a number or text"),
        ({"ours": float("nan")}, "holds no claims"),
        ({"other": 1}, "unknown key in"),
    ],
)
def test_a_claim_of_the_wrong_type_is_named(tmp_path: Path, changes: dict[str, Any], right: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_claims(written(tmp_path / "claims.json", **changes))
    assert right in str(caught.value)


def test_counts_stay_counts_and_control_characters_are_shown(tmp_path: Path) -> None:
    claim = read_claims(written(tmp_path / "claims.json", text="a\nb\x1b[31m"))[1]
    assert (claim.ours, type(claim.ours)) == (12_345, int)
    assert claim.text == "a\\nb\\x1b[31m"


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no regular file"):
        read_claims(tmp_path / "pipe")


@pytest.mark.parametrize("paper", ["ekf", "plasticc"])
def test_a_page_of_claims_of_another_paper_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], paper: str
) -> None:
    claims = written(tmp_path / "claims.json")
    assert main(["reproduce", paper, "--claims", str(claims), "--output", "page"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"lacks claims of {paper}" in said
