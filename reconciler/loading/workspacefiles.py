"""What writes of Workspace objects come to in the repository: a directory comes, its workspace.yaml changes, or it goes
with all that is in it.

Called by edits, which does the same for all other objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from apiserver.model import paths
from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View
from reconciler.layout.draft import Draft
from reconciler.layout.edit import add
from reconciler.layout.manifest import Manifest
from reconciler.layout.place import folder, place
from reconciler.layout.source import Editor
from reconciler.layout.workspace import declaration, named
from reconciler.layout.yamldoc import parse
from reconciler.loading.storedworkspaces import ADMIN, admin_of
from reconciler.statusbranch.format import is_apart

Object = dict[str, Any]

FILE = "workspace.yaml"
_BINDINGS = "clusterrolebindings.rbac.authorization.k8s.io"
_METADATA = ("name", "labels", "annotations")
_ASIDE = "_workspaces"
"""Below a workspace's directory: children whose names are taken there by directories that only group. No workspace is
called so."""


class WorkspaceFiles(NamedTuple):
    """Of children of the workspace `parent`. `editor`: of its directory."""

    store: View
    draft: Draft
    parent: WorkspaceRecord
    editor: Editor

    def create(self, name: str, value: Object, author: str) -> str:
        """A directory for a new one, with who made it as its administrator; the path of its workspace.yaml. Raises
        StatusError where there is no room for it."""
        directory = self._room(name)
        file = f"{directory}/{FILE}"
        self.editor.add(file, _with(value, {**_sayable(value), "name": name}))
        admin = admin_of(author, self.parent.cluster)
        self.editor.add(place(folder(directory, _BINDINGS, ""), ADMIN), admin)
        return file

    def again(self, name: str, value: Object) -> str:
        """Of one for which a directory came already, and which is not served: its workspace.yaml says `value`. Its
        path, "" if there is none."""
        for directory in self._places(name):
            file = f"{directory}/{FILE}"
            if self.draft.read(file) is not None:
                self.draft.write(file, add(None, file, _with(value, {**_sayable(value), "name": name})))
                return file
        return ""

    def remove(self, key: Key) -> bool:
        """The directory goes, workspaces below it too."""
        directory = self.directory(key)
        if directory:
            self.draft.drop(directory)
        return bool(directory)

    def directory(self, key: Key) -> str:
        """Of a Workspace; "" where it has none."""
        record = tree.workspace_at(self.store, paths.join(self.parent.path, key.name))
        return record.directory if record is not None and not is_apart(record.directory) else ""

    def change(self, file: str, name: str, said: Callable[[Manifest], Object]) -> bool:
        """A workspace.yaml says something else: `said`, of what it says now, its name included. Raises BadFile."""
        data = self.draft.read(file) or b""
        found = declaration(data, file)
        manifest = named(found, file, name)
        value = said(manifest)
        metadata = _sayable(value)
        if found.name is None:
            metadata.pop("name", None)
        if found.uid:  # which says what the directory is, and is nobody's to change through the API
            metadata["uid"] = found.uid
        value = _with(value, metadata)
        return self.editor.replace(manifest, value) if parse(data, file) else self.editor.add(file, value)

    def _room(self, name: str) -> str:
        above, spread, aside = self._places(name)
        for directory in (spread if self.draft.is_crowded(self.parent.directory) else above, aside):
            if not self.draft.is_there(directory):
                return directory
        raise StatusError(409, "Conflict", f"the repository has {directory} already, and it is no workspace")

    def _places(self, name: str) -> tuple[str, str, str]:
        """Where a directory of that name may come: as ever, where many stand, and where the name is taken."""
        above = self.parent.directory
        spread = f"{above}/{hashlib.blake2b(name.encode(), digest_size=1).hexdigest()}_"
        return f"{above}/{name}", f"{spread}/{name}", f"{above}/{_ASIDE}/{name}"


def _sayable(value: Object) -> Object:
    """Of its metadata, what a workspace.yaml says. The rest (finalizers, owners) is runtime state beside it."""
    return {field: each for field, each in (value.get("metadata") or {}).items() if field in _METADATA}


def _with(value: Object, metadata: Object) -> Object:
    out = {field: each for field, each in value.items() if field != "metadata"}
    return {**out, **({"metadata": metadata} if metadata else {})}
