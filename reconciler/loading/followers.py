"""Who takes something of workspaces that move, by their paths: what is known of them is written down as they move.

Called by relocation, and by steps to find them. They are judged again afterwards, and find that what they took is there
no more. Until then, and for a recovery from what is recorded meanwhile, their summaries say what they have, which
nothing else tells any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.model.storagenames import BINDINGS, TYPES
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace
from apiserver.storage.protocol import Op, Store
from reconciler.loading import consumers
from reconciler.loading.workspacetype import brought_by
from reconciler.plan.bindings import BindingInShort

Object = dict[str, Any]

OfTypes = Callable[[Collection[tuple[str, str]]], list[str]]
"""The workspaces that follow from some types (path, name), or may."""


class Naming(NamedTuple):
    """Paths of workspaces: that take an API from some others, and that are of their types, or may be."""

    bound: frozenset[str]
    typed: frozenset[str]


def naming(store: Store, places: Collection[str], of_types: OfTypes) -> Naming:
    """Who takes something of the workspaces that are at some paths, or were."""
    records = (tree.workspace_at(store, path) for path in places)
    types = {each.key.name for r in records if r is not None for each in store.scan(TYPES, r.cluster).records}
    typed = of_types({(path, name) for path in places for name in types}) if types else ()
    return Naming(frozenset(each for path in places for each in consumers.of(store, path)), frozenset(typed))


class Followers(NamedTuple):
    """Of workspaces with the logical clusters `gone`. `moved`: who moves himself."""

    store: Store
    gone: frozenset[str]
    naming: Naming
    moved: Collection[str]

    @staticmethod
    def of(store: Store, moved: Mapping[str, str], of_types: OfTypes) -> Followers:
        """`moved`: the paths where they are, and will be."""
        records = (tree.workspace_at(store, path) for path in moved)
        gone = frozenset(record.cluster for record in records if record is not None)
        return Followers(store, gone, naming(store, moved.keys(), of_types), moved)

    def ops(self) -> Iterator[Op]:
        """For those that stay where they are."""
        for path in sorted((self.naming.bound | self.naming.typed) - {*self.moved}):
            record = tree.workspace_at(self.store, path)
            if record is None or record.stored or not record.served:
                continue
            known = tree.summary(self.store, path)
            said = self.said(record, known)
            if said:
                yield put_workspace(record, known | said)
                yield placed(record)

    def said(self, record: WorkspaceRecord, known: Object) -> Object:
        """What its summary says besides from now on."""
        out: Object = {}
        if record.path in self.naming.bound:
            before = known.get("bindings") or {}
            bindings = dict(self._bindings(record.cluster)) | before
            out |= {"bindings": bindings} if bindings != before else {}
        if record.path in self.naming.typed and not known.get("brought"):
            out["brought"] = brought_by(record)
        return out

    def _bindings(self, cluster: str) -> Iterator[tuple[str, Object]]:
        for record in self.store.scan(BINDINGS, cluster).records:
            short = BindingInShort.of(orjson.loads(record.value).get("status") or {})
            if short.bound is not None and short.bound.cluster in self.gone:
                yield record.key.name, short.as_json()
