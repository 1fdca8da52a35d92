"""ResourceQuotas say how many objects there are of what they name, in `status.used`: of built-in kinds, of definitions'
and of bound ones. Nothing is refused.

A controller of the main store. In workspaces with all of Kubernetes' kinds it leaves quotas to whoever runs Kubernetes'
own controllers there: they count what Pods ask for, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.kindtable import KindTable
from apiserver.registry.tree import workspace_of
from apiserver.storage.protocol import Put, Store
from reconciler.controllers.controller import EVERYTHING, NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry

Object = dict[str, Any]

QUOTAS = "resourcequotas"
_COUNT = "count/"


class Quotas(Controller[Key]):
    """By the key of a ResourceQuota. `kinds` of a logical cluster, as they are served now."""

    name = "quotas"
    version = "1"
    resources = EVERYTHING
    shown = frozenset({QUOTAS})
    beyond = NO_RESOURCES

    def __init__(self, store: Store, kinds: Callable[[str], KindTable]) -> None:
        self._store, self._kinds = store, kinds
        self._any = True

    def begin(self) -> None:
        """Without a quota in any workspace no entry costs anything."""
        self._any = self._store.count(QUOTAS) > 0

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == QUOTAS and entry.value is not None:
            self._any = True
            yield key
        if not self._any or not key.namespace or (entry.value is None) == (entry.previous is None):
            return
        if self._store.count(QUOTAS, key.cluster):
            yield from (record.key for record in self._store.scan(QUOTAS, key.cluster, key.namespace).records)

    def reconcile(self, key: Key) -> Future[list[int]] | None:
        record, workspace = self._store.get(key), workspace_of(self._store, key.cluster)
        if record is None or workspace is None or workspace.builtins == KUBERNETES:
            return None
        quota: Object = orjson.loads(record.value)
        status = {"hard": quota["spec"].get("hard") or {}, "used": self._used(key, quota)}
        if status == quota.get("status"):
            return None
        return self._store.write(Put(key, codec.encode({**quota, "status": status}), record.revision, record.stamp))

    def _used(self, quota: Key, obj: Object) -> dict[str, str]:
        """Of what can be counted here. Scopes choose among Pods and claims, which there are none of."""
        spec, kinds = obj["spec"], self._kinds(quota.cluster)
        if spec.get("scopes") or spec.get("scopeSelector"):
            return {}
        found: dict[str, str] = {}
        for name in spec.get("hard") or ():
            counted = name.removeprefix(_COUNT)
            resource, _, group = counted.partition(".")
            kind = kinds.preferred(group, resource)
            if counted == name and kind is None:
                continue  # what Pods ask for, or a kind that is not here
            storage = kind.storage if kind is not None and kind.namespaced else ""
            found[name] = str(self._store.count(storage, quota.cluster, quota.namespace) if storage else 0)
        return found
