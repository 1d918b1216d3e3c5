"""Where a job reads: options from a file or the environment, and passwords that nothing shows."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.cli.job_options import add_places, kafka_of
from penstock.cli.main import main
from penstock.core.errors import BadInput
from penstock.core.text import masked, one_line
from penstock.live.kafka import KafkaSource

FILE = """\
# how to reach the broker
kafka.security.protocol = SASL_SSL
kafka.sasl.jaas.config=org.x.PlainLoginModule required username="me" password="canary-1234";
kafka.ssl.truststore.password=${TRUST_PASSWORD}
"""


def given(*words: str) -> KafkaSource | None:
    parser = argparse.ArgumentParser()
    add_places(parser)
    return kafka_of(parser.parse_args(["--source", "kafka", "--broker", "h:9092", "--topic", "t", *words]))


def test_options_come_from_a_file_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka.properties").write_text(FILE)
    monkeypatch.setenv("TRUST_PASSWORD", "canary-5678")
    source = given("--options", str(tmp_path / "kafka.properties"), "--option", "kafka.client.id=me")
    assert source is not None
    assert source.client_options() == {
        "bootstrap.servers": "h:9092",
        "client.id": "me",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": 'org.x.PlainLoginModule required username="me" password="canary-1234";',
        "ssl.truststore.password": "canary-5678",
    }


def test_a_password_is_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka.properties").write_text(FILE)
    monkeypatch.setenv("TRUST_PASSWORD", "canary-5678")
    source = given("--options", str(tmp_path / "kafka.properties"))
    assert "canary" not in repr(source)
    for shown in (one_line, masked):
        assert shown("the broker refused canary-1234 and canary-5678") == "the broker refused *** and ***"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("kafka.a=1\nsecret-canary\n", "line 2: write KEY=VALUE"),
        ("kafka.a=${NOT_SET_HERE}", "line 1: kafka.a takes ${NOT_SET_HERE} from the environment"),
        ("subscribe=x", "'subscribe' follows from the address and the topic"),
    ],
)
def test_what_is_wrong_names_the_line_and_not_its_content(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "kafka.properties").write_text(content)
    with pytest.raises(BadInput) as error:
        given("--options", str(tmp_path / "kafka.properties"))
    assert said in str(error.value)
    assert "canary" not in str(error.value)


def test_a_file_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["measure", "grep", "-o", "s.parquet", "--source", "kafka", "--broker", "h:1", "--options", "nowhere"]
    assert main(words) == 2
    assert "--options nowhere cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("journal", "said"),
    [
        ("folder", "the journal folder cannot be written: it is a folder; name a file"),
        ("nowhere/run.jsonl", "the journal nowhere/run.jsonl cannot be written: its folder does not exist"),
        ("rates.csv", "rates.csv is not a journal"),
    ],
)
def test_a_journal_that_cannot_be_gone_on_with_is_refused_before_a_cluster_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], journal: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "rates.csv").write_text("time,arrivals\n")
    monkeypatch.setattr("penstock.cli.run.log_to_stderr", lambda: None)  # its handler would outlive this test's stderr
    monkeypatch.setattr("penstock.live.driver.run_job", lambda *_: pytest.fail("a cluster would be started"))
    words = ["run", "wordcount", "--files", "folder", "--min", "1", "--max", "2", "--journal", journal]
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / "rates.csv").read_text() == "time,arrivals\n"
