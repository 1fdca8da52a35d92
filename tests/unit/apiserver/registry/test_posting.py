"""Questions to webhooks: where they may go, and what is made of the answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.liar import Asked, Liar

from apiserver.registry import posting
from apiserver.registry.outbound import Outbound, trusting
from apiserver.registry.posting import Failed, PostTarget, post


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
     "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]",
     "[64:ff9b:1::a9fe:a9fe]", "[fec0::1]", "[::7f00:1]", "[2001:db8::1]"],
)  # fmt: skip
def test_what_is_inside_is_not_reached(address: str) -> None:
    with pytest.raises(Failed, match="is not allowed: it is not of the public internet") as raised:
        post(Outbound(), PostTarget(f"https://{address}/x"), b"{}")
    assert not raised.value.remote


def test_a_name_is_checked_by_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        assert host == "harmless.example.com"
        return [(0, 0, 0, "", ("169.254.169.254", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(Failed, match=r"address harmless\.example\.com is not allowed") as raised:
        post(Outbound(["10.0.0.0/8"]), PostTarget("https://harmless.example.com/"), b"{}")
    assert "169.254" not in str(raised.value), "what a name stands for in this network is not the tenant's to learn"


def test_given_addresses_are_checked_too() -> None:
    target = PostTarget("https://a.b.svc:443/", at=(("10.0.0.1", 1),))
    with pytest.raises(Failed, match=r"10\.0\.0\.1 is not allowed"):
        post(Outbound(["192.168.0.0/16"]), target, b"{}")


def test_a_network_that_is_none() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        Outbound(["nonsense"])


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_one_who_says_nothing_is_left_in_time(silent: int) -> None:
    allowed = Outbound(["127.0.0.0/8"])
    with pytest.raises(Failed, match=r'Post "https://127.0.0.1:\d+/x\?timeout=30s": deadline exceeded') as raised:
        post(allowed, PostTarget(f"https://127.0.0.1:{silent}/x"), b"{}", seconds=0.2)
    assert raised.value.remote


@pytest.mark.parametrize("drop", [b"X", b"X: y\r\n"])
def test_one_who_answers_drop_by_drop_is_left_in_time(tmp_path: Path, drop: bytes) -> None:
    def dripping(asked: Asked) -> None:
        asked.send(b"HTTP/1.1 200 OK\r\n")
        while not asked.ended.wait(0.05):
            asked.send(drop)

    hook = Liar(tmp_path, dripping)
    try:
        begun = time.monotonic()
        with pytest.raises(Failed, match="deadline exceeded"):
            target = PostTarget(f"https://127.0.0.1:{hook.port}/", ca=hook.keys.ca.read_bytes())
            post(Outbound(["127.0.0.0/8"]), target, b"{}", seconds=0.5)
        assert time.monotonic() - begun < posting.SECONDS
    finally:
        hook.close()


def test_a_request_in_two_pieces_does_not_wait_for_an_acknowledgement(tmp_path: Path) -> None:
    hook = Liar(tmp_path, lambda asked: asked.ended.wait(60))
    try:
        context = trusting(hook.keys.ca.read_bytes())
        with Outbound(["127.0.0.0/8"]).secured(context, "127.0.0.1", hook.port, time.monotonic() + 60) as secured:
            assert secured.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        hook.close()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Failed, match="connection refused"):
        post(Outbound(["127.0.0.0/8"]), PostTarget(f"https://127.0.0.1:{port}/"), b"{}")


def test_certificates_that_are_none(silent: int) -> None:
    with pytest.raises(Failed, match="caBundle cannot be used"):
        post(Outbound(["127.0.0.0/8"]), PostTarget(f"https://127.0.0.1:{silent}/", ca=b"nonsense"), b"{}")


def test_plain_text_is_not_spoken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Failed):
            post(Outbound(["127.0.0.0/8"]), PostTarget(f"https://127.0.0.1:{port}/"), b"{}", seconds=5)
        thread.join()


def test_the_deadline_is_kubernetes() -> None:
    assert posting.SECONDS == 30.0
