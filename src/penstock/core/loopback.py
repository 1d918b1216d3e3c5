"""A server on loopback that can only be read, and only by those who ask for it by its own name."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import SplitResult, urlsplit

from penstock.core.errors import BadInput

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


class LoopbackServer(ThreadingHTTPServer):
    """Answers on 127.0.0.1 alone, each request in a thread of its own."""

    # Ctrl-C ends it at once: an answer under way is not waited for.
    daemon_threads = True

    def __init__(self, port: int, answer: type[LoopbackAnswer], what: str = "port") -> None:
        if not 0 <= port <= PORT_MAX:
            raise BadInput(f"{what} {port} is not one: give 1 … {PORT_MAX}, or 0 for any that is free")
        try:
            super().__init__((LOOPBACK, port), answer)
        except OSError as error:
            said = {errno.EADDRINUSE: "in use", errno.EACCES: "not for this user"}.get(error.errno or 0)
            raise BadInput(f"{what} {port} is {said or error}: give another, or 0 for any that is free") from None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.server_port}/"

    def is_own(self, host: str) -> bool:
        """Was this server asked for by its own name? A foreign name that leads here is an attack (DNS rebinding)."""
        names = (LOOPBACK, "localhost", "[::1]")
        return host.lower() in {f"{name}:{self.server_port}" for name in names} | (
            set(names) if self.server_port == 80 else set()
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):  # one who hung up is no error of ours
            super().handle_error(request, client_address)


class LoopbackAnswer(BaseHTTPRequestHandler):
    """Answers one request. Never writes anything, whatever is asked."""

    server: LoopbackServer
    server_version = "penstock"
    sys_version = ""
    timeout = 10.0  # one that connects and says nothing must not hold its thread for ever

    def answer(self, address: SplitResult) -> None:
        """Send what lies at this address."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Callable[[], None]:
        """Whatever method is asked for, there is an answer to it."""
        if name.startswith("do_"):
            return self._refused
        raise AttributeError(name)

    def do_GET(self) -> None:
        if self.headers.get_all("Host") is None or not all(map(self.server.is_own, self.headers.get_all("Host", []))):
            self.send(HTTPStatus.FORBIDDEN, f"this page is at {self.server.url} and nowhere else\n")
            return
        try:
            address = urlsplit(self.path)
        except ValueError:  # such as http://[
            self.send(HTTPStatus.BAD_REQUEST, "this is not an address\n")
            return
        self.answer(address)

    def do_HEAD(self) -> None:
        self.do_GET()

    def send(self, status: HTTPStatus, text: str, kind: str = "text/plain", allow: str = "") -> None:
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

    def _refused(self) -> None:
        self.send(HTTPStatus.METHOD_NOT_ALLOWED, "this page can only be read\n", allow="GET, HEAD")
