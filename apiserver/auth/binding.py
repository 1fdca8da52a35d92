"""Who may take an API that another workspace offers: whoever holds the verb `bind` on the export, by RBAC over there.

As kcp has it: an APIBinding is vetted when it is made or refers to something else, a WorkspaceType for the exports that
workspaces of it bind by default (and, with the verb `use`, for types of others that it builds on), a Workspace for its
type (`use`, wherever that is from). A SyncTarget tells
what the exports offer that it supports. The right is judged in the offering workspace for the user as they came,
without needing `access` there. What is not there, a workspace that is not there and a missing right give one answer.
Called by the write path through guards.py, for dry runs too; for commits whoever may push decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.auth.escalation import Rights
from apiserver.auth.scopes import in_scope
from apiserver.auth.user import Attributes, User
from apiserver.model import marks
from apiserver.model.errors import forbidden
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, EXPORTS, SLICES, SYNC_TARGETS, TYPES, WORKSPACES
from apiserver.registry.rest_options import Vet
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import workspace_named
from apiserver.storage.protocol import Store

Object = dict[str, Any]


class Named(NamedTuple):
    """An APIExport or a WorkspaceType (`resource`: its storage name) of the workspace with this path, or this logical
    cluster name."""

    resource: str
    path: str
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"

    @property
    def missing(self) -> str:
        """What is told to whoever may not."""
        if self.resource == TYPES:
            return f"unable to use workspace type {self}: missing verb='use' permission on workspacetype"
        return f"no permission to bind to export {self}"


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
        if found is not None and orjson.loads(found.value)["metadata"]["annotations"].get(marks.ORIGIN) == marks.SYSTEM:
            return True
        verb = "use" if named.resource == TYPES else "bind"
        resource, _, group = named.resource.partition(".")
        asked = Attributes(verb, group, "v1alpha1", resource, name=named.name)
        return self.rights.authorize(provider.cluster, self.bearer, asked, deep=True).allowed


def guard(taker: Taker, kind: ServedKind) -> Vet | None:
    """The Vet for writes of `kind`; None for kinds that take nothing of others. Raises StatusError 403."""
    find = _TAKING.get(kind.storage)
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


def _of_binding(obj: Object, path: str) -> Iterator[Named]:
    export = obj["spec"]["reference"]["export"]
    yield Named(EXPORTS, export.get("path") or path, export["name"])


def _of_slice(obj: Object, path: str) -> Iterator[Named]:
    export = obj["spec"]["export"]
    yield Named(EXPORTS, export.get("path") or path, export["name"])


def _of_type(obj: Object, path: str) -> Iterator[Named]:
    """The types of its own workspace are its own affair: what they bring was vetted when it was written."""
    spec = obj.get("spec") or {}
    for bound in spec.get("defaultAPIBindings") or ():
        yield Named(EXPORTS, bound.get("path") or path, bound["export"])
    for other in (*((spec.get("extend") or {}).get("with") or ()), spec.get("defaultChildWorkspaceType") or {}):
        if other.get("path") not in (None, "", path):
            yield Named(TYPES, other["path"], other["name"])


def _of_workspace(obj: Object, path: str) -> Iterator[Named]:  # noqa: ARG001
    """Once admission has said which type that is."""
    found = (obj.get("spec") or {}).get("type")
    if found:
        yield Named(TYPES, found.get("path") or "", found["name"])


def _of_target(obj: Object, path: str) -> Iterator[Named]:  # noqa: ARG001
    """Without a path it is an export of its own workspace, or the one that ships with Treeplane."""
    for export in (obj.get("spec") or {}).get("supportedAPIExports") or ():
        if export.get("path"):
            yield Named(EXPORTS, export["path"], export["export"])


_TAKING: dict[str, Callable[[Object, str], Iterator[Named]]] = {
    BINDINGS: _of_binding,
    SLICES: _of_slice,
    TYPES: _of_type,
    SYNC_TARGETS: _of_target,
    WORKSPACES: _of_workspace,
}
"""By kind what one of its objects names of others."""
