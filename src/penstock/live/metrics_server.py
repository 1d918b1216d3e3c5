"""`GET /metrics` on loopback, as Prometheus asks for it."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult

from penstock.core.loopback import LoopbackAnswer, LoopbackServer
from penstock.live.metrics import Metrics


class MetricsServer(LoopbackServer):
    """Answers from a thread of its own, until its block ends."""

    def __init__(self, metrics: Metrics, port: int) -> None:
        self.metrics = metrics
        super().__init__(port, _Answer, "metrics port")
        threading.Thread(target=self.serve_forever, name="penstock-metrics", daemon=True).start()

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()


class _Answer(LoopbackAnswer):
    server: MetricsServer

    def answer(self, address: SplitResult) -> None:
        if address.path == "/metrics":
            self.send(HTTPStatus.OK, self.server.metrics.text(), "text/plain; version=0.0.4")
        else:
            self.send(HTTPStatus.NOT_FOUND, "see /metrics\n")
