"""A repository, the store that it is loaded into, and what a test wants to know of both.

For unit tests of loading and recovery: no process, no server, no cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from support.fleetrepo import TREEPLANE_YAML, Files, FleetRepo

from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec, tree
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage import alike
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Change, Check, Delete, Op, Put, Store
from apiserver.stores import DECLARED
from reconciler.loading import consumers
from reconciler.loading.changeset import together
from reconciler.loading.heads import BranchSettings
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.secrets import SecretFiles
from reconciler.plan import residue
from reconciler.plan.residue import IdentitySource
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.underway import UnderWay
from reconciler.statusbranch.writer import StatusWriter

Object = dict[str, Any]

A, B = "workspaces/root/a", "workspaces/root/b"


def configmap(name: str = "app", namespace: str = "", **data: str) -> str:
    place = f", namespace: {namespace}" if namespace else ""
    pairs = "".join(f"  {key}: {value!r}\n" for key, value in (data or {"a": "b"}).items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{place}}}\ndata:\n{pairs}"


BEGINNING: dict[str, str] = {
    "treeplane.yaml": TREEPLANE_YAML,
    "workspaces/root/app.yaml": configmap(),
    f"{A}/workspace.yaml": "",
    f"{A}/app.yaml": configmap(),
    f"{B}/workspace.yaml": "",
    f"{B}/app.yaml": configmap(),
}


class LoadedFleet:
    """`commit({path: text})` commits and loads; `written()` tells what that wrote into the store.

    `keys` is the keys directory: identities and secrets. A directory that is there is gone on with. `renders`: for what
    is rendered.
    """

    def __init__(
        self, directory: Path, repo: FleetRepo | None = None, keys: Path | None = None, renders: Renders = NOWHERE
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.repo = repo or FleetRepo(directory / "fleet.git")
        self.keys = keys or directory / "keys"
        self.secrets = SecretFiles(self.keys)
        self.renders = renders
        self.mirror = Mirror(
            directory, str(self.repo.path), self.repo.branch, "treeplane/status", folder=self.repo.folder
        )
        self.store: Store = open_store(directory / "store", sync=False, declared=DECLARED)
        self.loader = self.new_loader()
        self._seen = 0

    def close(self) -> None:
        self.store.close()

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        """As after a restart."""
        repositories = self.mirror.repositories
        identities, branch = Identities(self.keys / "identities"), branch or BranchSettings()
        keys = self.secrets.keys_of
        return Loader(self.store, repositories, identities, self.secrets.of, branch, keys=keys, renders=self.renders)

    # -- commits

    def begin(self, files: Files | None = None) -> Loaded:
        """The first commit, loaded: BEGINNING and `files` on top."""
        return self.commit({**BEGINNING, **(files or {})})

    def first_files(self) -> dict[str, str]:
        """The files of the first commit."""
        return self.repo.files(self.repo.commits[0])

    def commit(self, files: Files, parent: str | None = None) -> Loaded:
        self.repo.commit(files, parent=parent)
        return self.load()

    def allow(self) -> Loaded:
        """Allows what is held for what it deletes, with the commit that the errors ask for."""
        said = {text for record in self.records() for text in record.errors}
        hashes = sorted({found for text in said for found in re.findall(r"Allow-Delete: ([0-9a-f]{40})", text)})
        assert hashes, f"nothing is held for a deletion: {said}"
        seen = self.store.revision()
        self.repo.commit({}, f"Allow deletion\n\nAllow-Delete: {' '.join(hashes)}\n")
        loaded = self.load()
        self._seen = seen
        return loaded

    def delete(self, files: Files) -> Loaded:
        """Commits what has to be allowed, and allows it."""
        self.commit(files)
        return self.allow()

    def load(self, recorded: RecordedFleet | None = None) -> Loaded:
        self._seen = self.store.revision()
        return self.loader.load(own(self.repo.head), recorded)

    def recheck(self, paths: Iterable[str] = ()) -> None:
        self._seen = self.store.revision()
        self.loader.recheck(paths)
        self.loader.renew()

    def keep_secret(self, path: str, text: str | None) -> None:
        """Writes a file in keys/secrets/ (None: removes it) and has it looked at."""
        file = self.keys / "secrets" / path / "target.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            file.unlink()
        else:
            new = file.with_suffix(".new")
            new.write_text(text)
            new.rename(file)
        self.recheck(self.secrets.changed())

    def held(self, loaded: Loaded | None = None) -> dict[str, list[str]]:
        """Workspaces with errors, from the store; they say the same as `loaded`."""
        found = {r.path: r.errors for r in self.records() if r.errors}
        assert tree.held(self.store) == found
        self.listed()
        if loaded is not None:
            said: dict[str, list[str]] = {}
            for path, problems in together(loaded.steps).held.items():
                said[path] = [str(p) for p in problems]
            assert said == {path: errors for path, errors in found.items() if path in said}
        return found

    # -- the store

    def changes(self) -> list[Change]:
        """What the last load wrote, Treeplane's own records left out."""
        return [c for c in self.all_changes() if not c.key.resource.startswith("~")]

    def all_changes(self) -> list[Change]:
        return self.store.changes(self._seen)

    def written(self) -> list[str]:
        """`changes` as words: `+configmaps/root:a/default/app`; `~` configured, `-` deleted."""
        out = []
        for change in self.changes():
            sign = "-" if change.value is None else "+" if change.previous is None else "~"
            key = change.key
            path = self.path_of(key.cluster)
            out.append(f"{sign}{key.resource.partition(':')[0]}/{path}/{key.namespace}/{key.name}")
        return sorted(out)

    def path_of(self, cluster: str) -> str:
        record = tree.workspace_of(self.store, cluster)
        return record.path if record else cluster

    def listed(self) -> dict[str, frozenset[tuple[str, str]]]:
        """Whose exports each workspace is listed for; both tables say the same, and of nobody who is not there."""
        found = {row.key: consumers.taken(self.store, row.key) for row in self.store.scan_rows(Table.PROVIDERS)}
        turned = {row_key(*export, path) for path, exports in found.items() for export in exports}
        assert {row.key for row in self.store.scan_rows(Table.CONSUMERS)} == turned
        assert found.keys() <= {record.path for record in self.records()}
        return found

    def records(self) -> list[WorkspaceRecord]:
        return [WorkspaceRecord.decode(*row) for row in self.store.scan_rows(Table.WORKSPACES)]

    def record(self, path: str) -> WorkspaceRecord:
        found = tree.workspace_at(self.store, path)
        assert found is not None, f"there is no workspace {path}"
        return found

    def paths(self) -> set[str]:
        """Of all workspaces but what ships."""
        return {r.path for r in self.records()} - {"root:compute"}

    def fleet(self) -> FleetRecord:
        return tree.fleet(self.store)

    def key(self, path: str, resource: str, name: str, namespace: str | None = None) -> Key:
        """`namespace` None: `default` for what is namespaced. Resources of bound APIs are found by their plain name."""
        cluster = self.record(path).cluster
        if ":" not in resource:
            kinds = self.kinds(path)
            resource = next((k.storage for k in kinds if k.storage.partition(":")[0] == resource), resource)
            kind = next((k for k in kinds if k.storage == resource), None)
            if namespace is None:
                namespace = "default" if kind is not None and kind.namespaced else ""
        return Key(resource, cluster, namespace or "", name)

    def kinds(self, path: str) -> Sequence[ServedKind]:
        """What a workspace serves."""
        return self.loader._catalog.kinds(self.record(path).cluster).all()

    def find(self, path: str, resource: str, name: str, namespace: str | None = None) -> Object | None:
        record = self.store.get(self.key(path, resource, name, namespace))
        return codec.decode(record.value, record.revision) if record else None

    def get(self, path: str, resource: str, name: str, namespace: str | None = None) -> Object:
        found = self.find(path, resource, name, namespace)
        assert found is not None, f"there is no {resource} {name} in {path}"
        return found

    def residue(self, path: str, resource: str, name: str, namespace: str | None = None) -> Object | None:
        """What the status branch has to know of a stored object."""
        record, found = self.record(path), self.get(path, resource, name, namespace)
        home = IdentitySource(self.fleet().fleet, record.origin)
        return residue.of(self.key(path, resource, name, namespace), found, home)

    def data(self, path: str, name: str = "app", namespace: str = "default") -> Any:
        """A ConfigMap's data, None where there is none."""
        found = self.find(path, "configmaps", name, namespace)
        return found["data"] if found else None

    def condition(self, obj: Object, kind: str) -> Object:
        found: Object = next(c for c in obj["status"]["conditions"] if c["type"] == kind)
        return found

    def workspace(self, path: str) -> Object:
        """The Workspace object, in the parent."""
        parent, _, name = path.rpartition(":")
        return self.get(parent, "workspaces.tenancy.kcp.io", name, "")

    def update(self, key: Key, change: Callable[[Object], Any]) -> None:
        """As a controller writes: `change` alters the decoded object."""
        record = self.store.get(key)
        assert record is not None, f"{key} is not there"
        obj = orjson.loads(record.value)
        change(obj)
        self.put(key, obj)

    def put(self, key: Key, obj: Object) -> None:
        self.store.write(Put(key, codec.encode(obj))).result()

    def interleave(self, path: str, resource: str, name: str, change: Callable[[Object], Any]) -> None:
        """The next write that concerns the object comes after somebody else's `change` of it."""
        key, store, write = self.key(path, resource, name), self.store, self.store.write

        def late(*ops: Op) -> Future[list[int]]:
            if any(isinstance(op, Put | Delete | Check) and op.key == key for op in alike.expanded(ops)[0]):
                store.write = write  # type: ignore[method-assign]
                self.update(key, change)
            return write(*ops)

        store.write = late  # type: ignore[method-assign]

    def forget(self, ops: Iterable[Op], *, loaded: bool) -> None:
        """Remove something behind the loader's back."""
        fleet = replace(self.fleet(), loaded=loaded)
        self.store.write(*ops, tree.put_fleet(fleet)).result()

    def everything(self) -> dict[Key, bytes]:
        """Every object of every workspace, as bytes."""
        changed = {c.key for c in self.store.changes(self.store.oldest())}
        names = {key.resource for key in changed} | self._resources()
        return {
            record.key: record.value
            for name in sorted(names)
            if not name.startswith("~")
            for record in self.store.scan(name).records
        }

    def _resources(self) -> set[str]:
        kinds = (self.loader._catalog.kinds(r.cluster).all() for r in self.records())
        return {k.storage for table in kinds for k in table if k.storage}

    # -- the status branch

    def writer(self, under_way: UnderWay | None = None) -> StatusWriter:
        return StatusWriter(self.store, self.mirror, under_way=under_way)

    def publish(self, writer: StatusWriter | None = None) -> str:
        """Writes what is to be recorded, and pushes it; the status commit."""
        (writer or self.writer()).flush()
        head = self.mirror.repository.ref(STATUS_REF)
        assert head is not None
        self.mirror.push_status(head, self.mirror.refresh().status)
        return head

    def recorded(self) -> RecordedFleet | None:
        """The status branch as a new server finds it at the source."""
        head = self.mirror.refresh().status
        if head is None:
            return None
        self.mirror.keep_status(head)
        return RecordedFleet(self.mirror.repository, head)
