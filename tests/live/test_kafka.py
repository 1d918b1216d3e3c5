"""A real broker, and Spark in front of it."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import BadInput, ExternalError
from penstock.live.jars import jar_folder, kafka_jars
from penstock.live.kafka import Broker, KafkaSource
from penstock.live.resources import marked
from tests.live.processes import left_in, run_job, run_lines, started

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    """Settings with the connector; where its jars cannot be had, the tests are skipped, loudly."""
    try:
        return {"spark.jars": kafka_jars().spark_jars}
    except ExternalError as error:
        if os.environ.get("CI"):
            raise
        terminal: Any = request.config.pluginmanager.getplugin("terminalreporter")
        terminal.write_line(f"\nKAFKA IS NOT TESTED: {error}", red=True)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def broker(settings: dict[str, str]) -> Iterator[Broker]:
    with Broker.start() as running:
        yield running


def as_words(source: KafkaSource) -> dict[str, Any]:
    return {"address": source.address, "topic": source.topic, "options": dict(source.options)}


def test_a_restart_of_the_broker_loses_nothing(broker: Broker, settings: dict[str, str], tmp_path: Path) -> None:
    broker.create_topic("numbers", partitions=3)
    source = broker.source("numbers", {"startingOffsets": "earliest"})
    run_job("write", settings, as_words(source), 0)
    broker.restart()
    assert source.partitions() == 3
    seen = run_job("read", settings, as_words(source), str(tmp_path / "checkpoint"))
    assert seen == {"rows": [10_000, 10_000, 9_999 * 10_000 // 2]}


def test_lag_is_seen_without_being_told_while_a_batch_is_held_up(
    broker: Broker, settings: dict[str, str], tmp_path: Path
) -> None:
    broker.create_topic("seen", partitions=3)
    source = broker.source("seen", {"startingOffsets": "earliest"})
    begun, held, ended = run_lines("look", settings, as_words(source), str(tmp_path))
    assert begun["told"] == [[f"topic seen at {broker.address}"], []]
    assert begun["trigger"] is None  # Spark's default: one batch after the other
    assert (held["waiting"], held["came"], held["unknown"]) == (3500, 3500, [])
    assert held["rate"] > 0
    assert (ended["answered"], ended["waiting"], ended["unseen"]) == (3500, 0, 3500)
    assert ended["reported"] == 0  # by Spark's own count, as the sink does not ask for the rows


def test_the_plan_tells_of_other_sources_what_waits_or_that_nobody_knows(tmp_path: Path) -> None:
    said = {each["name"]: each for each in run_lines("plans", str(tmp_path))}
    assert {each["trigger"] for each in said.values()} == {7.0}
    assert said["files"]["told"] == [[f"files in {tmp_path}"], []]
    assert said["rate"]["told"] == [["rate"], []]
    assert said["ramp"]["told"] == [[], ["rate"]]
    assert said["socket"]["told"][0][0].startswith("socket 127.0.0.1:")


def test_a_topic_that_does_not_exist_is_one_line(broker: Broker) -> None:
    broker.create_topic("clicks")
    with pytest.raises(BadInput, match=r"^unknown topic at 127.0.0.1:\d+ 'click': did you mean 'clicks'\? .*$"):
        broker.source("click").partitions()
    with pytest.raises(BadInput, match=r"^Topic 'clicks' already exists .*$"):
        broker.create_topic("clicks")


def test_a_broker_that_nobody_listens_at_is_known_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ExternalError, match=f"^the broker {address} does not answer: Connection refused$"):
            KafkaSource(address, "clicks").partitions()


def test_a_broker_that_listens_and_stays_silent_is_known(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.admin.ANSWER_S", 4.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ExternalError, match=f"^the broker {address} does not answer within 4 s$"):
            KafkaSource(address, "clicks").partitions()


def test_options_of_security_reach_the_client(broker: Broker) -> None:
    source = broker.source("clicks", {"kafka.security.protocol": "NONSENSE"})
    with pytest.raises(BadInput, match="NONSENSE"):
        source.partitions()


def test_nothing_is_left_of_a_broker_that_ended(
    settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Broker.start() as broker:
        mark = broker._holding.mark
        assert marked(mark)
        broker.stop()
        assert not marked(mark)
    assert left_in(tmp_path) == ["lock"]


def test_jars_that_cannot_be_reached_are_one_line_and_leave_nothing(tmp_path: Path) -> None:
    code = (
        "import os; os.environ['JAVA_TOOL_OPTIONS'] = '-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1'\n"
        f"os.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}\n"
        "from penstock.core.errors import ExternalError; from penstock.live.jars import kafka_jars\n"
        "try: kafka_jars()\n"
        "except ExternalError as error: print(error)\n"
    )
    with started(["-c", code]) as process:
        out, _ = process.communicate(timeout=120)
    assert out.startswith("Kafka's jars could not be fetched: ")
    assert out.count("\n") == 1
    assert [path.name for path in (tmp_path / "penstock" / "jars").iterdir()] == ["lock"]


def test_jars_are_kept_by_version_in_the_user_s_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jar_folder().is_relative_to(tmp_path / "penstock" / "jars")


def test_what_follows_from_the_topic_may_not_be_given_twice() -> None:
    with pytest.raises(BadInput, match="'subscribe' follows from"):
        KafkaSource("host:9092", "clicks", {"subscribe": "others"})


@pytest.mark.parametrize("address", ["host", "host:", ":9092", "host:port", "127.0.0.1:99999", "127.0.0.1:0"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(BadInput, match="write host:port"):
        KafkaSource(address, "clicks").partitions()
