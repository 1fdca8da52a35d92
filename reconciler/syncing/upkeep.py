"""Looks after a namespace on a sync target once it is quiet: deletes it when it has been empty for long enough, and has
its inventory name the commit that was applied there.

Called by target.py with a work item for each namespace. What is in the namespace, apply.py and prune.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import replace
from typing import Any, NamedTuple

from apiserver.model.commits import CommitRef
from reconciler.controllers.bindings import NamespaceRole
from reconciler.plan.syncable import stays_upstream
from reconciler.syncing.apply import Applier
from reconciler.syncing.homes import Home
from reconciler.syncing.inventory import Inventory
from reconciler.syncing.jobs import over
from reconciler.syncing.prune import Pruner
from reconciler.syncing.site import TargetSite
from reconciler.syncing.upstream import Item, Upstream

Object = dict[str, Any]
Kinds = frozenset[tuple[str, str]]


class Busy(NamedTuple):
    """What of a namespace, given with its logical cluster first, fails, and what is still to be done."""

    failures: Callable[[str, str], Sized]
    waiting: Callable[[str, str], Sized]


class NamespaceUpkeep:
    def __init__(
        self,
        site: TargetSite,
        upstream: Upstream,
        applier: Applier,
        pruner: Pruner,
        add_after: Callable[[Item, float], None],
        busy: Busy,
    ) -> None:
        self._site, self._upstream, self._applier, self._pruner = site, upstream, applier, pruner
        self._add_after, self._busy = add_after, busy
        self._covered: dict[tuple[str, str], tuple[CommitRef, CommitRef]] = {}
        """By logical cluster and namespace: which commit an inventory named, and up to which that does."""

    def look(self, item: Item) -> None:
        """Raises Outrun."""
        cluster, namespace = item.cluster, item.namespace
        here = self._upstream.role(self._site.key, cluster, namespace) is NamespaceRole.HERE
        kinds = self._kinds(cluster, namespace) if here else frozenset()
        again = self._pruner.empty(cluster, namespace, wanted=bool(kinds))
        if again is not None:
            self._add_after(item, again + 0.01)
        if kinds:
            self._note_commit(item, kinds)

    def _kinds(self, cluster: str, namespace: str) -> Kinds:
        """(group, kind) of the namespace's objects that are to be on the target."""
        found: set[tuple[str, str]] = set()
        for kind, item in self._upstream.items(cluster, namespace, self._site.offered):
            if (kind.group, kind.kind) not in found:
                obj = self._upstream.get(kind, item)
                if obj is not None and is_wanted(item, obj) and not (over(item, obj) and self._site.live(item) is None):
                    found.add((kind.group, kind.kind))
        return frozenset(found)

    def _note_commit(self, item: Item, kinds: Kinds) -> None:
        """Has the inventory name the commit last applied, once all of it is; puts it right where someone changed it.

        A commit that changed nothing here need not be: pruning looks from the one that is named up to the served one,
        and a start would write to every namespace that a later commit passed by."""
        cluster, namespace = item.cluster, item.namespace
        revision, home = self._upstream.objects.store.revision(), self._site.homes.get(cluster, namespace)
        workspace, placements = self._upstream.placing(self._site.key, cluster, namespace)
        if workspace is None or home is None or home.terminating:
            return
        held = self._site.inventory(home.name) or Inventory("")
        wanted = Inventory(workspace.path, workspace.commit, held.kinds | kinds, placements)
        late = replace(held, commit=wanted.commit) == wanted
        if held == wanted or (late and self._covers(item, held.commit, wanted.commit)):
            return
        if self._busy.failures(cluster, namespace):
            return  # its success brings us back
        if self._upstream.reached() < revision or self._busy.waiting(cluster, namespace):
            self._add_after(item, self._site.settings.settle)
            return
        self._write(item, home, wanted)

    def _covers(self, item: Item, named: CommitRef, applied: CommitRef) -> bool:
        """Whether all that files declare here stood as it does at the commit that the inventory names, or before."""
        place = item.cluster, item.namespace
        if self._covered.get(place) == (named, applied):
            return True
        changed_by = self._upstream.changed_by(*place, self._site.offered)
        follows = self._upstream.past.follows
        if not named or applied in changed_by or not all(follows(named, each) for each in (named, *changed_by)):
            return False
        self._covered[place] = named, applied
        return True

    def _write(self, item: Item, home: Home, wanted: Inventory) -> None:
        with self._site.lock(item.cluster, item.namespace):
            now = self._site.inventory(home.name)
            self._applier.note(home, replace(wanted, kinds=wanted.kinds | (now.kinds if now else frozenset())))
        self._covered.pop((item.cluster, item.namespace), None)


def is_wanted(item: Item, obj: Object) -> bool:
    """Whether an object upstream is to have a copy."""
    return "deletionTimestamp" not in obj["metadata"] and not stays_upstream(item.kind, obj)
