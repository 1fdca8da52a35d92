"""Plain HTTP on the HTTPS port: a sentence, and nothing that is held for who sends it."""

import http.client
import socket
import ssl
from typing import Any

import pytest

from apiserver.openssl import ServerTLS

SENTENCE = b"This is the HTTPS port"
quick = pytest.mark.parametrize("running", [{"head_seconds": 0.6}], indirect=True)


def everything(connection: socket.socket) -> bytes:
    found = b""
    try:
        while data := connection.recv(65536):
            found += data
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("begin", [b"GET /", b"DELETE /clusters/root?x=1", b"OPTIONS *", b"GET http://other/"])
def test_plain_http_gets_a_sentence(running: Any, eventually: Any, begin: bytes) -> None:
    """Whole, so that its client ends at once."""
    with socket.create_connection(("127.0.0.1", running.settings.port), timeout=20) as connection:
        connection.sendall(begin + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        body = answer.read(int(answer.headers["content-length"]))
    assert (answer.status, answer.reason) == (400, "Bad Request")
    assert "text/plain" in answer.headers["content-type"]
    assert body.startswith(SENTENCE)
    assert body.endswith(b"\n")
    eventually(lambda: running.connections.count == 0)


@quick
def test_whoever_does_not_end_has_as_long_as_for_a_handshake(running: Any, eventually: Any) -> None:
    with socket.create_connection(("127.0.0.1", running.settings.port), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        everything(connection)
        eventually(lambda: running.connections.count == 0)


@pytest.mark.parametrize("running", [{"head_seconds": 60.0}], indirect=True)
def test_who_goes_on_to_send_is_cut_off(running: Any, eventually: Any) -> None:
    with socket.create_connection(("127.0.0.1", running.settings.port), timeout=20) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).endswith(b"\n")
        connection.sendall(b"more")
        assert everything(connection) == b""
    eventually(lambda: running.connections.count == 0)


@quick
@pytest.mark.parametrize(
    "sent", [b"get / HTTP/1.1\r\n\r\n", b"GET /", b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r\n", b"SSH-2.0-x\r\n", bytes(100)]
)
def test_what_is_no_http_gets_none(running: Any, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", running.settings.port), timeout=20) as connection:
        connection.sendall(sent)
        assert SENTENCE not in everything(connection)


def test_plain_http_is_not_answered_within_a_handshake(running: Any) -> None:
    """It stands behind the first bytes of TLS: no request, whatever it looks like."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    channel = ServerTLS(running.keys).wrap_bio(incoming, outgoing)
    incoming.write(b"\x16\x03\x01")
    with pytest.raises(ssl.SSLWantReadError):
        channel.do_handshake()
    incoming.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError, match="handshake failed"):
        while True:
            try:
                channel.do_handshake()
            except ssl.SSLWantReadError:
                incoming.write(bytes(20_000))
    assert SENTENCE not in outgoing.read()
