"""The server of the live page: read-only, on loopback, to its own page alone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.core.errors import BadInput
from penstock.report.live import LiveRun
from penstock.report.server import LiveServer

Made = Callable[..., Any]
Ask = Callable[..., http.client.HTTPResponse]


@pytest.fixture
def server(tmp_path: Path, made: Made) -> Iterator[LiveServer]:
    path = made(count=30, signals=True).journal(tmp_path / "run.jsonl")
    with LiveRun(path) as live, LiveServer(live, 0, path.stat().st_mtime.__float__) as started:
        thread = Thread(target=started.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield started
        started.shutdown()
        thread.join()


@pytest.fixture
def ask(server: LiveServer) -> Iterator[Ask]:
    opened = []

    def at(path: str = "/", method: str = "GET", host: str | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
        opened.append(connection)
        connection.putrequest(method, path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        return connection.getresponse()

    yield at
    for connection in opened:
        connection.close()


def test_the_page_and_its_news_are_served(ask: Ask) -> None:
    page = ask("/")
    assert (page.status, page.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    assert b"steady on orders" in page.read()
    news = json.loads(ask("/news").read())
    assert (news["steps"], news["share"], news["silent_s"]) == (30, 1.0, 0.0)
    assert "run" not in json.loads(ask(f"/news?known={news['known']}").read())


def test_answers_may_be_neither_kept_nor_framed_nor_loaded_by_others(ask: Ask) -> None:
    reply = ask("/news")
    wanted = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}
    assert {name: reply.getheader(name) for name in wanted} == wanted
    assert reply.getheader("Cross-Origin-Resource-Policy") == "same-origin"
    assert reply.getheader("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_its_own_names_are_answered(ask: Ask, server: LiveServer, name: str) -> None:
    assert ask("/news", host=f"{name}:{server.server_port}").status == 200


@pytest.mark.parametrize("path", ["/", "/news"])
@pytest.mark.parametrize(
    "host", ["evil.example:{}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "0.0.0.0:{}", "127.1:{}", ""]
)
def test_foreign_hosts_are_refused(ask: Ask, server: LiveServer, path: str, host: str) -> None:
    reply = ask(path, host=host.format(server.server_port))
    assert reply.status == 403
    assert b"orders" not in reply.read()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_it_can_only_be_read(ask: Ask, method: str) -> None:
    reply = ask("/", method=method)
    assert (reply.status, reply.getheader("Allow")) == (405, "GET, HEAD")


def test_a_head_is_a_page_without_its_body(ask: Ask) -> None:
    reply = ask("/", method="HEAD")
    assert reply.status == 200
    assert int(reply.getheader("Content-Length") or 0) > 10_000
    assert reply.read() == b""


@pytest.mark.parametrize("path", ["/run.jsonl", "/../run.jsonl", "/news/", "//evil.example/", "/favicon.ico"])
def test_there_is_nothing_else(ask: Ask, path: str) -> None:
    assert ask(path).status == 404


def test_what_is_no_address_is_a_bad_request(ask: Ask, capfd: pytest.CaptureFixture[str]) -> None:
    assert ask("http://[").status == 400
    assert ask("/").status == 200
    assert capfd.readouterr().err == ""


def test_it_listens_on_loopback_alone(server: LiveServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_a_port_in_use_is_bad_input(server: LiveServer, tmp_path: Path, made: Made) -> None:
    with LiveRun(made(count=3).journal(tmp_path / "other.jsonl")) as live:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(BadInput, match=f"port {taken.getsockname()[1]} is in use"):
                LiveServer(live, taken.getsockname()[1], float)
        with pytest.raises(BadInput, match=f"port {server.server_port} is in use"):
            LiveServer(live, server.server_port, float)
        with pytest.raises(BadInput, match="port 70000 is not one"):
            LiveServer(live, 70000, float)
