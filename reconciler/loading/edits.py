"""What writes through the API come to in the files of the repository.

Called by the committer, once for each commit that it makes. An object that a file declares is changed in that file and
document; one that no file declares gets a file of its own. What is not the files' (a deletion of what was never
committed, a change of nothing that git says) is told apart, so that no empty commit is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.model import origins
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.keys import Key
from apiserver.model.kinds import kind_of
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import pins, strategy, tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent, fits, places
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Record, Store
from reconciler.layout.draft import Draft
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.place import folder, place
from reconciler.layout.source import Editor, NotWritten, ReadOnly
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.render import key_of
from reconciler.loading.sealedsecrets import SECRETS, SealedSecrets, creation_for, said_of
from reconciler.loading.sources import Content, Sources
from reconciler.loading.step import FindKeys
from reconciler.loading.unsealing import NO_KEYS
from reconciler.loading.workspacefiles import WorkspaceFiles
from reconciler.plan.gitform import Render, declared_form, sent_form

Object = dict[str, Any]


class Outdated(Exception):
    """The object is another by now than the one that an intent was made from."""


class NotTogether(Exception):
    """An earlier write of the same commit is in its way: what it comes to is told by what that leaves."""


class FixedEditor:
    """Of a workspace whose own content is an earlier commit's, or another repository's: nothing of it changes. As
    layout/source.Editor."""

    def __init__(self, content: Content, sources: Sources, workspace: WorkspaceRecord) -> None:
        self._content, self._sources, self._workspace = content, sources, workspace

    def _editor(self) -> Editor:
        """What is written with it nobody reads."""
        tree = self._content.tree
        return self._sources.of(*self._content).editor(Draft(tree.repo, tree.tree_id))

    def find(self, name: str) -> Iterator[Manifest]:
        return self._editor().find(name)

    def replace(self, manifest: Manifest, value: Object) -> bool:
        if self._editor().replace(manifest, value):
            raise self.refusal()
        return False

    def remove(self, _: Manifest) -> bool:
        raise self.refusal()

    def add(self, _: str, _value: Object) -> bool:
        raise self.refusal()

    def refusal(self) -> ReadOnly:
        source, pin = SourceRef.kept(self._workspace.source), self._workspace.pin
        whence = f"its content comes from {source}: change it there, and push" if source is not None else ""
        if not pin:
            return ReadOnly(whence)
        remedy = "what is written now would not be served: take spec.serve out first (treeplane resume)"
        return ReadOnly("; ".join(filter(None, (f"it is pinned {pins.told(pin)}, and {remedy}", whence))))


class Edits:
    """Of one commit on top of the tree that is served. `draft`: the files that it changes; `paths`: the file that each
    intent is about."""

    def __init__(
        self, store: Store, catalog: Catalog, sources: Sources, tree: WorkspaceTree, keys: FindKeys = lambda _: NO_KEYS
    ) -> None:
        self.draft = Draft(tree.repo, tree.tree_id)
        self.paths: dict[Key, str] = {}
        self._store, self._catalog, self._sources, self._tree = store, catalog, sources, tree
        self._keys = keys
        self._editors: dict[str, Editor] = {}
        self._workspaces_of: dict[str, WorkspaceRecord] = {}
        self._dropped: list[str] = []
        self._taken: set[tuple[object, ...]] = set()

    def encrypts(self, intent: Intent) -> bool:
        """Whether a Secret is written to git, encrypted: it stands there so, or is new, and `.sops.yaml` names
        recipients for its file. Any other must not be added. Raises StatusError."""
        workspace = _workspace(self._store, intent.key.cluster)
        live = self._store.get(intent.key)
        origin = origins.origin_of(orjson.loads(live.value)) if live is not None else None
        if origin is None or not origin.path:
            return (
                intent.value is not None
                and creation_for(self.draft, self._new_place(workspace, intent.key)) is not None
            )
        if workspace.source and origin.in_git:
            return True  # of another repository, whatever the fleet's has under that path: nothing is written to it
        data = self.draft.read(origin.path) if origin.in_git else None
        return data is not None and any(each.sealed is not None for each in read(data, origin.path).objects)

    def add(self, intent: Intent) -> bool:
        """Whether the intent changes a file. Raises Outdated, NotTogether, and StatusError for what cannot be
        committed."""
        workspace = self._of(intent.key.cluster)
        besides = places(intent)
        if besides & self._taken or any(is_within(workspace.directory, each) for each in self._dropped):
            raise NotTogether
        if not fits(self._store, intent):
            raise Outdated
        try:
            changes = self._add(workspace, intent)
        except NotWritten as error:
            raise StatusError(403, "Forbidden", str(error)) from error
        except ReadOnly as error:
            raise StatusError(403, "Forbidden", f"workspace {workspace.path} is not written to: {error}") from error
        if changes:
            self._taken |= besides
        return changes

    def path_of(self, cluster: str) -> str:
        """Of a workspace of which something is edited."""
        return self._of(cluster).path

    def _of(self, cluster: str) -> WorkspaceRecord:
        found = self._workspaces_of.get(cluster)
        if found is None:
            found = self._workspaces_of[cluster] = _workspace(self._store, cluster)
        return found

    def _add(self, workspace: WorkspaceRecord, intent: Intent) -> bool:
        live = self._store.get(intent.key)
        if (live.revision if live is not None else 0) != intent.base:
            raise Outdated
        stands = origins.file_of(orjson.loads(live.value)) if live is not None else ""
        if stands and intent.key.resource == WORKSPACES:
            return self._workspace(workspace, stands, intent)
        found = self._find(workspace, stands, intent.key) if stands else None
        if found is not None:
            self.paths[intent.key] = stands
        if found is not None and intent.key.resource == SECRETS:
            return self._secret(workspace, found, intent, live)
        if intent.value is None:
            return found is not None and self._editor(workspace).remove(found)
        final = orjson.loads(intent.value)
        if found is None:
            return self._create(workspace, intent, final)
        assert live is not None
        value = self._said(found, workspace, orjson.loads(live.value), final)
        return self._editor(workspace).replace(found, value)

    def _editor(self, workspace: WorkspaceRecord) -> Editor:
        """Of the workspace's own content. Raises ReadOnly where that is not written back."""
        found = self._editors.get(workspace.path)
        if found is None:
            place = self._place(workspace)
            if workspace.elsewhere:
                content = self._sources.served(self._tree, place, workspace.elsewhere)
                found = FixedEditor(content, self._sources, workspace)
            else:
                found = self._sources.of(self._tree, place).editor(self.draft)
            self._editors[workspace.path] = found
        return found

    def _place(self, workspace: WorkspaceRecord) -> WorkspaceDir:
        place = self._tree.find(workspace.path, workspace.directory)
        if place is None:
            raise unavailable("the workspace is gone, or not served")
        return place

    def _create(self, workspace: WorkspaceRecord, intent: Intent, final: Object) -> bool:
        key, value = intent.key, self._sent(intent, final)
        if key.resource == WORKSPACES:
            self.paths[key] = self._workspaces(workspace).create(key.name, value, intent.author)
            return True
        path = self._new_place(workspace, key)
        self.paths[key] = path
        if key.resource == SECRETS:
            return self._new_secret(workspace, path, value)
        return self._editor(workspace).add(path, value)

    def _sent(self, intent: Intent, final: Object) -> Object:
        """What a file is to say of an object that none says yet."""
        key = intent.key
        value = sent_form({"apiVersion": final["apiVersion"], "kind": final["kind"], **(intent.sent or final)}, final)
        kind = self._catalog.kinds(key.cluster).by_kind(*kind_of(value))
        if kind is not None:
            strategy.drop_unknown(kind, value)
        value["metadata"] = {**value["metadata"], "name": key.name}
        if key.namespace:
            value["metadata"]["namespace"] = key.namespace
        return value

    def _new_place(self, workspace: WorkspaceRecord, key: Key) -> str:
        within = folder(workspace.directory, key.resource.partition(":")[0], key.namespace)
        return place(within, key.name, crowded=self.draft.is_crowded(within))

    def _secret(self, workspace: WorkspaceRecord, found: Manifest, intent: Intent, live: Record | None) -> bool:
        """Of a Secret that a file declares. Raises Outdated for one that is not encrypted by now."""
        secrets = self._sealed(workspace)
        if found.sealed is None or live is None:
            raise Outdated
        if intent.value is None:
            return secrets.remove(found)
        said = said_of(secrets.opened(found).value, orjson.loads(live.value), orjson.loads(intent.value))
        return secrets.replace(found, said)

    def _new_secret(self, workspace: WorkspaceRecord, path: str, value: Object) -> bool:
        creation = creation_for(self.draft, path)
        if creation is None:
            raise Outdated
        return self._sealed(workspace).add(path, value, creation)

    def _sealed(self, workspace: WorkspaceRecord) -> SealedSecrets:
        """Raises ReadOnly."""
        editor = self._editor(workspace)
        if isinstance(editor, FixedEditor):
            raise editor.refusal()
        return SealedSecrets(self.draft, workspace.path, self._keys(workspace.path))

    def _find(self, workspace: WorkspaceRecord, path: str, key: Key) -> Manifest | None:
        """The manifest of an object in the piece that declares it."""
        kinds = self._catalog.kinds(workspace.cluster)
        objects = self._editor(workspace).find(path)
        return next((m for m in objects if key_of(m, kinds, workspace.cluster) == key), None)

    def _workspaces(self, parent: WorkspaceRecord) -> WorkspaceFiles:
        """Directories of children are the head's, whatever a pin says of the parent's content."""
        editor = self._sources.of(self._tree, self._place(parent)).editor(self.draft)
        return WorkspaceFiles(self._store, self.draft, parent, editor)

    def _workspace(self, parent: WorkspaceRecord, file: str, intent: Intent) -> bool:
        """Of a Workspace for which a directory stands."""
        self.paths[intent.key] = file
        files, live = self._workspaces(parent), self._store.get(intent.key)
        if intent.value is None or live is None:
            return self._drop(files, intent.key)
        before, final = orjson.loads(live.value), orjson.loads(intent.value)
        return files.change(file, intent.key.name, lambda manifest: self._said(manifest, parent, before, final))

    def _drop(self, files: WorkspaceFiles, key: Key) -> bool:
        """A directory goes alone: a file that is written into it would be left below the workspace around it."""
        directory = files.directory(key)
        if any(is_within(path, directory) for path in self.draft.files):
            raise NotTogether
        self._dropped += [directory] if directory else []
        return files.remove(key)

    def _said(self, manifest: Manifest, workspace: WorkspaceRecord, live: Object, final: Object) -> Object:
        """What the file is to say of an object that it declares. A file may be written in another version than the
        stored one; then it says all of it anew."""
        if manifest.value["apiVersion"] != live["apiVersion"]:
            return sent_form(final)
        return declared_form(manifest.value, live, final, self._render(manifest, workspace, live))

    def _render(self, manifest: Manifest, workspace: WorkspaceRecord, live: Object) -> Render:
        """Makes a complete object of what a manifest of the same kind says."""
        kind = self._catalog.kinds(workspace.cluster).by_kind(*manifest.gvk)

        def render(value: Object) -> Object | None:
            if kind is None:
                return None
            made: Object = orjson.loads(orjson.dumps(value))
            strategy.prepare(kind, made)
            if kind.namespaced:
                made["metadata"].setdefault("namespace", live["metadata"]["namespace"])
            return made

        return render


def is_within(path: str, directory: str) -> bool:
    """Whether a path of the repository is a directory ("": none), or below it."""
    return bool(directory) and (path == directory or path.startswith(f"{directory}/"))


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
