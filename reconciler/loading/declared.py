"""What git said earlier: whether a commit, or one between it and the served one, declared an object.

Asked by syncing about what it finds on a target and cannot explain, after a loss of the store: only what a verified
commit declared and the served one does not may be pruned.
"""

from __future__ import annotations

from collections import OrderedDict

from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import kubernetes_kind
from apiserver.storage.protocol import Store
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.sources import Sources
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository

_FAR = 500
"""Commits looked back at most; what is older counts as unexplained."""
_KEPT = 256

Names = frozenset[tuple[str, str, str, str]]


class Declarations:
    """Safe from several threads: at worst a tree is read twice."""

    def __init__(self, store: Store, repo: Repository) -> None:
        self._store = store
        self._repo = repo
        self._sources = Sources(repo)
        self._catalog = Catalog(store)
        self._names: OrderedDict[tuple[str, str], Names] = OrderedDict()

    def declared(self, path: str, commit: str, group: str, resource: str, namespace: str, name: str) -> bool:
        """Of the workspace at `path`. False also where that cannot be told."""
        fleet = tree.fleet(self._store)
        record = tree.workspace_at(self._store, path)
        if not fleet.commit:
            return False
        # Of a workspace that is gone only Kubernetes' own kinds can still be told.
        served = self._catalog.kinds(record.cluster).preferred(group, resource) if record else None
        kind = served or next(filter(None, (kubernetes_kind(group, resource, v) for v in ("v1", "v2"))), None)
        if kind is None:
            return False
        wanted = (group, kind.kind, namespace, name)
        try:
            between = self._repo.first_parents(commit, fleet.commit)
            if between is None or len(between) > _FAR:
                return False
            return any(wanted in self._of(path, c) for c in (commit, *between))
        except RepositoryError:
            return False

    def _of(self, path: str, commit: str) -> Names:
        workspaces = WorkspaceTree(self._repo, self._repo.commit(commit).tree)
        directory = workspaces.find(path)
        if directory is None:
            return frozenset()
        key = (path, directory.tree)
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = frozenset(
                (m.gvk.group, m.gvk.kind, m.namespace or "default", m.name)
                for file, entry in workspaces.files(directory)
                if entry.kind == "blob"
                for m in self._sources.read(file, entry.id).manifests
            )
            if len(self._names) > _KEPT:
                self._names.popitem(last=False)
        return found
