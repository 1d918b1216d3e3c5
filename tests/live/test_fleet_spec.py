"""What a fleet's file says is right, or one line says what would be: before a host is started for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.core.errors import BadInput
from penstock.live.control_options import Wanted
from penstock.live.fleet import FleetPlan
from penstock.live.fleet_spec import read_fleet

QUERY = '[[query]]\nname = "a"\napp = "candlesticks"\nfiles = "{folder}"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "fleet.toml"
    path.write_text(text.replace("{folder}", str(folder)))
    return path


def test_a_file_says_hosts_queries_and_workloads(tmp_path: Path) -> None:
    text = 'state = "{folder}/state"\n[hosts]\nmost = 3\n' + QUERY + 'parameters = {sector = "tech"}\n'
    text += '[[workload]]\nname = "energy"\nfiles = "{folder}"\nto = "{folder}/out"\ncount = 3\n'
    spec = read_fleet(written(tmp_path, text))
    assert list(spec.queries) == ["a", "energy-house0-10s", "energy-house1-20s", "energy-house2-30s"]
    assert spec.queries["a"].checkpoint == str(tmp_path / "state" / "a")
    assert spec.queries["energy-house1-20s"].to == str(tmp_path / "out" / "energy-house1-20s")
    assert (spec.hosts.least, spec.hosts.most) == (1, 3)
    assert FleetPlan(spec, Wanted(limits=spec.hosts.limits)).job().dataflow.order == tuple(spec.queries)


def test_the_paper_s_workload_has_35_queries(tmp_path: Path) -> None:
    text = '[[workload]]\nname = "financial"\nfiles = "{folder}"\n'
    assert len(read_fleet(written(tmp_path, text)).queries) == 35


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no query: write"),
        ("hots = 1\n" + QUERY, "unknown key 'hots': did you mean 'hosts'?"),
        ("[hosts]\nmoist = 3\n" + QUERY, "unknown key in [hosts] 'moist': did you mean 'most'?"),
        ("[hosts]\nleast = 5\nmost = 3\n" + QUERY, "the least number of workers (5) is above the most (3)"),
        ("[hosts]\ncores = 0\n" + QUERY, "hosts.cores is 0: it must be from 0.1 to 1024"),
        ("[hosts]\nmemory_mb = 64\n" + QUERY, "hosts.memory_mb is 64"),
        ('[hosts]\ncores = "half"\n' + QUERY, "hosts.cores is 'half': it must be a number"),
        (QUERY + "colour = 1\n", "unknown key in [query 1] 'colour'"),
        (QUERY + QUERY, "two queries are named a: each has its own"),
        (QUERY.replace("candlesticks", "candles"), "unknown app 'candles': did you mean 'candlesticks'?"),
        (QUERY.replace("{folder}", "{folder}/none"), "no such folder"),
        (QUERY.replace('"a"', '"a b"'), "query 'a b': name must be a name: letters, digits, - and _"),
        (QUERY + 'trigger = "soon"\n', "query a: trigger 'soon' is not a duration"),
        (QUERY + 'parameters = {sektor = "tech"}\n', "unknown parameter of candlesticks (query a) 'sektor'"),
        (QUERY + "parameters = {sector = [1]}\n", "query 1.parameters"),
        (QUERY + 'to = "{folder}/fleet.toml"\n', "it is a file, and a folder is needed"),
        (QUERY + 'to = "{folder}"\n', "results of another checkpoint are there"),
        ('query = "a"\n', "query must be a list of tables, as in [[query]]"),
        ('[[workload]]\nname = "water"\nfiles = "{folder}"\n', "unknown workload 'water'"),
        ('[[workload]]\nname = "energy"\nfiles = "{folder}"\ncount = 11\n', "workload energy: count is 11"),
        ("[[query]\n", "fleet.toml is not a TOML file"),
        ("a = " + "[" * 50_000 + "]" * 50_000, "is not a TOML file: maximum recursion depth"),
        ("[hosts]\nleast = " + "9" * 5000, "is not a TOML file"),
        (QUERY.replace("candlesticks", "builtins:dict"), "app builtins:dict: its parameters cannot be told"),
        (QUERY.replace("candlesticks", ":"), "app module '' cannot be loaded: ValueError"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    assert main(["fleet", str(written(tmp_path, text))]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (QUERY + "parameters = {sector = 3}\n", "query a: sector is 3: it must be text"),
        (QUERY + 'parameters = {window_s = "x"}\n', "query a: window_s is 'x': it must be a whole number"),
        (QUERY + "parameters = {window_s = 1.5}\n", "query a: window_s is 1.5: it must be a whole number"),
        (QUERY + "parameters = {window_s = 0}\n", "query a: window_s is 0"),
        (QUERY.replace("{folder}", "{folder}/in") + 'to = "{folder}/in"\n', "files and to are both"),
        (QUERY + 'to = "{folder}/out"\ncheckpoint = "{folder}/out"\n', "to and the checkpoint are both"),
        (QUERY + '[[workload]]\nname = "energy"\nfiles = "{folder}"\ncount = 0\n', "workload energy: count is 0"),
    ],
)
def test_what_a_host_could_only_fail_on_is_refused_before_it_is_started(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(BadInput, match=says):
        read_fleet(written(tmp_path, text))


def test_two_queries_never_share_results_or_a_checkpoint(tmp_path: Path) -> None:
    one = QUERY + 'to = "{folder}/out"\n'
    with pytest.raises(BadInput, match="two queries write to"):
        read_fleet(written(tmp_path, one + one.replace('"a"', '"b"')))
    other = QUERY + 'checkpoint = "{folder}/same"\n'
    with pytest.raises(BadInput, match="two queries have the checkpoint"):
        read_fleet(written(tmp_path, other + other.replace('"a"', '"b"')))


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("fugu:upper=0.3,lower=0.5", "it must be 0 <= lower < upper <= 1"),
        ("fugu-tuned:shortest=1", "fugu-tuned:shortest is 1"),
        ("fugo", "unknown policy 'fugo': did you mean 'fugu'?"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_before_hosts_are_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, says: str
) -> None:
    assert main(["fleet", str(written(tmp_path, QUERY)), "--policy", policy]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("does", ["raise SystemExit(3)", "1 / 0"])
def test_an_app_module_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], does: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app_that_fails.py").write_text(f"{does}\n")
    spec = written(tmp_path, QUERY.replace("candlesticks", "app_that_fails:transform"))
    assert main(["fleet", str(spec)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "app module 'app_that_fails' cannot be loaded" in line
