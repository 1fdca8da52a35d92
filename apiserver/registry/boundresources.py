"""What APIBindings brought, and what goes with one that is deleted.

Two bindings of a workspace may serve the same resource by the same schema under the same identity: then its objects
stay until the last of them is deleted, and new ones may be made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from apiserver.model.marks import BINDING_FINALIZER
from apiserver.registry.builtins.served import storage_of

Object = dict[str, Any]

KEEPS = "APIResourceSchemaInvalid"
"""The reason of a condition of an APIBinding that keeps what it is bound to, for what is there."""


def with_finalizer(binding: Object) -> Object:
    """As clients read a binding: one that is bound waits, once it is deleted, for what goes first."""
    metadata = binding["metadata"]
    found = metadata.get("finalizers") or []
    if metadata.get("deletionTimestamp") or BINDING_FINALIZER in found or not bound_by(binding):
        return binding
    return {**binding, "metadata": {**metadata, "finalizers": [*found, BINDING_FINALIZER]}}


class BoundResource(NamedTuple):
    """As a binding's status says: `schema` is the UID of its APIResourceSchema, `identity` the export's hash."""

    group: str
    resource: str
    schema: str
    identity: str

    @property
    def storage(self) -> str:
        """The store's name of it."""
        return storage_of(self.group, self.resource, self.identity)


class SchemaRef(NamedTuple):
    """As a binding records it: the provider's logical cluster, the name, and the UID ("" of one whose UID is not known,
    which is then any of that name)."""

    cluster: str
    name: str
    uid: str

    def is_of(self, schema: Object) -> bool:
        """Whether it means this one, of those with its name."""
        return self.uid in ("", schema["metadata"].get("uid", ""))


def recorded_by(binding: Object) -> frozenset[SchemaRef]:
    """The schemas that a binding is served with; none of {}."""
    status = binding.get("status") or {}
    cluster, named = status.get("apiExportClusterName", ""), (each.get("schema") or {} for each in _resources(binding))
    return frozenset(SchemaRef(cluster, each.get("name", ""), each.get("UID", "")) for each in named)


def bound_by(binding: Object) -> list[BoundResource]:
    return [_read(each) for each in _resources(binding)]


def _resources(binding: Object) -> list[Object]:
    return (binding.get("status") or {}).get("boundResources") or []


def _read(bound: Object) -> BoundResource:
    schema = bound.get("schema") or {}
    return BoundResource(
        bound.get("group") or "", bound["resource"], schema.get("UID", ""), schema.get("identityHash", "")
    )


def ending(bindings: Iterable[Object]) -> frozenset[BoundResource]:
    """Of all bindings of a workspace: what is served by those alone that are being deleted."""
    going: set[BoundResource] = set()
    staying: set[BoundResource] = set()
    for binding in bindings:
        (going if binding["metadata"].get("deletionTimestamp") else staying).update(bound_by(binding))
    return frozenset(going - staying)
