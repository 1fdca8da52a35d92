"""What git said earlier: whether a commit, or one between it and the served one, declared an object.

Asked by syncing about what it finds on a target and cannot explain, after a loss of the store: only what a verified
commit declared and the served one does not may be pruned.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import chain

from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import kubernetes_kind
from apiserver.storage.protocol import Store
from reconciler.loading.past import PastObjects, is_said, served_of
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.errors import RepositoryError
from reconciler.repository.repositories import Repositories

_KEPT = 256

Names = frozenset[tuple[str, str, str, str]]


class Declarations:
    """Safe from several threads: at worst a tree is read twice."""

    def __init__(self, store: Store, repositories: Repositories, renders: Renders = NOWHERE) -> None:
        self._store = store
        self._past = PastObjects(repositories, renders)
        self._catalog = Catalog(store)
        self._names: OrderedDict[tuple[str, str], Names] = OrderedDict()

    def declared(self, path: str, commit: CommitRef, group: str, resource: str, namespace: str, name: str) -> bool:
        """Of the workspace at `path`. False also where that cannot be told, and of a Secret that is declared still and
        that nobody here can read."""
        if not is_said(path, commit):
            return False
        fleet = tree.fleet(self._store)
        record = tree.workspace_at(self._store, path)
        served = served_of(record, commit) if record is not None else fleet.commit
        if not served or (record is not None and not record.served):
            return False
        # Of a workspace that is gone only Kubernetes' own kinds can still be told.
        known = self._catalog.kinds(record.cluster).preferred(group, resource) if record else None
        kind = known or next(filter(None, (kubernetes_kind(group, resource, v) for v in ("v1", "v2"))), None)
        if kind is None:
            return False
        wanted = (group, kind.kind, namespace, name)
        # What is encrypted for others may have been there before a loss, and stands in git still.
        within = record.source.get("path", "") if record is not None else ""
        unread = record is not None and bool(record.locked) and (group, kind.kind) == ("", "Secret")
        try:
            if unread and wanted in self._of(path, served, within):
                return False
            if record is None and self._past.workspace(path, served) is not None:
                return False
            return any(wanted in self._of(path, c, within) for c in self._past.since(commit, served))
        except RepositoryError:
            return False

    def _of(self, path: str, commit: CommitRef, within: str) -> Names:
        there = self._past.workspace(path, commit, within)
        if there is None:
            return frozenset()
        key = (path, self._past.says(*there))
        found = self._names.get(key)
        if found is None:
            manifests = chain.from_iterable(self._past.ever(*there))
            names = ((m.gvk.group, m.gvk.kind, m.namespace or "default", m.name) for m in manifests)
            found = self._names[key] = frozenset(names)
            if len(self._names) > _KEPT:
                self._names.popitem(last=False)
        return found
