"""The end of APIBindings: what their kinds have in the workspace goes first, and only then are the kinds' names free.

One controller for all workspaces of a store, as definitionlife for CustomResourceDefinitions. A binding that is
deleted through the API comes here (registry/marking.py gives it its finalizer), and one that a commit takes away while
objects of its kinds wait for theirs (loading/leaving). Objects that files declare leave git in commits of their own,
the binding's file in the last. Objects that another binding is there for, which waits for the names alone, stay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.model.marks import BINDING_FINALIZER
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import codec, indexes, tree
from apiserver.registry.boundresources import BoundResource, bound_by, ending
from apiserver.registry.kindtable import KindTable
from apiserver.storage.protocol import Store
from reconciler.controllers import disposal, instances
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.instances import Left
from reconciler.loading import consumers
from reconciler.loading.settled import SettledWorld
from reconciler.plan.bindings import NAMING_CONFLICTS, BindingInShort

Object = dict[str, Any]

DELETED = "BindingResourceDeleteSuccess"
"""kcp's condition: False as long as something is left."""
_DYING = b'"deletionTimestamp"'


class BindingLife(Controller[Key]):
    """`kinds` of a logical cluster, as they are served now."""

    name = "bindinglife"
    version = "1"
    resources = EVERYTHING
    shown = beyond = frozenset({BINDINGS})

    def __init__(self, store: Store, kinds: Callable[[str], KindTable]) -> None:
        self._store, self._kinds = store, kinds
        self._ending: dict[tuple[str, str], Key] = {}
        """By cluster and storage resource the binding that waits for its objects."""

    def begin(self) -> None:
        """Whoever waits is looked at, which notes what it waits for."""
        self._ending.clear()
        for found in self._store.indexed(indexes.ENDING, BINDINGS, whole=True):
            self.queue.add(found.key)

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == BINDINGS and (entry.value is None or _DYING in entry.value):
            yield key
        waiting = self._ending.get((key.cluster, key.resource))
        if waiting is not None:
            yield waiting

    def reconcile(self, key: Key) -> None:
        record = self._store.get(key)
        binding = codec.decode(record.value, record.revision) if record is not None else {"metadata": {}}
        metadata = binding["metadata"]
        self._ending = {at: waiting for at, waiting in self._ending.items() if waiting != key}
        if record is None or not metadata.get("deletionTimestamp"):
            return
        if BINDING_FINALIZER not in (metadata.get("finalizers") or ()):
            return
        left = Left()
        for resource in self._alone(key, binding):
            self._ending[key.cluster, resource] = key
            kind = self._kinds(key.cluster).of_storage(resource)
            if kind is not None:  # else nobody could see what there is
                instances.end(self._store, kind, key.cluster, left)
        made = _told(binding, left)
        if not left.count:
            made = disposal.without_finalizer(made, BINDING_FINALIZER)
        if made != binding:
            disposal.write(self._store, disposal.replaced(record, made)).result()

    def _alone(self, key: Key, binding: Object) -> list[str]:
        """What no other binding of the workspace serves, or will: objects of the rest are that one's from now on."""
        records = self._store.scan(BINDINGS, key.cluster, count=False).records
        found = [codec.decode(record.value, record.revision) for record in records]
        going = ending(found).intersection(bound_by(binding))
        staying = self._awaited(key.cluster, found) if going else frozenset()
        return [each.storage for each in bound_by(binding) if each in going and each not in staying]

    def _awaited(self, cluster: str, bindings: Iterable[Object]) -> frozenset[BoundResource]:
        """What bindings offer that wait for the names alone: as kcp has it, an export takes another's place so."""
        home = tree.workspace_of(self._store, cluster)
        if home is None:
            return frozenset()
        world, waiting = SettledWorld(self._store), filter(_waits_for_names, bindings)
        offers = (world.find_export(*consumers.named(each, home.path)) for each in waiting)
        return frozenset(each for export in offers if export is not None for each in export.resources())


def _waits_for_names(binding: Object) -> bool:
    if binding["metadata"].get("deletionTimestamp"):
        return False
    said = BindingInShort.of(binding.get("status") or {})
    return said.bound is None and said.trouble is not None and said.trouble.reason == NAMING_CONFLICTS


def _told(binding: Object, left: Left) -> Object:
    """The binding with the condition that says what it waits for."""
    status = binding.get("status") or {}
    told = conditions.merged(status.get("conditions"), [_condition(left)])
    return {**binding, "status": {**status, "conditions": told}}


def _condition(left: Left) -> Condition:
    at = clock.now()
    if left.declared:
        text = f"could not issue all deletes: {', '.join(left.declared)}; remove it there"
        return condition(DELETED, False, "ResourceDeletionFailed", text, at=at)
    if left.finalizers:
        waits = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(left.finalizers.items()))
        text = f"{left.count} resource instances are remaining, with finalizers: {waits}"
        return condition(DELETED, False, "SomeFinalizersRemain", text, at=at)
    if left.count:
        return condition(DELETED, False, "SomeResourcesRemain", f"{left.count} resource instances are remaining", at=at)
    return condition(DELETED, True, at=at)
