"""A Workspace that is made through the API: its type, who made it, and that it may stand where it does.

Called by the endpoints where a write may make one. The type is found as a commit finds it (registry/workspacetypes).
Whether whoever asks may use it is auth/binding's question; what becomes of the Workspace is the reconciler's
(controllers/workspaces).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.admission.place import spec_of
from apiserver.model import paths
from apiserver.model.errors import forbidden
from apiserver.model.keys import Key
from apiserver.model.marks import OWNER, WORKSPACE_FINALIZER
from apiserver.model.storagenames import TYPES
from apiserver.registry import workspacetypes
from apiserver.registry.rest_options import Complete, Vet
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import WorkspaceRecord, path_named, workspace_named
from apiserver.registry.workspacetypes import FindType, ResolvedType, TypeRef
from apiserver.storage.protocol import View

Object = dict[str, Any]

_OF_THE_SERVER = ("cluster", "URL")
"""Fields of a spec that nobody else sets."""


class NewWorkspace(NamedTuple):
    """One that `user` (a userInfo) makes in the workspace of `parent`. `stored`: no commit will know of it, so the
    object itself says whose it is, and waits for its end."""

    store: View
    parent: WorkspaceRecord
    kind: ServedKind
    user: Mapping[str, Any]
    stored: bool

    def completing(self, others: Complete) -> Complete:
        """`others`, and what the server says of it. Raises StatusError 403 for what only the server says."""

        def complete(obj: Object) -> None:
            others(obj)
            metadata, spec = obj.get("metadata"), spec_of(obj)
            if not isinstance(metadata, dict):
                return
            name = str(metadata.get("name") or "")
            if spec.get("mount"):
                raise self._refused(name, "a mount is declared in git: say spec.mount in a workspace.yaml")
            for field in _OF_THE_SERVER:
                if spec.get(field):
                    raise self._refused(name, f"spec.{field} can only be set by system privileged users")
            if isinstance(spec.get("type") or {}, dict):
                ref, (_, said) = self._type(name, obj).ref, workspacetypes.wanted(obj)
                spec["type"] = {"name": ref.name, "path": said or ref.path}

        return complete

    def _tie(self, metadata: Object) -> None:
        whose = orjson.dumps(self.user, option=orjson.OPT_SORT_KEYS).decode()
        metadata["annotations"] = {**(metadata.get("annotations") or {}), OWNER: whose}
        found = metadata.get("finalizers") or []
        metadata["finalizers"] = found if WORKSPACE_FINALIZER in found else [*found, WORKSPACE_FINALIZER]

    def vetting(self, others: Vet) -> Vet:
        """`others`, which ask for the right to use the type, and whether the type may stand here. Then the server says
        whose it is, which no client may."""

        def vet(new: Object, live: Object | None) -> None:
            others(new, live)
            name = new["metadata"]["name"]
            serve, before = ((obj.get("spec") or {}).get("serve") for obj in (new, live or {}))
            if self.stored and serve and serve != before:
                raise self._refused(name, "spec.serve names a commit, and no commit knows of this workspace")
            if self.stored and (new.get("spec") or {}).get("source"):
                raise self._refused(name, "spec.source is for a workspace that git declares, by a workspace.yaml")
            kind = self._type(name, new) if live is None else None
            if kind is not None and kind.error:
                raise self._refused(name, f"{kind.error}: {kind.remedy}")
            if live is None and self.stored:
                self._tie(new["metadata"])

        return vet

    def _type(self, name: str, obj: Object) -> ResolvedType:
        path, above = paths.join(self.parent.path, name), TypeRef.parse(self.parent.type)
        if self.stored:
            obj = workspacetypes.by_path(obj, lambda named: path_named(self.store, named))
        return workspacetypes.resolve(obj, path, above, types_in(self.store))

    def _refused(self, name: str, why: str) -> Exception:
        return forbidden(self.kind.resource, self.kind.group, name, why)


def types_in(store: View) -> FindType:
    """Finds WorkspaceTypes as they are stored, whoever made them."""

    def find(path: str, name: str) -> Object | None:
        record = workspace_named(store, path)
        found = store.get(Key(TYPES, record.cluster, "", name)) if record is not None and record.served else None
        return orjson.loads(found.value) if found is not None else None

    return find
