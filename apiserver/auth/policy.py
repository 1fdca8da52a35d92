"""The RBAC of one workspace, compiled from its objects: who is granted which rules where.

Made and cached by rbac.py, which adds what limits it. A pure function of the workspace's four RBAC resources and the
bootstrap roles; roles with an aggregation rule are resolved here, so that no controller has to write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from apiserver.auth.bootstrap import CLUSTER_ROLES, RBAC_GROUP
from apiserver.auth.maximal import Provided
from apiserver.auth.rules import Rule, compiled
from apiserver.auth.user import AUTHENTICATED, SERVICE_ACCOUNT_PREFIX, UNAUTHENTICATED, Attributes, User
from apiserver.model.selectors import from_object

Manifest = dict[str, Any]

_EVERYBODY = (AUTHENTICATED, UNAUTHENTICATED)
ACCESS = Attributes("access", path="/")
"""What lets a user into a workspace."""

Holders = Mapping[tuple[str, str], frozenset[str]]
"""By kind (`User`, `Group`) and name of a subject the names of the objects on which it holds a verb; one that is ""
stands for all."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rules in force for a subject. `namespace` "": everywhere. `origin` says which binding, for the reason.
    `missing`: the role that the binding names in vain; the rules are none then. `shipped`: no object of the world's own
    says so."""

    rules: tuple[Rule, ...]
    namespace: str
    origin: str
    missing: str = ""
    shipped: bool = False

    def covers(self, asked: Attributes) -> bool:
        if self.namespace and (asked.path or asked.namespace != self.namespace):
            return False
        return any(rule.covers(asked) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class RBACObjects:
    """A workspace's RBAC objects."""

    cluster_roles: Iterable[Manifest] = ()
    roles: Iterable[Manifest] = ()
    cluster_role_bindings: Iterable[Manifest] = ()
    role_bindings: Iterable[Manifest] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Grants by subject: users and groups by name. `provided`: where what is bound here comes from; `limiting`: the
    exports of this workspace that have a maximal permission policy."""

    users: dict[str, list[Grant]] = field(default_factory=dict)
    groups: dict[str, list[Grant]] = field(default_factory=dict)
    provided: Mapping[tuple[str, str], Provided] = field(default_factory=dict)
    limiting: frozenset[str] = frozenset()

    def grants(self, user: User) -> Iterator[Grant]:
        yield from self.users.get(user.name, ())
        for group in user.groups:
            yield from self.groups.get(group, ())

    def granted(self, user: User, asked: Attributes) -> Grant | None:
        """The first grant that covers the request."""
        return next((grant for grant in self.grants(user) if grant.covers(asked)), None)

    def holders(self, asked: Attributes) -> Holders:
        """Who holds the verb of `asked`, on cluster-scoped objects of its resource; its name does not count."""
        found: dict[tuple[str, str], frozenset[str]] = {}
        for kind, index in (("User", self.users), ("Group", self.groups)):
            for name, grants in index.items():
                names = frozenset(n for g in grants if not g.namespace for r in g.rules for n in r.names_covered(asked))
                if names:
                    found[kind, name] = names
        return found

    def known(self, user: User) -> bool:
        """Whether the user is granted anything that does not go to everybody."""
        if user.name in self.users or any(name in self.groups for name in user.groups if name not in _EVERYBODY):
            return True
        return any(not grant.shipped for grant in self.grants(user))

    def missing(self, user: User, namespace: str) -> list[str]:
        """What is wrong with the bindings of `user` that count in `namespace`."""
        found = [g.missing for g in self.grants(user) if g.missing and g.namespace in ("", namespace)]
        return list(dict.fromkeys(found))

    def add(self, subject: Manifest, grant: Grant) -> None:
        kind, name = subject.get("kind"), subject.get("name")
        if not name:
            return
        if kind in ("Group", "User"):
            index = self.groups if kind == "Group" else self.users
            index.setdefault(name, []).append(replace(grant, origin=f'{grant.origin} to {kind} "{name}"'))
        elif kind == "ServiceAccount":
            namespace = subject.get("namespace") or grant.namespace
            if namespace:
                granted = replace(grant, origin=f'{grant.origin} to {kind} "{name}/{namespace}"')
                self.users.setdefault(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", []).append(granted)


def compile_policy(objects: RBACObjects, shipped_bindings: Iterable[Manifest]) -> Policy:
    """Bindings to a role that does not exist grant nothing, and say so."""
    policy, roles = Policy(), _Roles(objects)
    for binding in shipped_bindings:
        _bind(policy, roles, binding, "", shipped=True)
    for binding in objects.cluster_role_bindings:
        _bind(policy, roles, binding, "")
    for binding in objects.role_bindings:
        _bind(policy, roles, binding, binding["metadata"]["namespace"])
    return policy


def _bind(policy: Policy, roles: _Roles, binding: Manifest, namespace: str, *, shipped: bool = False) -> None:
    reference = binding.get("roleRef") or {}
    kind, name = reference.get("kind"), reference.get("name", "")
    if kind == "ClusterRole":
        rules = roles.cluster_role(name)
    elif kind == "Role" and namespace:
        rules = roles.role(namespace, name)
    else:
        return
    missing = "" if rules is not None else f'{kind.lower()}.{RBAC_GROUP} "{name}" not found'
    if not rules and not missing:
        return
    called = f"{binding['metadata']['name']}/{namespace}" if namespace else binding["metadata"]["name"]
    origin = f'RBAC: allowed by {"RoleBinding" if namespace else "ClusterRoleBinding"} "{called}" of {kind} "{name}"'
    for subject in binding.get("subjects") or ():
        policy.add(subject, Grant(rules or (), namespace, origin, missing, shipped))


class _Roles:
    """Rules of roles by name, each compiled once; None for a role that does not exist."""

    def __init__(self, objects: RBACObjects) -> None:
        self._roles = {(r["metadata"]["namespace"], r["metadata"]["name"]): r for r in objects.roles}
        self._own = {r["metadata"]["name"]: r for r in objects.cluster_roles}
        self._done: dict[str, tuple[Rule, ...]] = {}

    def role(self, namespace: str, name: str) -> tuple[Rule, ...] | None:
        found = self._roles.get((namespace, name))
        return compiled(found.get("rules")) if found is not None else None

    def cluster_role(self, name: str) -> tuple[Rule, ...] | None:
        if name not in CLUSTER_ROLES and name not in self._own:
            return None
        if not self._own:
            return _shipped(name)
        if name not in self._done:
            self._done[name] = _rules_of(name, self._own)
        return self._done[name]


def role_rules(objects: RBACObjects, kind: str, namespace: str, name: str) -> list[Manifest] | None:
    """The rules of a Role or ClusterRole as objects have them, aggregated ones collected; None if there is none."""
    if kind == "Role":
        roles = [r for r in objects.roles if (r["metadata"]["namespace"], r["metadata"]["name"]) == (namespace, name)]
        return list(roles[0].get("rules") or ()) if roles else None
    own = {r["metadata"]["name"]: r for r in objects.cluster_roles}
    if name not in CLUSTER_ROLES and name not in own:
        return None
    return [rule for role in _collect(name, own, set()) for rule in role.get("rules") or ()]


@cache
def _shipped(name: str) -> tuple[Rule, ...]:
    """Of a shipped role where nothing can add to it: compiled once a process, since most workspaces have no own."""
    return _rules_of(name, {})


def _rules_of(name: str, own: dict[str, Manifest]) -> tuple[Rule, ...]:
    return tuple(dict.fromkeys(rule for role in _collect(name, own, set()) for rule in compiled(role.get("rules"))))


def _collect(name: str, own: dict[str, Manifest], seen: set[str]) -> Iterator[Manifest]:
    """The roles whose rules count: the shipped one and the workspace's own of that name, or what they aggregate. `seen`
    ends circles."""
    if name in seen:
        return
    seen.add(name)
    for role in (CLUSTER_ROLES.get(name), own.get(name)):
        if role is None:
            continue
        if role.get("aggregationRule") is None:
            yield role
            continue
        for selected in _selected(role["aggregationRule"], own):
            yield from _collect(selected, own, seen)


def _selected(aggregation: Manifest, own: dict[str, Manifest]) -> Iterator[str]:
    selectors = [from_object(s) for s in aggregation.get("clusterRoleSelectors") or ()]
    for name, role in (*CLUSTER_ROLES.items(), *own.items()):
        labels = role["metadata"].get("labels")
        if any(selector.matches(labels) for selector in selectors):
            yield name
