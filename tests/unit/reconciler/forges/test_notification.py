"""A webhook: what it is signed with, and whom it goes to."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from support.fakeforges import Said
from support.notified import FakeReceiver, receiving

from reconciler.forges.errors import ForgeError, NotSaid
from reconciler.forges.notification import Notified, signature
from reconciler.forges.wire import ForgePatience

SECRET = "shared-secret"


def test_the_signature_is_of_the_bodys_bytes() -> None:
    """As openssl and every library compute it."""
    found = signature(b'{"a": 1}', SECRET)
    assert found == "sha256=" + hmac.new(b"shared-secret", b'{"a": 1}', hashlib.sha256).hexdigest()
    assert found != signature(b'{"a": 2}', SECRET)


def test_what_arrives() -> None:
    with receiving() as receiver:
        Notified(receiver.url).post("commit", "id-1", b'{"a":1}', SECRET)
    [got] = receiver.got
    assert got.body == b'{"a":1}'
    assert got.headers["x-treeplane-signature-256"] == signature(got.body, SECRET)
    assert (got.headers["x-treeplane-event"], got.headers["x-treeplane-delivery"]) == ("commit", "id-1")
    assert got.headers["content-type"] == "application/json"
    assert "authorization" not in got.headers


@pytest.mark.parametrize("status", [301, 307, 404, 500])
def test_only_an_answer_that_begins_with_2_is_taken(status: int) -> None:
    with receiving() as other, receiving() as receiver:
        receiver.faults.append(Said(status, b"no", {"Location": other.url, "Retry-After": "9"}))
        with pytest.raises(ForgeError, match=f"answers {status} to a notification") as error:
            Notified(f"{receiver.url}/hooks/secret-path").post("commit", "id", b"{}", SECRET)
        assert (error.value.status, error.value.after) == (status, 9.0)
        assert "secret-path" not in str(error.value)
        assert SECRET not in str(error.value)
        assert other.got == []


def test_who_is_not_there_or_says_too_much() -> None:
    with receiving() as receiver:
        url = receiver.url
        receiver.faults.append(Said(200, b"x" * 10_000))
        with pytest.raises(ForgeError, match="more than 999 bytes"):
            Notified(url, ForgePatience(size=999)).post("commit", "id", b"{}", SECRET)
    with pytest.raises(ForgeError, match="does not answer"):
        Notified(url).post("commit", "id", b"{}", SECRET)


def test_one_who_never_answers_is_left() -> None:
    receiver = FakeReceiver()
    with receiving(receiver):
        receiver.silent = True
        with pytest.raises(ForgeError, match="does not answer"):
            Notified(receiver.url, ForgePatience(quiet=0.05)).post("commit", "id", b"{}", SECRET)


@pytest.mark.parametrize("url", ["http://hooks.example.org", "https://u:p@hooks.example.org", "ftp://x", "hooks"])
def test_where_nothing_is_sent(url: str) -> None:
    with pytest.raises(NotSaid):
        Notified(url)
