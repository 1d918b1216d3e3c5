"""Serves a live page on loopback: read-only, and only to pages that came from here."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.core.errors import BadInput
from penstock.report.delta import Known, delta
from penstock.report.live import LiveRun
from penstock.report.livepage import live_page

LOOPBACK = "127.0.0.1"
PORT_MAX = 65535
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    # Another page on this machine may load nothing from here, not even as a picture.
    "Cross-Origin-Resource-Policy": "same-origin",
}


class LiveServer(ThreadingHTTPServer):
    """The live page of one journal. `serve_forever` follows the journal too, whether anybody looks or not."""

    # Ctrl-C ends it at once: an answer under way is not waited for.
    daemon_threads = True

    def __init__(self, live: LiveRun, port: int, clock: Callable[[], float]) -> None:
        if not 0 <= port <= PORT_MAX:
            raise BadInput(f"port {port} is not one: give 1 … {PORT_MAX}, or 0 for any that is free")
        self._live, self._clock, self._lock = live, clock, Lock()
        try:
            super().__init__((LOOPBACK, port), _Answer)
        except OSError as error:
            said = {errno.EADDRINUSE: "in use", errno.EACCES: "not for this user"}.get(error.errno or 0)
            raise BadInput(f"port {port} is {said or error}: give another, or none for any that is free") from None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def is_own(self, host: str) -> bool:
        """Was this server asked for by its own name? A foreign name that leads here is an attack (DNS rebinding)."""
        names = (LOOPBACK, "localhost", "[::1]")
        return host.lower() in {f"{name}:{self.server_port}" for name in names} | (
            set(names) if self.server_port == 80 else set()
        )

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

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):  # one who hung up is no error of ours
            super().handle_error(request, client_address)


class _Answer(BaseHTTPRequestHandler):
    """Answers one request. Never writes anything, whatever is asked."""

    server: LiveServer
    server_version = "penstock"
    sys_version = ""
    timeout = 10.0  # one that connects and says nothing must not hold its thread for ever

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Whatever method is asked for, there is an answer to it."""
        if name.startswith("do_"):
            return self._refused
        raise AttributeError(name)

    def do_GET(self) -> None:
        if self.headers.get_all("Host") is None or not all(map(self.server.is_own, self.headers.get_all("Host", []))):
            self._send(HTTPStatus.FORBIDDEN, f"this page is at {self.server.url} and nowhere else\n")
            return
        address = urlsplit(self.path)
        if address.path == "/":
            self._send(HTTPStatus.OK, self.server.page(), "text/html")
        elif address.path == "/news":
            known = Known.parse(parse_qs(address.query).get("known", [""])[0])
            self._send(HTTPStatus.OK, self.server.news(known), "application/json")
        else:
            self._send(HTTPStatus.NOT_FOUND, "there is nothing here\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refused(self) -> None:
        self._send(HTTPStatus.METHOD_NOT_ALLOWED, "this page can only be read\n", allow="GET, HEAD")

    def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain", allow: str = "") -> None:
        content = text.encode("utf-8", errors="replace")
        self.send_response(status)
        headers = HEADERS | {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in (headers | ({"Allow": allow} if allow else {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002  the name it has in the library
        """A line for every second would bury the address."""
