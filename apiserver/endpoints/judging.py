"""What a realm is made of besides its store, as endpoints ask it: which kinds there are, and who may do what.

The parts themselves are the registry's and auth's; here is what is asked of them.
"""

from __future__ import annotations

from typing import Any, Protocol

from apiserver.auth.maximal import Provided
from apiserver.auth.rbac import SubjectRules
from apiserver.auth.rules import Rule
from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.registry.kindtable import KindTable


class RealmKinds(Protocol):
    """What is served where: registry/catalog.py's Catalog, or a fixed table."""

    def kinds(self, cluster: str) -> KindTable: ...


class AccessJudge(Protocol):
    """Who may do what in a realm: auth/rbac.py's Authorizer."""

    def authorize(self, cluster: str, user: User, attributes: Attributes, *, deep: bool = False) -> AccessDecision: ...

    def rules(self, cluster: str, user: User, namespace: str) -> SubjectRules: ...

    def granted_rules(self, cluster: str, user: User, namespace: str) -> tuple[Rule, ...]: ...

    def leaves(self, source: Provided, home: str, user: User, asked: Attributes) -> bool: ...

    def role_rules(self, cluster: str, kind: str, namespace: str, name: str) -> list[dict[str, Any]] | None: ...
