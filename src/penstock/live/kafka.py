"""A Kafka broker of our own, and topics of any broker as Spark reads and writes them."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.core.errors import BadInput, ExternalError
from penstock.live.admin import Admin, kafka_admin
from penstock.live.daemon import HOST, SPARK_HOME, java_executable, starting
from penstock.live.jars import ASSETS, KafkaJars, kafka_jars
from penstock.live.resources import Holding, hold
from penstock.pipeline.java import need_java
from penstock.pipeline.starting import last_words

STOP_S = 30.0
_OURS = ("kafka.bootstrap.servers", "subscribe", "subscribePattern", "assign", "topic")

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}
auto.create.topics.enable=false
controlled.shutdown.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """A topic of a broker that exists, as Spark reads and writes it.

    >>> source = KafkaSource("host:9092", "clicks", {"maxOffsetsPerTrigger": "1000", "kafka.security.protocol": "SSL"})
    >>> source.writer_options()
    {'kafka.bootstrap.servers': 'host:9092', 'topic': 'clicks', 'kafka.security.protocol': 'SSL'}
    """

    address: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # passwords may be among them

    def __post_init__(self) -> None:
        for name in self.options:
            if name in _OURS:
                raise BadInput(f"the option '{name}' follows from the address and the topic: leave it out")

    def reader_options(self) -> dict[str, str]:
        """For `spark.readStream.format("kafka").options(**…)`."""
        return {"kafka.bootstrap.servers": self.address, "subscribe": self.topic, **self.options}

    def writer_options(self) -> dict[str, str]:
        """For `frame.writeStream.format("kafka").options(**…)`: what concerns the connection alone."""
        return {"kafka.bootstrap.servers": self.address, "topic": self.topic, **self._connection("")}

    def partitions(self) -> int:
        """How many partitions the topic has. Asked first: a query would wait minutes for a dead broker."""
        with self.admin() as admin:
            return admin.partitions(self.topic)

    def client_options(self) -> dict[str, str]:
        """For a client of Kafka's own."""
        return {"bootstrap.servers": self.address, **self._connection("kafka.")}

    def admin(self) -> contextlib.AbstractContextManager[Admin]:
        """Its broker's administrator, with the same options."""
        return kafka_admin(self.address, self._connection("kafka."))

    def _connection(self, prefix: str) -> dict[str, str]:
        kafka = {name: value for name, value in self.options.items() if name.startswith("kafka.")}
        return {name.removeprefix(prefix): value for name, value in kafka.items()}


def cluster_id(number: bytes) -> str:
    """Sixteen bytes as Kafka names a cluster; one in 64 would begin with a dash, which its tools take for an option.

    >>> cluster_id(bytes([0xF8] + 15 * [0]))
    'AAAAAAAAAAAAAAAAAAAAAA'
    """
    name = base64.urlsafe_b64encode(number).decode()[:22]
    return "A" + name[1:] if name.startswith("-") else name


class Broker:
    """One Kafka broker on this machine, until the block ends; then its process and its data are gone.

    >>> with Broker.start() as broker:  # doctest: +SKIP
    ...     broker.create_topic("clicks", partitions=4)
    ...     broker.address
    '127.0.0.1:40123'
    """

    def __init__(self, holding: Holding, jars: KafkaJars) -> None:
        self._holding = holding
        self._jars = jars
        self._process: subprocess.Popen[bytes] | None = None
        port, controller = _free_ports()
        self.address = f"{HOST}:{port}"
        self._properties = holding.scratch / "server.properties"
        data = holding.scratch / "data"
        self._properties.write_text(_PROPERTIES.format(host=HOST, port=port, controller=controller, folder=data))
        self.log = holding.scratch / "kafka.log"

    @classmethod
    @contextlib.contextmanager
    def start(cls) -> Iterator[Broker]:
        """A broker that answers. The first time its jars are fetched, which takes about a minute."""
        need_java()
        jars = kafka_jars()
        with hold("kafka") as holding:
            broker = cls(holding, jars)
            broker._format()
            broker.restart()
            yield broker

    def source(self, topic: str, options: Mapping[str, str] | None = None) -> KafkaSource:
        return KafkaSource(self.address, topic, options or {})

    def create_topic(self, name: str, partitions: int = 1) -> None:
        with kafka_admin(self.address) as admin:
            admin.create_topic(name, partitions)

    def stop(self) -> None:
        """Stop the broker in order; its data stay for `restart`."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Start the broker (again) on the same address and data."""
        self.stop()
        said = self.log.stat().st_size if self.log.exists() else 0
        command = self._java("-Xmx384m", "kafka.Kafka", str(self._properties))
        self._process = self._holding.start(command, self.log)
        # The port is open seconds before requests are served.
        start = starting(self._process, self.log, f"the broker {self.address}")
        start.wait(lambda: b"Kafka Server started" in self._said_since(said))

    def need_alive(self) -> None:
        """A broker that has ended by itself is a failure."""
        if self._process is not None and self._process.poll() is not None:
            raise ExternalError(f"the broker {self.address} has ended: {last_words(self.log)}")

    @property
    def spark_jars(self) -> str:
        """The connector's jars, as the setting `spark.jars` wants them."""
        return self._jars.spark_jars

    def _said_since(self, position: int) -> bytes:
        with self.log.open("rb") as log:
            log.seek(position)
            return log.read()

    def _format(self) -> None:
        """Make the data folder a broker's."""
        identity = cluster_id(uuid.uuid4().bytes)
        words = ["kafka.tools.StorageTool", "format", "-t", identity, "-c", str(self._properties)]
        log = self._holding.scratch / "format.log"
        if self._holding.start(self._java("-XX:TieredStopAtLevel=1", *words), log).wait():
            raise ExternalError(f"Kafka's data folder could not be made: {last_words(log)}")

    def _java(self, *words: str) -> list[str]:
        settings = f"-Dlog4j2.configurationFile={ASSETS / 'log4j2.properties'}"
        # Kafka logs through slf4j but brings nothing behind it; Spark's jars do, and have to come first.
        spark = SPARK_HOME / "jars"
        names = ("slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar", "log4j-api-*.jar", "log4j-core-*.jar")
        jars = [jar for name in names for jar in spark.glob(name)]
        classpath = os.pathsep.join(map(str, [*jars, *self._jars.broker]))
        return [java_executable(), "-XX:-UsePerfData", settings, "-cp", classpath, *words]


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]
