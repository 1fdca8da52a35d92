"""What is left of a namespace that no target is to run any more: copies on targets, and statuses upstream."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from apiserver.model.kinds import GroupResource
from apiserver.registry import tree
from reconciler.controllers.targets import TargetIndex
from reconciler.syncing.exports import offered
from reconciler.syncing.target import Syncer
from reconciler.syncing.upstream import Upstream


class Unplaced:
    """`syncers`: those of connected targets, by key."""

    def __init__(self, upstream: Upstream, index: TargetIndex, syncers: Callable[[], Mapping[str, Syncer]]) -> None:
        self._upstream, self._index, self._syncers = upstream, index, syncers

    def linger(self, key: str, cluster: str, namespace: str) -> str:
        """The target, as `path:name`, if it has copies, or has not answered yet and may have them. Of one that is not
        declared any more nobody will ever tell."""
        place, syncer = self._index.place(key), self._syncers().get(key)
        if place is None or (syncer is not None and syncer.ready.is_set() and not syncer.has(cluster, namespace)):
            return ""
        workspace = tree.workspace_of(self._upstream.objects.store, place.cluster)
        return f"{workspace.path if workspace else place.cluster}:{place.name}"

    def forget(self, cluster: str, namespace: str, keys: Collection[str]) -> None:
        """Of all kinds that these targets were given."""
        resources: dict[GroupResource, str] = {}
        for target in filter(None, map(self._index.get, keys)):
            resources |= offered(self._upstream.objects, target)
        for kind, item in self._upstream.items(cluster, namespace, resources):
            self._upstream.forget(kind, item)
