"""The kinds of a provider's view: those that the export offers, those that it claims, and APIBindings.

Made by provider.py once for all requests, until the export changes, or a definition where it or one of those stands of
which something is claimed: an export may have many large schemas.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import lru_cache

from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import sharing
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import Review
from apiserver.registry.builtins.served import SHIPPED_IDENTITY, identified_builtins
from apiserver.registry.kinds import KindTable, kinds_of_schema, workspace_builtins
from apiserver.registry.permissionclaims import ANY_VERB, Claimed, asked_of, named
from apiserver.registry.served import READ, ServedKind
from apiserver.registry.sharing import SharedExport
from apiserver.storage.protocol import Store

SUBRESOURCES = frozenset({"scale", "status"})
"""Those that lead no further than to the object."""
_QUESTIONS = having(lambda kind: kind.review in (Review.ACCESS, Review.LOCAL_ACCESS, Review.TOKEN))
"""Not stored, and claimable: answered as the consumer's workspace answers them."""
_KEPT = 64


class ProviderKinds:
    """Of one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: OrderedDict[Key, tuple[Hashable, KindTable]] = OrderedDict()

    def of(self, export: SharedExport) -> KindTable:
        seen = self._seen(export)
        known = self._found.get(export.key)
        if known is None or known[0] != seen:
            known = self._found[export.key] = (seen, self._table(export))
        self._found.move_to_end(export.key)
        if len(self._found) > _KEPT:
            self._found.popitem(last=False)
        return known[1]

    def _seen(self, export: SharedExport) -> Hashable:
        """What the kinds follow from, as it is now."""
        identities = sorted({Claimed.of(claim).identity for claim in asked_of(export.obj)} - {""})
        others = [each for identity in identities for each in sharing.exports_by_identity(self._store, identity)]
        return tuple((e.cluster, e.name, e.revision, self._store.marked(e.cluster)) for e in (export, *others))

    def _table(self, export: SharedExport) -> KindTable:
        schemas = sharing.schemas(self._store, export) if export.identity else []
        own = [kind for schema in schemas for kind in kinds_of_schema(schema, export.identity)]
        names = {kind.group_resource for kind in own}
        claimed = [kind for kind in self._claimed(export) if kind.group_resource not in names]
        shown = [_shown(kind, "") for kind in own] + claimed
        if not any(kind.storage == BINDINGS for kind in claimed):
            shown += [_read_only(kind) for kind in workspace_builtins().all() if kind.storage == BINDINGS]
        return KindTable(sorted(shown, key=lambda kind: kind.group))

    def _claimed(self, export: SharedExport) -> Iterator[ServedKind]:
        for claim in asked_of(export.obj):
            verbs = frozenset(claim["verbs"])
            for kind in self._kinds_of(Claimed.of(claim)):
                allowed = kind.verbs if ANY_VERB in verbs else kind.verbs & verbs
                yield replace(_shown(kind, ",".join(sorted(allowed))), verbs=allowed)

    def _kinds_of(self, claimed: Claimed) -> list[ServedKind]:
        if not claimed.identity:
            wanted = named(claimed.group, claimed.resource)
            found = (k for k in workspace_builtins().all() if named(k.group, k.resource) == wanted)
            return [kind for kind in found if kind.storage or kind.qualified in _QUESTIONS]
        if claimed.identity == SHIPPED_IDENTITY:
            wanted, shipped = named(claimed.group, claimed.resource), identified_builtins().all()
            return [kind for kind in shipped if (kind.group, kind.resource) == wanted]
        schemas = sharing.schemas_by_identity(self._store, claimed)
        return [kind for schema in schemas[:1] for kind in kinds_of_schema(schema, claimed.identity)]


@lru_cache(4096)
def _shown(kind: ServedKind, verbs: str) -> ServedKind:
    """Without what leads beyond its objects. Whose webhook would convert them is known in their workspaces alone."""
    digest = f"{kind.digest}/{kind.storage}/{verbs}"
    return replace(kind, subresources=kind.subresources & SUBRESOURCES, conversion=None, digest=digest)


def _read_only(kind: ServedKind) -> ServedKind:
    return replace(kind, verbs=READ, subresources=frozenset(), digest=f"{kind.digest}/read")
