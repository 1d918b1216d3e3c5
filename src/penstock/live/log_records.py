"""Records of the log analysis' topics as they come: their own time, and when the line in them was sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.logs import sent_us
from penstock.core.errors import PlantError
from penstock.models.markov.chains import Floats

EARLIEST = -2  # as Spark writes it: a topic whose first records have expired does not begin at 0


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one topic, in their order."""

    time_s: Floats
    """As Kafka has it, in milliseconds: when the record was produced."""
    sent_s: Floats
    """When the line was sent, to the microsecond."""


class LogRecords:
    """Reads what is new in topics of one partition each, as a Spark job a call: a second when cold, then a tenth."""

    def __init__(self, spark: SparkSession, address: str, topics: Sequence[str]) -> None:
        self._spark, self._address = spark, address
        self._next = dict.fromkeys(topics, EARLIEST)

    def take(self) -> Mapping[str, Records]:
        """Records since the last call, by topic."""
        try:
            table = self._new().toArrow()
        except (Py4JError, PySparkException) as error:
            raise PlantError(f"the topics cannot be read: {(str(error).splitlines() or ['?'])[0][:200]}") from None
        topic, offset = np.asarray(table["topic"].to_pylist()), table["offset"].to_numpy()
        time_s, sent_s = table["time_ms"].to_numpy() / 1e3, table["sent"].to_numpy() / 1e6
        found = {}
        for name in self._next:
            own = np.flatnonzero(topic == name)
            own = own[np.argsort(offset[own], kind="stable")]
            found[name] = Records(time_s[own], sent_s[own])
            if len(own):
                self._next[name] = int(offset[own[-1]]) + 1
        return found

    def _new(self) -> DataFrame:
        options = {
            "kafka.bootstrap.servers": self._address,
            "subscribe": ",".join(self._next),
            "startingOffsets": json.dumps({name: {"0": offset} for name, offset in self._next.items()}),
            "includeHeaders": "true",
        }
        rows = self._spark.read.format("kafka").options(**options).load()
        # A line without the header is as old as its record.
        sent = F.coalesce(sent_us(), F.unix_micros("timestamp")).alias("sent")
        return rows.select("topic", "offset", F.unix_millis("timestamp").alias("time_ms"), sent)
