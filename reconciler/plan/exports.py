"""What a provider offers, what a binding is bound to, and what changes between the two.

Shapes that apis decides with, and loading fills.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from apiserver.registry.boundresources import BoundResource, SchemaRef
from apiserver.registry.kinds import storage_of
from apiserver.registry.permissionclaims import asked_of
from reconciler.plan.narrowing import allowed_by

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Export:
    """An APIExport at its provider's served commit: the provider's logical cluster, identity hash and schemas.

    `missing`: names of schemas in its spec that the provider does not have. `claims`: what it asks of its consumers.
    `allows`: changes of schemas that it names, which may take less.
    """

    path: str
    name: str
    cluster: str
    identity: str
    schemas: tuple[Object, ...]
    missing: tuple[str, ...] = ()
    claims: tuple[Object, ...] = ()
    allows: frozenset[str] = frozenset()

    @staticmethod
    def of(path: str, cluster: str, obj: Object, identity: str, schemas: Mapping[str, Object | None]) -> Export:
        """An APIExport `obj` of the workspace at `path`. `schemas`: those that it names, None for what the provider has
        not."""
        name = obj["metadata"]["name"]
        found = tuple(schema for schema in schemas.values() if schema is not None)
        missing = tuple(each for each, schema in schemas.items() if schema is None)
        return Export(path, name, cluster, identity, found, missing, tuple(asked_of(obj)), allowed_by(obj))

    def storages(self) -> set[str]:
        """The store's names of its resources."""
        return {self.storage(schema) for schema in self.schemas}

    def resources(self) -> list[BoundResource]:
        """What a binding to it brings."""
        return [
            BoundResource(spec.get("group") or "", spec["names"]["plural"], metadata.get("uid", ""), self.identity)
            for spec, metadata in ((schema["spec"], schema["metadata"]) for schema in self.schemas)
        ]

    def storage(self, schema: Object) -> str:
        """The store's name of the resource that one of its schemas brings."""
        spec = schema["spec"]
        return storage_of(spec.get("group") or "", spec["names"]["plural"], self.identity)


class Bound(NamedTuple):
    """What a binding is served with: the provider's logical cluster, the identity hash ("" where there are no schemas),
    names of schemas, and their UIDs."""

    cluster: str
    identity: str
    schemas: tuple[str, ...]
    uids: tuple[str, ...]

    def refs(self) -> list[SchemaRef]:
        """The schemas, for whoever looks for them."""
        return [SchemaRef(self.cluster, *each) for each in zip(self.schemas, self.uids, strict=True)]

    @staticmethod
    def to(export: Export) -> Bound:
        names = tuple(schema["metadata"]["name"] for schema in export.schemas)
        uids = tuple(schema["metadata"].get("uid", "") for schema in export.schemas)
        return Bound(export.cluster, export.identity if names else "", names, uids)

    @staticmethod
    def of(status: Object) -> Bound | None:
        """As the status of an APIBinding says; None for one that is not bound."""
        if status.get("phase") != "Bound":
            return None
        schemas = [b["schema"] for b in status.get("boundResources") or ()]
        identity = schemas[0]["identityHash"] if schemas else ""
        names, uids = tuple(s["name"] for s in schemas), tuple(s.get("UID", "") for s in schemas)
        return Bound(status.get("apiExportClusterName", ""), identity, names, uids)


class Turn(NamedTuple):
    """What a binding was bound to, and what it takes instead."""

    former: Export
    export: Export

    def kinds(self) -> set[tuple[str, str]]:
        """(group, kind) of all that is in either."""
        specs = [schema["spec"] for schema in (*self.former.schemas, *self.export.schemas)]
        return {(spec.get("group") or "", spec["names"]["kind"]) for spec in specs}

    def dropped(self) -> set[str]:
        """The store's names of what was bound and is no more."""
        return self.former.storages() - self.export.storages()
