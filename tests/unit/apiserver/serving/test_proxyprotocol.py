"""What a proxy says of its client: read exactly, of nobody but who may say it, and never waited for too long."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import ssl
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.auth.pki import ensure_keys
from apiserver.proxyprotocol import LOCAL, SIGNATURE, NotProxied, Proxied, Proxies, missing, read

addresses = st.one_of(
    st.tuples(st.ip_addresses(v=4), st.ip_addresses(v=4)), st.tuples(st.ip_addresses(v=6), st.ip_addresses(v=6))
)
ports = st.integers(0, 65535)


def text(client: Any, reached: Any, port: int, to: int) -> bytes:
    return f"PROXY TCP{client.version} {client} {reached} {port} {to}\r\n".encode()


def binary(client: Any, reached: Any, port: int, to: int, more: bytes = b"") -> bytes:
    said = client.packed + reached.packed + port.to_bytes(2, "big") + to.to_bytes(2, "big") + more
    family = b"\x11" if client.version == 4 else b"\x21"
    return SIGNATURE + b"\x21" + family + len(said).to_bytes(2, "big") + said


def consumed(data: bytes) -> bytes:
    """What is read of a stream, piece by piece. Raises NotProxied, EOFError where it ends before."""
    head = b""
    while count := missing(head):
        assert count > 0
        if len(head) + count > len(data):
            raise EOFError
        head += data[len(head) : len(head) + count]
    return head


@given(addresses, ports, ports, st.binary(max_size=600), st.binary(max_size=40), st.booleans())
def test_what_was_written_is_read_and_not_a_byte_more(
    pair: Any, port: int, to: int, more: bytes, behind: bytes, old: bool
) -> None:
    head = text(*pair, port, to) if old else binary(*pair, port, to, more)
    assert consumed(head + behind) == head
    assert read(head) == Proxied(str(pair[0]), port, str(pair[1]))


@given(
    st.one_of(
        st.binary(max_size=300),
        st.binary(max_size=300).map(lambda rest: SIGNATURE + rest),
        st.binary(max_size=300).map(lambda rest: b"PROXY TCP4 " + rest),
        st.binary(max_size=300).map(lambda rest: b"PROXY UNKNOWN" + rest),
        st.text("PROXYTC46UN 0123456789abcdef.:\r\n", max_size=150).map(lambda rest: b"PROXY " + rest.encode()),
    )
)
def test_whatever_comes_is_a_header_or_is_none(data: bytes) -> None:
    try:
        head = consumed(data)
        found = read(head)
    except (NotProxied, EOFError):
        return
    assert data.startswith(head)
    assert len(head) <= 4096
    if found is not None:
        ip_address(found.host)
        ip_address(found.reached)
        assert 0 <= found.port <= 65535


@given(addresses, ports, st.data())
def test_half_a_header_asks_for_more(pair: Any, port: int, data: st.DataObject) -> None:
    for head in (text(*pair, port, port), binary(*pair, port, port, b"x" * 20)):
        cut = data.draw(st.integers(0, len(head) - 1))
        assert 0 < missing(head[:cut]) <= len(head) - cut


@pytest.mark.parametrize(
    "head",
    [
        LOCAL,
        SIGNATURE + b"\x20\x11\0\x0c" + bytes(12),  # a health check that names addresses all the same
        SIGNATURE + b"\x21\0\0\0",
        SIGNATURE + b"\x21\0\0\x05hello",
        SIGNATURE + b"\x21\x31\0\xd8" + bytes(216),
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff:: 1.2.3.4 whatever\r\n",
    ],
)
def test_what_names_no_client(head: bytes) -> None:
    assert consumed(head + b"\x16\x03\x01") == head
    assert read(head) is None


@pytest.mark.parametrize(
    "head",
    [
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03x",
        b"GET / HTTP/1.1\r\n",
        b"PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
        b"proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n          ",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1  1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n",
        b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
        b"PROXY TCP4 1.2.3.400 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 ::1 ::1 1 1 1 1 1 1 1 1 \r\n",
        b"PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",
        b"PROXY TCP4 " + b"1" * 200 + b"\r\n",
        b"PROXY UNKNOWN" + b"x" * 200 + b"\r\n",
        b"PROXY UNKNOWNX\r\n",
        SIGNATURE + b"\x11\x11\0\x0c" + bytes(12),  # version 1 in the form of version 2
        SIGNATURE + b"\x22\x11\0\x0c" + bytes(12),  # a command that does not exist
        SIGNATURE + b"\x21\x12\0\x0c" + bytes(12),  # UDP
        SIGNATURE + b"\x21\x11\0\x0b" + bytes(11),
        SIGNATURE + b"\x21\x21\0\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\xff\xff" + bytes(12),
    ],
)
def test_what_is_no_header(head: bytes) -> None:
    with pytest.raises(NotProxied):
        read(consumed(head))


def test_who_is_a_proxy() -> None:
    some = Proxies(["10.0.0.0/8", "2001:db8::/32", "::ffff:192.0.2.0/120"])
    assert [some.have(host) for host in ("10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7", "192.0.2.9")] == [True] * 4
    assert [some.have(host) for host in ("11.1.2.3", "::ffff:11.1.2.3", "2001:db9::7", "fe80::1%eth0", "?")] == [
        False
    ] * 5
    assert not Proxies([])
    with pytest.raises(ValueError):
        Proxies(["10.0.0.1/8"])


# -- over the network ---------------------------------------------------------------------------------------------


async def who(scope: Any, receive: Any, send: Any) -> None:
    """In place of the Kubernetes API: says whose request it takes it for."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": json.dumps(scope["client"])})
        await send({"type": "websocket.close"})
        return
    body = json.dumps(scope["client"]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


PROXY = "127.0.0.2"
SETTINGS = {"proxy_networks": (f"{PROXY}/32",), "app": who}
proxied = pytest.mark.parametrize("running", [SETTINGS], indirect=True)
quick = pytest.mark.parametrize("running", [{**SETTINGS, "head_seconds": 0.8}], indirect=True)
SAID = text(IPv4Address("203.0.113.7"), IPv4Address("192.0.2.1"), 4711, 6443)
NEWER = binary(IPv6Address("2001:db8::7"), IPv6Address("2001:db8::1"), 4711, 6443, b"\x04\0\x03xxx")


@contextlib.contextmanager
def tcp(running: Any, source: str = PROXY) -> Iterator[socket.socket]:
    place = ("127.0.0.1", running.settings.port)
    with socket.create_connection(place, timeout=20, source_address=(source, 0)) as found:
        yield found


def asked(running: Any, connection: socket.socket, request: bytes = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n") -> bytes:
    """All of the answer to one request over TLS."""
    context = ssl.create_default_context(cafile=running.keys.ca)
    with context.wrap_socket(connection, server_hostname="127.0.0.1") as secured:
        secured.sendall(request)
        found = b""
        while not found.endswith(b"]") and (data := secured.recv(65536)):
            found += data
        return found


def ended(connection: socket.socket) -> bool:
    """The server ends it without a word."""
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


@proxied
@pytest.mark.parametrize(
    ("head", "host"), [(SAID, "203.0.113.7"), (NEWER, "2001:db8::7"), (LOCAL, PROXY), (b"PROXY UNKNOWN\r\n", PROXY)]
)
def test_the_client_is_who_the_proxy_names(running: Any, eventually: Any, head: bytes, host: str) -> None:
    with tcp(running) as connection:
        connection.sendall(head)
        found = json.loads(asked(running, connection).partition(b"\r\n\r\n")[2])
        assert found[0] == host
    eventually(lambda: running.connections.count == 0)


@proxied
def test_a_websockets_too(running: Any) -> None:
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    with tcp(running) as connection:
        connection.sendall(SAID)
        answer = asked(running, connection, b"GET / HTTP/1.1\r\nHost: x\r\n%b%b\r\n" % (upgrade, key))
    assert answer.startswith(b"HTTP/1.1 101")
    assert answer.endswith(b'["203.0.113.7", 4711]')


@proxied
def test_a_header_that_comes_byte_by_byte(running: Any) -> None:
    with tcp(running) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in NEWER:
            connection.sendall(bytes([byte]))
        assert asked(running, connection).endswith(b'["2001:db8::7", 4711]')


@proxied
def test_a_proxy_has_to_say_it(running: Any, eventually: Any, caplog: pytest.LogCaptureFixture) -> None:
    with tcp(running) as connection, pytest.raises(OSError):
        asked(running, connection)
    for sent in (b"PROXY TCP4 nonsense" + bytes(100), SIGNATURE + b"\x21\x11\xff\xff", SIGNATURE + b"\x77\x11\0\0"):
        with tcp(running) as connection:
            connection.sendall(sent)
            assert ended(connection)
    eventually(lambda: running.connections.count == 0)
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(told) == 1
    assert told[0].startswith(f"a connection from {PROXY}, a network of --proxy-protocol-network, is refused: it does")


@proxied
@pytest.mark.parametrize("head", [SAID, NEWER, LOCAL])
def test_nobody_else_may_say_it(running: Any, head: bytes) -> None:
    with tcp(running, "127.0.0.3") as connection, pytest.raises(OSError):
        connection.sendall(head)
        asked(running, connection)
    with tcp(running, "127.0.0.3") as connection:
        assert json.loads(asked(running, connection).partition(b"\r\n\r\n")[2])[0] == "127.0.0.3"


@pytest.mark.parametrize("running", [{}], indirect=True)
def test_without_the_option_nobody_may_say_it(running: Any) -> None:
    with tcp(running) as connection, pytest.raises(OSError):
        connection.sendall(SAID)
        asked(running, connection)


@quick
@pytest.mark.parametrize("sent", [b"", b"PROXY ", SAID[:-1], NEWER[:20], SAID, SAID + b"\x16\x03\x01"])
def test_what_is_cut_off_or_never_ends_is_let_go(running: Any, eventually: Any, sent: bytes) -> None:
    """Header and handshake have one deadline."""
    with tcp(running) as connection:
        connection.sendall(sent)
        assert ended(connection)
    eventually(lambda: running.connections.count == 0)
    with tcp(running) as connection:
        connection.sendall(sent)
    eventually(lambda: running.connections.count == 0)


@pytest.mark.parametrize(
    "running", [{**SETTINGS, "max_connections_per_address": 2, "head_seconds": 60.0}], indirect=True
)
def test_connections_are_counted_by_the_address_that_is_named(running: Any, eventually: Any) -> None:
    """And those that name none yet by the proxy's."""
    context = ssl.create_default_context(cafile=running.keys.ca)

    def come(stack: contextlib.ExitStack, host: str) -> bytes:
        connection = stack.enter_context(tcp(running))
        connection.sendall(text(ip_address(host), ip_address(host), 1, 1))
        secured = stack.enter_context(context.wrap_socket(connection, server_hostname="127.0.0.1"))
        secured.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        return secured.recv(65536).split()[1]

    with contextlib.ExitStack() as stack:
        assert [come(stack, "203.0.113.7") for _ in range(3)] == [b"200", b"200", b"429"]
        assert [come(stack, "::ffff:203.0.113.7"), come(stack, "203.0.113.8")] == [b"429", b"200"]
    eventually(lambda: running.connections.count == 0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(tcp(running)) for _ in range(3)]
        assert ended(silent[2])
    eventually(lambda: running.connections.count == 0)


@proxied
def test_the_log_names_the_client(running: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    other = ensure_keys(tmp_path / "other")
    context = ssl.create_default_context(cafile=running.keys.ca)
    context.load_cert_chain(other.admin.certificate, other.admin.key)
    with caplog.at_level(logging.INFO), tcp(running) as connection:
        connection.sendall(SAID)
        with context.wrap_socket(connection, server_hostname="127.0.0.1") as secured:
            secured.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
            secured.recv(100)
    assert "a client certificate from 203.0.113.7 does not count" in caplog.text
