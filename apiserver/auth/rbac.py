"""May this user do that in this workspace?

Called by the endpoints for every request and by the access reviews. Rights are not inherited: who is not in
system:masters has to be of the groups that the workspace, and each that it is in, requires; needs the verb `access` on
the URL `/` of the very workspace, then what the provider of a bound kind leaves to its consumers, and then one of the
workspace's RBAC rules. Objects are read from the store and kept compiled per workspace until one of them changes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from apiserver.auth.bootstrap import CLUSTER_ROLE_BINDINGS, RBAC_GROUP, TARGET_BINDINGS
from apiserver.auth.maximal import Provided, limiting, provided
from apiserver.auth.policy import ACCESS, Grant, Holders, Policy, RBACObjects, compile_policy, role_rules
from apiserver.auth.requiredgroups import belongs, requirements
from apiserver.auth.rules import Rule
from apiserver.auth.scopes import consumers, identities, in_scope, is_own_service_account
from apiserver.auth.user import KCP_ADMIN, AccessDecision, Attributes, User
from apiserver.model.keys import storage_name
from apiserver.model.paths import NOWHERE, WILDCARD
from apiserver.model.storagenames import BINDINGS, EXPORTS
from apiserver.storage.protocol import Store, View

TARGET = "target"
"""The cluster of an embedded sync target's store: no workspace, so nobody is given access to it; whoever is granted
anything there has it."""

_MASTERS = AccessDecision(True, "system:masters")
_EVERYWHERE = AccessDecision(True, KCP_ADMIN)
_NO_ACCESS = AccessDecision(False, "access denied")
"""Of a workspace, whatever it is that is missing, as kcp shows it."""
_NO_RULE = AccessDecision(False)
"""Of a cluster without workspaces, in Kubernetes' words."""

_SERVERS = frozenset({("apibindings", "apis.kcp.io"), ("apiexports", "apis.kcp.io")})
"""Kinds whose status none but system:masters write."""

_RESOURCES = tuple(
    storage_name(RBAC_GROUP, r) for r in ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
)
MARKED = frozenset(_RESOURCES)
"""Resources of which grants are made."""
LIMITING = frozenset({BINDINGS, EXPORTS})
"""Resources that say how far they go. Of these too a store must count changes in `marked()` for an Authorizer to notice
them."""

_KEPT = 20_000
"""Workspaces whose compiled policy is kept; an ordinary one takes a few kilobytes."""
_MADE_UP = 1024
"""Names of what is not there that are kept with a policy that grants nothing."""
_REMEMBERED = 16_384
"""Decisions kept; one takes half a kilobyte."""
_SHORT = 1024


@dataclass(frozen=True, slots=True)
class SubjectRules:
    """The status of a SelfSubjectRulesReview. `errors`: why it is not complete."""

    resource_rules: list[dict[str, list[str]]]
    url_rules: list[dict[str, list[str]]]
    errors: list[str]

    @staticmethod
    def of(rules: Sequence[Rule], errors: list[str]) -> SubjectRules:
        resources = [rule.as_resource_rule() for rule in rules if rule.resources]
        return SubjectRules(resources, [rule.as_url_rule() for rule in rules if rule.urls], errors)

    def as_json(self) -> dict[str, Any]:
        found = {
            "resourceRules": self.resource_rules,
            "nonResourceRules": self.url_rules,
            "incomplete": bool(self.errors),
        }
        return {**found, "evaluationError": _aggregate(self.errors)} if self.errors else found


class Authorizer:
    """Over one store: the fleet's, or an embedded target's. Safe from every thread."""

    def __init__(self, store: Store, home: str = "") -> None:
        """`home`: what ServiceAccounts' tokens and scopes call this world, if not by its clusters' names."""
        self._store = store
        self._home = home
        self._policies: dict[str, tuple[int, Policy]] = {}
        self._absent: dict[str, tuple[int, Policy]] = {}
        """Of what is not there, so that asking again takes as long as of what is; by names that anybody makes up."""
        self._decided: dict[tuple[str, str, tuple[str, ...], Attributes], tuple[Policy, Grant | None]] = {}
        self._lock = threading.Lock()

    def authorize(self, cluster: str, user: User, attributes: Attributes, *, deep: bool = False) -> AccessDecision:
        """`cluster` is a logical cluster name, `target`, or `*` (for those whom every workspace admits). `deep`: RBAC
        alone, whether or not the user has access."""
        home = self._home or cluster
        user = in_scope(user, home)
        if user.is_master:
            return _MASTERS
        if cluster == WILDCARD:
            return _EVERYWHERE if KCP_ADMIN in user.groups else _NO_ACCESS
        if _is_the_servers(attributes):
            return _NO_ACCESS
        policy = self._policy(cluster)
        if not deep:
            # Access first, so that whoever has none is told as soon as of what is not there; it is one answer anyway.
            may_enter = self._has_access(policy, cluster, user) and self._belongs(cluster, home, user)
            if not (may_enter and self._is_within(policy, home, user, attributes)):
                return _NO_ACCESS
        for identity in identities(user, home):
            grant = self._granted(cluster, policy, identity, attributes)
            if grant is not None:
                return AccessDecision(True, grant.origin)
        missing = self._missing(policy, user, home, attributes.namespace)
        if missing:
            return AccessDecision(False, f"RBAC: {_aggregate(missing)}")
        return _NO_RULE if cluster == TARGET else _NO_ACCESS

    def holders(self, cluster: str, asked: Attributes) -> Holders:
        """Whom RBAC of a workspace gives the verb of `asked` on cluster-scoped objects, as Policy.holders."""
        return self._policy(cluster).holders(asked)

    def rules(self, cluster: str, user: User, namespace: str) -> SubjectRules:
        """All that `user` may do in `namespace` and at the cluster scope."""
        rules = self.granted_rules(cluster, user, namespace)
        missing = self._missing(self._policy(cluster), user, self._home or cluster, namespace) if rules else []
        return SubjectRules.of(rules, missing)

    def granted_rules(self, cluster: str, user: User, namespace: str) -> tuple[Rule, ...]:
        """The rules in force for `user` in `namespace` (""; at the cluster scope), each once."""
        home = self._home or cluster
        user = in_scope(user, home)
        if cluster == WILDCARD:
            return ()
        policy = self._policy(cluster)
        if not (user.is_master or self._has_access(policy, cluster, user)):
            return ()
        grants = [grant for identity in identities(user, home) for grant in policy.grants(identity)]
        return tuple(dict.fromkeys(r for grant in grants if grant.namespace in ("", namespace) for r in grant.rules))

    def role_rules(self, cluster: str, kind: str, namespace: str, name: str) -> list[dict[str, Any]] | None:
        """The rules of a Role or ClusterRole as it stands in the store; None if there is none of that name."""
        return role_rules(stored_objects(self._store, cluster), kind, namespace, name)

    @staticmethod
    def _missing(policy: Policy, user: User, home: str, namespace: str) -> list[str]:
        user = in_scope(user, home)
        return [text for identity in identities(user, home) for text in policy.missing(identity, namespace)]

    def _belongs(self, cluster: str, home: str, user: User) -> bool:
        required = requirements(self._store, cluster) if cluster != TARGET else []
        return not required or belongs(user, identities(user, home), required)

    def _has_access(self, policy: Policy, cluster: str, user: User) -> bool:
        home = self._home or cluster
        if is_own_service_account(user, home):
            return True
        if cluster == TARGET:  # is told by nothing to those whom it does not know
            return any(policy.known(identity) for identity in identities(user, home))
        granted = any(self._granted(cluster, policy, identity, ACCESS) for identity in identities(user, home))
        return granted and not cluster.startswith(NOWHERE)  # looked up all the same, so that it takes as long

    def _is_within(self, policy: Policy, home: str, user: User, asked: Attributes) -> bool:
        """Whether who provides the kind leaves this to who binds it. Of what is bound, it looks whether the provider's
        policy is still what it was; of all else it looks at nothing."""
        source = policy.provided.get((asked.group, asked.resource)) if not asked.path else None
        if source is None:
            return True
        return self.leaves(source, home, user, asked)

    def leaves(self, source: Provided, home: str, user: User, asked: Attributes) -> bool:
        """Whether the policy of an export leaves something to a user who comes from the world `home`."""
        theirs = self._policy(source.cluster)
        if source.export not in theirs.limiting:
            return True
        return any(self._granted(source.cluster, theirs, each, asked) for each in consumers(user, home))

    def _granted(self, cluster: str, policy: Policy, user: User, asked: Attributes) -> Grant | None:
        """Remembered, since clients ask the same again and again; but nothing long, with which a client could fill the
        memory. What another policy decided does not count."""
        if len(asked.path) + len(asked.namespace) + len(asked.name) + len(asked.qualified_resource) > _SHORT:
            return policy.granted(user, asked)
        key = cluster, user.name, user.groups, asked
        found = self._decided.get(key)
        if found is not None and found[0] is policy:
            return found[1]
        grant = policy.granted(user, asked)
        if len(self._decided) >= _REMEMBERED:
            self._decided.clear()
        self._decided[key] = policy, grant
        return grant

    def _policy(self, cluster: str) -> Policy:
        found = self._kept(cluster, self._store)
        if found is not None:
            return found
        with self._lock, self._store.view() as view:
            policy = self._kept(cluster, view)  # another thread may have come first
            if policy is None:
                policy = _compile(view, cluster)
                known, most = self._known(cluster)
                if len(known) >= most:
                    known.pop(next(iter(known)))
                known[cluster] = view.marked(cluster), policy
            return policy

    def _known(self, cluster: str) -> tuple[dict[str, tuple[int, Policy]], int]:
        """Where its policy is kept, and how many of them are."""
        return (self._absent, _MADE_UP) if cluster.startswith(NOWHERE) else (self._policies, _KEPT)

    def _kept(self, cluster: str, view: View) -> Policy | None:
        """The policy that was compiled, if nothing that it may be made of has changed in its workspace since."""
        marked, policy = self._known(cluster)[0].get(cluster, (0, None))
        return policy if policy is not None and view.marked(cluster) == marked else None


def _is_the_servers(asked: Attributes) -> bool:
    """Whether it is to be written which kinds a binding serves, or under which identity. No role, not even
    cluster-admin, has a say in that."""
    return asked.subresource == "status" and asked.verb != "get" and (asked.resource, asked.group) in _SERVERS


def _compile(view: View, cluster: str) -> Policy:
    shipped = TARGET_BINDINGS if cluster == TARGET else CLUSTER_ROLE_BINDINGS
    policy = compile_policy(stored_objects(view, cluster), shipped)
    bound = provided(_read(view, BINDINGS, cluster), cluster)
    return replace(policy, provided=bound, limiting=limiting(_read(view, EXPORTS, cluster)))


def stored_objects(view: View, cluster: str) -> RBACObjects:
    """A workspace's RBAC as it stands in the store."""
    return RBACObjects(*(_read(view, resource, cluster) for resource in _RESOURCES))


def _read(view: View, resource: str, cluster: str) -> list[dict[str, Any]]:
    return [orjson.loads(record.value) for record in view.scan(resource, cluster).records]


def _aggregate(errors: list[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
