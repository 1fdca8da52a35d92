"""Who may take an API that another workspace offers: whoever holds the verb `bind` on the export, by RBAC over there.

As kcp has it: an APIBinding is vetted when it is made or refers to something else, a WorkspaceType for the exports that
workspaces of it bind by default (and, with the verb `use`, for types of others that it builds on), a Workspace for its
type (`use`, wherever that is from). A SyncTarget tells
what the exports offer that it supports. The right is judged in the offering workspace for the user as they came,
without needing `access` there. What is not there, a workspace that is not there and a missing right give one answer.
Called by the write path through guards.py, for dry runs too. Of commits the reconciler asks the same, where it asks who
pushes them (auth/pushing). What an object takes of others registry/reliance says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.auth.escalation import Rights
from apiserver.auth.scopes import in_scope
from apiserver.auth.user import Attributes, User
from apiserver.model import marks
from apiserver.model.errors import forbidden
from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, TYPES, WORKSPACES
from apiserver.registry.reliance import RELYING, Named
from apiserver.registry.rest_options import Vet
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import workspace_named
from apiserver.storage.protocol import Store

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taker:
    """Who writes in the workspace at `path`, logical cluster `cluster`. `bearer`: the user as they came, not as that
    workspace sees them: what they may do elsewhere is for elsewhere to say."""

    rights: Rights
    store: Store
    bearer: User
    cluster: str
    path: str

    def may(self, named: Named, *, to_come: bool = False) -> bool:
        """Administrators of everything may name what is yet to come, as in git, and so may, where it is `to_come`, who
        has the right to it by its name. What ships with Treeplane is everybody's."""
        if in_scope(self.bearer, self.cluster).is_master:
            return True
        provider = workspace_named(self.store, named.path)
        found = self.store.get(Key(named.resource, provider.cluster, "", named.name)) if provider else None
        if provider is None or (found is None and not to_come):
            return False
        if found is not None and is_everybodys(found.value):
            return True
        return self.rights.authorize(provider.cluster, self.bearer, asked_about(named), deep=True).allowed


def asked_about(named: Named) -> Attributes:
    """What RBAC of the workspace that offers something is asked about it."""
    resource, _, group = named.resource.partition(".")
    return Attributes(named.verb, group, "v1alpha1", resource, name=named.name)


def is_everybodys(value: bytes) -> bool:
    """Whether an object, as it is stored, ships with Treeplane."""
    return bool((orjson.loads(value)["metadata"].get("annotations") or {}).get(marks.ORIGIN) == marks.SYSTEM)


def guard(taker: Taker, kind: ServedKind) -> Vet | None:
    """The Vet for writes of `kind`; None for kinds that take nothing of others. Raises StatusError 403."""
    find = RELYING.get(kind.storage)
    if find is None:
        return None

    def vet(new: Object, live: Object | None) -> None:
        known = set(find(live, taker.path)) if live is not None else set()
        for named in find(new, taker.path):
            to_come = kind.storage == TYPES and named.resource == EXPORTS
            if named not in known and not taker.may(named, to_come=to_come):
                action = "create" if live is None else "update"
                unable = "" if kind.storage == WORKSPACES else f"unable to {action} {kind.kind}: "
                raise forbidden(kind.resource, kind.group, new["metadata"].get("name", ""), unable + named.missing)

    return vet
