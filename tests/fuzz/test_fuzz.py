"""Spoilt inputs: no traceback, one line, the right exit code, in time, and nothing lost. More with `scripts/fuzz`."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from penstock.cli.main import main
from tests.fuzz import inputs
from tests.fuzz.harness import COMMANDS, OPTIONS, STOPPED, Fuzzer, judged

CASES = 2000


def test_commands_on_good_inputs_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else the cases below would all be refused for the same reason."""
    fuzzer = Fuzzer(tmp_path, seed=0)
    folder = fuzzer.case(0).folder
    monkeypatch.chdir(folder)
    good = {
        "SERIES.csv": "good.csv",
        "MODEL.json": "good.json",
        "RUN.jsonl": "good.jsonl",
        "CLAIMS.json": "claims.json",
        "FLEET.toml": "fleet.toml",
        "SAMPLES.parquet": "good.parquet",
    }
    (folder / "world.toml").write_text(inputs.toml(inputs.SCENARIO))
    (folder / "bare.toml").write_text(inputs.toml(inputs.BARE))
    rng = random.Random(0)
    (folder / "gaps.csv").write_text("\n".join(repr(rng.expovariate(1.0)) for _ in range(300)))
    good |= {"SERIES.parquet": "good.csv", "WORLD.toml": "world.toml", "GAPS.csv": "gaps.csv", "BARE.toml": "bare.toml"}
    for words in [*(command for command, _ in COMMANDS), *(start for start in OPTIONS if "calibrate" not in start)]:
        call = [good.get(word, word) for word in words.split()]
        if call[0] in STOPPED:
            capsys.readouterr()
            assert main(list(dict.fromkeys([*call, *STOPPED[call[0]]]))) == 2, words
            assert "unknown policy 'none'" in capsys.readouterr().err, words
        else:
            assert main(call) == 0, words


@pytest.mark.slow
def test_spoilt_inputs_cost_one_line_each(tmp_path: Path) -> None:
    fuzzer = Fuzzer(tmp_path, seed=1)
    wrong = []
    for number in range(CASES):
        case = fuzzer.case(number)
        verdict = judged(case)
        if verdict.wrong:
            wrong.append(
                f"case {number}: {verdict.wrong}: penstock {shlex.join(case.words)[:200]}: {verdict.said[-500:]}"
            )
    assert wrong == []
