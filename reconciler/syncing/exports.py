"""Which resources a sync target supports: those of the API exports that its spec names, with identity hashes."""

from __future__ import annotations

from typing import Any

from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import EXPORTS
from apiserver.registry import exportspec, tree
from apiserver.registry.objects import Objects

Object = dict[str, Any]

KUBERNETES = ("root:compute", "kubernetes")
"""The export that every target supports unless it says otherwise."""


def offered(objects: Objects, target: Object) -> dict[GroupResource, str]:
    """Resource → identity hash of the export. An export that is not there (yet) offers nothing."""
    named = (target.get("spec") or {}).get("supportedAPIExports") or [{"export": KUBERNETES[1]}]
    own = tree.workspace_of(objects.store, target["metadata"]["annotations"]["kcp.io/cluster"])
    found: dict[GroupResource, str] = {}
    for reference in named:
        name = reference.get("export", "")
        paths = [reference["path"]] if reference.get("path") else [own.path if own else "", KUBERNETES[0]]
        export = next((e for e in (_export(objects, path, name) for path in paths if path) if e is not None), None)
        if export is None:
            continue
        identity = (export.get("status") or {}).get("identityHash", "")
        for each in exportspec.offered(export):
            found[each.resource] = identity
    return found


def _export(objects: Objects, path: str, name: str) -> Object | None:
    workspace = tree.workspace_at(objects.store, path)
    return objects.get(Key(EXPORTS, workspace.cluster, "", name)) if workspace else None
