"""Nobody grants more than they hold: what Kubernetes checks when a role or a binding is written.

Called by the write path, through guards.py, with the object to be stored (`guard` makes that call). Whoever holds the
verb `escalate` on a role, or `bind` on the role that a binding names, may grant what they do not hold; so may
system:masters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from apiserver.auth.bootstrap import RBAC_GROUP
from apiserver.auth.rules import Rule
from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.model.errors import StatusError, forbidden, not_found
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import RbacPart
from apiserver.registry.rest_options import Vet, vet_nothing
from apiserver.registry.served import ServedKind

Object = dict[str, Any]

_ROLES = having(lambda kind: kind.grants is RbacPart.ROLE)
_EVERYTHING: list[Object] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


class Rights(Protocol):
    """As much of the Authorizer as the guards need."""

    def authorize(self, cluster: str, user: User, attributes: Attributes, *, deep: bool = False) -> AccessDecision: ...

    def granted_rules(self, cluster: str, user: User, namespace: str) -> tuple[Rule, ...]: ...

    def role_rules(self, cluster: str, kind: str, namespace: str, name: str) -> list[Object] | None: ...


class RulePart(NamedTuple):
    """The smallest piece of a rule: one verb on one resource (of one name, or of any: ""), or on one URL."""

    verb: str
    group: str = ""
    resource: str = ""
    name: str = ""
    url: str = ""


def guard(rights: Rights, cluster: str, user: User, kind: ServedKind) -> Vet:
    """The Vet for writes of `kind` by `user`. Raises StatusError 403, and 404 for a binding to a role that is not."""
    if kind.group != RBAC_GROUP or user.is_master:
        return vet_nothing
    writer = _Writer(rights, cluster, user, kind)
    return writer.role if kind.qualified in _ROLES else writer.binding


class _Writer:
    """One user's writes of one kind."""

    def __init__(self, rights: Rights, cluster: str, user: User, kind: ServedKind) -> None:
        self._rights = rights
        self._cluster = cluster
        self._user = user
        self._kind = kind

    def role(self, new: Object, live: Object | None) -> None:
        if live is not None and _only_for_garbage(new, live):
            return
        namespace, name = _place(new)
        if self._may("escalate", self._kind.resource, namespace, name):
            return
        if new.get("aggregationRule") or (live or {}).get("aggregationRule"):
            if self._missing(namespace, _EVERYTHING):
                raise self._refusal(name, "must have cluster-admin privileges to use the aggregationRule")
            return
        self._hold(namespace, name, new.get("rules") or [])

    def binding(self, new: Object, live: Object | None) -> None:
        if live is not None and _only_for_garbage(new, live):
            return
        namespace, name = _place(new)
        kind, role = new["roleRef"]["kind"], new["roleRef"]["name"]
        resource = "clusterroles" if kind == "ClusterRole" else "roles"
        if self._may("bind", resource, namespace, role):
            return
        rules = self._rights.role_rules(self._cluster, kind, namespace, role)
        if rules is None:
            # As kube-apiserver says it: the resource is the request's, the name the role's.
            raise not_found(self._kind.resource, RBAC_GROUP, role)
        self._hold(namespace, name, rules)

    def _may(self, verb: str, resource: str, namespace: str, name: str) -> bool:
        asked = Attributes(verb, RBAC_GROUP, "*", resource, namespace=namespace, name=name)
        return self._rights.authorize(self._cluster, self._user, asked).allowed

    def _missing(self, namespace: str, rules: Iterable[Object]) -> list[RulePart]:
        return missing(self._rights.granted_rules(self._cluster, self._user, namespace), rules)

    def _hold(self, namespace: str, name: str, rules: Iterable[Object]) -> None:
        lacking = self._missing(namespace, rules)
        if lacking:
            groups = " ".join(f'"{group}"' for group in self._user.groups)
            text = "\n".join(sorted(set(_described(lacking))))
            raise self._refusal(
                name,
                f'user "{self._user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently '
                f"held:\n{text}",
            )

    def _refusal(self, name: str, why: str) -> StatusError:
        return forbidden(self._kind.resource, self._kind.group, name, why)


def missing(held: Iterable[Rule], wanted: Iterable[Object]) -> list[RulePart]:
    """The parts of the `wanted` rules that no rule of `held` covers, in their order."""
    held = tuple(held)
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(rule, part) for rule in held)]


def _parts(rule: Object) -> Iterator[RulePart]:
    verbs, urls = rule.get("verbs") or (), rule.get("nonResourceURLs") or ()
    for url in urls:
        yield from (RulePart(verb, url=url) for verb in verbs)
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for name in rule.get("resourceNames") or ("",):
                yield from (RulePart(verb, group, resource, name) for verb in verbs)


def _covers(rule: Rule, part: RulePart) -> bool:
    if "*" not in rule.verbs and part.verb not in rule.verbs:
        return False
    if part.url:
        return any(_url_covers(url, part.url) for url in rule.urls)
    if "*" not in rule.groups and part.group not in rule.groups:
        return False
    _, slash, subresource = part.resource.partition("/")
    fitting = {"*", part.resource, *([f"*/{subresource}"] if slash else ())}
    return not rule.resources.isdisjoint(fitting) and (not rule.names or part.name in rule.names)


def _url_covers(held: str, url: str) -> bool:
    """A pattern covers a pattern that begins as it does."""
    return held == url or (held.endswith("*") and url.startswith(held.rstrip("*")))


def _described(parts: list[RulePart]) -> Iterator[str]:
    """As Kubernetes prints rules, the verbs on one thing together."""
    verbs: dict[RulePart, list[str]] = {}
    for part in parts:
        found = verbs.setdefault(part if part.url else part._replace(verb=""), [])
        if part.verb not in found:
            found.append(part.verb)
    for part, named in verbs.items():
        fields: list[tuple[str, list[str]]]
        if part.url:
            fields = [("NonResourceURLs", [part.url])]
        else:
            fields = [("APIGroups", [part.group]), ("Resources", [part.resource])]
            fields += [("ResourceNames", [part.name])] if part.name else []
        fields.append(("Verbs", named))
        yield "{" + ", ".join(f"{field}:{_quoted(values)}" for field, values in fields) + "}"


def _quoted(values: list[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


_GARBAGE = frozenset({"finalizers", "managedFields", "ownerReferences", "resourceVersion"})


def _only_for_garbage(new: Object, live: Object) -> bool:
    """Whether a change is of nothing but what garbage collection needs. A label is more: it may make the role part of
    others."""
    return _granting(new) == _granting(live)


def _granting(obj: Object) -> Object:
    """Without what grants nothing, empty fields among it."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _GARBAGE and v}
    return {k: v for k, v in {**obj, "metadata": metadata}.items() if v}


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
