"""Clients that keep the server waiting, or would fill it: each is let go in time, and nobody else with them."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support import counted

from apiserver import shell
from apiserver.connections import network

QUICK: dict[str, float] = {"head_seconds": 0.6, "idle_seconds": 1, "stall_seconds": 1.0}
SLOWER: dict[str, float] = dict.fromkeys(QUICK, 3)
"""For those who are not to be cut off: they pause for a tenth of that."""
REQUEST = b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n"
PIECE = bytes(256 * 1024)
PIECES = 160
"""So many of these are more than the system holds of a connection."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """`/flood` sends 40 MiB, `/wait` answers late, `/read` reads its body; others go wrong in their ways."""
    path = scope["path"]
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        for _ in range(PIECES):
            await send({"type": "websocket.send", "bytes": PIECE})
        return
    if path == "/fail":
        raise RuntimeError("a secret")
    if path == "/nothing":
        return
    if path == "/cancelled":
        await asyncio.sleep(60)
    if path == "/wait":
        await asyncio.sleep(4)
    if path == "/read":
        while (await receive()).get("more_body"):
            pass
    body = b"" if path == "/flood" else b"ok"
    size = len(PIECE) * PIECES if path == "/flood" else len(body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
    if path == "/flood":
        for _ in range(PIECES):
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": body})


served = pytest.mark.parametrize("running", [{"app": app}], indirect=True)
quick = pytest.mark.parametrize("running", [{**QUICK, "app": app}], indirect=True)
slower = pytest.mark.parametrize("running", [{**SLOWER, "app": app}], indirect=True)


def tcp(running: Any) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.settings.port), timeout=20)


@contextlib.contextmanager
def tls(running: Any) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context(cafile=running.keys.ca)
    with context.wrap_socket(tcp(running), server_hostname="127.0.0.1") as found:
        yield found


def everything(connection: socket.socket) -> bytes:
    """All that comes until the server ends it; AssertionError if it does not."""
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except TimeoutError:
        raise AssertionError(f"not ended after {found[-200:]!r}") from None
    except OSError:
        pass
    return found


def until(connection: socket.socket, end: bytes) -> bytes:
    """What comes up to these bytes."""
    found = b""
    while not found.endswith(end) and (data := connection.recv(65536)):
        found += data
    return found


def ask(connection: socket.socket, path: bytes) -> bytes:
    connection.sendall(REQUEST % path)
    return until(connection, b"ok")


def status_in(answer: bytes) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    assert b"connection: close" in head.lower()
    found: dict[str, Any] = json.loads(body)
    assert found["kind"] == "Status"
    assert head.split()[1] == str(found["code"]).encode()
    return found


@quick
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_handshake_that_never_ends(running: Any, eventually: Any, sent: bytes) -> None:
    with tcp(running) as connection:
        connection.sendall(sent)
        everything(connection)
    eventually(lambda: running.connections.count == 0)


@served
def test_a_client_that_says_nothing(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        running.hurry(**QUICK)
        assert everything(connection) == b""
    eventually(lambda: running.connections.count == 0)


@served
def test_half_a_head(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        running.hurry(**QUICK)
        assert status_in(everything(connection))["code"] == 408
    eventually(lambda: running.connections.count == 0)


@served
def test_a_head_that_comes_byte_by_byte(running: Any, eventually: Any) -> None:
    """However lively: it counts from its beginning. Behind an answer, too."""
    with tls(running) as connection:
        assert ask(connection, b"/").endswith(b"ok")
        connection.sendall(b"GET / HTTP/1.1\r\nX: ")
        running.hurry(**QUICK)
        with contextlib.suppress(OSError):
            eventually(lambda: connection.send(b"x") and running.connections.count == 0, 30)


@served
@pytest.mark.parametrize("begin", [b"GET /", b"GET / HTTP/1.1\r\nX: ", b"GET / HTTP/1.1\r\n"])
def test_a_head_that_is_too_large(running: Any, begin: bytes) -> None:
    line = b"Y: %b\r\n" % (b"y" * 1000) if begin.endswith(b"\n") else b"y" * 1000
    with tls(running) as connection:
        connection.sendall(begin)
        with contextlib.suppress(OSError):
            for _ in range(200):
                connection.sendall(line)
        assert status_in(everything(connection))["code"] == 431


@served
def test_an_idle_connection(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        assert ask(connection, b"/").endswith(b"ok")
        connection.sendall(b"\r\n")  # no request begins with that, and it is none
        running.hurry(**QUICK)
        assert everything(connection) == b""
    eventually(lambda: running.connections.count == 0)


@served
@pytest.mark.parametrize("path", [b"/read", b"/"])
def test_a_body_that_stalls(running: Any, eventually: Any, path: bytes) -> None:
    """Whether the server waits for it or has answered already."""
    with tls(running) as connection:
        connection.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx" % path)
        if path == b"/":
            assert until(connection, b"ok").endswith(b"ok")
        running.hurry(**QUICK)
        assert not everything(connection).endswith(b"ok")
    eventually(lambda: running.connections.count == 0)


@served
@pytest.mark.parametrize(
    "rest", [b"1;" + b"x" * 1000, b"1\r\nx\r\n0\r\nX: " + b"x" * 1000, b"0\r\n" + b"X: x\r\n" * 200]
)
def test_what_is_no_body_grows_no_further_than_a_body_would(running: Any, rest: bytes) -> None:
    with tls(running) as connection:
        connection.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + rest)
        with pytest.raises(OSError):
            for _ in range(20_000):
                connection.sendall(rest[-600:])


@served
def test_a_client_that_takes_nothing(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        connection.sendall(REQUEST % b"/flood")
        running.hurry(**QUICK)
        eventually(lambda: running.connections.count == 0, 30)
        assert len(everything(connection)) < len(PIECE) * PIECES


@served
def test_a_websocket_that_takes_nothing(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        key = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n%b%b\r\n" % (upgrade, key))
        running.hurry(**QUICK)
        eventually(lambda: running.connections.count == 0, 30)
        assert everything(connection).startswith(b"HTTP/1.1 101")


@served
def test_a_client_that_says_goodbye_and_takes_nothing(running: Any, eventually: Any) -> None:
    """The system still has bytes for it."""
    connection = tcp(running)
    context = ssl.create_default_context(cafile=running.keys.ca)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            talk.do_handshake()
            break
        except ssl.SSLWantReadError:
            connection.sendall(outgoing.read())
            incoming.write(connection.recv(65536))
    talk.write(REQUEST % b"/flood")
    with contextlib.suppress(ssl.SSLWantReadError):
        talk.unwrap()
    connection.sendall(outgoing.read())
    running.hurry(**QUICK)
    eventually(lambda: running.connections.count == 0, 30)
    connection.close()


@slower
def test_the_slow_but_honest_are_not_hurt(running: Any) -> None:
    """One that takes a little at a time, for longer than any deadline; one whose answer takes long; one that sends."""
    began = time.monotonic()
    with tls(running) as connection:
        connection.sendall(REQUEST % b"/flood")
        count, left = 0, len(PIECE) * PIECES
        pause = threading.Event()
        while count < left:
            data = connection.recv(65536)
            assert data
            count += len(data)
            if time.monotonic() - began < 5:
                pause.wait(0.1)
    assert time.monotonic() - began > 4
    with tls(running) as connection:
        assert ask(connection, b"/wait").endswith(b"ok")
    with tls(running) as connection:
        connection.sendall(b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n")
        for _ in range(14):
            connection.sendall(b"x")
            pause.wait(0.3)
        assert until(connection, b"ok").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("running", [{"max_connections_per_address": 3}], indirect=True)
def test_connections_of_one_address_are_bounded(running: Any, eventually: Any) -> None:
    before = counted.number("treeplane_connections_refused_total")
    with contextlib.ExitStack() as held:
        most = [held.enter_context(tls(running)) for _ in range(3)]
        with tls(running) as one_more:
            one_more.sendall(REQUEST % b"/")
            found = status_in(everything(one_more))
            assert (found["code"], found["reason"]) == (429, "TooManyRequests")
        eventually(lambda: running.connections.count == 3)
        # Far too many are not even spoken with.
        others = [held.enter_context(tcp(running)) for _ in range(16)]
        with tcp(running) as closed:
            assert everything(closed) == b""
        for each in (*others, most[0]):
            each.close()
        eventually(lambda: running.connections.count == 2)
        with tls(running) as one_more:
            one_more.sendall(REQUEST % b"/")
            assert one_more.recv(65536).startswith(b"HTTP/1.1 200")
    eventually(lambda: running.connections.count == 0)
    assert counted.number("treeplane_connections_refused_total") - before >= 18
    assert not running.connections._by_address


def test_what_counts_as_one_client() -> None:
    assert network("192.0.2.7") == network("::ffff:192.0.2.7") == "192.0.2.7"
    assert network("2001:db8:1:2::7") == network("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert network("2001:db8:1:3::7") != network("2001:db8:1:2::7")
    assert network("") == ""


NO_HTTP = [
    b"NOTHING\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nA b: c\r\n\r\n",
    b"GET http:// HTTP/1.1\r\n\r\n",
]


@served
@pytest.mark.parametrize("sent", NO_HTTP)
def test_what_is_no_http_is_400_with_a_status(running: Any, sent: bytes) -> None:
    with tls(running) as connection:
        connection.sendall(sent)
        assert status_in(everything(connection))["code"] == 400


@served
@pytest.mark.parametrize("more", [b"", b"Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
                                  b"X: x\r\n" * 300, b"X: " + b"x" * 20_000 + b"\r\n"])  # fmt: skip
def test_what_is_no_websocket_is_refused_with_a_status(running: Any, more: bytes) -> None:
    with tls(running) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n%b\r\n" % more)
        assert status_in(everything(connection))["code"] in (400, 426)


@served
@pytest.mark.parametrize("path", [b"/fail", b"/nothing"])
def test_a_request_that_goes_wrong_is_500_with_a_status(running: Any, path: bytes) -> None:
    with tls(running) as connection:
        connection.sendall(REQUEST % path)
        found = status_in(everything(connection))
    assert (found["code"], found["reason"]) == (500, "InternalError")
    assert "secret" not in str(found)


@pytest.mark.parametrize("running", [{"app": app, "shutdown_seconds": 0}], indirect=True)
def test_a_request_that_the_end_of_the_worker_cuts_short_is_503_with_a_status(running: Any, eventually: Any) -> None:
    with tls(running) as connection:
        connection.sendall(REQUEST % b"/cancelled")
        eventually(lambda: running.worker.server_state.tasks)
        running.worker.should_exit = True
        found = status_in(everything(connection))
    assert (found["code"], found["reason"]) == (503, "ServiceUnavailable")


def test_the_servers_own_paths_go_wrong_with_a_status_too(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(shell, "fleet", broken)
    with tls(running) as connection:
        connection.sendall(REQUEST % b"/readyz")
        found = until(connection, b"}")
    assert json.loads(found.partition(b"\r\n\r\n")[2])["code"] == 500
    assert b"secret" not in found
