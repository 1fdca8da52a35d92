"""What git said earlier of where namespaces run: whether a commit took a namespace from a target.

Asked by syncing about a namespace of ours on a target that no decision explains: its inventory names the workspace, the
commit that it was applied from and the Placements that placed it there. What that commit placed and the served one does
not was withdrawn, whenever that was; what no commit explains is left alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.selectors import LabelSelector
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.layout.grafts import BORDER
from reconciler.layout.manifest import Manifest
from reconciler.loading.past import PastObjects, is_said, served_of
from reconciler.plan.selection import selectable, selector_of
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.errors import RepositoryError
from reconciler.repository.repositories import Repositories

Object = dict[str, Any]

_KEPT = 256
_PLACEMENTS, _NAMESPACES = "placements.scheduling.kcp.io", "namespaces"


@dataclass(frozen=True, slots=True)
class Placing:
    """What one commit says: Placements by name, and the labels of the namespaces that it declares."""

    placements: Mapping[str, LabelSelector]
    namespaces: Mapping[str, Mapping[str, str]]

    def selecting(self, namespace: str) -> set[str]:
        """A namespace that is not declared has no label but its name."""
        labels = self.namespaces.get(namespace) or selectable({"metadata": {"name": namespace}})[1]
        return {name for name, selector in self.placements.items() if selector.matches(labels)}


NOTHING = Placing({}, {})


class _Asked(NamedTuple):
    """`pin`: the commit that the workspace is pinned to as it is served, "" for none. `within`: the directory of its
    source that it is served from, `border`: see Sources.sourced."""

    path: str
    commit: CommitRef
    served: CommitRef
    namespace: str
    pin: str
    within: str
    border: str | None


class Placed:
    """Safe from several threads: at worst a tree is read twice."""

    def __init__(self, store: Store, repositories: Repositories, renders: Renders = NOWHERE) -> None:
        self._objects = Objects(store)
        self._past = PastObjects(repositories, renders)
        self._known: OrderedDict[tuple[str, str, str | None], list[Placing]] = OrderedDict()
        self._verdicts: OrderedDict[_Asked, tuple[set[str], set[str]]] = OrderedDict()

    def withdrawn(self, path: str, commit: CommitRef, namespace: str, by: Collection[str]) -> bool:
        """Whether the workspace at `path` has taken the namespace away since `commit`: that one, or one after it, had
        some of the Placements `by` (empty: any) select it, and what is served now, in git and in the store, has none of
        them do so. False also where that cannot be told."""
        if not is_said(path, commit):
            return False
        store = self._objects.store
        fleet, record = tree.fleet(store), tree.workspace_at(store, path)
        if not fleet.loaded or (record is not None and not record.served):
            return False
        served = served_of(record, commit) if record is not None else fleet.commit
        source = record.source if record is not None else {}
        # Of a source the commit that is served says what it is pinned to.
        pin = record.pin.get("commit", "") if record is not None and not source else ""
        within, border = source.get("path", ""), source.get(BORDER)
        try:
            if record is None and self._past.workspace(path, served) is not None:
                return False
            before, still = self._said(_Asked(path, commit, served, namespace, pin, within, border))
        except RepositoryError:
            return False
        mine = before & set(by) if by else before
        return bool(mine) and not mine & (still | (self._stored(record.cluster, namespace) if record else set()))

    def _said(self, asked: _Asked) -> tuple[set[str], set[str]]:
        """The Placements that selected it since the commit, and those that do as git is served."""
        found = self._verdicts.get(asked)
        if found is None:
            commit, served, namespace = asked.commit, asked.served, asked.namespace
            since = self._past.since(commit, served)
            before = {n for c in since for said in self._at(asked, c) for n in said.selecting(namespace)}
            [now] = self._at(asked, served, asked.pin) or [NOTHING]
            found = self._verdicts[asked] = before, now.selecting(namespace)
            if len(self._verdicts) > _KEPT:
                self._verdicts.popitem(last=False)
        return found

    def _stored(self, cluster: str, namespace: str) -> set[str]:
        """The Placements that select it as it is stored, by whoever's doing."""
        found = self._objects.get(Key(_NAMESPACES, cluster, "", namespace))
        if found is None:
            return set()
        labels = selectable(found)[1]
        placements = self._objects.list(_PLACEMENTS, cluster)
        return {str(p["metadata"]["name"]) for p in placements if selector_of(p).matches(labels)}

    def _at(self, asked: _Asked, commit: CommitRef, pin: str | None = None) -> list[Placing]:
        """All that a commit may have had served of the workspace; or, with the commit that it is pinned to ("" for
        none), what is served of it."""
        there = self._past.workspace(asked.path, commit, asked.within, asked.border)
        if there is None:
            return []
        key = (asked.path, self._past.says(*there), pin)
        found = self._known.get(key)
        if found is None:
            if pin is None:
                found = [_placing(list(said)) for said in self._past.ever(*there)]
            else:
                found = [_placing(list(self._past.served(*there, {"commit": pin} if pin else {})))]
            self._known[key] = found
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found


def _placing(manifests: list[Manifest]) -> Placing:
    placements = (m for m in manifests if (m.gvk.group, m.gvk.kind) == ("scheduling.kcp.io", "Placement"))
    namespaces = (m for m in manifests if (m.gvk.group, m.gvk.kind) == ("", "Namespace"))
    return Placing({m.name: selector_of(m.value) for m in placements}, dict(selectable(m.value) for m in namespaces))
