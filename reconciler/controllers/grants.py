"""RBAC changed in a workspace: those that may use its Locations might be others now, so their Placements are looked at.

Works with the placements controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.placementindex import PlacementIndex
from reconciler.controllers.uses import RBAC, Uses


class Grants(Controller[str]):
    """One work item a workspace. `look`: has a Placement decided anew."""

    name, version = "uses", "1"
    resources = RBAC
    shown = beyond = NO_RESOURCES  # its Locations went, too, which is told of themselves

    def __init__(self, store: Store, uses: Uses, index: PlacementIndex, look: Callable[[Key], None]) -> None:
        self._store, self._uses, self._index, self._look = store, uses, index, look

    def keys_of(self, entry: Entry) -> Iterable[str]:
        yield entry.key.cluster

    def reconcile(self, key: str) -> None:
        around = self._index.around(key)
        paths = self._uses.concerned(key) if around else ()
        if paths is None:
            for each in around:
                self._look(each)
            return
        for path in paths:
            workspace = tree.workspace_at(self._store, path)
            for each in self._index.of(workspace.cluster) if workspace is not None else ():
                self._look(each)
