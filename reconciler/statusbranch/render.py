"""Which files of the status branch follow from the store: after some changes, or from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks
from apiserver.model.keys import Internal, Key
from apiserver.registry import tree
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.registry.kinds import KUBERNETES, builtins_of
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Change, Store
from reconciler.plan.computed import WORKSPACES
from reconciler.statusbranch import format

Object = dict[str, Any]
Files = dict[str, bytes | None]
"""Path → content, or None: remove."""


class Rendering:
    """Files for one batch. Directories of workspaces are looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._directories: dict[str, str | None] = {}

    def changed(self, changes: Iterable[Change]) -> Files:
        """The files that a stretch of the log concerns; the newest change of a key wins."""
        files: Files = {}
        clusters: set[str] = set()
        for change in changes:
            key = change.key
            if key.resource == Internal.WORKSPACE:
                self._removed(change, files)
            elif key.resource == KEPT_SCHEMAS:
                files[format.schema_path(key)] = _whole(change.value) if change.value is not None else None
            elif key.resource == WORKSPACES:
                self._workspace(change, clusters, files)
            elif format.is_recorded(key):
                self._object(key, change.value, files)
            if key.cluster:
                clusters.add(key.cluster)
        for cluster in clusters:
            self._summary_of(cluster, files)
        return files

    def _summary_of(self, cluster: str, files: Files) -> None:
        """Summaries are notes beside the objects that changed, so no change of the log is theirs."""
        directory, record = self._directory(cluster), self._store.get(tree.summary_key(cluster))
        if directory is not None and record is not None:
            files[f"{directory}/{format.SUMMARY}"] = _summary(record.value)

    def everything(self) -> Files:
        """All files that the branch should hold."""
        files: Files = {}
        self._all(None, files)
        for record in self._store.scan(KEPT_SCHEMAS).records:
            files[format.schema_path(record.key)] = _whole(record.value)
        return {path: data for path, data in files.items() if data is not None}

    def _all(self, cluster: str | None, files: Files) -> None:
        """All files of one workspace, or of the fleet (`cluster` None)."""
        shared: dict[bytes, bytes] = {}
        for record in self._store.scan(Internal.SUMMARY, cluster).records:
            directory = self._directory(record.key.cluster)
            if directory is not None:
                text = shared.get(record.value)
                if text is None:
                    text = shared[record.value] = _summary(record.value)
                files[f"{directory}/{format.SUMMARY}"] = text
        for resource in self._resources(cluster):
            for record in self._store.scan(resource, cluster).records:
                self._object(record.key, record.value, files)

    def _resources(self, cluster: str | None) -> Iterator[str]:
        """The store's names of resources that may carry a status worth recording."""
        builtins = (k.storage for k in builtins_of(KUBERNETES).all() if "status" in k.subresources)
        seen = {storage for storage in builtins if storage not in format.COMPUTED}
        for crd in self._store.scan("customresourcedefinitions.apiextensions.k8s.io", cluster).records:
            spec = orjson.loads(crd.value)["spec"]
            seen.add(f"{spec['names']['plural']}.{spec['group']}")
        for binding in self._store.scan("apibindings.apis.kcp.io", cluster).records:
            for bound in (orjson.loads(binding.value).get("status") or {}).get("boundResources") or ():
                group, identity = bound["group"], bound["schema"]["identityHash"]
                name = f"{bound['resource']}.{group}" if group else bound["resource"]
                seen.add(f"{name}:{identity}")
        yield from sorted(seen)

    def _removed(self, change: Change, files: Files) -> None:
        if change.value is None and change.previous is not None and not change.key.cluster:
            gone = WorkspaceRecord.decode(change.previous)
            self._directories[gone.cluster] = None
            files[format.directory_of(gone.path, gone.directory)] = None

    def _workspace(self, change: Change, clusters: set[str], files: Files) -> None:
        """A Workspace object says what its record would: the workspace's summary may be another, or it moved."""
        now, before = _where(change.value), _where(change.previous)
        if now.cluster:
            clusters.add(now.cluster)
        if before.cluster == now.cluster and before.directory != now.directory and before.directory:
            files[before.directory] = None
            self._all(now.cluster, files)

    def _object(self, key: Key, value: bytes | None, files: Files) -> None:
        directory = self._directory(key.cluster)
        if directory is None:
            return
        obj = orjson.loads(value) if value is not None else None
        if obj is not None and _is_runtime(obj):
            obj = None
        files[format.status_path(directory, key)] = format.status_file(obj) if obj else None

    def _directory(self, cluster: str) -> str | None:
        if cluster not in self._directories:
            record = tree.workspace_of(self._store, cluster)
            self._directories[cluster] = format.directory_of(record.path, record.directory) if record else None
        return self._directories[cluster]


class _Where(NamedTuple):
    """What a Workspace object tells of its workspace; `directory` "" : it has no workspace.yaml."""

    cluster: str
    directory: str


def _where(value: bytes | None) -> _Where:
    if value is None:
        return _Where("", "")
    obj = orjson.loads(value)
    path = (obj["metadata"].get("annotations") or {}).get(marks.SOURCE_PATH, "")
    return _Where((obj.get("spec") or {}).get("cluster", ""), path.rpartition("/")[0])


def _whole(value: bytes) -> bytes:
    return format.dump(orjson.loads(value))


@lru_cache(maxsize=4096)
def _summary(value: bytes) -> bytes:
    return format.dump(orjson.loads(value))


def _is_runtime(obj: Object) -> bool:
    """What no commit knows of has nothing on the status branch either: nobody would read it back."""
    annotations = obj["metadata"].get("annotations") or {}
    return marks.SOURCE_PATH not in annotations and annotations.get(marks.ORIGIN) == marks.RUNTIME
