"""The rest of the fleet as one workspace's judgement sees it: other workspaces' records, exports and types.

Answers are those of the commit that is being stepped to: a workspace that waits to be judged in the same step is judged
first when somebody asks for it (providers before consumers, types before users).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model import paths
from apiserver.model.keys import Internal, Key
from apiserver.registry import tree
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.registry.objects import Objects
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.plan import types
from reconciler.plan.apis import Export

EXPORTS = "apiexports.apis.kcp.io"
SCHEMAS = "apiresourceschemas.apis.kcp.io"
TYPES = "workspacetypes.tenancy.kcp.io"
CONSUMERS = "~consumers"
"""Key(CONSUMERS, <provider's path>, <export>, <consumer's path>): who is re-checked when an export changes."""

PROVIDED = frozenset({EXPORTS, SCHEMAS, TYPES})
"""A change to one of these concerns other workspaces."""


class World:
    """`ensure` judges a workspace that waits in the current step; it returns at once for any other."""

    def __init__(self, store: Store, ensure: Callable[[str], None]) -> None:
        self.store = store
        self._objects = Objects(store)
        self._ensure = ensure
        self._records: dict[str, WorkspaceRecord | None] = {}
        self._read: dict[str, WorkspaceRecord | None] = {}
        self._exports: dict[tuple[str, str], Export | None] = {}
        self._types: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._resolved: dict[tuple[Any, ...], types.ResolvedType] = {}

    def record(self, path: str) -> WorkspaceRecord | None:
        if path in self._records:
            return self._records[path]
        if path not in self._read:
            self._read[path] = tree.workspace_at(self.store, path)
        return self._read[path]

    def moved(self, record: WorkspaceRecord) -> None:
        """Note what the current step made of a workspace, before the store shows it."""
        self._records[record.path] = record
        self._read.pop(record.path, None)

    def is_judged(self, path: str) -> bool:
        """Whether the current step is past this workspace."""
        return path in self._records

    def forget(self, path: str) -> None:
        """Read the workspace's record from the store again."""
        self._records.pop(path, None)
        self._read.pop(path, None)

    def gone(self, path: str) -> None:
        self._records[path] = None

    def provides_anew(self, path: str) -> None:
        """Forget what was read of a workspace whose exports, schemas or types changed."""
        self._exports = {k: v for k, v in self._exports.items() if k[0] != path}
        self._types = {k: v for k, v in self._types.items() if k[0] != path}
        self._resolved.clear()

    def type_of(self, workspace: dict[str, Any] | None, path: str) -> types.ResolvedType:
        """The type of the workspace at `path`, whose manifest says `workspace`. Siblings that say the same have the
        same."""
        parent = paths.parent(path)
        above = self._type_ref(parent)
        at = (parent, above, types.wanted(workspace))
        found = self._resolved.get(at)
        if found is None:
            found = self._resolved[at] = types.resolve(workspace, path, above, self.find_type)
        return found

    def _type_ref(self, path: str | None) -> types.TypeRef | None:
        record = self.record(path) if path is not None else None
        if record is None:
            return None
        where, _, name = record.type.rpartition(":")
        return types.TypeRef(name, where)

    def find_type(self, path: str, name: str) -> dict[str, Any] | None:
        """A WorkspaceType."""
        at = (path, name)
        if at not in self._types:
            self._types[at] = self._object(path, TYPES, name)
        return self._types[at]

    def find_export(self, path: str, name: str) -> Export | None:
        """An APIExport with its schemas, at its provider's served commit."""
        at = (path, name)
        if at not in self._exports:
            self._exports[at] = self._read_export(path, name)
        return self._exports[at]

    def former_export(self, path: str, name: str, bound: dict[str, Any]) -> Export:
        """An APIExport as a workspace that is held is served with it (see Summary.bound), whatever became of it."""
        self._ensure(path)
        cluster = str(bound["cluster"])
        schemas = {n: self._schema(cluster, n) or self._schema(cluster, n, KEPT_SCHEMAS) for n in bound["schemas"]}
        return _export(path, name, cluster, str(bound["identity"]), schemas)

    def consumers(self, path: str) -> list[str]:
        """The workspaces with a binding to an export of the workspace at `path`."""
        return sorted({r.key.name for r in self.store.scan(CONSUMERS, path).records})

    def held(self) -> list[str]:
        """The workspaces with errors. Reads all records, but decodes only theirs."""
        found = self.store.scan(Internal.WORKSPACE, "").records
        return [r.key.name for r in found if r.key.name and b'"errors":[]' not in r.value]

    def _object(self, path: str, resource: str, name: str) -> dict[str, Any] | None:
        self._ensure(path)
        record = self.record(path)
        if record is None or not record.served:
            return None
        return self._objects.get(Key(resource, record.cluster, "", name))

    def _read_export(self, path: str, name: str) -> Export | None:
        export = self._object(path, EXPORTS, name)
        record = self.record(path)
        if export is None or record is None:
            return None
        names = (export.get("spec") or {}).get("latestResourceSchemas") or []
        identity = (export.get("status") or {}).get("identityHash", "")
        return _export(path, name, record.cluster, identity, {n: self._schema(record.cluster, n) for n in names})

    def _schema(self, cluster: str, name: str, resource: str = SCHEMAS) -> dict[str, Any] | None:
        return self._objects.get(Key(resource, cluster, "", name))


def _export(path: str, name: str, cluster: str, identity: str, schemas: dict[str, dict[str, Any] | None]) -> Export:
    found = tuple(s for s in schemas.values() if s is not None)
    missing = tuple(n for n, s in schemas.items() if s is None)
    return Export(path=path, name=name, cluster=cluster, identity=identity, schemas=found, missing=missing)
