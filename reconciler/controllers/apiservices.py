"""An APIService for each version of a group that CustomResourceDefinitions bring: made with the first definition that
is established in it, taken away with the last. Those that somebody made stay as they are.

One work item a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.keys import Key
from apiserver.model.storagenames import CRDS as DEFINITIONS
from apiserver.registry import tree
from apiserver.registry.apiservices import LABEL, MANAGED, available
from apiserver.storage.protocol import Delete, Op
from reconciler.controllers import disposal
from reconciler.controllers.bycluster import ByCluster
from reconciler.controllers.entry import Entry

Object = dict[str, Any]

SERVICES = "apiservices.apiregistration.k8s.io"
_GROUP_PRIORITY, _VERSION_PRIORITY = 1000, 100


class APIServices(ByCluster):
    name = "apiservices"
    version = "1"
    resources = frozenset({DEFINITIONS, SERVICES})
    shown = frozenset({DEFINITIONS})

    def keys_of(self, entry: Entry) -> Iterable[str]:
        # One that is gone is made again if a definition wants it.
        return super().keys_of(entry) if entry.key.resource == DEFINITIONS or entry.value is None else ()

    def reconcile(self, key: str) -> None:
        there = tree.check_there(self._objects.store, key)
        wanted = self._wanted(key)
        gone: list[Op] = []
        for service in self._objects.list(SERVICES, key):
            metadata = service["metadata"]
            missing = wanted.pop(metadata["name"], None)
            if missing is None and (metadata.get("labels") or {}).get(LABEL) == MANAGED:
                at = Key(SERVICES, key, "", metadata["name"])
                gone.append(Delete(at, int(metadata["resourceVersion"])))
        for name, spec in wanted.items():
            made = {
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"labels": {LABEL: MANAGED}}, "spec": spec,
                "status": {"conditions": [available(clock.now())]},
            }  # fmt: skip
            self._objects.create(Key(SERVICES, key, "", name), made, runtime=True, inside=there)
        disposal.write_all(self._objects.store, gone)

    def _wanted(self, cluster: str) -> dict[str, Object]:
        """By name, the specs of those that there should be."""
        found: dict[str, Object] = {}
        for definition in self._objects.list(DEFINITIONS, cluster):
            if not conditions.is_true((definition.get("status") or {}).get("conditions"), "Established"):
                continue
            group = definition["spec"]["group"]
            for version in definition["spec"].get("versions") or ():
                if version.get("served"):
                    found[f"{version['name']}.{group}"] = {
                        "group": group, "version": version["name"],
                        "groupPriorityMinimum": _GROUP_PRIORITY, "versionPriority": _VERSION_PRIORITY,
                    }  # fmt: skip
        return found
