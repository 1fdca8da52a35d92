"""Who a request comes from."""

import base64
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.authn import Authenticator
from apiserver.auth.peer import Peer
from apiserver.auth.user import ANONYMOUS, AUTHENTICATED, User
from apiserver.model.errors import StatusError


def scope(*headers: tuple[str, str], tls: Peer | None = None, **more: Any) -> dict[str, Any]:
    found = [(name.encode(), value.encode()) for name, value in headers]
    return {"type": "http", "headers": found, "extensions": {"tls": tls}, **more}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.csv"
    path.write_text('s3cret,bob,42,"devs,ops"\nother,eve,7\n')
    return path


def test_certificate_names() -> None:
    user = Authenticator().authenticate(scope(tls=Peer("ann", ("devs",), ends=time.time() + 60)))
    assert user == User("ann", ("devs", AUTHENTICATED))


@pytest.mark.parametrize(
    "peer",
    [
        Peer(refused="of another authority"),
        Peer("ann", ("system:masters",), ends=time.time() - 1),
        Peer("ann", ("system:masters",), begins=time.time() + 86_400, ends=time.time() + 90_000),
    ],
)
def test_a_certificate_that_does_not_count_is_401_and_never_anonymous(tokens: Path, peer: Peer) -> None:
    authenticator = Authenticator(tokens, anonymous=True)
    assert authenticator.authenticate(scope()).name == ANONYMOUS
    with pytest.raises(StatusError) as raised:
        authenticator.authenticate(scope(tls=peer))
    assert raised.value.code == 401
    # As in kube-apiserver, whoever has a token besides is who the token says.
    assert authenticator.authenticate(scope(("authorization", "Bearer s3cret"), tls=peer)).name == "bob"


def test_token(tokens: Path) -> None:
    user = Authenticator(tokens).authenticate(scope(("authorization", "Bearer s3cret")))
    assert user == User("bob", ("devs", "ops", AUTHENTICATED), "42")
    assert Authenticator(tokens).authenticate(scope(("authorization", "bearer other"))).groups == (AUTHENTICATED,)


@pytest.mark.parametrize(
    "headers",
    [(), (("authorization", "Bearer wrong"),), (("authorization", "Bearer "),), (("authorization", "Basic !!"),)],
)
def test_anything_else_is_401(tokens: Path, headers: tuple[tuple[str, str], ...]) -> None:
    for authenticator in (Authenticator(tokens), Authenticator()):
        with pytest.raises(StatusError) as raised:
            authenticator.authenticate(scope(*headers))
        assert (raised.value.code, raised.value.message) == (401, "Unauthorized")


def test_a_basic_password_is_a_token_only_for_git(tokens: Path) -> None:
    header = ("authorization", "Basic " + base64.b64encode(b"anyone:s3cret").decode())
    assert Authenticator(tokens).authenticate(scope(header), basic=True).name == "bob"
    with pytest.raises(StatusError):
        Authenticator(tokens).authenticate(scope(header))


def test_a_browser_sends_its_token_as_a_subprotocol(tokens: Path) -> None:
    offered = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"s3cret").decode().rstrip("=")
    assert Authenticator(tokens).authenticate(scope(subprotocols=["v5.x", offered])).name == "bob"


def test_a_changed_file_counts_at_once(tokens: Path) -> None:
    authenticator = Authenticator(tokens)
    tokens.write_text("fresh,bob,42\n")
    with pytest.raises(StatusError):
        authenticator.authenticate(scope(("authorization", "Bearer s3cret")))
    assert authenticator.authenticate(scope(("authorization", "Bearer fresh"))).name == "bob"


def test_a_broken_file_keeps_the_earlier_tokens_and_says_so(tokens: Path, caplog: pytest.LogCaptureFixture) -> None:
    authenticator = Authenticator(tokens)
    tokens.write_text("leaked-token\n")
    with caplog.at_level(logging.ERROR):
        assert authenticator.authenticate(scope(("authorization", "Bearer s3cret"))).name == "bob"
    assert "tokens.csv:1" in caplog.text
    assert "leaked-token" not in caplog.text


def test_a_broken_file_at_the_start_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n,,\n")
    with pytest.raises(ValueError, match=r"t\.csv:2"):
        Authenticator(tmp_path / "t.csv")
