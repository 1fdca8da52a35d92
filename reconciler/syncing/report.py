"""Conditions that tell how syncing goes: `Synced` on Placements, `NamespaceSynced` on Namespaces of which something
failed, `InventoryExplained` and `LeaseHeld` on SyncTargets.

Written when their meaning changes; what is merely under way is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.registry.kinds import common_builtins
from apiserver.registry.objects import Objects
from reconciler.controllers.bindings import NAMESPACES, NamespaceRole
from reconciler.controllers.controller import Controller
from reconciler.controllers.namespaces import NAMESPACE_SYNCED
from reconciler.controllers.placements import PLACEMENTS
from reconciler.controllers.situations import Kinds
from reconciler.controllers.targets import TargetIndex
from reconciler.syncing.keeper import Keeper
from reconciler.syncing.target import Syncer
from reconciler.syncing.upstream import Item, Upstream

Object = dict[str, Any]

_SHOWN = 5
_PATIENCE = 30.0
"""Seconds for which a Lease is waited for before that is told."""


class Reports(Controller[Key]):
    """Of Placements; `targets` is the controller that tells of sync targets. `syncers`: those of connected targets, by
    key. `lease`: the keeper of a target's Lease, if it needs one."""

    name = "report"

    def __init__(
        self,
        upstream: Upstream,
        index: TargetIndex,
        syncers: Callable[[], Mapping[str, Syncer]],
        lease: Callable[[str], Keeper | None],
        wait: float,
    ) -> None:
        self._upstream, self._index, self._syncers, self._wait = upstream, index, syncers, wait
        self._lease = lease
        self.targets = _TargetReports(self.tell)

    def workspace(self, cluster: str) -> None:
        """What the conditions of a workspace's placements tell may have changed."""
        for name, standing in self._upstream.bindings.standings(cluster).items():
            if standing.target:
                self.queue.add_after(Key(PLACEMENTS, cluster, "", name), self._wait)

    def target(self, key: str) -> None:
        self.targets.queue.add_after(key, self._wait)

    def reconcile(self, key: Key) -> None:
        standing = self._upstream.bindings.standings(key.cluster).get(key.name)
        syncer = self._syncers().get(standing.target) if standing else None
        if syncer is None or not syncer.ready.is_set():
            return
        namespaces = self._upstream.bindings.namespaces(key.cluster, key.name)
        failures: dict[Item, str] = {}
        for namespace in namespaces:
            failures.update(syncer.failures(key.cluster, namespace))
            if any(i not in failures for i in syncer.waiting(key.cluster, namespace)):
                self.queue.add_after(key, max(self._wait, 0.1))
                return
        told = synced(failures, staying(self._upstream.catalog, self._upstream.objects, key.cluster))
        self._upstream.objects.update(key, lambda obj: with_condition(obj, told))
        for namespace in namespaces:
            self._tell_namespace(key.cluster, namespace)

    def _tell_namespace(self, cluster: str, namespace: str) -> None:
        """What of it is not on one of its targets; nothing where that never was so."""
        here, syncers = self._upstream.bindings.roles(cluster, namespace), self._syncers()
        failures: dict[Item, str] = {}
        for target, role in sorted(here.items()):
            if role is NamespaceRole.HERE and target in syncers:
                failures.update(syncers[target].failures(cluster, namespace))
        told = {**synced(failures, {}), "type": NAMESPACE_SYNCED}

        def change(obj: Object) -> Object | None:
            before = conditions.get((obj.get("status") or {}).get("conditions"), NAMESPACE_SYNCED)
            if told["status"] == "True" and before is None:
                return None
            return with_condition(obj, told)

        self._upstream.objects.update(Key(NAMESPACES, cluster, "", namespace), change)

    def tell(self, key: str) -> None:
        """Write what is to be told of a sync target."""
        syncer, place = self._syncers().get(key), self._index.place(key)
        if syncer is None or place is None:
            return
        found = self._lease_held(key)
        if syncer.ready.is_set():
            with syncer.site.ledger.lock:
                leftovers = sorted(syncer.site.ledger.leftovers)
            found.append(explained(leftovers, syncer.site.homes.strange()))

        def change(obj: Object) -> Object:
            for told in found:
                # Nothing to tell, and nothing was ever told: no need to begin.
                before = conditions.get((obj.get("status") or {}).get("conditions"), told["type"])
                if told["status"] != "True" or before is not None:
                    obj = with_condition(obj, told)
            return obj

        self._upstream.objects.update(place, change)

    def _lease_held(self, key: str) -> list[Condition]:
        """What is told of a target's Lease; nothing where it needs none, or while that may pass."""
        keeper = self._lease(key)
        if keeper is None:
            return []
        waited = keeper.waited()
        if 0 < waited < _PATIENCE:
            self.targets.queue.add_after(key, _PATIENCE - waited + 0.1)
            return []
        return [leased(keeper.why())]


class _TargetReports(Controller[str]):
    name = "report targets"

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def reconcile(self, key: str) -> None:
        self._tell(key)


def with_condition(obj: Object, told: Condition) -> Object:
    status = obj.setdefault("status", {})
    status["conditions"] = conditions.merged(status.get("conditions"), [{**told, "lastTransitionTime": clock.now()}])
    return obj


def synced(failures: Mapping[Item, str], staying: Mapping[str, int]) -> Condition:
    """`Synced` of a Placement. `staying`: cluster-scoped objects by kind."""
    stays = ""
    if staying:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(staying.items()))
        stays = f"cluster-scoped objects stay upstream, only namespaced ones are synced: {kinds}"
    if failures:
        texts = [f"{i.kind} {i.namespace}/{i.name}: {why}" for i, why in sorted(failures.items())]
        return condition("Synced", False, "ApplyFailed", "; ".join([*_cut(texts), *([stays] if stays else [])]))
    return condition("Synced", True, "ClusterScopedStaysUpstream" if stays else "Synced", stays)


def explained(leftovers: Iterable[Item], strange: Iterable[str]) -> Condition:
    """`InventoryExplained` of a SyncTarget."""
    texts = [f"{i.kind} {i.namespace}/{i.name} of logical cluster {i.cluster}" for i in leftovers]
    texts += [f"namespace {name}" for name in strange]
    if not texts:
        return condition("InventoryExplained", True)
    message = "on the target, ours, and no commit or decision explains it (left alone; delete it there by hand): "
    return condition("InventoryExplained", False, "UnexplainedLeftovers", message + "; ".join(_cut(texts)))


def leased(why: str) -> Condition:
    """`LeaseHeld` of a SyncTarget. `why`: nothing may be written, "" if it may."""
    if not why:
        return condition("LeaseHeld", True)
    return condition("LeaseHeld", False, "NotHeld", f"nothing is written to the target: {why}")


def staying(catalog: Kinds, objects: Objects, cluster: str) -> dict[str, int]:
    """The workspace's objects of its own and bound cluster-scoped kinds: how many of each kind."""
    found, own = {}, common_builtins()
    for kind in catalog.kinds(cluster).all():
        # Workspaces, placements and the like are about the workspace itself, nobody expects them on a target.
        builtin = own.preferred(kind.group, kind.resource) is not None
        if not builtin and not kind.namespaced and kind.storage_version and kind.storage:
            count = objects.store.count(kind.storage, cluster)
            if count:
                found[kind.kind] = count
    return found


def _cut(texts: list[str]) -> list[str]:
    more = len(texts) - _SHOWN
    return texts if more <= 0 else [*texts[:_SHOWN], f"and {more} more"]
