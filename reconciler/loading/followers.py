"""Who takes something of workspaces that move, by their paths: what is known of them is written down as they move.

Called by relocation. They are judged again afterwards, and find that what they took is there no more. Until then, and
for a recovery from what is recorded meanwhile, their summaries say what they have, which nothing else tells any more.
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
from reconciler.plan.bindings import BindingInShort

Object = dict[str, Any]

OfTypes = Callable[[Collection[tuple[str, str]]], list[str]]
"""The workspaces that follow from some types (path, name), or may."""


class Followers(NamedTuple):
    """Of workspaces with the logical clusters `gone`. `bound`: the paths of those that take an API from one, `typed`:
    those of their types; `moved`: who moves himself."""

    store: Store
    gone: frozenset[str]
    bound: frozenset[str]
    typed: frozenset[str]
    moved: Collection[str]

    @staticmethod
    def of(store: Store, moved: Mapping[str, str], of_types: OfTypes) -> Followers:
        """`moved`: the paths where they are, and will be."""
        records = [record for path in moved if (record := tree.workspace_at(store, path)) is not None]
        types = {
            (record.path, each.key.name) for record in records for each in store.scan(TYPES, record.cluster).records
        }
        bound = frozenset(path for record in records for path in consumers.of(store, record.path))
        typed = frozenset(of_types(types)) if types else frozenset()
        return Followers(store, frozenset(record.cluster for record in records), bound, typed, moved)

    def ops(self) -> Iterator[Op]:
        """For those that stay where they are."""
        for path in sorted((self.bound | self.typed) - {*self.moved}):
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
        if record.path in self.bound:
            before = known.get("bindings") or {}
            bindings = dict(self._bindings(record.cluster)) | before
            out |= {"bindings": bindings} if bindings != before else {}
        if record.path in self.typed and not known.get("brought"):
            labels = {"labels": record.labels} if record.labels else {}
            out["brought"] = {"writes": record.writes, "builtins": record.builtins, **labels}
        return out

    def _bindings(self, cluster: str) -> Iterator[tuple[str, Object]]:
        for record in self.store.scan(BINDINGS, cluster).records:
            short = BindingInShort.of(orjson.loads(record.value).get("status") or {})
            if short.bound is not None and short.bound.cluster in self.gone:
                yield record.key.name, short.as_json()
