"""CustomResourceDefinitions that are not established yet, or whose names others have taken.

A definition that comes through the API or with a commit is judged in the same write; this loop looks at what that write
cannot see: the other definitions of the cluster, and the APIs that it binds. Of two that claim a name the older keeps
it, and when it goes the other is established. One work item a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from apiserver.model import clock, marks, origins
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, CRDS
from apiserver.registry import strategy
from apiserver.registry.claims import NameClaim, claims, held, refused
from apiserver.registry.kindtable import KindTable
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Store
from reconciler.controllers.bycluster import ByCluster
from reconciler.controllers.served import Serves

_DECLARED = f'"{marks.SOURCE_PATH}"'.encode()

Object = dict[str, Any]


class Definitions(ByCluster):
    """`kinds` of a logical cluster, as they are served now."""

    name = "definitions"
    version = "2"
    resources = frozenset({CRDS, BINDINGS})
    shown = frozenset({CRDS})

    def __init__(self, store: Store, serves: Serves, kinds: Callable[[str], KindTable]) -> None:
        super().__init__(store, serves)
        self._kinds = kinds

    def reconcile(self, key: str) -> None:
        if all(_DECLARED in record.value for page in pages(self._objects.store, CRDS, key) for record in page):
            return  # a commit's content is judged as a whole
        listed = self._objects.list(CRDS, key)
        found = [d for d in listed if not d["metadata"].get("deletionTimestamp")]
        found.sort(key=lambda d: (d["metadata"].get("creationTimestamp", ""), int(d["metadata"]["resourceVersion"])))
        taken = held(self._kinds(key))
        for definition in found:
            if origins.file_of(definition):
                continue
            wanted = judged(definition, found, taken, clock.now())
            if wanted != definition.get("status"):
                one = Key(CRDS, key, "", definition["metadata"]["name"])
                self._objects.update(one, lambda obj, wanted=wanted: {**obj, "status": wanted})  # type: ignore[misc]


def judged(definition: Object, all_of_them: Iterable[Object], others: Collection[NameClaim], at: str) -> Object:
    """The status of a definition among those of its cluster, the oldest first, and beside what others hold there."""
    status = strategy.crd_status(definition, at)
    taken = {*others, *(claim for other in _before(definition, all_of_them) for claim in claims(other["spec"]))}
    clashes = [claim for claim in claims(definition["spec"]) if claim in taken]
    return refused(status, clashes, (definition.get("status") or {}).get("conditions"), at) if clashes else status


def _before(definition: Object, all_of_them: Iterable[Object]) -> Iterator[Object]:
    """The older definitions."""
    for other in all_of_them:
        if other["metadata"]["name"] == definition["metadata"]["name"]:
            return
        yield other
