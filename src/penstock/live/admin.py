"""Kafka's own administration client, in a small JVM of its own: topics are made, and looked at before a query starts.

The client is in the connector's jars, so it takes every `kafka.*` option that Spark takes and adds no dependency.
A JVM with nothing but the client answers within a second; Spark's own would take three and be held by the query.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from py4j import java_gateway
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError, get_return_value

from penstock.core.errors import BadInput, ExternalError, PenstockError, unknown
from penstock.live.daemon import SPARK_HOME, java_executable
from penstock.live.jars import kafka_jars

ANSWER_S = 30.0  # one that lives answers within 1 s on a free machine; where nobody listens is known at once
REACH_S = 5.0


class Admin:
    """What may be asked of a broker."""

    def __init__(self, client: Any, jvm: Any, address: str) -> None:
        self._client = client
        self._jvm = jvm
        self._address = address

    def topics(self) -> frozenset[str]:
        with self._told():
            return frozenset(self._client.listTopics().names().get())

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; one that does not exist is an error."""
        topics = self.topics()
        if topic not in topics:
            # A company's broker may have thousands: the nearest will do.
            raise unknown(f"topic at {self._address}", topic, difflib.get_close_matches(topic, topics, 5, 0))
        with self._told():
            described = self._client.describeTopics(self._jvm.java.util.List.of(topic)).allTopicNames().get()
            return int(described.get(topic).partitions().size())

    def create_topic(self, name: str, partitions: int) -> None:
        if partitions < 1:
            raise BadInput(f"topic '{name}' with {partitions} partitions: at least 1 is needed")
        topic = self._jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, 1)
        with self._told():
            self._client.createTopics(self._jvm.java.util.List.of(topic)).all().get()

    def delete_topic(self, name: str) -> None:
        with self._told():
            self._client.deleteTopics(self._jvm.java.util.List.of(name)).all().get()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except Py4JJavaError as error:
            raise _translated(error, self._address) from None


@contextlib.contextmanager
def kafka_admin(address: str, options: Mapping[str, str] | None = None) -> Iterator[Admin]:
    """An administrator of the brokers at `host:port[,host:port]`; `options` as the client names them."""
    _reach(address)
    with _small_jvm() as jvm:
        properties = jvm.java.util.Properties()
        limits = {"default.api.timeout.ms": f"{ANSWER_S * 1e3:.0f}", "request.timeout.ms": f"{ANSWER_S * 5e2:.0f}"}
        for name, value in {"bootstrap.servers": address, **limits, **(options or {})}.items():
            properties.setProperty(name, value)
        try:
            client = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        except Py4JJavaError as error:
            raise _translated(error, address) from None
        yield Admin(client, jvm, address)


def _reach(address: str) -> None:
    """Refuse brokers that nobody listens at, before a JVM is started."""
    why = ""
    for place in address.split(","):
        host, _, port = place.strip().rpartition(":")
        # Above 65535 a socket takes what is left of it: 99999 would ask port 34463.
        if not host or not port.isdecimal() or not 0 < int(port[:6]) < 65536:
            raise BadInput(f"'{place}' is not a broker's address: write host:port")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
            return
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
    raise ExternalError(f"the broker {address} does not answer: {why}")


@contextlib.contextmanager
def _small_jvm() -> Iterator[Any]:
    jars = os.pathsep.join(map(str, kafka_jars().connector))
    (py4j,) = (SPARK_HOME / "jars").glob("py4j-*.jar")
    options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
    try:
        # It dies when its standard input closes, so it outlives nobody.
        port, token, process = launch_gateway(
            jarpath=str(py4j),
            classpath=jars,
            javaopts=options,
            die_on_exit=True,
            return_proc=True,
            enable_auth=True,
            java_path=java_executable(),
        )
    except (OSError, Py4JError, ValueError) as error:
        raise ExternalError(f"the JVM of Kafka's client did not start: {error}") from None
    # The JVM ends in a moment: telling it of each object that Python drops would only fail later, within a collection.
    parameters = GatewayParameters(port=port, auth_token=token, enable_memory_management=False)
    gateway = JavaGateway(gateway_parameters=parameters)
    # PySpark replaces py4j's reader of answers by one that asks Spark's JVM what an exception is, for every gateway.
    readers = java_gateway.get_return_value
    java_gateway.get_return_value = get_return_value
    try:
        yield gateway.jvm
    finally:
        java_gateway.get_return_value = readers
        gateway.close()
        process.stdin.close()
        process.kill()
        process.wait()


def _translated(error: Py4JJavaError, address: str) -> PenstockError:
    """Kafka's exception in one line."""
    thrown = error.java_exception
    cause = thrown.getCause() or thrown
    kind, says = cause.getClass().getSimpleName(), str(cause.getMessage())
    if kind == "TimeoutException":
        return ExternalError(f"the broker {address} does not answer within {ANSWER_S:.0f} s")
    if kind in ("TopicExistsException", "InvalidTopicException", "ConfigException"):
        return BadInput(f"{says.rstrip('.')} (broker {address})")
    return ExternalError(f"the broker {address} refuses: {kind}: {says.splitlines()[0][:200]}")
