"""What an object relies on in other workspaces: exports that it has bound, types that a workspace is of or builds on.

Data, read from an object's spec. Whether somebody may have it rely on them is auth/binding's to say of a request and
the reconciler's of a commit; both ask here what there is to ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from apiserver.model.storagenames import BINDINGS, EXPORTS, SLICES, SYNC_TARGETS, TYPES, WORKSPACES

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
    def verb(self) -> str:
        """What one has to be granted on it."""
        return "use" if self.resource == TYPES else "bind"

    @property
    def missing(self) -> str:
        """What is told to whoever may not."""
        if self.resource == TYPES:
            return f"unable to use workspace type {self}: missing verb='use' permission on workspacetype"
        return f"no permission to bind to export {self}"


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


RELYING: Mapping[str, Callable[[Object, str], Iterator[Named]]] = {
    BINDINGS: _of_binding,
    SLICES: _of_slice,
    TYPES: _of_type,
    SYNC_TARGETS: _of_target,
    WORKSPACES: _of_workspace,
}
"""By kind what one of its objects, in the workspace at a path, names of others. The object is valid: others raise
KeyError, TypeError or AttributeError."""


def stated(storage: str, obj: Object, path: str) -> frozenset[Named]:
    """The same of an object as somebody wrote it, which need not be valid: what is no name names nothing."""
    find = RELYING.get(storage)
    found = set[Named]()
    try:
        for named in find(obj, path) if find is not None else ():
            if isinstance(named.path, str) and isinstance(named.name, str):
                found.add(named)
    except (KeyError, TypeError, AttributeError):
        pass
    return frozenset(found)
