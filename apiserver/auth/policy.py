"""The RBAC of one workspace, compiled from its objects: who is granted which rules where.

Made and cached by rbac.py. A pure function of the workspace's four RBAC resources and the bootstrap roles; roles with
an aggregation rule are resolved here, so that no controller has to write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from apiserver.auth.bootstrap import CLUSTER_ROLES
from apiserver.auth.rules import Rule, compiled
from apiserver.auth.user import Attributes, User
from apiserver.model.selectors import from_object

Manifest = dict[str, Any]

ACCESS = Attributes("access", path="/")
"""What lets a user into a workspace."""
_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Grant:
    """Rules in force for a subject. `namespace` "": everywhere. `origin` says which binding, for the reason."""

    rules: tuple[Rule, ...]
    namespace: str
    origin: str

    def covers(self, asked: Attributes) -> bool:
        if self.namespace and (asked.path or asked.namespace != self.namespace):
            return False
        return any(rule.covers(asked) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Objects:
    """A workspace's RBAC objects."""

    cluster_roles: Iterable[Manifest] = ()
    roles: Iterable[Manifest] = ()
    cluster_role_bindings: Iterable[Manifest] = ()
    role_bindings: Iterable[Manifest] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """Grants by subject: users and groups by name."""

    users: dict[str, list[Grant]] = field(default_factory=dict)
    groups: dict[str, list[Grant]] = field(default_factory=dict)
    _access: dict[tuple[str, tuple[str, ...]], bool] = field(default_factory=dict)

    def grants(self, user: User) -> Iterator[Grant]:
        yield from self.users.get(user.name, ())
        for group in user.groups:
            yield from self.groups.get(group, ())

    def granted(self, user: User, asked: Attributes) -> Grant | None:
        """The first grant that covers the request."""
        return next((grant for grant in self.grants(user) if grant.covers(asked)), None)

    def has_access(self, user: User) -> bool:
        """Whether `user` is let into the workspace at all; remembered, since every request asks."""
        key = user.name, user.groups
        found = self._access.get(key)
        if found is None:
            if len(self._access) >= _REMEMBERED:
                self._access.clear()
            found = self._access[key] = self.granted(user, ACCESS) is not None
        return found

    def add(self, subject: Manifest, grant: Grant) -> None:
        kind, name = subject.get("kind"), subject.get("name")
        if not name:
            return
        if kind == "Group":
            self.groups.setdefault(name, []).append(grant)
        elif kind == "User":
            self.users.setdefault(name, []).append(grant)
        elif kind == "ServiceAccount":
            namespace = subject.get("namespace") or grant.namespace
            if namespace:
                self.users.setdefault(f"system:serviceaccount:{namespace}:{name}", []).append(grant)


def compile_policy(objects: Objects, shipped_bindings: Iterable[Manifest]) -> Policy:
    """Bindings to a role that does not exist grant nothing."""
    policy, roles = Policy(), _Roles(objects)
    for binding in (*shipped_bindings, *objects.cluster_role_bindings):
        _bind(policy, roles, binding, "")
    for binding in objects.role_bindings:
        _bind(policy, roles, binding, binding["metadata"]["namespace"])
    return policy


def _bind(policy: Policy, roles: _Roles, binding: Manifest, namespace: str) -> None:
    reference = binding.get("roleRef") or {}
    kind, name = reference.get("kind"), reference.get("name", "")
    if kind == "ClusterRole":
        rules = roles.cluster_role(name)
    elif kind == "Role" and namespace:
        rules = roles.role(namespace, name)
    else:
        return
    if not rules:
        return
    called = f"{namespace}/{binding['metadata']['name']}" if namespace else binding["metadata"]["name"]
    origin = f'RBAC: allowed by {"RoleBinding" if namespace else "ClusterRoleBinding"} "{called}" of {kind} "{name}"'
    for subject in binding.get("subjects") or ():
        policy.add(subject, Grant(rules, namespace, origin))


class _Roles:
    """Rules of roles by name, each compiled once."""

    def __init__(self, objects: Objects) -> None:
        self._roles = {(r["metadata"]["namespace"], r["metadata"]["name"]): r for r in objects.roles}
        self._own = {r["metadata"]["name"]: r for r in objects.cluster_roles}
        self._done: dict[str, tuple[Rule, ...]] = {}

    def role(self, namespace: str, name: str) -> tuple[Rule, ...]:
        return compiled(self._roles.get((namespace, name), {}).get("rules"))

    def cluster_role(self, name: str) -> tuple[Rule, ...]:
        if not self._own:
            return _shipped(name) if name in CLUSTER_ROLES else ()
        if name not in self._done:
            self._done[name] = _rules_of(name, self._own)
        return self._done[name]


@cache
def _shipped(name: str) -> tuple[Rule, ...]:
    """Of a shipped role where nothing can add to it: compiled once a process, since most workspaces have no own."""
    return _rules_of(name, {})


def _rules_of(name: str, own: dict[str, Manifest]) -> tuple[Rule, ...]:
    return tuple(dict.fromkeys(_collect(name, own, set())))


def _collect(name: str, own: dict[str, Manifest], seen: set[str]) -> Iterator[Rule]:
    """Of the shipped role and the workspace's own of that name; `seen` ends circles of aggregation."""
    if name in seen:
        return
    seen.add(name)
    for role in (CLUSTER_ROLES.get(name), own.get(name)):
        if role is None:
            continue
        if role.get("aggregationRule") is None:
            yield from compiled(role.get("rules"))
            continue
        for selected in _selected(role["aggregationRule"], own):
            yield from _collect(selected, own, seen)


def _selected(aggregation: Manifest, own: dict[str, Manifest]) -> Iterator[str]:
    selectors = [from_object(s) for s in aggregation.get("clusterRoleSelectors") or ()]
    for name, role in (*CLUSTER_ROLES.items(), *own.items()):
        labels = role["metadata"].get("labels")
        if any(selector.matches(labels) for selector in selectors):
            yield name
