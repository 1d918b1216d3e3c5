"""Serves a live page on loopback: read-only, and only to pages that came from here."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from urllib.parse import SplitResult, parse_qs

from penstock.core.loopback import LoopbackAnswer, LoopbackServer
from penstock.report.delta import Known, delta
from penstock.report.live import LiveRun
from penstock.report.livepage import live_page


class LiveServer(LoopbackServer):
    """The live page of one journal. `serve_forever` follows the journal too, whether anybody looks or not."""

    def __init__(self, live: LiveRun, port: int, clock: Callable[[], float]) -> None:
        self._live, self._clock, self._lock = live, clock, Lock()
        super().__init__(port, _Answer)

    def page(self) -> str:
        with self._lock:
            return live_page(self._live.header)

    def news(self, known: Known) -> str:
        """What a page lacks, as JSON."""
        with self._lock:
            self._live.advance()
            return json.dumps(delta(self._live, known, self._clock()), separators=(",", ":"), allow_nan=False)

    def service_actions(self) -> None:
        with self._lock:
            self._live.advance()


class _Answer(LoopbackAnswer):
    server: LiveServer

    def answer(self, address: SplitResult) -> None:
        if address.path == "/":
            self.send(HTTPStatus.OK, self.server.page(), "text/html")
        elif address.path == "/news":
            known = Known.parse(parse_qs(address.query).get("known", [""])[0])
            self.send(HTTPStatus.OK, self.server.news(known), "application/json")
        else:
            self.send(HTTPStatus.NOT_FOUND, "there is nothing here\n")
