"""Which kinds a workspace is to serve: collects what plan/apis decides from.

Called by phases.kinds for a workspace that is judged whole. What it is served with so far is read from the store; at
recovery, from what the status branch recorded: there only what is contested or differs is said, the rest follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, CRDS, EXPORTS, SCHEMAS
from apiserver.registry import codec
from apiserver.registry.exportspec import offered_schemas
from apiserver.registry.kinds import KindTable
from reconciler.loading.case import Case, Recorded, was_served
from reconciler.loading.leaving import BINDING, DEFINITION, LeftBehind, undeclared
from reconciler.loading.render import DeclaredObject
from reconciler.loading.world import World
from reconciler.plan import apis
from reconciler.plan.apis import ServedSoFar
from reconciler.plan.bindings import BindingInShort
from reconciler.plan.exports import Bound, Export

Object = dict[str, Any]

Identity = Callable[[str], str]
"""The identity hash of an export that the judged workspace itself declares, by its name."""


@dataclass(frozen=True, slots=True)
class Resolving:
    """Of one case. `declared`: what its content declares, definitions and bindings among it. `uid`: what one of these
    has or will have."""

    world: World
    identity: Identity
    uid: Callable[[Key], str]
    case: Case
    cluster: str
    declared: Mapping[Key, DeclaredObject]

    def resolve(self, builtins: KindTable, past: ServedSoFar) -> apis.Apis:
        crds = [d.obj for d in self._of(CRDS)]
        bindings = [self._with_stored_status(d) for d in self._of(BINDINGS)]
        case = self.case
        return apis.resolve(builtins, crds, bindings, self.find, case.path, case.moment.rfc3339, past)

    def _of(self, resource: str) -> Iterator[DeclaredObject]:
        return (declared for key, declared in self.declared.items() if key.resource == resource)

    def find(self, path: str, name: str) -> Export | None:
        """As the export of its provider is now."""
        return self._own_export(name) if path == self.case.path else self.world.find_export(path, name)

    def _own_export(self, name: str) -> Export | None:
        """An export of the workspace itself, which is not in the store before its binding."""
        export = self.declared.get(Key(EXPORTS, self.cluster, "", name))
        if export is None:
            return None
        found = {schema: self._own_schema(schema) for schema in offered_schemas(export.obj)}
        return Export.of(self.case.path, self.cluster, export.obj, self.identity(name), found)

    def _with_stored_status(self, declared: DeclaredObject) -> Object:
        record = self.world.store.get(declared.key)
        if record is None:
            return declared.obj
        return {**declared.obj, "status": codec.decode(record.value, record.revision).get("status")}

    # -- what was before

    def served(self) -> ServedSoFar:
        """What the workspace is served with so far; nothing, if it never was."""
        if self.case.record is None or not self.case.record.served:
            return ServedSoFar()
        definitions = set()
        for record in self.world.store.scan(CRDS, self.cluster).records:
            status = orjson.loads(record.value).get("status") or {}
            if conditions.is_true(status.get("conditions"), "NamesAccepted"):
                definitions.add(record.key.name)
        bound = {}
        for record in self.world.store.scan(BINDINGS, self.cluster).records:
            found = Bound.of(orjson.loads(record.value).get("status") or {})
            if found is not None:
                bound[record.key.name] = found
        others = undeclared(self.world.store, self.cluster, self.case.path, self.declared, self.read)
        return ServedSoFar(frozenset(definitions), tuple(others), bound, self.read)

    def remembered(self, recorded: Recorded) -> ServedSoFar:
        """What it was served with, as the status branch says."""
        if not was_served(recorded):
            return ServedSoFar()
        summary = recorded.summary
        absent = frozenset(summary.waiting)
        definitions = {d.key.name for d in self._of(CRDS) if DEFINITION + d.key.name not in absent}
        said = {name: BindingInShort.from_json(found) for name, found in summary.bindings.items()}
        bound = {name: each.bound for name, each in said.items() if each.bound is not None}
        for declared in self._of(BINDINGS):
            name = declared.key.name
            if name not in said and BINDING + name not in absent:
                reference = declared.obj["spec"]["reference"]["export"]
                offered = self.find(reference.get("path") or self.case.path, reference["name"])
                if offered is not None and not offered.missing:
                    bound[name] = Bound.to(offered)
        others = LeftBehind(recorded.endings(), self.cluster, self.case.path, self.read).undeclared()
        held = summary.served is not None
        waiting = frozenset(n.removeprefix(DEFINITION) for n in absent if held and n.startswith(DEFINITION))
        return ServedSoFar(frozenset(definitions), tuple(others), bound, self.read, said=said, waiting=waiting)

    def read(self, named: str, bound: Bound) -> Export | None:
        """An export (`<path>:<name>`) as a binding is bound to it."""
        path, _, name = named.rpartition(":")
        if path == self.case.path:
            return self.world.former_export(path, name, bound, self._own_schema)
        return self.world.former_export(path, name, bound)

    def _own_schema(self, name: str) -> Object | None:
        key = Key(SCHEMAS, self.cluster, "", name)
        found = self.declared.get(key)
        if found is None:
            return None
        return {**found.obj, "metadata": {**found.obj["metadata"], "uid": self.uid(key)}}


def waiting(found: apis.Apis) -> list[str]:
    """As Summary.waiting holds it."""
    return sorted([*(DEFINITION + name for name in found.refused), *(BINDING + name for name in found.waiting)])


def said_otherwise(statuses: Mapping[str, Object], found: apis.Apis) -> dict[str, Object]:
    """Which bindings (by name, with their statuses) are bound to something else than their export offers, as
    Summary.bindings holds it."""
    said = {name: BindingInShort.of(status) for name, status in statuses.items()}
    return {n: s.as_json() for n, s in said.items() if s.bound is not None and s.bound != found.offers.get(n)}
