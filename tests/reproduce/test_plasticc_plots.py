"""Figures 5 to 7 of paper 3, drawn from claims."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.reproduce import plasticc
from penstock.reproduce.claims import as_json
from penstock.reproduce.plasticc_plots import FIGURES, plots
from penstock.reproduce.plasticc_runs import COMPARED, ERRORS, JOINT
from tests.reproduce.test_plasticc import EVEN, outcomes

SVG = "{http://www.w3.org/2000/svg}"


def lines(svg: str) -> list[list[float]]:
    """The heights of each line's points."""
    found = ET.fromstring(svg).iter(f"{SVG}polyline")
    return [[float(point.split(",")[1]) for point in line.attrib["points"].split()] for line in found]


def test_every_policy_has_a_bar_in_each_of_three_panels() -> None:
    figure_5 = ET.fromstring(next(plots(list(plasticc.judged(outcomes())))))
    bars = [each for each in figure_5.iter(f"{SVG}rect") if "x" in each.attrib]
    assert len(bars) == 3 * len(COMPARED | JOINT)
    assert "0.80" in [each.text for each in figure_5.iter(f"{SVG}text")]


def test_a_profit_that_falls_with_the_error_is_drawn_falling() -> None:
    # All six intervals of Figure 6, and PLAStiCC without a bias in Figure 7, at an error of 20 %.
    poor = replace(EVEN, profit=0.2)
    names = {f"{minutes} min, error 0.2, variance": poor for minutes in range(10, 70, 10)}
    found = outcomes(**names, **{"PLAStiCC, bias 0.0, error 0.2": poor})
    _, figure_6, figure_7 = plots(list(plasticc.judged(found)))
    heights = lines(figure_6)
    assert len(heights) == len(ERRORS)
    assert all(last > first for first, last in zip(heights[0], heights[-1], strict=True))
    biased, even, _ = lines(figure_7)[0], lines(figure_7)[4], lines(figure_7)[8]
    assert len(set(biased)) == 1
    assert even[-1] > even[0]


def test_one_command_writes_all_three_beside_the_page_that_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims, folder = tmp_path / "claims.json", tmp_path / "plasticc"
    claims.write_text(as_json(list(plasticc.judged(outcomes()))))
    words = ["reproduce", "plasticc", "--claims", str(claims), "--plots", str(folder), "--output", "page"]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert {each.name for each in folder.iterdir()} == set(FIGURES)
    assert all(f"](plasticc/{name})" in page for name in FIGURES)
    # Written again, they are replaced.
    assert main(words) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plasticc --quick --plots {0}", "leave --quick out"),
        ("mead --plots {0}", "--plots is for plasticc"),
        ("plasticc --claims {1} --plots {0}", "claims of a whole run"),
        ("plasticc --claims {1} --plots {1}", "File exists"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    quick = [each for each in plasticc.judged(outcomes()) if not each.id.startswith("fig6")]
    (tmp_path / "claims.json").write_text(as_json(quick))
    assert main(["reproduce", *words.format(tmp_path / "plots", tmp_path / "claims.json").split()]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1
