"""Kinds as somebody types them (`deploy`, `Deployment`, `widgets.example.io`), and what is known of those in files.

Called by whoever looks for objects in files. Of Kubernetes' kinds and our own the registry knows names, scope and
schema. Of any other a file says group and kind alone, and its resource is guessed as English has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.kinds import GroupVersionKind
from apiserver.registry.builtins.served import common_builtins, kubernetes_builtins
from apiserver.registry.served import ServedKind
from apiserver.schema.node import Node
from reconciler.layout.manifest import Manifest
from reconciler.review.result import ObjectName

_DEFAULT = "default"


class DeclaredId(NamedTuple):
    """What tells an object of a workspace from its others, in whatever file and version. `namespace`: "" for the
    default one, which a file may leave out, and for none."""

    group: str
    kind: str
    namespace: str
    name: str

    @staticmethod
    def of(manifest: Manifest) -> DeclaredId:
        namespace = manifest.namespace if manifest.namespace != _DEFAULT else ""
        return DeclaredId(manifest.gvk.group, manifest.gvk.kind, namespace, manifest.name)

    def told(self, workspace: str) -> ObjectName:
        """In the words of a review. The default namespace is told where it is known that there is one, and a resource
        as it may be called where that is not known."""
        known = _served(self.group, self.kind)
        namespace = self.namespace or (_DEFAULT if known is not None and known.namespaced else "")
        return ObjectName(workspace, self.kind, self.resources[0], namespace, self.name)

    @property
    def resources(self) -> tuple[str, ...]:
        """What its resource is called, with its group: as is known, or as it may be."""
        known = _served(self.group, self.kind)
        if known is not None:
            return (known.qualified,)
        return tuple(f"{each}.{self.group}" if self.group else each for each in _plurals(self.kind.lower()))


def workspace_id(path: str) -> DeclaredId:
    """Of a workspace, as an object of its parent."""
    return DeclaredId("tenancy.kcp.io", "Workspace", "", paths.base(path))


class AskedObjects(NamedTuple):
    """Of which objects it is asked: of a kind, by any of its names, with its group or without; "" of any. `name`: of
    one; `namespace`: "" of any."""

    kind: str = ""
    name: str = ""
    namespace: str = ""

    def __bool__(self) -> bool:
        """Whether some are left out."""
        return any(self)

    def takes(self, found: DeclaredId) -> bool:
        if self.name and found.name != self.name:
            return False
        if self.namespace and (found.namespace or _DEFAULT) != self.namespace:
            return False
        return not self.kind or is_called(self.kind, found.group, found.kind)

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return (f"{self.kind}/{self.name}" if self.name else self.kind or "objects") + where


def is_called(text: str, group: str, kind: str) -> bool:
    """Whether a text is one of the names of a kind."""
    name, dot, of = text.lower().partition(".")
    if dot and of != group:
        return False
    known = _served(group, kind)
    if name == kind.lower():
        return True
    if known is not None:
        return name in (known.resource, known.singular, *known.short_names)
    return name in _plurals(kind.lower())


def is_known(text: str) -> bool:
    """Whether Kubernetes or Treeplane has a kind of that name."""
    return any(is_called(text, each.group, each.kind) for each in _all())


def schema_of(gvk: GroupVersionKind) -> Node | None:
    """None of what is not built in."""
    for table in (kubernetes_builtins(), common_builtins()):
        found = table.by_kind(*gvk)
        if found is not None:
            return found.schema.root
    return None


def resource_of(gvk: GroupVersionKind) -> str:
    """With its group; "" of what is not built in."""
    known = _served(gvk.group, gvk.kind)
    return known.qualified if known is not None else ""


@cache
def _served(group: str, kind: str) -> ServedKind | None:
    return next((each for each in _all() if (each.group, each.kind) == (group, kind)), None)


def _all() -> Iterator[ServedKind]:
    yield from kubernetes_builtins().all()
    yield from common_builtins().all()


def _plurals(kind: str) -> tuple[str, ...]:
    return (f"{kind}s", f"{kind}es", f"{kind[:-1]}ies", kind)
