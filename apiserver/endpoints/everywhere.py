"""The kinds of `/clusters/*`: what a list over all workspaces can be of.

Built-in kinds are the same everywhere; the others are what some workspace exports or defines. A bound API is addressed
as `<resource>:<identity hash>`; its plain name means the first of that name, by logical cluster of the exporting
workspace, and for custom resources of CRDs the definition of the first workspace that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from apiserver.model import conditions
from apiserver.model.keys import Key, storage_name
from apiserver.registry.catalog import CRDS, SCHEMAS
from apiserver.registry.kinds import (
    KindTable,
    kinds_of_crd,
    kinds_of_schema,
    kubernetes_builtins,
    overlay,
    workspace_builtins,
)
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Record, Store

_EXPORTS = "apiexports.apis.kcp.io"
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class _Found:
    """`of`: kinds by store name and version."""

    marked: int
    table: KindTable
    of: dict[tuple[str, str], ServedKind]


class Everywhere:
    """Over one store. Read again when a definition or binding changed somewhere, and only if anyone asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: _Found | None = None

    def kinds(self) -> KindTable:
        return self._look().table

    def kind(self, group: str, version: str, resource: str) -> ServedKind | None:
        """`resource` may carry an identity hash. None: no workspace serves it."""
        plain, _, identity = resource.partition(":")
        if identity:
            return self._look().of.get((storage_name(group, plain, identity), version))
        builtin = workspace_builtins().by_resource(group, version, plain)
        found = builtin or self._look().table.by_resource(group, version, plain)
        # What only workspaces with all of Kubernetes' kinds serve comes last: an export of that name hides it.
        return found or kubernetes_builtins().by_resource(group, version, plain)

    def _look(self) -> _Found:
        marked = self._store.marked()
        found = self._found
        if found is None or found.marked != marked:
            kinds = [*self._exported(), *self._defined()]
            of = {(kind.storage, kind.version): kind for kind in kinds}
            found = self._found = _Found(marked, overlay(workspace_builtins(), kinds), of)
        return found

    def _exported(self) -> Iterator[ServedKind]:
        for record in self._records(_EXPORTS):
            export = orjson.loads(record.value)
            identity = (export.get("status") or {}).get("identityHash", "")
            names = (export.get("spec") or {}).get("latestResourceSchemas") or ()
            keys = [Key(SCHEMAS, record.key.cluster, "", name) for name in names]
            for schema in self._store.get_many(keys) if identity and keys else ():
                if schema is not None:
                    yield from kinds_of_schema(orjson.loads(schema.value), identity)

    def _defined(self) -> Iterator[ServedKind]:
        for record in self._records(CRDS):
            definition = orjson.loads(record.value)
            if conditions.is_true((definition.get("status") or {}).get("conditions"), "Established"):
                yield from kinds_of_crd(definition)

    def _records(self, resource: str) -> Iterator[Record]:
        after = None
        while True:
            page = self._store.scan(resource, after=after, limit=_PAGE)
            yield from page.records
            if page.more is None:
                return
            after = page.more
