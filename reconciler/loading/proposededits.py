"""What writes that propose come to in the files of a proposal: the difference that each makes, beside what is proposed
already.

Called by proposalbench, once for each commit that it makes. As edits, but the files are not those that the stored
objects come from: objects may be changed, gone or new in them, by earlier writes or by people who pushed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from apiserver.model import origins
from apiserver.model.errors import StatusError, forbidden
from apiserver.model.keys import Key
from apiserver.model.kinds import kind_of
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import declaration, named
from reconciler.loading.edits import Edits
from reconciler.loading.render import key_of
from reconciler.loading.sealedsecrets import SECRETS
from reconciler.loading.sources import Sources
from reconciler.loading.step import FindKeys
from reconciler.loading.workspacefiles import FILE
from reconciler.plan.gitform import declared_form
from reconciler.plan.merge import merged

Object = dict[str, Any]

_NO_SECRETS = (
    "writes of this workspace are proposed in git, where whoever may read the repository could read it: name "
    "recipients for its file in .sops.yaml, or have it put into keys/secrets/ of the server, below the workspace's path"
)


class Around(NamedTuple):
    """What edits are made with: the store at one moment, and `keys` of workspaces for what is encrypted."""

    store: Store
    catalog: Catalog
    sources: Sources
    keys: FindKeys


class ProposedEdits(Edits):
    """On top of the tree of a proposal. `served`: that which the objects of the store come from."""

    def __init__(self, around: Around, tree: WorkspaceTree, served: WorkspaceTree) -> None:
        super().__init__(around.store, around.catalog, around.sources, tree, around.keys)
        self._served = served

    def add(self, intent: Intent) -> bool:
        """As Edits.add. A Secret is proposed encrypted, or not at all."""
        if intent.key.resource == SECRETS and not self.encrypts(intent):
            raise forbidden("secrets", "", intent.key.name, _NO_SECRETS)
        return super().add(intent)

    def _find(self, workspace: WorkspaceRecord, path: str, key: Key) -> Manifest | None:
        return super()._find(workspace, path, key) or self._elsewhere(workspace, key)

    def _new_secret(self, workspace: WorkspaceRecord, path: str, value: Object) -> bool:
        """Of one that stands in the proposal already, what changes is said there."""
        key = Key(SECRETS, workspace.cluster, value["metadata"].get("namespace", ""), value["metadata"]["name"])
        found = self._elsewhere(workspace, key)
        if found is None:
            return super()._new_secret(workspace, path, value)
        if found.sealed is None:
            raise StatusError(409, "Conflict", f"{found.path} of this proposal has it in plain text: take it out there")
        self.paths[key] = found.path
        return self._sealed(workspace).replace(found, value)

    def _create(self, workspace: WorkspaceRecord, intent: Intent, final: Object) -> bool:
        """Of an object that the proposal has no file for; or of a new one, which may stand in it already."""
        key, live = intent.key, self._store.get(intent.key)
        if key.resource == WORKSPACES:
            self.paths[key] = self._workspaces(workspace).again(key.name, self._sent(intent, final))
            return bool(self.paths[key]) or super()._create(workspace, intent, final)
        if key.resource == SECRETS:
            if live is not None:
                raise StatusError(409, "Conflict", "its file is elsewhere, or gone, in this proposal: see its branch")
            return super()._create(workspace, intent, final)
        before = orjson.loads(live.value) if live is not None else None
        gone = self._before(workspace, before) if before is not None else None
        if before is not None and gone is not None:
            # It is taken away there, and somebody changes it: it stays, changed.
            self.paths[key] = gone.path
            return self._editor(workspace).add(gone.path, super()._said(gone, workspace, before, final))
        found = self._elsewhere(workspace, key)
        if found is None:
            return super()._create(workspace, intent, final)
        self.paths[key] = found.path
        value = self._sent(intent, final) if before is None else self._said(found, workspace, before, final)
        return self._editor(workspace).replace(found, value)

    def _said(self, manifest: Manifest, workspace: WorkspaceRecord, live: Object, final: Object) -> Object:
        """The write's difference is made to the object as it would be were the proposal served."""
        before = self._before(workspace, live)
        if before is None or before.value == manifest.value or manifest.value["apiVersion"] != live["apiVersion"]:
            return super()._said(manifest, workspace, live, final)
        render = self._render(manifest, workspace, live)
        was = render(before.value) if before.value["apiVersion"] == live["apiVersion"] else None
        would = render(manifest.value)
        if would is None:
            return super()._said(manifest, workspace, live, final)
        proposed = merged(was, would, live)
        return super()._said(manifest, workspace, proposed, declared_form(proposed, live, final))

    def _workspace(self, parent: WorkspaceRecord, file: str, intent: Intent) -> bool:
        if intent.value is not None and self.draft.read(file) is None:
            why = f"{file} is gone in this proposal: take that back there, or delete its branch"
            raise StatusError(409, "Conflict", why)
        return super()._workspace(parent, file, intent)

    def _elsewhere(self, workspace: WorkspaceRecord, key: Key) -> Manifest | None:
        """The manifest of an object in what the proposal has and the served tree has not. At the cost of that."""
        here, served = self._tree, self._served
        place, before = self._place(workspace), served.find(workspace.path, workspace.directory)
        if here.tree_id == served.tree_id or before is None or workspace.elsewhere:
            return None
        kinds = self._catalog.kinds(workspace.cluster)
        old = self._sources.of(served, before)
        for change in self._sources.of(here, place).changes(old):
            for found in self._editor(workspace).find(change.name) if change.new is not None else ():
                if key_of(found, kinds, workspace.cluster) == key:
                    return found
        return None

    def _before(self, workspace: WorkspaceRecord, live: Object) -> Manifest | None:
        """What the served tree says of a stored object; None where it says nothing."""
        path = origins.file_of(live) if not workspace.source else ""  # of another repository
        entry = self._served.repo.entry_at(self._served.tree_id, path) if path else None
        if entry is None or entry.kind != "blob":
            return None
        name, data = live["metadata"]["name"], self._served.repo.blob(entry.id)
        if path.endswith(f"/{FILE}"):
            return named(declaration(data, path), path, name)
        kind = self._catalog.kinds(workspace.cluster).by_kind(*kind_of(live))
        if kind is None:
            return None
        key = Key(kind.storage, workspace.cluster, live["metadata"].get("namespace", ""), name)
        served = Edits(self._store, self._catalog, self._sources, self._served)
        return Edits._find(served, workspace, path, key)
