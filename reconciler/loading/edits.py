"""What writes through the API come to in the files of the repository.

Called by the committer, once for each commit that it makes. An object that a file declares is changed in that file and
document; one that no file declares gets a file of its own. What is not the files' (a deletion of what was never
committed, a change of nothing that git says) is told apart, so that no empty commit is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.model import marks
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.keys import Key
from apiserver.model.kinds import kind_of
from apiserver.registry import strategy, tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record, Store
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.place import CROWDED, folder, place
from reconciler.loading.render import key_of
from reconciler.plan.gitform import declared_form, sent_form
from reconciler.repository.objects import Repository

Object = dict[str, Any]


class Outdated(Exception):
    """The object is another by now than the one that an intent was made from."""


@dataclass(slots=True)
class Edits:
    """Of one commit on top of `base`, the id of a tree. `files`: the new content of each changed file, None where it
    goes; `paths`: the file that each intent is about; `counts`: how many names directories have."""

    store: Store
    repo: Repository
    catalog: Catalog
    base: str
    files: dict[str, bytes | None] = field(default_factory=dict)
    paths: dict[Key, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, intent: Intent) -> bool:
        """Whether the intent changes a file. Raises Outdated, and StatusError for what cannot be committed."""
        live = self.store.get(intent.key)
        if (live.revision if live is not None else 0) != intent.base:
            raise Outdated
        workspace = _workspace(self.store, intent.key.cluster)
        stands = _source(live)
        found = self._find(workspace, stands, intent.key) if stands else None
        if intent.value is None:
            return found is not None and self._change(intent.key, stands, edit.remove(*self._at(found)))
        final = orjson.loads(intent.value)
        if found is None:
            return self._create(workspace, intent, final)
        assert live is not None
        value = self._said(found, workspace, orjson.loads(live.value), final)
        return self._change(intent.key, stands, edit.replace(*self._at(found), value))

    def _create(self, workspace: WorkspaceRecord, intent: Intent, final: Object) -> bool:
        key = intent.key
        value = sent_form({"apiVersion": final["apiVersion"], "kind": final["kind"], **(intent.sent or final)}, final)
        kind = self.catalog.kinds(key.cluster).by_kind(*kind_of(value))
        if kind is not None:
            strategy.drop_unknown(kind, value)
        value["metadata"] = {**value["metadata"], "name": key.name}
        if key.namespace:
            value["metadata"]["namespace"] = key.namespace
        within = folder(workspace.directory, key.resource.partition(":")[0], key.namespace)
        path = place(within, key.name, crowded=self._crowded(within))
        return self._change(key, path, edit.add(self._data(path), path, value))

    def _crowded(self, directory: str) -> bool:
        """Whether so much stands there that what comes had better be spread."""
        count = self.counts.get(directory)
        if count is None:
            there = self.repo.tree_at(self.base, directory)
            count = len(self.repo.entries(there)) if there is not None else 0
        self.counts[directory] = count + 1
        return count >= CROWDED

    def _change(self, key: Key, path: str, data: bytes | None) -> bool:
        self.paths[key] = path
        if data == self._data(path):
            return False
        self.files[path] = data
        return True

    def _find(self, workspace: WorkspaceRecord, path: str, key: Key) -> Manifest | None:
        """The manifest of an object in the file that declares it."""
        data = self._data(path)
        kinds = self.catalog.kinds(workspace.cluster)
        objects = read(data, path).objects if data is not None else []
        return next((m for m in objects if key_of(m, kinds, workspace.cluster) == key), None)

    def _said(self, manifest: Manifest, workspace: WorkspaceRecord, live: Object, final: Object) -> Object:
        """What the file is to say of an object that it declares. A file may be written in another version than the
        stored one; then it says all of it anew."""
        if manifest.value["apiVersion"] != live["apiVersion"]:
            return sent_form(final)
        kind = self.catalog.kinds(workspace.cluster).by_kind(*manifest.gvk)

        def render(value: Object) -> Object | None:
            if kind is None:
                return None
            made: Object = orjson.loads(orjson.dumps(value))
            strategy.prepare(kind, made)
            if kind.namespaced:
                made["metadata"].setdefault("namespace", live["metadata"]["namespace"])
            return made

        return declared_form(manifest.value, live, final, render)

    def _at(self, manifest: Manifest) -> tuple[bytes, str, int]:
        return self._data(manifest.path) or b"", manifest.path, manifest.index

    def _data(self, path: str) -> bytes | None:
        if path in self.files:
            return self.files[path]
        entry = self.repo.entry_at(self.base, path)
        return self.repo.blob(entry.id) if entry is not None and entry.kind == "blob" else None


def _source(live: Record | None) -> str:
    """The file that declares an object, "" if none does."""
    if live is None:
        return ""
    annotations = orjson.loads(live.value)["metadata"].get("annotations") or {}
    return str(annotations.get(marks.SOURCE_PATH, ""))


def _workspace(store: Store, cluster: str) -> WorkspaceRecord:
    workspace = tree.workspace_of(store, cluster)
    if workspace is None or not workspace.served:
        raise unavailable("the workspace is gone, or not served")
    if workspace.errors:
        raise unavailable(f"the workspace is held back: {'; '.join(workspace.errors)}")
    if not workspace.directory:
        raise StatusError(403, "Forbidden", f"workspace {workspace.path} ships with Treeplane and has no directory")
    return workspace


def unreadable(error: BadFile) -> StatusError:
    """409 for a file that cannot be edited as it is."""
    return StatusError(409, "Conflict", f"the file cannot be changed: {error}")
