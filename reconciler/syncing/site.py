"""The state that the parts of one syncer share: connection, downstream namespaces, caches, inventories, what failed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.model.kinds import GroupResource
from reconciler.controllers.failures import Expected, log_failure
from reconciler.plan.jobs import JOBS, ended
from reconciler.syncing import client as paths
from reconciler.syncing import inventory
from reconciler.syncing.client import TargetClient
from reconciler.syncing.errors import Excessive, NotServed
from reconciler.syncing.homes import Homes, Identity
from reconciler.syncing.inventory import Inventory
from reconciler.syncing.live import Allowance, Live
from reconciler.syncing.render import CLUSTER_LABEL
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.upstream import Item
from reconciler.syncing.watcher import Watcher

Object = dict[str, Any]

NAMESPACES = GroupResource("", "namespaces")
CONFIG_MAPS = GroupResource("", "configmaps")
_ENDS = 1_000


@dataclass(slots=True)
class Ledger:
    """What was found on the way. `failures`: why an object is not applied. `explained`: deletions upstream, seen as
    such. `leftovers`: ours on the target, with no upstream object and no commit that explains its absence, and how
    often each was looked at. `retiring`:
    namespaces whose copies are to go since they are healthy at their new place. `ends`: what Jobs were that had ended
    when they went, until that is taken up."""

    failures: dict[Item, str] = field(default_factory=dict)
    explained: set[Item] = field(default_factory=set)
    leftovers: dict[Item, int] = field(default_factory=dict)
    retiring: set[tuple[str, str]] = field(default_factory=set)
    ends: dict[Item, Object] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class TargetSite:
    """One sync target. `changed`: told the work items that events on the target concern; `homes_changed`: logical
    cluster and namespace whose downstream namespace came, changed or went."""

    def __init__(
        self,
        identity: Identity,
        client: TargetClient,
        offered: Mapping[GroupResource, str],
        settings: SyncSettings,
        changed: Callable[[Item], None],
        homes_changed: Callable[[str, str], None],
    ) -> None:
        self.identity, self.client, self.offered, self.settings = identity, client, offered, settings
        self.homes = Homes(identity, homes_changed)
        self.ledger = Ledger()
        self._changed, self._homes_changed = changed, homes_changed
        self._inventories: dict[str, Inventory] = {}
        self._watchers: dict[GroupResource, Watcher] = {}
        self._allowance = Allowance()
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._stopped = False
        self._asked = 0.0

    @property
    def key(self) -> str:
        return self.identity.key

    @property
    def labels(self) -> dict[str, str]:
        return {CLUSTER_LABEL: self.key}

    def open(self) -> None:
        """List what there is of ours: namespaces, then inventories, then every kind that these name.

        Returns when the target has answered it all; Expected when it did not in time (call it again).
        """
        self.watch(NAMESPACES, "v1")
        self.watch(CONFIG_MAPS, "v1")
        for held in list(self._inventories.values()):
            for named in held.kinds:
                kind = self.client.discovery.kinds.get(named)
                if kind is not None:
                    self.watch(kind, self.client.discovery.versions[kind][0])

    def close(self) -> None:
        with self._lock:
            self._stopped = True
            watchers = list(self._watchers.values())
        for watcher in watchers:
            watcher.stop()

    def watch(self, kind: GroupResource, version: str) -> Watcher:
        """The watcher of a kind, started if need be, once the target has answered its first list."""
        with self._lock:
            watcher = self._watchers.get(kind)
            if watcher is None:
                if self._stopped:
                    raise Expected("the syncer was stopped")
                selector = f"{CLUSTER_LABEL}={self.key}"
                watcher = Watcher(
                    self.client, kind, version, selector, self._listener(kind),
                    deleted=self._went(kind), allowance=self._allowance, pace=self.settings.pace,
                )  # fmt: skip
                self._watchers[kind] = watcher
                watcher.start()
        if not watcher.listed.wait(self.settings.first_list):
            trouble = watcher.trouble
            if isinstance(trouble, Excessive):
                raise trouble
            told = f" ({trouble})" if trouble else ""
            raise Expected(f"the target has not answered a list of {kind} yet{told}")
        return watcher

    def watchers(self) -> dict[GroupResource, Watcher]:
        with self._lock:
            return dict(self._watchers)

    def live(self, item: Item) -> Live | None:
        """The object on the target, as far as its kind is watched."""
        home, watcher = self.homes.get(item.cluster, item.namespace), self._watchers.get(item.kind)
        return watcher.cache.get(home.name, item.name) if home and watcher else None

    def members(self, namespace: str) -> list[tuple[GroupResource, str]]:
        """Kind and name of everything of ours in a namespace of the target, the inventory itself not counted."""
        return [
            (kind, name)
            for kind, watcher in self.watchers().items()
            for name in watcher.cache.names(namespace)
            if (kind, name) != (CONFIG_MAPS, inventory.PARENT_NAME)
        ]

    def version(self, kind: GroupResource, version: str) -> str:
        """Raises NotServed unless the target serves the kind in this version."""
        served = self.client.discovery.versions.get(kind, ())
        if version not in served and self._asked + self.settings.discovery < time.monotonic():
            # A definition may have been installed there since.
            self._asked = time.monotonic()
            served = self.client.served().get(kind, ())
        if version not in served:
            what = f"only in {', '.join(served)}, not in {version}" if served else "not at all"
            raise NotServed(f"the sync target serves {kind} {what}")
        return version

    def inventory(self, namespace: str) -> Inventory | None:
        return self._inventories.get(namespace)

    def note_inventory(self, namespace: str, held: Inventory | None) -> None:
        with self._lock:
            if held is None:
                self._inventories.pop(namespace, None)
            else:
                self._inventories[namespace] = held

    def lock(self, cluster: str, namespace: str) -> threading.Lock:
        """Held while a namespace of the target or its inventory is written."""
        with self._lock:
            return self._locks.setdefault((cluster, namespace), threading.Lock())

    def _listener(self, kind: GroupResource) -> Callable[[str, str], None]:
        if kind == NAMESPACES:
            return self._namespace_seen

        def seen(namespace: str, name: str) -> None:
            if kind == CONFIG_MAPS and name == inventory.PARENT_NAME:
                self._parent_seen(namespace)
                return
            origin = self.homes.origin(namespace)
            if origin is not None:
                self._changed(Item(kind, *origin, name))

        return seen

    def _went(self, kind: GroupResource) -> Callable[[Object], None]:
        """Somebody may delete a Job as soon as it has ended, before its end was taken up."""

        def went(obj: Object) -> None:
            origin = self.homes.origin(obj["metadata"].get("namespace", ""))
            if kind == JOBS and origin is not None and ended(obj) and len(self.ledger.ends) < _ENDS:
                with self.ledger.lock:
                    self.ledger.ends[Item(kind, *origin, obj["metadata"]["name"])] = obj

        return went

    def _namespace_seen(self, _: str, name: str) -> None:
        cache = self._watchers[NAMESPACES].cache
        held = cache.get("", name)
        obj = self._content(held, paths.path(NAMESPACES, "v1", name=name))
        if held is None or obj is None:
            self.homes.gone(name)
            return
        self.homes.saw(obj)
        cache.compared("", name, held.revision, b"", True)

    def _parent_seen(self, namespace: str) -> None:
        cache = self._watchers[CONFIG_MAPS].cache
        held = cache.get(namespace, inventory.PARENT_NAME)
        obj = self._content(held, paths.path(CONFIG_MAPS, "v1", namespace, inventory.PARENT_NAME))
        if held is None or obj is None:
            self.note_inventory(namespace, None)
        else:
            read = inventory.read(obj)
            if read is None:
                log_failure("inventory", namespace, Expected("the object of its name is not an inventory of ours"))
            self.note_inventory(namespace, read)
            cache.compared(namespace, inventory.PARENT_NAME, held.revision, b"", True)
        origin = self.homes.origin(namespace)
        if origin is not None:
            self._homes_changed(*origin)

    def _content(self, held: Live | None, where: str) -> Object | None:
        """What was seen, asked for again where there was no room to keep it."""
        return held.fresh or self.client.get(where) if held is not None else None
