"""Secrets of type kubernetes.io/service-account-token: filled with a token of the account that they name.

One controller for all workspaces of a store. A Secret whose account is gone goes with it, as in Kubernetes,
unless git declares it; taking the token out makes a new one, which ends the old. Every other client asks for tokens
that end (see apiserver/auth/accounts.py).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from apiserver.auth.accounts import LEGACY_TYPE, Account, legacy_token
from apiserver.auth.pki import TokenSigner
from apiserver.model import marks
from apiserver.model.identity import base36_sha224
from apiserver.model.keys import Key
from apiserver.registry import indexes
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry

Object = dict[str, Any]

SECRETS, ACCOUNTS = "secrets", "serviceaccounts"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
_TYPE = LEGACY_TYPE.encode()


class TokenSecrets(Controller[Key]):
    """`identity`: what tokens call the cluster of that name. `bundle`: the server's CA, PEM."""

    name = "tokensecrets"
    resources = frozenset({SECRETS, ACCOUNTS})
    shown = frozenset({SECRETS})
    beyond = NO_RESOURCES

    def __init__(self, store: Store, signer: TokenSigner, bundle: str, identity: Callable[[str], str]) -> None:
        self._store, self._objects = store, Objects(store)
        self._signer = signer
        self._bundle = _encoded(bundle)
        self.version = f"1 {base36_sha224(bundle)}"
        self._identity = identity

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.key.resource == ACCOUNTS or (entry.value is not None and _TYPE in entry.value):
            yield entry.key

    def reconcile(self, key: Key) -> None:
        """A Secret; or an account: then its Secrets."""
        if key.resource == ACCOUNTS:
            term = indexes.account(key.cluster, key.namespace, key.name)
            for found in self._store.indexed(indexes.TOKENS, term, whole=True):
                self.queue.add(found.key)
            return
        secret = self._objects.get(key)
        if secret is None or secret.get("type") != LEGACY_TYPE:
            return
        name = _account_of(secret)
        account = self._objects.get(Key(ACCOUNTS, key.cluster, key.namespace, name))
        uid = account["metadata"]["uid"] if account else ""
        if not uid or _annotations(secret).get(ACCOUNT_UID, uid) != uid:
            if not _is_kept(secret):
                self._objects.delete(key, int(secret["metadata"]["resourceVersion"]))
            return
        meant = Account(self._identity(key.cluster), key.namespace, name, uid)
        self._objects.update(key, lambda found: self._filled(found, meant))

    def _filled(self, secret: Object, account: Account) -> Object | None:
        if secret.get("type") != LEGACY_TYPE or _account_of(secret) != account.name:
            return None
        data = dict(secret.get("data") or {})
        data["ca.crt"] = self._bundle
        data["namespace"] = data.get("namespace") or _encoded(account.namespace)
        if not data.get("token"):
            data["token"] = _encoded(legacy_token(self._signer, account, secret["metadata"]["name"]))
        annotations = {**_annotations(secret), ACCOUNT_UID: account.uid}
        return {**secret, "metadata": {**secret["metadata"], "annotations": annotations}, "data": data}


def _is_kept(secret: Object) -> bool:
    """Whether it is not ours to delete: in a workspace, whatever did not come through the API."""
    annotations = _annotations(secret)
    return marks.CLUSTER in annotations and annotations.get(marks.ORIGIN) != marks.RUNTIME


def _account_of(secret: Object) -> str:
    return str(_annotations(secret).get(ACCOUNT_NAME, ""))


def _annotations(secret: Object) -> Object:
    return secret["metadata"].get("annotations") or {}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
