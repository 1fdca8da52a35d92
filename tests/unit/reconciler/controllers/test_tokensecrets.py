"""Secrets that hold a ServiceAccount's token: filled, repaired, good for as long as they stand."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.following import Following

from apiserver.auth.accounts import LEGACY_TYPE, AccountHome, Accounts, Issuer
from apiserver.auth.pki import TokenSigner, ensure_keys
from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.tokensecrets import TokenSecrets

ACCOUNT, SECRET = Key("serviceaccounts", "ws", "default", "robot"), Key("secrets", "ws", "default", "t")


@pytest.fixture
def signer(tmp_path: Path) -> TokenSigner:
    return TokenSigner(ensure_keys(tmp_path / "keys"))


@pytest.fixture
def follower(store: Store, signer: TokenSigner) -> Iterator[Following]:
    made = Following.of(store, TokenSecrets(store, signer, "the CA", lambda cluster: cluster))
    made.start()
    yield made
    made.stop()


@pytest.fixture
def put(store: Store) -> Callable[..., None]:
    def write(key: Key, uid: str = "u", **content: Any) -> None:
        annotations = {marks.CLUSTER: key.cluster, marks.ORIGIN: marks.RUNTIME, **content.pop("annotations", {})}
        metadata = {"name": key.name, "namespace": key.namespace, "uid": uid, "annotations": annotations}
        kind = "Secret" if key.resource == "secrets" else "ServiceAccount"
        obj = {"kind": kind, "apiVersion": "v1", "metadata": metadata, **content}
        store.write(Put(key, codec.encode(obj))).result()

    return write


def secret(**annotations: str) -> dict[str, Any]:
    return {"type": LEGACY_TYPE, "annotations": {"kubernetes.io/service-account.name": "robot", **annotations}}


def filled(store: Store) -> dict[str, bytes]:
    found = Objects(store).get(SECRET) or {}
    return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}


def test_a_secret_is_filled_and_its_token_is_good_while_it_stands(
    store: Store, signer: TokenSigner, follower: Following, put: Any, eventually: Any
) -> None:
    put(ACCOUNT)
    put(SECRET, **secret())
    data = eventually(lambda: filled(store))
    assert (data["ca.crt"], data["namespace"]) == (b"the CA", b"default")
    found = Objects(store).get(SECRET)
    assert found is not None
    assert found["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == "u"
    issuer = Issuer("https://kcp.default.svc", ("https://kcp.default.svc",))
    accounts = Accounts(signer, issuer, lambda cluster: AccountHome(store, cluster, workspace_builtins()))
    token = data["token"].decode()
    user = accounts.authenticate(token)
    assert user is not None
    assert user[0].name == "system:serviceaccount:default:robot"
    # Another token in its place ends this one.
    put(SECRET, **secret(), data={"token": base64.b64encode(b"x").decode()})
    assert accounts.authenticate(token) is None


def test_what_was_taken_out_comes_back(store: Store, follower: Following, put: Any, eventually: Any) -> None:
    put(ACCOUNT)
    put(SECRET, **secret())
    eventually(lambda: filled(store).get("token"))
    put(SECRET, **secret())
    eventually(lambda: filled(store).get("token"))


def test_a_second_look_writes_nothing(store: Store, signer: TokenSigner, put: Any, eventually: Any) -> None:
    put(ACCOUNT)
    put(SECRET, **secret())
    for _ in range(2):
        follower = Following.of(store, TokenSecrets(store, signer, "the CA", lambda cluster: cluster))
        follower.start()
        eventually(lambda: filled(store).get("token") and follower.idle)  # noqa: B023
        follower.stop()
        before = store.revision()
    assert store.revision() == before
    record = store.get(SECRET)
    assert record is not None
    assert record.revision == before


def test_it_goes_with_its_account(store: Store, follower: Following, put: Any, eventually: Any) -> None:
    put(ACCOUNT)
    put(SECRET, **secret())
    eventually(lambda: filled(store).get("token"))
    put(ACCOUNT, uid="another")
    eventually(lambda: store.get(SECRET) is None)


def test_what_git_declares_stays(store: Store, follower: Following, put: Any, eventually: Any) -> None:
    put(SECRET, **secret(**{marks.SOURCE_PATH: "a.yaml", marks.ORIGIN: ""}))
    other = Key("secrets", "ws", "default", "other")
    put(other, **secret())
    eventually(lambda: store.get(other) is None)
    assert store.get(SECRET) is not None
