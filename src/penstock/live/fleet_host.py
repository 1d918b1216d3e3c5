"""A host of a fleet: one Spark application that runs the queries it is told to, and says how they get on.

    python -m penstock.live.fleet_host SOCKET SETTINGS

Words are JSON, one a line, over a Unix socket in a folder that only its owner may enter. It is told `start` (with the
query), `stop` (at the next batch boundary) and `end`; it says `ready`, `resumed`, `stopped`, `failed` and `progress`.
It ends when the other side hangs up, so that nothing runs that nobody controls.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from pyspark.sql import SparkSession

from penstock.core.errors import PenstockError
from penstock.live.fleet_spec import QuerySpec
from penstock.live.host_process import short_name
from penstock.live.hosted_query import HostedQuery
from penstock.pipeline.session import LOCAL, session

LOOK_S = 0.1
TELL_S = 1.0
GONE = "gone"


class Channel:
    """Lines of JSON to and from whoever started this host."""

    def __init__(self, path: str) -> None:
        self._peer = socket.socket(socket.AF_UNIX)
        with short_name(Path(path)) as name:
            self._peer.connect(name)
        self._heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
        threading.Thread(target=self._listen, name="penstock-channel", daemon=True).start()

    def say(self, says: str, **more: object) -> None:
        # Reports hold UUIDs.
        self._peer.sendall((json.dumps({"says": says, **more}, default=str) + "\n").encode())

    def heard(self, wait_s: float) -> Iterator[dict[str, Any]]:
        """What was said since the last call; waits so long for a first word."""
        try:
            yield self._heard.get(timeout=wait_s)
            while True:
                yield self._heard.get_nowait()
        except Empty:
            return

    def _listen(self) -> None:
        with self._peer.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                self._heard.put(json.loads(line))
        self._heard.put({"do": GONE})


class Host:
    """The queries of one application."""

    def __init__(self, spark: SparkSession, channel: Channel) -> None:
        self._spark, self._channel = spark, channel
        self._queries: dict[str, HostedQuery] = {}
        self._told_s = 0.0

    def serve(self) -> None:
        """Until it is told to end, or nobody is there any more."""
        self._channel.say("ready")
        while True:
            for word in self._channel.heard(LOOK_S):
                if word["do"] in ("end", GONE):
                    return self._end()
                self._obey(word)
                self._look()  # to start 35 queries may take longer than a host may be silent
            self._look()

    def _obey(self, word: Mapping[str, Any]) -> None:
        if word["do"] == "start":
            self._start(QuerySpec(**word["query"]))
        elif (hosted := self._queries.get(word["query"])) is not None:
            hosted.ask_to_stop()
        else:  # it has failed in the meantime, or never came
            self._channel.say("stopped", query=word["query"])

    def _start(self, spec: QuerySpec) -> None:
        try:
            self._queries[spec.name] = HostedQuery.started(self._spark, spec)
        except Exception as error:
            self._channel.say("failed", query=spec.name, why=first_line(error))

    def _look(self) -> None:
        is_time = time.monotonic() - self._told_s >= TELL_S
        for name, hosted in list(self._queries.items()):
            why = hosted.failure()
            if why is None and hosted.take_resumed():
                self._channel.say("resumed", query=name)
            if why is None and not hosted.stops_now():
                if is_time:
                    self._tell(name, hosted)
                continue
            if why is None:
                hosted.stop()
                self._tell(name, hosted)
                self._channel.say("stopped", query=name)
            else:
                self._channel.say("failed", query=name, why=why)
            del self._queries[name]
        if is_time:
            self._channel.say("alive")
            self._told_s = time.monotonic()

    def _tell(self, name: str, hosted: HostedQuery) -> None:
        self._channel.say("progress", query=name, reports=hosted.news(), cpu_s=hosted.cpu_s(), busy=hosted.is_busy)

    def _end(self) -> None:
        for hosted in self._queries.values():
            hosted.stop()


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def warm_up(spark: SparkSession) -> None:
    """A first aggregation compiles for seconds: better before queries wait for it."""
    spark.range(2000).selectExpr("id % 7 AS key", "id").groupBy("key").count().write.format("noop").mode(
        "overwrite"
    ).save()


def main(words: list[str]) -> int:
    path, settings = words[0], json.loads(words[1])
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(path)
    try:
        with session(settings.pop("master", None) or LOCAL, "penstock fleet", settings) as spark:
            warm_up(spark)
            Host(spark, channel).serve()
    except PenstockError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    except (BrokenPipeError, ConnectionResetError):
        return 0  # nobody is there any more
    return 0


def _leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
