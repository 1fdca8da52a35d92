"""The copies on a sync target as a warning names them: by kind, name and uid there. Used by warned, made by target."""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model.kinds import GroupResource
from reconciler.controllers.bindings import NamespaceRole
from reconciler.syncing import client
from reconciler.syncing.site import TargetSite
from reconciler.syncing.upstream import Item, Upstream

Object = dict[str, Any]


class SyncedCopies(NamedTuple):
    """Of one target."""

    site: TargetSite
    upstream: Upstream

    def is_home(self, namespace: str) -> bool:
        return self.site.homes.origin(namespace) is not None

    def copy(self, group: str, kind: str, namespace: str, name: str, uid: str) -> Item | None:
        resource, origin = self._resource(group, kind), self.site.homes.origin(namespace)
        if resource is None or origin is None:
            return None
        item = Item(resource, *origin, name)
        live = self.site.live(item)
        if live is None or live.uid != uid or not self._is_here(item):
            return None
        stored = self.upstream.kind(item.cluster, resource, self.site.offered)
        return item if stored is not None and self.upstream.get(stored, item) is not None else None

    def owned(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        resource = self._resource(group, kind)
        if resource is None:
            return None
        version = self.site.client.discovery.versions[resource][0]
        return self.site.client.metadata(client.path(resource, version, namespace, name))

    def _resource(self, group: str, kind: str) -> GroupResource | None:
        return self.site.client.discovery.kinds.get((group, kind))

    def _is_here(self, item: Item) -> bool:
        return self.upstream.role(self.site.key, item.cluster, item.namespace) is NamespaceRole.HERE
