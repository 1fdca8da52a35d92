"""Marks of a LogicalCluster through the API: that its workspace is inactive, and how many objects it may have.

Called by the endpoints for those who administer everything; to others a LogicalCluster is no more theirs to write than
anything else that follows from commits. What is marked so goes to the store whatever the workspace's writes are, and
stands on the status branch. What its workspace.yaml says of these is said there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from apiserver.admission.writes import refusal
from apiserver.model import origins, paths, reserved
from apiserver.model.errors import forbidden
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import WorkspaceRecord, workspace_at
from apiserver.storage.protocol import View

Object = dict[str, Any]

_CHANGES = ("update", "patch")
_BESIDE = ("annotations", "managedFields", "resourceVersion", "generation")
_READY = "Ready"


class Marking(NamedTuple):
    """Of the workspace with this record."""

    store: View
    record: WorkspaceRecord
    kind: ServedKind

    def admit(self, verb: str, name: str, live: Object | None) -> None:
        """See rest_options.Admit. A home has no Workspace that could be deleted instead."""
        if live is None or not (verb in _CHANGES or (verb == "delete" and self.record.is_home)):
            raise refusal(self.kind, self.record, name, live)

    def vet(self, new: Object, live: Object | None) -> None:
        """See rest_options.Vet: nothing else changes, but what may hold a workspace that was made through the API."""
        if live is None or self._rest(new) != self._rest(live):
            raise refusal(self.kind, self.record, str(new["metadata"].get("name", "")), live)
        said, before = reserved.settable(new["metadata"]), reserved.settable(live["metadata"])
        for key in reserved.SETTABLE:
            if said.get(key) != before.get(key):
                self._check_nobody_says(key, new)
        why = reserved.wrong(said)
        if why:
            raise self._refused(new, why)
        phase = (live.get("status") or {}).get("phase")
        if reserved.is_inactive(said) and not reserved.is_inactive(before) and phase != _READY:
            raise self._refused(new, f"a workspace is marked inactive when it is Ready; it is {phase}")

    def _check_nobody_says(self, key: str, new: Object) -> None:
        """Raises StatusError 403 where a workspace.yaml says it."""
        parent = workspace_at(self.store, self.record.parent) if self.record.parent else None
        where = Key(WORKSPACES, parent.cluster, "", paths.base(self.record.path)) if parent is not None else None
        found = self.store.get(where) if where is not None else None
        annotations = (orjson.loads(found.value)["metadata"].get("annotations") or {}) if found is not None else {}
        path = origins.path_in(annotations)
        if path and key in annotations:
            raise self._refused(new, f"{key} is said in {path}: edit it, commit and push")

    def _refused(self, obj: Object, why: str) -> Exception:
        return forbidden(self.kind.resource, self.kind.group, str(obj["metadata"].get("name", "")), why)

    def _rest(self, obj: Object) -> Object:
        """Of an object what is not to change."""
        beside = (*_BESIDE, "finalizers") if self.record.stored else _BESIDE
        metadata = {k: v for k, v in obj["metadata"].items() if k not in beside}
        annotations = obj["metadata"].get("annotations") or {}
        others = {k: v for k, v in annotations.items() if k not in reserved.SETTABLE}
        return {**obj, "metadata": {**metadata, "annotations": others}}
