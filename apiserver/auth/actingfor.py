"""The rights of a program that acts on a workspace for its type: an initializer or a terminator.

Made by endpoints/lifecycleviews for one request. In that workspace it has what its type grants
(`initializerPermissions`, `terminatorPermissions`), or what an owner of the workspace has, who administers it, and no
more than the providers of bound APIs leave to anybody. Everywhere else it is who it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.auth.maximal import Provided
from apiserver.auth.rbac import SubjectRules
from apiserver.auth.rules import Rule
from apiserver.auth.user import AUTHENTICATED, KCP_ADMIN, AccessDecision, Attributes, User

OWNER = User(KCP_ADMIN, (KCP_ADMIN, AUTHENTICATED))
"""As whom it is let into the one workspace."""


class AnyJudge(Protocol):
    """See endpoints/judging.AccessJudge."""

    def authorize(self, cluster: str, user: User, attributes: Attributes, *, deep: bool = False) -> AccessDecision: ...

    def rules(self, cluster: str, user: User, namespace: str) -> SubjectRules: ...

    def granted_rules(self, cluster: str, user: User, namespace: str) -> tuple[Rule, ...]: ...

    def leaves(self, source: Provided, home: str, user: User, asked: Attributes) -> bool: ...

    def role_rules(self, cluster: str, kind: str, namespace: str, name: str) -> list[dict[str, Any]] | None: ...


@dataclass(frozen=True, slots=True)
class ActingFor:
    """`cluster`: the workspace's logical cluster name. `granted`: the rules of its type, None where that has none;
    `denial`: what is told to whom they do not let."""

    judge: AnyJudge
    cluster: str
    granted: Sequence[Rule] | None
    denial: str

    def authorize(self, cluster: str, user: User, attributes: Attributes, *, deep: bool = False) -> AccessDecision:
        if cluster != self.cluster:
            return self.judge.authorize(cluster, user, attributes, deep=deep)
        if self.granted is not None and not any(rule.covers(attributes) for rule in self.granted):
            return AccessDecision(False, self.denial)
        return self.judge.authorize(cluster, OWNER, attributes, deep=deep)

    def rules(self, cluster: str, user: User, namespace: str) -> SubjectRules:
        if cluster != self.cluster:
            return self.judge.rules(cluster, user, namespace)
        return SubjectRules.of(self.granted_rules(cluster, user, namespace), [])

    def granted_rules(self, cluster: str, user: User, namespace: str) -> tuple[Rule, ...]:
        if cluster == self.cluster and self.granted is not None:
            return tuple(self.granted)
        return self.judge.granted_rules(cluster, OWNER if cluster == self.cluster else user, namespace)

    def leaves(self, source: Provided, home: str, user: User, asked: Attributes) -> bool:
        return self.judge.leaves(source, home, user, asked)

    def role_rules(self, cluster: str, kind: str, namespace: str, name: str) -> list[dict[str, Any]] | None:
        return self.judge.role_rules(cluster, kind, namespace, name)
