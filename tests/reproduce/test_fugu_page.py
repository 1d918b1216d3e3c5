"""The page of paper 2's claims."""

from __future__ import annotations

from penstock.reproduce.claims import Claim
from penstock.reproduce.fugu_page import FIXED, SUMS, as_page


def claims() -> list[Claim]:
    found = [Claim("figure-3-cost", "host intervals of the example (Figure 3)", 10, 10, True)]
    for number, (world, label) in enumerate({"financial-day-1": "real load", "energy-week-1": "generated"}.items()):
        found += [
            Claim(f"{world}-{key}", f"{world} ({label}), {key}", None, f"{number}.5, 7.0 {key}", None)
            for key in (*SUMS, *FIXED)
        ]
    found.append(Claim("ours-naive-violations", "all: tuned, violations more", 0, 15.0, False, "it saves hosts"))
    return found


def test_each_run_stands_in_the_column_of_its_scenario_and_the_row_of_its_policy() -> None:
    lines = as_page(claims()).splitlines()
    assert "| | financial-day-1 | energy-week-1 * |" in lines
    assert "| tuned | 0.5, 7.0 ours | 1.5, 7.0 ours |" in lines
    assert "| (0.75, 0.2) | 0.5, 7.0 0.75-0.2 | 1.5, 7.0 0.75-0.2 |" in lines


def test_what_does_not_hold_is_said_in_its_table_with_the_reason_and_at_the_end() -> None:
    page = as_page(claims())
    assert "| all: tuned, violations more | 0 | 15 | **no** |" in page
    assert "*It saves hosts.*" in page
    assert "1 of 2 claims that can be judged do not hold:\n- all: tuned, violations more: 15, in the paper 0." in page
