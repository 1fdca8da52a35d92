"""Who asks, what for, and the answer: the three values that authentication and authorization pass around.

Made by authn.py and the endpoints, judged by rbac.py. No behaviour beyond construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MASTERS = "system:masters"
"""The group that passes every check."""
AUTHENTICATED = "system:authenticated"
"""Every authenticated user is in it."""
UNAUTHENTICATED = "system:unauthenticated"
"""The group of requests without credentials, where those are let in."""
KCP_ADMIN = "system:kcp:admin"
"""kcp's administrators: in every workspace, with every right that RBAC gives."""
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
"""A ServiceAccount's user name is this, its namespace, a colon and its name."""
BINDING_PREFIX = "apis.kcp.io:binding:"
"""Before the names of users and groups where an export says how far RBAC of those who bind it may go."""
SYNCERS = "system:treeplane:syncers"
"""The group of Treeplane's own syncer certificate."""
PRIVILEGED = frozenset(
    {
        MASTERS,
        SYNCERS,
        KCP_ADMIN,
        "system:kcp:external-logical-cluster-admin",
        "system:kcp:logical-cluster-admin",
        "system:kcp:tenancy:workspace-bootstrapper",
    }
)
"""Groups with rights beyond a workspace: RBAC of one cannot hand them out."""


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user. `extra` values are lists, as in Kubernetes."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups

    def as_json(self) -> dict[str, object]:
        """The `userInfo` object of reviews and admission requests."""
        found: dict[str, object] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra.items()}
        return found

    @staticmethod
    def from_json(found: object) -> User:
        """Of what `as_json` says. Raises ValueError for anything else."""
        if not isinstance(found, dict) or not isinstance(found.get("extra", {}), dict):
            raise ValueError("a user is an object, and so is its extra")
        extra = {_text(key): _texts(values) for key, values in found.get("extra", {}).items()}
        return User(_text(found.get("username")), _texts(found.get("groups", [])), _text(found.get("uid", "")), extra)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError("what is said of a user is text")
    return found


def _texts(found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise ValueError("groups, and each value of extra, are lists of texts")
    return tuple(map(_text, found))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for. A non-empty `path` makes it a non-resource request; the other fields are then unused.

    `verb` is Kubernetes' (get, list, watch, create, update, patch, delete, deletecollection, …); for a non-resource
    request the HTTP method in lower case.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def qualified_resource(self) -> str:
        """`pods/log`, or `pods`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The answer. `reason` says which rule allowed it, or why nothing did."""

    allowed: bool
    reason: str = ""
