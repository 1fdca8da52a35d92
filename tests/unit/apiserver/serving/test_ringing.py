"""A forge's webhook at a running server: who rings, and that nobody else holds or learns anything."""

from __future__ import annotations

import hmac
import http.client
import json
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from apiserver import bell
from apiserver.endpoints import ringing
from apiserver.endpoints.ringing import PUSH_PATH

SECRET = "0123456789abcdef0123456789abcdef"
BODY = b'{"ref": "refs/heads/main", "pusher": "NAMED-IN-THE-BODY"}'
LARGEST = 64 * 1024

Post = Callable[..., tuple[int, str]]
with_webhook = pytest.mark.parametrize("running", [{"webhook": True}], indirect=True)


def signed(body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "webhook-secret"
    write(file, SECRET)
    return file


def write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(f"{text}\n")
    new.chmod(0o600)
    new.rename(file)


@pytest.fixture
def post(running: Any) -> Post:
    def ask(headers: dict[str, str] | None = None, body: Any = BODY, method: str = "POST") -> tuple[int, str]:
        context = ssl.create_default_context(cafile=running.keys.ca)
        connection = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=30)
        try:
            connection.request(method, PUSH_PATH, body, headers or {}, encode_chunked=not isinstance(body, bytes))
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return ask


@pytest.fixture
def heard(running: Any) -> Iterator[Queue[bytes]]:
    rings: Queue[bytes] = Queue()
    stop = bell.listen(running.settings.data_dir, bell.LOOK, rings.put)
    yield rings
    stop()


def rings_of(heard: Queue[bytes], data_dir: Path) -> int:
    """How many there were so far: one more, which is known, comes behind them."""
    bell.ring(data_dir, bell.LOOK, b"last")
    count = 0
    while heard.get(timeout=10) != b"last":
        count += 1
    return count


@with_webhook
def test_who_knows_the_secret_rings_and_says_nothing_else(
    running: Any, post: Post, secret: Path, heard: Queue[bytes]
) -> None:
    assert post(signed()) == (202, "")
    assert heard.get(timeout=10) == b"", "the fleet's repository, whatever the body says"
    with pytest.raises(Empty):
        heard.get_nowait()
    assert post({"X-Gitlab-Token": SECRET})[0] == 202
    assert post(signed(b""), b"")[0] == 202
    assert rings_of(heard, running.settings.data_dir) == 2


@with_webhook
def test_nobody_else_rings(running: Any, post: Post, secret: Path, heard: Queue[bytes]) -> None:
    for headers in ({}, signed(secret="f" * 32), signed(BODY + b" "), {"X-Gitlab-Token": "f" * 32}):
        status, said = post(headers)
        assert status == 401, headers
        assert SECRET not in said
    assert json.loads(post(signed(b""), method="GET", body=b"")[1])["path"] == PUSH_PATH, "a path of the Kubernetes API"
    assert rings_of(heard, running.settings.data_dir) == 0


@with_webhook
def test_the_secret_is_read_again_and_without_one_there_is_no_such_path(
    running: Any, post: Post, secret: Path, heard: Queue[bytes]
) -> None:
    write(secret, "f" * 32)
    assert post(signed())[0] == 401
    assert post(signed(secret="f" * 32))[0] == 202
    for text in ("", "short"):
        write(secret, text)
        assert post(signed(secret=text))[0] == 404
    write(secret, SECRET)
    secret.chmod(0o644)
    assert post(signed())[0] == 404, "others may read it"
    secret.unlink()
    assert post(signed())[0] == 404
    assert rings_of(heard, running.settings.data_dir) == 1


def test_without_the_option_the_path_is_one_of_the_kubernetes_api(
    post: Post, heard: Queue[bytes], running: Any
) -> None:
    status, said = post(signed())
    assert (status, json.loads(said)["path"]) == (200, PUSH_PATH), "the stand-in for the API was asked"
    assert rings_of(heard, running.settings.data_dir) == 0


@with_webhook
def test_a_body_has_64_kib(running: Any, post: Post, secret: Path, heard: Queue[bytes]) -> None:
    most, more = b"x" * LARGEST, b"x" * (LARGEST + 1)
    assert post(signed(most), most)[0] == 202
    for body in (more, iter([more[:40_000], more[40_000:]])):
        status, said = post(signed(more), body)
        assert (status, "--poll" in said) == (413, True)
    assert rings_of(heard, running.settings.data_dir) == 1


def talk(running: Any, head: bytes) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=running.keys.ca)
    plain = socket.create_connection(("127.0.0.1", running.settings.port), timeout=30)
    connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
    connection.sendall(b"POST %b HTTP/1.1\r\nHost: x\r\n%b\r\n" % (PUSH_PATH.encode(), head))
    return connection


@with_webhook
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 60000\r\n", b"401"),
        (b"X-Gitlab-Token: x\r\nContent-Length: 70000\r\n", b"413"),
        (b"X-Gitlab-Token: x\r\nContent-Length: 99999999999999999\r\n", b"413"),
    ],
)
def test_what_is_refused_by_its_head_is_not_waited_for(running: Any, secret: Path, head: bytes, status: bytes) -> None:
    with talk(running, head) as connection:
        assert connection.recv(12) == b"HTTP/1.1 " + status


@with_webhook
def test_a_body_that_comes_slowly_is_given_up(
    running: Any, secret: Path, heard: Queue[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ringing, "_SECONDS", 0.3)
    with talk(running, b"X-Gitlab-Token: %b\r\nContent-Length: 100\r\n" % SECRET.encode()) as connection:
        connection.sendall(b"x")
        assert connection.recv(12) == b"HTTP/1.1 408"
    assert rings_of(heard, running.settings.data_dir) == 0


@with_webhook
def test_whoever_hangs_up_in_the_middle_rings_nothing(
    running: Any, post: Post, secret: Path, heard: Queue[bytes]
) -> None:
    talk(running, b"X-Gitlab-Token: %b\r\nContent-Length: 100\r\n" % SECRET.encode()).close()
    assert post(signed())[0] == 202
    assert rings_of(heard, running.settings.data_dir) == 1


@with_webhook
def test_neither_body_nor_secret_gets_into_the_log_and_refusals_do_not_fill_it(
    running: Any, post: Post, secret: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(5):
        assert post(signed(secret="f" * 32))[0] == 401
        assert post(signed())[0] == 202
    said = [record.getMessage() for record in caplog.records]
    assert sum("does not fit the secret" in text for text in said) == 1
    assert not any(word in text for text in said for word in (SECRET, "NAMED-IN-THE-BODY", "f" * 32))
