"""Feeds a topic or a folder at a rate that changes with time, from a thread; what was fed is counted exactly."""

from __future__ import annotations

import bisect
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Producer

Rate = Callable[[float], float]
EVERY_S = 0.25


class Feeder:
    """Rows at `rate(seconds since the start)` a second until `stop`."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._log: list[tuple[float, int]] = []
        self.fed = 0
        self.begun_s = 0.0
        """Unix time."""

    def start(self) -> None:
        self.begun_s = time.time()
        self._thread.start()

    def fed_at(self, time_s: float) -> int:
        """How much had been fed at a Unix time."""
        place = bisect.bisect_right(self._log, (time_s, sys.maxsize))
        return self._log[place - 1][1] if place else 0

    def stop(self) -> None:
        """Ends when all that was fed has arrived."""
        self._stopped.set()
        self._thread.join()

    def put(self, rows: int) -> None:
        """Put in the next rows."""
        raise NotImplementedError

    def finish(self) -> None:
        """Wait until all have arrived."""

    def _run(self) -> None:
        begun, owed = time.monotonic(), 0.0
        last_s = 0.0
        while not self._stopped.wait(EVERY_S):
            now_s = time.monotonic() - begun
            owed += self._rate(now_s) * (now_s - last_s)
            last_s = now_s
            rows = int(owed)
            if rows:
                owed -= rows
                self.put(rows)
                self.fed += rows
                self._log.append((time.time(), self.fed))
        self.finish()


class KafkaFeeder(Feeder):
    """Lines to a topic, over and over, each exactly once: the producer is idempotent, a broker may restart."""

    def __init__(self, rate: Rate, address: str, topic: str, lines: Sequence[str]) -> None:
        super().__init__(rate)
        self._topic, self._lines = topic, lines
        settings: dict[str, object] = {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 50}
        # A broker that restarts is what is tried here, and no news: rdkafka would tell of it on stderr.
        quiet = {"message.timeout.ms": 300_000, "log_level": 0, "error_cb": lambda _: None}
        self._producer = Producer(settings | quiet)
        self.counts: Counter[str] = Counter()

    def put(self, rows: int) -> None:
        for number in range(self.fed, self.fed + rows):
            line = self._lines[number % len(self._lines)]
            while True:
                try:
                    self._producer.produce(self._topic, line.encode(), on_delivery=self._delivered)
                    break
                except BufferError:
                    self._producer.poll(0.5)
            self.counts[line] += 1
        self._producer.poll(0)

    def finish(self) -> None:
        left = self._producer.flush(120)
        if left:
            raise RuntimeError(f"{left} messages were not delivered")

    @staticmethod
    def _delivered(error: object, _: object) -> None:
        if error is not None:
            raise RuntimeError(f"a message was not delivered: {error}")


class SocketFeeder(Feeder):
    """Lines to whoever connects, as `nc -lk` sends them; Spark connects once to look, and once to read."""

    def __init__(self, rate: Rate, lines: Sequence[str]) -> None:
        super().__init__(rate)
        self._lines = lines
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._peer: socket.socket | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self._peer, _ = self._server.accept()
            except OSError:
                return

    def put(self, rows: int) -> None:
        picked = (self._lines[number % len(self._lines)] for number in range(self.fed, self.fed + rows))
        if self._peer is None:
            raise RuntimeError("nobody listens to the socket")
        self._peer.sendall(("\n".join(picked) + "\n").encode())

    def close(self) -> None:
        self._server.close()


class FileFeeder(Feeder):
    """Text files that come into a folder, whole: written elsewhere, then moved."""

    def __init__(self, rate: Rate, folder: Path, lines: Sequence[str]) -> None:
        super().__init__(rate)
        self._folder, self._lines = folder, lines
        self._files = 0

    def put(self, rows: int) -> None:
        first = self.fed % len(self._lines)
        picked = [self._lines[(first + number) % len(self._lines)] for number in range(rows)]
        self._files += 1
        scratch = self._folder / f".{self._files:06}"
        scratch.write_text("\n".join(picked) + "\n", encoding="utf-8")
        scratch.replace(self._folder / f"{self._files:06}.txt")
