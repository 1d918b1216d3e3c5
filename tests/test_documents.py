"""Documents that show code or name files must stay true."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from benchmarks.picture import FIGURES, MARKS, PICTURE, digest, figures, mark_of

import penstock
from penstock.cli.demo import POLICIES as SHOWN
from penstock.cli.main import COMMANDS, main
from penstock.policies.registry import POLICIES, Named
from penstock.testing import check_policy

ROOT = Path(__file__).parents[1]


def test_the_policy_in_twelve_lines_is_the_example_whole_and_keeps_the_contract() -> None:
    shown = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    example = (ROOT / "examples" / "mine.py").read_text()
    assert shown[0].strip() in example
    assert len([line for line in shown[0].splitlines() if line.strip()]) <= 12
    check_policy(Named.parse(f"{ROOT / 'examples' / 'mine.py'}:Mine").build)


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md", "docs/inside.md"]
)
def test_every_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


def test_the_readme_names_every_policy_and_the_help_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in POLICIES if f"`{name}" not in readme] == []
    for command in COMMANDS:
        assert (ROOT / "src" / "penstock" / "cli" / f"{command.replace('-', '_')}.py").exists()


def test_the_rooms_in_the_architecture_are_the_rooms_of_the_tree() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = {path.name for path in (ROOT / "src" / "penstock").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in rooms if f"  {name}/" not in text} == set()


def test_the_architecture_names_files_that_exist_and_every_paper_s_policy() -> None:
    source = ROOT / "src" / "penstock"
    text = (ROOT / "ARCHITECTURE.md").read_text() + (ROOT / "docs" / "inside.md").read_text()
    # A name without a folder follows one in the same cell.
    named = set(re.findall(r"`([a-z_0-9/]+\.py)`", text))
    files = {path.name for path in source.rglob("*.py")}
    assert {name for name in named if not ((source / name).exists() if "/" in name else name in files)} == set()
    papers = ("mst", "fugu", "plasticc", "mead", "filtered")
    assert {name for name in papers if f"policies/{name}.py" not in named} == set()


def test_the_version_is_one() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert penstock.__version__ == declared


def test_the_readmes_figures_and_its_picture_come_from_one_run_of_the_present_demo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    result, begin, end = json.loads(FIGURES.read_text()), *MARKS
    said = (ROOT / "README.md").read_text().partition(begin)[2].partition(end)[0]
    again = "run scripts/picture"
    assert said.strip() == figures(result), again
    assert mark_of(PICTURE.read_bytes()) == digest(), again
    assert [each["name"] for each in result["policies"]] == list(SHOWN), again


def test_how_far_a_calibrated_simulation_is_off_is_what_calibrate_says_of_the_live_runs_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journals = [str(path) for path in sorted((ROOT / "docs/live").glob("*.jsonl"))]
    assert main(["calibrate", *journals, "-o", str(tmp_path / "world.toml")]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("a run alone is off"))
    assert told[1:] in (ROOT / "docs/live/README.md").read_text(encoding="utf-8")
    cost, missed, total_cost, total_missed = (
        f"{abs(float(number)):.0f}" for number in re.findall(r"[-+]?\d+\.\d", told)
    )
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"up to {cost} % of its cost and {missed} points of the time missed" in readme
    assert f"cancel, by {total_cost} % and {total_missed} point" in readme
