"""ServiceAccount tokens: issued for an account of one workspace (or embedded target), good there and nowhere else.

Called by the endpoints for TokenRequests and by authn.py for each request that bears such a token. One is a JSON Web
Token with Kubernetes' claims and one more, the logical cluster. Its signature is verified once and remembered; whether
the account and what the token is bound to still exist, with the uid that the token names, is looked up every time, so
that a deleted account's tokens are worthless at once.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import orjson

from apiserver.auth import jwt
from apiserver.auth.pki import TokenSigner
from apiserver.auth.user import AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, SERVICE_ACCOUNTS, User
from apiserver.auth.warrants import CLUSTER_NAME
from apiserver.model.keys import Key
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.kindtable import KindTable
from apiserver.storage.protocol import Store

CLUSTER_CLAIM = "clusterName"
TARGET_PREFIX = "target:"
"""What comes before `<workspace path>:<name>` where an embedded sync target is meant instead of a logical cluster."""
LEGACY_ISSUER = "kubernetes/serviceaccount"
LEGACY_TYPE = "kubernetes.io/service-account-token"
_LEGACY = "kubernetes.io/serviceaccount/"
_OURS = "kubernetes.io"
_BOUND = tuple(kind.kind for kind in ENTRIES.values() if kind.token_bound)
_REMEMBERED = 10_000
_LEEWAY = 10
"""Seconds by which the clocks of two servers may differ."""


def _nothing() -> None:
    return


class AccountHome(NamedTuple):
    """Where a workspace's accounts are: `cluster` in keys of `store`, and the kinds that it serves. `absent` is called
    where something is not there: it raises StatusError 503 as long as that means nothing."""

    store: Store
    cluster: str
    kinds: KindTable
    absent: Callable[[], None] = _nothing


Homes = Callable[[str], AccountHome | None]
"""Finds the home of a logical cluster, or of `target:<workspace path>:<name>`; None if there is none. Raises
StatusError 503 while that cannot be known."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """An object whose end is the token's: `kind` Pod, Secret or Node."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount. `cluster` as Homes takes it."""

    cluster: str
    namespace: str
    name: str
    uid: str
    bound: tuple[BoundObject, ...] = ()

    def user(self, token_id: str = "") -> User:
        extra: dict[str, tuple[str, ...]] = {CLUSTER_NAME: (self.cluster,)}
        if token_id:
            extra["authentication.kubernetes.io/credential-id"] = (f"JTI={token_id}",)
        for bound in self.bound:
            if bound.kind != "Secret":
                extra[f"authentication.kubernetes.io/{bound.kind.lower()}-name"] = (bound.name,)
                extra[f"authentication.kubernetes.io/{bound.kind.lower()}-uid"] = (bound.uid,)
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{self.namespace}", AUTHENTICATED)
        return User(f"{SERVICE_ACCOUNT_PREFIX}{self.namespace}:{self.name}", groups, self.uid, extra)


@dataclass(frozen=True, slots=True)
class Issuer:
    """What tokens say of themselves. `audiences`: those for which the server itself takes a token."""

    name: str
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Verified:
    """The claims of a token whose signature is good. `legacy`: digest of a token that stands in a Secret."""

    account: Account
    audiences: tuple[str, ...]
    begins: float
    ends: float
    token_id: str
    legacy: bytes = field(default=b"", repr=False)


class Accounts:
    """Issues and verifies. Safe from every thread."""

    def __init__(self, signer: TokenSigner, issuer: Issuer, homes: Homes) -> None:
        self.signer = signer
        self.issuer = issuer
        self._homes = homes
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()
        self._lock = Lock()

    def issue(self, account: Account, audiences: Sequence[str], seconds: int) -> tuple[str, int]:
        """A token for `account` (with its uid and what it is bound to), and when it ends, in seconds since 1970."""
        now = int(time.time())
        ours: dict[str, Any] = {
            CLUSTER_CLAIM: account.cluster,
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        for bound in account.bound:
            ours[bound.kind.lower()] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences or self.issuer.audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer.name,
            "jti": str(uuid.uuid4()),
            _OURS: ours,
            "nbf": now,
            "sub": f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}",
        }
        return jwt.encode(self.signer, claims), now + seconds

    def authenticate(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, list[str]] | None:
        """Whose token it is and for which of `audiences` (default: the server's own) it is good; None if it is not.

        Raises StatusError 503 while the account may still be loaded."""
        found = self._verify(token)
        if found is None or not found.begins - _LEEWAY <= time.time() < found.ends:
            return None
        asked = audiences or self.issuer.audiences
        good = [a for a in asked if a in found.audiences]
        if not good or not self._exists(found):
            return None
        return found.account.user(found.token_id), good

    def _verify(self, token: str) -> _Verified | None:
        digest = hashlib.sha256(token.encode(errors="replace")).digest()
        with self._lock:
            found = self._verified.get(digest)
            if found is not None:
                self._verified.move_to_end(digest)
                return found
        claims = jwt.decode(self.signer, token)
        found = self._read(claims, digest) if claims else None
        if found is not None:
            with self._lock:
                self._verified[digest] = found
                if len(self._verified) > _REMEMBERED:
                    self._verified.popitem(last=False)
        return found

    def _read(self, claims: jwt.Claims, digest: bytes) -> _Verified | None:
        """What we have signed is well-formed; another program with the same key might have signed something else."""
        try:
            if claims.get("iss") == LEGACY_ISSUER:
                account = _legacy_account(claims)
                return _Verified(account, self.issuer.audiences, 0.0, float("inf"), "", digest)
            if claims.get("iss") != self.issuer.name:
                return None
            audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
            ends, begins = float(claims["exp"]), float(claims["nbf"])
            return _Verified(_account(claims), tuple(audiences), begins, ends, str(claims.get("jti", "")))
        except (KeyError, TypeError, ValueError):
            return None

    def _exists(self, found: _Verified) -> bool:
        account = found.account
        home = self._homes(account.cluster)
        if home is None:
            return False
        at = home.store.get(Key("serviceaccounts", home.cluster, account.namespace, account.name))
        if at is None:
            home.absent()
            return False
        if orjson.loads(at.value)["metadata"].get("uid") != account.uid:
            return False
        for bound in account.bound:
            obj = bound_object(home, bound.kind, account.namespace, bound.name)
            if obj is None:
                home.absent()
                return False
            if bound.uid and obj["metadata"].get("uid") != bound.uid:
                return False
            if found.legacy and not _holds(obj, found.legacy):
                return False
        return True


def bound_object(home: AccountHome, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
    """A Pod, Secret or Node that a token may be bound to; None if there is none, or no such kind here."""
    served = home.kinds.by_kind("", "v1", kind)
    if served is None:
        return None
    at = home.store.get(Key(served.storage, home.cluster, namespace if served.namespaced else "", name))
    return orjson.loads(at.value) if at else None


def legacy_token(signer: TokenSigner, account: Account, secret: str) -> str:
    """The token without an end that a Secret of type kubernetes.io/service-account-token holds."""
    claims = {
        "iss": LEGACY_ISSUER,
        f"{_LEGACY}clusterName": account.cluster,
        f"{_LEGACY}namespace": account.namespace,
        f"{_LEGACY}secret.name": secret,
        f"{_LEGACY}service-account.name": account.name,
        f"{_LEGACY}service-account.uid": account.uid,
        "sub": f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}",
    }
    return jwt.encode(signer, claims)


def _account(claims: jwt.Claims) -> Account:
    ours = claims[_OURS]
    account = ours["serviceaccount"]
    bound = [BoundObject(k, ours[k.lower()]["name"], ours[k.lower()]["uid"]) for k in _BOUND if k.lower() in ours]
    return Account(ours[CLUSTER_CLAIM], ours["namespace"], account["name"], account["uid"], tuple(bound))


def _legacy_account(claims: jwt.Claims) -> Account:
    cluster, namespace, secret, name, uid = (
        claims[_LEGACY + claim]
        for claim in ("clusterName", "namespace", "secret.name", "service-account.name", "service-account.uid")
    )
    return Account(cluster, namespace, name, uid, (BoundObject("Secret", secret, ""),))


def _holds(secret: dict[str, Any], digest: bytes) -> bool:
    """Whether the Secret still has the token of that digest: taking it out revokes it."""
    if secret.get("type") != LEGACY_TYPE:
        return False
    try:
        held = jwt.from_base64((secret.get("data") or {}).get("token", ""))
    except ValueError:
        return False
    return hashlib.sha256(held).digest() == digest
