"""The page of paper 4's claims."""

from __future__ import annotations

from penstock.reproduce.claims import Claim
from penstock.reproduce.mead_page import as_page

CLAIMS = [
    Claim("kept-map", "bounds of 15 that MAP/G/1 keeps", 15, 13, False, "the load drifts"),
    Claim("SYNT-mean-0.1-map", "SYNT, mean 0.1 s, MAP/G/1", "0.056@53.2", "0.050@51.0, 10/10", True),
    Claim("SYNT-often-mean-0.1", "SYNT, analysed every 10 s", None, "0.040@49.0, 2/2; 0.050@51.0, 2/2", None),
    Claim("SYNT-safety-0.5", "SYNT, safety 0.5", None, "5; 0.20; 52.0", None),
]


def test_each_claim_stands_on_the_page_once_and_what_fails_is_said_again_at_the_end() -> None:
    page = as_page(CLAIMS)
    assert [page.count(claim.text + " |") for claim in CLAIMS] == [1, 1, 1, 1]
    assert page.rstrip().endswith(
        "1 of 2 claims that can be judged do not hold:\n- bounds of 15 that MAP/G/1 keeps: 13, in the paper 15."
    )


def test_the_margin_stands_before_the_tables() -> None:
    page = as_page(CLAIMS)
    assert page.index("safety 0.5") < page.index("mean 0.1 s, MAP/G/1")
