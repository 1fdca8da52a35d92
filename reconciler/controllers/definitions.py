"""CustomResourceDefinitions that are not established yet, or whose names others have taken.

A definition that comes through the API or with a commit is judged in the same write; this loop looks at what that write
cannot see: the other definitions of the cluster. Of two that claim a name the older keeps it, and when it goes the
other is established. One work item a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from apiserver.model import clock, conditions, marks
from apiserver.model.keys import Key
from apiserver.registry import strategy
from reconciler.controllers.bycluster import ByCluster

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"

Object = dict[str, Any]


class Definitions(ByCluster):
    resource = DEFINITIONS

    def handle(self, key: Key) -> Future[list[int]] | None:
        listed = self._objects.list(DEFINITIONS, key.cluster)
        found = [d for d in listed if not d["metadata"].get("deletionTimestamp")]
        found.sort(key=lambda d: (d["metadata"].get("creationTimestamp", ""), int(d["metadata"]["resourceVersion"])))
        for definition in found:
            if marks.SOURCE_PATH in (definition["metadata"].get("annotations") or {}):
                continue  # a commit's content is judged as a whole
            wanted = judged(definition, found, clock.now())
            if wanted != definition.get("status"):
                one = Key(DEFINITIONS, key.cluster, "", definition["metadata"]["name"])
                self._objects.update(one, lambda obj, wanted=wanted: {**obj, "status": wanted})  # type: ignore[misc]
        return None


def judged(definition: Object, all_of_them: Iterable[Object], at: str) -> Object:
    """The status of a definition among the others of its cluster, the oldest first."""
    status = strategy.crd_status(definition, at)
    taken = {name for other in _before(definition, all_of_them) for name in _names(other)}
    clashes = [name for name in _names(definition) if name in taken]
    if not clashes:
        return status
    text = ", ".join(f'"{name}" is already in use' for _, name in clashes)
    refused = [
        conditions.condition("NamesAccepted", False, "NamesInUse", text, at=at),
        conditions.condition("Established", False, "NotAccepted", "not all names are accepted", at=at),
    ]
    kept = (definition.get("status") or {}).get("conditions")
    return {**status, "conditions": conditions.appended(kept, refused), "acceptedNames": {"plural": "", "kind": ""}}


def _before(definition: Object, all_of_them: Iterable[Object]) -> Iterator[Object]:
    """The older definitions of the same group."""
    for other in all_of_them:
        if other["metadata"]["name"] == definition["metadata"]["name"]:
            return
        if other["spec"]["group"] == definition["spec"]["group"]:
            yield other


def _names(definition: Object) -> list[tuple[str, str]]:
    """What it claims in its group: names of resources, and names of kinds."""
    names = definition["spec"]["names"]
    resources = [names["plural"], names.get("singular") or "", *(names.get("shortNames") or ())]
    kinds = [names["kind"], names.get("listKind") or ""]
    return [("resource", n) for n in dict.fromkeys(resources) if n] + [("kind", n) for n in dict.fromkeys(kinds) if n]
