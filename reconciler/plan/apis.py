"""Which kinds a workspace serves, decided from content: its CRDs and its APIBindings against the providers' exports.

Called by loading for each workspace whose CRDs or bindings changed, or one of whose providers did. Never looks at a
binding's phase: a binding and its objects may arrive in one commit. What it finds becomes the bindings' status, from
which the apiserver serves.

What a workspace is served with so far is its past. Who holds a name keeps it; a binding whose export is gone, or offers
what the workspace's content does not fit, keeps the schemas that it was bound with, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from apiserver.registry.boundresources import KEEPS
from apiserver.registry.claims import NameClaim, claimed, claims, claims_of
from apiserver.registry.kinds import (
    KindTable,
    ServedKind,
    exported_builtins,
    kinds_of_crd,
    kinds_of_schema,
    overlay,
)
from reconciler.plan import system
from reconciler.plan.bindings import NAMING_CONFLICTS, BindingInShort, BindingOutcome, BindingTrouble, binding_status
from reconciler.plan.exports import Bound, Export, Turn

Object = dict[str, Any]


class Undeclared(NamedTuple):
    """A resource that is served though no file declares what brings it: its definition was made through the API, or is
    on its way out (`ends`) while objects of it wait for finalizers; or that nobody but an export that ships may bring.
    `holder`: who brings it, in words; `storage`: the store's name of it; `names`: what it claims; `remedy`: of others
    that claim them, where it is not the usual."""

    holder: str
    storage: str
    names: Sequence[NameClaim]
    ends: bool = False
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class ServedSoFar:
    """What the workspace is served with so far.

    `definitions`: names of CustomResourceDefinitions that hold their names; `others`: what git does not know of and
    holds its names. `bound`: by binding what it is bound to. `read`: an export (`<path>:<name>`) as a
    binding is bound to it, None where its schemas are lost. `keep`: bindings that are to keep what they are bound to,
    since the workspace's content does not fit what their export offers by now; `why`: what it does instead, of those
    where that is known in words. `said`: at recovery, bindings that are to be what they were, whatever their export
    offers; `waiting`: of one that is held, definitions that others had the names of.
    """

    definitions: frozenset[str] = frozenset()
    others: Sequence[Undeclared] = ()
    bound: Mapping[str, Bound] = field(default_factory=dict)
    read: Callable[[str, Bound], Export | None] = lambda _, __: None
    keep: frozenset[str] = frozenset()
    why: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, BindingInShort] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()


_NO_PAST = ServedSoFar()

FindExport = Callable[[str, str], Export | None]
"""(workspace path, export name) → the export, or None where there is none."""


@dataclass(frozen=True, slots=True)
class Apis:
    """The kinds; the status of each binding by name; of CustomResourceDefinitions that are not served for their names,
    the claims that others hold; the providers that were looked at (path, export).

    `waiting`: bindings that are not bound since others have their names. `offers`: what each binding's export offers,
    where it can be taken. `turned`: bindings that take something else than they were bound to, with what that was.
    """

    kinds: KindTable
    bindings: dict[str, Object] = field(default_factory=dict)
    refused: dict[str, list[NameClaim]] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    providers: frozenset[tuple[str, str]] = frozenset()
    offers: dict[str, Bound] = field(default_factory=dict)
    turned: dict[str, Turn] = field(default_factory=dict)


def resolve(
    builtins: KindTable,
    crds: Iterable[Object],
    bindings: Iterable[Object],
    find: FindExport,
    home: str,
    at: str,
    past: ServedSoFar = _NO_PAST,
) -> Apis:
    """`home` is the workspace's path (an export without path is its own); `at` the time for conditions that change
    (RFC 3339). `bindings` carry the status that they have so far."""
    crds = sorted(crds, key=lambda c: str(c["metadata"]["name"]))
    wishes = [_wish(b, find, home, past) for b in sorted(bindings, key=lambda b: str(b["metadata"]["name"]))]
    if not crds and not wishes:
        return Apis(builtins)
    names = _Names(builtins)
    for other in past.others:
        names.leave(other)
    for name, crd in _named(crds):
        if name in past.definitions:
            names.take(definition_named(name), claims(crd["spec"]))
    for wish in wishes:
        if wish.former is not None:
            names.take(wish.label, _claims(wish.former), wish.former.storages())
    refused = {name: claims(crd["spec"]) for name, crd in _named(crds) if name in past.waiting}
    crds = [crd for crd in crds if crd["metadata"]["name"] not in refused]
    _settle(names, crds, wishes)
    # A binding may have let go of names that others wait for.
    names.keep_only({wish.label: _claims(wish.export) for wish in wishes})
    refused |= _settle(names, crds, wishes)
    kinds = [kind for name, crd in _named(crds) if name not in refused for kind in kinds_of_crd(crd)]
    kinds += [kind for wish in wishes for kind in wish.kinds()]
    return Apis(
        overlay(builtins, kinds) if kinds else builtins,
        {wish.name: wish.status(at) for wish in wishes},
        refused,
        frozenset(w.name for w in wishes if w.conflict is not None and w.export is None),
        frozenset(w.provider for w in wishes),
        {w.name: Bound.to(w.offered) for w in wishes if w.offered is not None and not w.offered.missing},
        {w.name: turn for w in wishes if (turn := w.turn()) is not None},
    )


@dataclass(slots=True)
class _Wish:
    """One binding on its way. `former`: what it is bound to so far, None if to nothing; `trouble`: why it cannot take
    what is offered, `conflict`: nor for its names; `said`: what it is to be in any case; `export`: what it is served
    with in the end."""

    binding: Object
    provider: tuple[str, str]
    offered: Export | None
    former: Export | None
    trouble: BindingTrouble | None
    said: BindingInShort | None = None
    conflict: BindingTrouble | None = None
    export: Export | None = None

    @property
    def name(self) -> str:
        return str(self.binding["metadata"]["name"])

    @property
    def label(self) -> str:
        return binding_named(self.name)

    def settle(self, names: _Names) -> None:
        """Takes what is offered if nothing stands against it, and keeps what it has otherwise."""
        self.conflict, self.export = None, self.former
        if self.said is not None or self.trouble is not None or self.offered is None:
            return
        clashes = names.take(self.label, _claims(self.offered), self.offered.storages())
        if clashes:
            what = f"{clashes[0].name}.{clashes[0].group}".rstrip(".")
            why = f"{what} is served already by {names.holder(clashes[0])}: {names.remedy(clashes[0])}"
            self.conflict = BindingTrouble("BindingUpToDate", NAMING_CONFLICTS, why)
        else:
            self.export = self.offered

    def turn(self) -> Turn | None:
        if self.former is None or self.export is None or self.export is self.former:
            return None
        return Turn(self.former, self.export)

    def kinds(self) -> list[ServedKind]:
        export = self.export
        return [k for s in export.schemas for k in kinds_of_schema(s, export.identity)] if export is not None else []

    def status(self, at: str) -> Object:
        export, trouble = self.export, self.trouble or self.conflict
        if self.said is not None:
            trouble = self.said.trouble
        elif trouble is not None and export is not None and export.schemas:
            kept = ", ".join(s["metadata"]["name"] for s in export.schemas)
            trouble = trouble._replace(message=f"{trouble.message}; it keeps what it is bound to: {kept}")
        cluster = next((e.cluster for e in (self.said, export, self.offered) if e is not None), "")
        resources = [_bound_resource(s, export.identity) for s in export.schemas] if export is not None else None
        claims = self.offered.claims if self.offered is not None else None
        return binding_status(self.binding, BindingOutcome(cluster, resources, trouble, claims), at)


def _settle(names: _Names, crds: Sequence[Object], wishes: Iterable[_Wish]) -> dict[str, list[NameClaim]]:
    """Gives names to who wants them, definitions first; those that get none, and what others hold."""
    found = {name: names.take(definition_named(name), claims(crd["spec"])) for name, crd in _named(crds)}
    for wish in wishes:
        wish.settle(names)
    return {name: clashes for name, clashes in found.items() if clashes}


def _wish(binding: Object, find: FindExport, home: str, past: ServedSoFar) -> _Wish:
    name = str(binding["metadata"]["name"])
    reference = ((binding.get("spec") or {}).get("reference") or {}).get("export") or {}
    path, wanted = reference.get("path") or home, str(reference.get("name", ""))
    offered, before, said = find(path, wanted), past.bound.get(name), past.said.get(name)
    trouble = _trouble(offered, path, wanted, before)
    if trouble is None and offered is not None and name in past.keep:
        offers = ", ".join(s["metadata"]["name"] for s in offered.schemas) or "nothing"
        wrong = past.why.get(name) or "does not fit what is here: change that"
        why = f"APIExport {path}:{wanted} offers {offers} by now, which {wrong}"
        trouble = BindingTrouble("BindingUpToDate", KEEPS, why)
    return _Wish(binding, (path, wanted), offered, _former(path, wanted, before, offered, past), trouble, said)


def _former(path: str, name: str, before: Bound | None, offered: Export | None, past: ServedSoFar) -> Export | None:
    if before is None:
        return None
    if offered is not None and not offered.missing and before == Bound.to(offered):
        return offered
    if not before.schemas:
        return Export(path, name, before.cluster, "", ())
    return past.read(f"{path}:{name}", before)


def _trouble(offered: Export | None, path: str, wanted: str, before: Bound | None) -> BindingTrouble | None:
    """Why an export cannot be taken as it is."""
    named = f"{path}:{wanted}"
    if offered is None:
        why = f"no APIExport {wanted} in workspace {path}: declare it there, or correct spec.reference.export"
        return BindingTrouble("APIExportValid", "APIExportNotFound", why)
    if not offered.identity:
        why = f"Missing hash on export {named}: see its condition IdentityValid"
        return BindingTrouble("APIExportValid", "MissingIdentityHash", why)
    if offered.missing:
        why = f"APIExport {named} names schemas that do not exist: {', '.join(offered.missing)}"
        return BindingTrouble("APIExportValid", "InternalError", why)
    if before is not None and (differs := _another(offered, before)):
        why = f"APIExport {named} is another than the one it was bound to (its {differs} differs): bind it anew"
        return BindingTrouble("APIExportValid", "APIExportNotFound", why)
    return None


def _another(offered: Export, before: Bound) -> str:
    """In what an export is not the one that was bound; "" if it may be. Of one without schemas no identity is known,
    and what was granted to it is no grant to whoever has its path by now."""
    if not before.schemas:
        return "workspace" if before.cluster not in ("", offered.cluster) else ""
    return "identity" if before.identity not in ("", offered.identity) else ""


_REMOVE = "remove one of the two"


@cache
def _shipped() -> tuple[Undeclared, ...]:
    """Our own kinds, which a workspace has from an export that ships or not at all."""
    return tuple(
        Undeclared(
            f"the export {system.export_of(kind.group, kind.kind)} of {system.COMPUTE} alone",
            kind.storage,
            claims_of(kind),
            remedy="bind that one",
        )
        for kind in exported_builtins().all()
    )


class _Names:
    """Who holds which names. What is built in has its own for good, and what ships is its export's to bring."""

    def __init__(self, builtins: KindTable) -> None:
        self._held = dict.fromkeys(claimed(builtins), "a built-in kind")
        self._left: dict[NameClaim, Undeclared] = {}
        for shipped in _shipped():
            self.leave(shipped)

    def leave(self, other: Undeclared) -> None:
        """Gives names to what no file brings."""
        if not self.take(other.holder, list(other.names)):
            self._left.update(dict.fromkeys(other.names, other))

    def take(self, claimant: str, wanted: list[NameClaim], storages: Collection[str] = ()) -> list[NameClaim]:
        """All or nothing: the claims that others hold, [] if it has them now. `storages`: where its objects stand;
        who takes over what stands there takes its names over as well."""
        clashes = [c for c in wanted if self._held.get(c, claimant) != claimant and not self._inherits(c, storages)]
        if not clashes:
            self._held.update(dict.fromkeys(wanted, claimant))
        return clashes

    def _inherits(self, claim: NameClaim, storages: Collection[str]) -> bool:
        left = self._is_left(claim)
        return left is not None and left.storage in storages

    def _is_left(self, claim: NameClaim) -> Undeclared | None:
        left = self._left.get(claim)
        return left if left is not None and self._held[claim] == left.holder else None

    def holder(self, claim: NameClaim) -> str:
        return self._held[claim]

    def remedy(self, claim: NameClaim) -> str:
        left = self._is_left(claim)
        if left is None:
            return _REMOVE
        return left.remedy or ("it is bound once that has gone" if left.ends else _REMOVE)

    def keep_only(self, wanted: Mapping[str, list[NameClaim]]) -> None:
        """Those named hold nothing else any more."""
        self._held = {c: who for c, who in self._held.items() if who not in wanted or c in wanted[who]}


def binding_named(name: str) -> str:
    """Who holds names, in words."""
    return f"the APIBinding {name}"


def definition_named(name: str) -> str:
    """The same."""
    return f"the CustomResourceDefinition {name}"


def _claims(export: Export | None) -> list[NameClaim]:
    return [claim for schema in (export.schemas if export is not None else ()) for claim in claims(schema["spec"])]


def _named(crds: Iterable[Object]) -> list[tuple[str, Object]]:
    return [(crd["metadata"]["name"], crd) for crd in crds]


def _bound_resource(schema: Object, identity: str) -> Object:
    spec, metadata = schema["spec"], schema["metadata"]
    return {
        "group": spec["group"],
        "resource": spec["names"]["plural"],
        "schema": {"name": metadata["name"], "UID": metadata.get("uid", ""), "identityHash": identity},
        "storageVersions": [v["name"] for v in spec["versions"] if v.get("storage")],
    }
