"""The kinds of `/clusters/*`: what a list over all workspaces can be of.

Built-in kinds are the same everywhere, those that an export brings as it ships included; the others are what some
workspace exports or defines, each with an identity of its own: an export's hash, or none for what
CustomResourceDefinitions define and for Kubernetes' own kinds in workspaces that have them all.
A resource is addressed as `<resource>:<identity hash>`, with nothing behind the colon for none; its plain name will do
where it has but one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from apiserver.model import conditions
from apiserver.model.counts import some_of
from apiserver.model.errors import StatusError, bad_request
from apiserver.model.keys import Key, storage_name
from apiserver.model.storagenames import CRDS, EXPORTS, SCHEMAS
from apiserver.registry.exportspec import offered_schemas
from apiserver.registry.kinds import (
    KindTable,
    common_builtins,
    kinds_of_crd,
    kinds_of_schema,
    kubernetes_builtins,
    overlay,
    storage_of,
)
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Record, Store

_PAGE = 1000
_NAMED = 20
"""Identities that an error lists."""


@dataclass(frozen=True, slots=True)
class _Found:
    """`of`: kinds by store name and version; `named`: store names by group, version and resource."""

    marked: int
    table: KindTable
    of: dict[tuple[str, str], ServedKind]
    named: dict[tuple[str, str, str], list[str]]


class Everywhere:
    """Over one store. Read again when a definition or binding changed somewhere, and only if anyone asks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: _Found | None = None

    def kinds(self) -> KindTable:
        return self._look().table

    def kind(self, group: str, version: str, resource: str) -> ServedKind | None:
        """`resource` may carry an identity hash. None: no workspace serves it. Raises StatusError 400 for a plain name
        that several identities have."""
        plain, colon, identity = resource.partition(":")
        builtin = common_builtins().by_resource(group, version, plain)
        if builtin is not None and (not identity or storage_of(group, plain, identity) == builtin.storage):
            return builtin
        clusters = kubernetes_builtins().by_resource(group, version, plain)
        of, named = self._look().of, list(self._look().named.get((group, version, plain), ()))
        if colon:
            found = of.get((storage_name(group, plain, identity), version))
            return found if found is not None or identity else clusters
        if clusters is not None and clusters.storage not in named and self._any(clusters.storage):
            named.append(clusters.storage)
        if len(named) > 1:
            raise _ambiguous(group, version, plain, named)
        return of.get((named[0], version), clusters) if named else clusters

    def _any(self, storage: str) -> bool:
        return bool(self._store.scan(storage, limit=1, count=False).records)

    def _look(self) -> _Found:
        marked = self._store.marked()
        found = self._found
        if found is None or found.marked != marked:
            # Whose webhook would convert an object is known in its own workspace alone (views.py).
            kinds = [replace(kind, conversion=None) for kind in (*self._exported(), *self._defined())]
            of: dict[tuple[str, str], ServedKind] = {}
            named: dict[tuple[str, str, str], list[str]] = {}
            for kind in kinds:
                if of.setdefault((kind.storage, kind.version), kind) is kind:
                    named.setdefault((kind.group, kind.version, kind.resource), []).append(kind.storage)
            found = self._found = _Found(marked, overlay(common_builtins(), kinds), of, named)
        return found

    def _exported(self) -> Iterator[ServedKind]:
        for record in self._records(EXPORTS):
            export = orjson.loads(record.value)
            identity = (export.get("status") or {}).get("identityHash", "")
            keys = [Key(SCHEMAS, record.key.cluster, "", name) for name in offered_schemas(export)]
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


def _ambiguous(group: str, version: str, resource: str, named: list[str]) -> StatusError:
    qualified = storage_name(group, resource)
    path = f"/clusters/*/apis/{group}/{version}" if group else f"/clusters/*/api/{version}"
    found = [f"{path}/{resource}:{name.partition(':')[2]}" for name in sorted(named)]
    text = f"{qualified} is served under {len(named)} identities; name one of them: {some_of(found, _NAMED)}"
    return bad_request(f"{text} (without a hash: what CustomResourceDefinitions or clusters have)")
