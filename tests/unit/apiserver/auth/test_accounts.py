"""ServiceAccount tokens without a server: times, keys, issuers, what is remembered."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.auth import accounts as module
from apiserver.auth import jwt
from apiserver.auth.accounts import Account, AccountHome, Accounts, Issuer
from apiserver.auth.keys import Keys
from apiserver.auth.pki import KeysError, TokenSigner, ensure_keys
from apiserver.model.keys import Key
from apiserver.registry.kinds import workspace_builtins
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put

ISSUER = Issuer("https://here", ("https://here",))
ROBOT = Account("ws", "default", "robot", "u")


class Clock:
    now = 1_800_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "time", made)
    return made


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return ensure_keys(tmp_path / "keys")


@pytest.fixture
def made(tmp_path: Path, keys: Keys) -> Any:
    store = open_store(tmp_path / "store", sync=False)
    robot = {"metadata": {"name": "robot", "uid": "u"}}
    store.write(Put(Key("serviceaccounts", "ws", "default", "robot"), orjson.dumps(robot))).result(10)
    yield Accounts(
        TokenSigner(keys), ISSUER, lambda c: AccountHome(store, c, workspace_builtins()) if c == "ws" else None
    )
    store.close()


def test_it_is_good_until_it_ends(made: Accounts, clock: Clock) -> None:
    token, ends = made.issue(ROBOT, [], 600)
    assert ends == clock.now + 600
    for seconds, good in ((0, True), (599, True), (600, False), (10_000, False)):
        clock.now = ends - 600 + seconds
        assert (made.authenticate(token) is not None) is good


def test_it_is_good_on_a_server_whose_clock_is_a_little_behind(made: Accounts, clock: Clock) -> None:
    token, _ = made.issue(ROBOT, [], 600)
    clock.now -= 5
    assert made.authenticate(token)
    clock.now -= 60
    assert made.authenticate(token) is None


def test_the_signature_is_verified_once(made: Accounts, monkeypatch: pytest.MonkeyPatch) -> None:
    token, _ = made.issue(ROBOT, [], 600)
    assert made.authenticate(token)
    monkeypatch.setattr(made.signer, "verify", lambda *_: pytest.fail("verified again"), raising=False)
    assert made.authenticate(token)


def test_a_workspace_that_is_gone_has_no_accounts(made: Accounts) -> None:
    token, _ = made.issue(Account("gone", "default", "robot", "u"), [], 600)
    assert made.authenticate(token) is None


def test_another_issuer_with_our_key_is_not_us(made: Accounts) -> None:
    other = Accounts(made.signer, Issuer("https://there", ("https://here",)), lambda _: None)
    assert made.authenticate(other.issue(ROBOT, [], 600)[0]) is None


@pytest.mark.parametrize(
    "claims", [{}, {"iss": "https://here"}, {"iss": "https://here", "aud": 7, "exp": "x", "nbf": 0}]
)
def test_what_we_would_not_have_signed(made: Accounts, claims: Any) -> None:
    assert made.authenticate(jwt.encode(made.signer, claims)) is None


def test_another_key_is_not_ours(made: Accounts, tmp_path: Path) -> None:
    stranger = Accounts(TokenSigner(ensure_keys(tmp_path / "other")), ISSUER, lambda _: None)
    assert made.authenticate(stranger.issue(ROBOT, [], 600)[0]) is None


def test_a_retired_key_still_verifies(made: Accounts, keys: Keys) -> None:
    token, _ = made.issue(ROBOT, [], 600)
    keys.service_accounts.rename(keys.directory / "service-accounts-2026.key")
    (keys.directory / "service-accounts.key.new").touch()
    signer = TokenSigner(ensure_keys(keys.directory))
    assert len(signer.public_keys()) == 2
    assert jwt.decode(signer, token)
    new = jwt.encode(signer, {"a": 1})
    assert jwt.decode(made.signer, new) is None


def test_a_key_that_is_none_is_named(keys: Keys) -> None:
    keys.service_accounts.write_text("nonsense")
    with pytest.raises(KeysError, match=r"service-accounts\.key"):
        TokenSigner(keys)
