"""The end of CustomResourceDefinitions: their instances go first.

One controller for all workspaces of a store. A definition that is deleted through the API, or that a commit takes away
while instances have finalizers (loading/leaving), is Terminating until its last instance is gone. Instances of one that
is gone at once nobody serves and nobody can free: they go at once, too. Instances that git declares stay (see
disposal); the condition names their files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.model import conditions
from apiserver.model.keys import Key, defined, definition_of
from apiserver.model.marks import DEFINITION_FINALIZER
from apiserver.model.storagenames import CRDS
from apiserver.registry import codec, indexes
from apiserver.registry.builtins.served import exported_builtins, target_builtins
from apiserver.registry.kinds import kinds_of_crd
from apiserver.registry.kindtable import KindTable
from apiserver.registry.marking import terminating, with_terminating
from apiserver.storage.protocol import Delete, Store
from reconciler.controllers import disposal, instances
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.instances import Left

Object = dict[str, Any]

_DYING = b'"deletionTimestamp"'


class DefinitionLife(Controller[Key]):
    """`kinds` of a logical cluster, as they are served now. `leftover`: whether an object with that value goes with a
    definition that is gone already."""

    name = "definitionlife"
    version = "1"
    resources = EVERYTHING
    beyond = frozenset({CRDS})

    def __init__(
        self, store: Store, kinds: Callable[[str], KindTable], leftover: Callable[[bytes], bool] = disposal.leftover
    ) -> None:
        self._store = store
        self._leftover = leftover
        self._kinds = kinds
        self._ending: set[tuple[str, str]] = set()
        """(cluster, store name of the instances) of definitions that wait for these."""
        self._shipped = {k.storage for k in exported_builtins().all()}
        self._builtin = {k.storage for k in target_builtins().all()} | self._shipped
        self._seen = ("", "")

    def begin(self) -> None:
        found = self._store.indexed(indexes.ENDING, CRDS, whole=True)
        self._ending = {(entry.key.cluster, defined(entry.key.name)) for entry in found}
        self._seen = ("", "")

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = entry.key
        if key.resource == CRDS:
            if entry.value is None or _DYING in entry.value:
                yield key
        elif entry.shown:
            yield from self._without_definition(key)
        elif (key.cluster, key.resource) in self._ending:
            yield _definition(key)

    def _without_definition(self, key: Key) -> Iterable[Key]:
        """The definition that an object lacks; asked once for all that stand together."""
        if (key.resource, key.cluster) != self._seen:
            self._seen = (key.resource, key.cluster)
            if self._defined_here(key):
                yield _definition(key)

    def _defined_here(self, key: Key) -> bool:
        """Whether the objects are of a kind that only a CustomResourceDefinition can have brought, but has not."""
        if ":" in key.resource or key.resource in self._builtin:
            return False
        return self._is_gone(key)

    def _is_gone(self, key: Key) -> bool:
        """Whether nothing serves objects of that resource by now."""
        if self._kinds(key.cluster).of_storage(key.resource) is not None:
            return False
        return self._store.get(_definition(key)) is None

    def reconcile(self, key: Key) -> None:
        record = self._store.get(key)
        if record is None:
            self._ending.discard((key.cluster, defined(key.name)))
            left = Key(defined(key.name), key.cluster, "", "")
            if left.resource not in self._shipped and self._is_gone(left):
                for page in instances.pages(self._store, left.resource, key.cluster):
                    gone = [Delete(r.key, r.revision) for r in page if self._leftover(r.value)]
                    disposal.write_all(self._store, list(gone))
            return
        definition = codec.decode(record.value, record.revision)
        metadata = definition["metadata"]
        if not metadata.get("deletionTimestamp") or DEFINITION_FINALIZER not in (metadata.get("finalizers") or ()):
            self._ending.discard((key.cluster, defined(key.name)))
            return
        self._ending.add((key.cluster, defined(key.name)))
        told = self._told(key, definition)
        done = told["status"] == "False"
        made = with_terminating(definition, told)
        if done:
            made = disposal.without_finalizer(made, DEFINITION_FINALIZER)
        if made != definition:
            disposal.write(self._store, disposal.replaced(record, made)).result()

    def _told(self, key: Key, definition: Object) -> Object:
        """The condition Terminating after what could be deleted was; False once nothing is left."""
        if not conditions.is_true((definition.get("status") or {}).get("conditions"), "Established"):
            return terminating(False, "NeverEstablished", "resource was never established")
        served = self._kinds(key.cluster).of_storage(defined(key.name))
        if served is not None and not served.definition:
            return terminating(
                False, "OverlappingBuiltInResource", "instances overlap with built-in resources in storage"
            )
        kind = kinds_of_crd(definition)[0]
        left = Left()
        instances.end(self._store, kind, key.cluster, left)
        if left.declared:
            text = f"could not issue all deletes: {', '.join(left.declared)}; remove it there"
            return terminating(True, "InstanceDeletionFailed", text)
        if left.count:
            return terminating(True, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        return terminating(False, "InstanceDeletionCompleted", "removed all instances")


def _definition(key: Key) -> Key:
    """Of the CustomResourceDefinition that brings objects of that resource."""
    return Key(CRDS, key.cluster, "", definition_of(key.resource))
