"""The Workspace object that a workspace has in its parent, rendered once for each content.

Called by treeobjects. Those of a fleet differ in little but their names and logical clusters, which nothing else in a
Workspace follows from: rendering it again would find the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apiserver.registry import shards
from apiserver.registry.codec import dump
from apiserver.registry.tree import WorkspaceRecord
from apiserver.schema.defaults import copy_json
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.render import DeclaredObject, Renderer

Object = dict[str, Any]

_KEPT = 1024


class WorkspaceObjects:
    """Those of one step. Objects share what their contents have in common: copy before changing."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, str, str, bytes], Object] = {}

    def render(self, manifest: Manifest, record: WorkspaceRecord, renderer: Renderer) -> DeclaredObject | None:
        """With what the server knows; None where it does not pass its own rules. `renderer`: the parent's."""
        unnamed = {**manifest.value, "metadata": {k: v for k, v in manifest.value["metadata"].items() if k != "name"}}
        content = (dump(unnamed), record.type, record.shard, dump(record.labels))
        like = self._kept.get(content)
        if like is None:
            made, _ = _render(manifest, record, renderer)
            if made is not None and len(self._kept) < _KEPT:
                self._kept[content] = copy_json(made.obj)
            return made
        spec = {**like["spec"], "cluster": record.cluster}
        metadata = {**like["metadata"], "name": manifest.name}
        obj = {**like, "metadata": marked(metadata, record), "spec": spec}
        declared = renderer.trusted(manifest, obj)
        return None if declared.kind.names(manifest.name) else declared

    def problems(self, manifest: Manifest, record: WorkspaceRecord, renderer: Renderer) -> list[LayoutError]:
        """What its own rules have against it."""
        return [] if self.render(manifest, record, renderer) is not None else _render(manifest, record, renderer)[1]


def _render(
    manifest: Manifest, record: WorkspaceRecord, renderer: Renderer
) -> tuple[DeclaredObject | None, list[LayoutError]]:
    where, _, name = record.type.rpartition(":")
    spec = {**(manifest.value.get("spec") or {}), "cluster": record.cluster, "type": {"name": name, "path": where}}
    value = {**manifest.value, "metadata": marked(manifest.value["metadata"], record), "spec": spec}
    return renderer.render(replace(manifest, value=value))


def marked(metadata: Object, record: WorkspaceRecord) -> Object:
    """With what its Shard and its type add to it."""
    out, told = {**metadata}, shards.workspace_annotations(record.shard, record.cluster)
    if told:
        out["annotations"] = {**(metadata.get("annotations") or {}), **told}
    if record.labels:
        out["labels"] = {**record.labels, **(metadata.get("labels") or {})}
    return out
