"""The syncer of one sync target: its threads, its queue, and what is done with each item.

Made by service.py when a target is connected, stopped when its connection is replaced or gone. All its threads are its
own, so a target that hangs holds up nobody else. Nothing is written before the fleet is loaded and the target has
answered full lists of what is ours there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from apiserver.metrics import clusters
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.kinds import GroupResource
from reconciler.controllers.bindings import NamespaceRole
from reconciler.controllers.controller import Controller
from reconciler.controllers.failures import Expected, log_failure
from reconciler.controllers.manager import Manager, ManagerSettings
from reconciler.plan.happened import DRIFT, REFUSED, TAKEN
from reconciler.plan.jobs import JOBS
from reconciler.plan.notices import Notice, about, of_copy
from reconciler.plan.syncable import stays_upstream
from reconciler.syncing.apply import Applier
from reconciler.syncing.client import TargetClient
from reconciler.syncing.copies import SyncedCopies
from reconciler.syncing.errors import Excessive, Foreign, NothingNew, NotServed, TargetRefused, Unfit
from reconciler.syncing.homes import Identity
from reconciler.syncing.inventory import Inventory
from reconciler.syncing.jobs import Jobs, over
from reconciler.syncing.prune import Pruned, Pruner
from reconciler.syncing.render import encode, render
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.site import TargetSite
from reconciler.syncing.upstream import Item, Outrun, Upstream
from reconciler.syncing.warned import Warnings, WarningTold, WarningWatch
from reconciler.syncing.withdrawals import Settled, Withdrawals
from reconciler.syncing.words import warned, why

Object = dict[str, Any]

UPKEEP = GroupResource("", "~upkeep")
"""As an Item's kind: look after the namespace itself."""
_BARRED = 0.1
"""Seconds between two looks whether the target may be written to by now."""
_PATIENCE = 3.0
"""Seconds for which an end waits for what is under way."""
_LOOKS = 6
"""How often a leftover is looked at again without anything having happened."""
_PERMANENT = frozenset({400, 403, 405, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a syncer asks of the rest, and tells it. Namespaces are given with their logical cluster first.

    `heard`: told when something of a namespace changed that conditions or moves depend on. `home`: told when what the
    target has of a namespace came, changed or went; "" for both once the target has answered what there is. `durable`:
    blocks until the status branch holds everything up to a store revision. `settled`: see withdrawals.py. `happened`:
    something did that is to be told on an object upstream.
    """

    heard: Callable[[str, str], None]
    home: Callable[[str, str], None]
    durable: Callable[[int], None]
    settled: Settled
    happened: Callable[[Notice], None] = lambda _: None


class Syncer(Controller[Item]):
    """Asks for no resources: service.py tells it what changed upstream, the target's watches what changed there."""

    def __init__(
        self,
        identity: Identity,
        client: TargetClient,
        offered: Mapping[GroupResource, str],
        upstream: Upstream,
        settings: SyncSettings,
        around: Surroundings,
    ) -> None:
        self.client, self.upstream, self.settings = client, upstream, settings
        self.name = f"sync {identity.name}"
        self._manager = Manager(self.name, [self], settings=ManagerSettings(threads=settings.threads, counted="target"))
        self.site = TargetSite(identity, client, offered, settings, self.queue.add, self._home_changed)
        self.ready = threading.Event()
        """The target has answered; work has begun."""
        self._around, self._heard = around, around.heard
        self._applier = Applier(self.site, upstream)
        withdrawals = Withdrawals(self.site, upstream, around.settled)
        self._pruner = Pruner(self.site, upstream, withdrawals)
        self._jobs = Jobs(self.site, upstream, self._applier, around.durable, self.queue.add_after)
        there = SyncedCopies(self.site, upstream)
        self._warnings = WarningWatch(client, Warnings(there), self._warned, f"warnings {identity.name}")
        self._stopped = threading.Event()
        self._boot = threading.Thread(target=self._begin, name=f"sync-{identity.name}", daemon=True)

    @property
    def key(self) -> str:
        return self.site.key

    def start(self) -> None:
        self._boot.start()

    def stop(self) -> bool:
        """Ends watches under way and all threads; whether nothing is being written any more."""
        self._stopped.set()
        self.site.close()
        self._warnings.stop()
        self.client.finish()
        if self._boot.ident is not None:
            self._boot.join(_PATIENCE)  # it may be about to begin the work that the next line ends
        return self._manager.stop(_PATIENCE) and not self._boot.is_alive()

    def offer(self, offered: Mapping[GroupResource, str]) -> None:
        """The target supports other API exports now, or the same ones have other resources."""
        if offered != self.site.offered:
            self.site.offered = offered
            if self.ready.is_set():
                self.everything()

    def changed(self, item: Item, *, deleted: bool) -> None:
        """An upstream object changed. `deleted`: it was deleted on purpose."""
        if deleted:
            with self.site.ledger.lock:
                self.site.ledger.explained.add(item)
        self.queue.add(item)

    def placed(self, cluster: str) -> None:
        """What a workspace places changed: what nothing explained of it may be explained by that."""
        ledger = self.site.ledger
        with ledger.lock:
            found = [item for item in ledger.leftovers if item.cluster == cluster]
            ledger.leftovers.update(dict.fromkeys(found, 1))
        for item in found:
            self.queue.add(item)

    def namespace(self, cluster: str, namespace: str) -> None:
        """Look at all of a namespace: its role, or its namespace on the target, changed."""
        if self.upstream.role(self.key, cluster, namespace) is NamespaceRole.HERE:
            for _, item in self.upstream.items(cluster, namespace, self.site.offered):
                self.queue.add(item)
        home = self.site.homes.get(cluster, namespace)
        if home is not None:
            for kind, name in self.site.members(home.name):
                self.queue.add(Item(kind, cluster, namespace, name))
        self.upkeep(cluster, namespace)

    def _home_changed(self, cluster: str, namespace: str) -> None:
        self.namespace(cluster, namespace)
        self._around.home(cluster, namespace)

    def upkeep(self, cluster: str, namespace: str) -> None:
        """Look after the namespace itself, once it is quiet."""
        self.queue.add_after(Item(UPKEEP, cluster, namespace, ""), self.settings.settle)

    def holds(self, cluster: str, namespace: str) -> bool:
        return self.site.homes.get(cluster, namespace) is not None

    def has(self, cluster: str, namespace: str) -> bool:
        """Whether there is anything of the namespace on the target."""
        home = self.site.homes.get(cluster, namespace)
        return home is not None and bool(self.site.members(home.name))

    def waiting(self, cluster: str, namespace: str) -> list[Item]:
        """What of the namespace is still to be done, retries included. Looks at the whole queue."""
        here = (cluster, namespace)
        return [i for i in self.queue.pending() if (i.cluster, i.namespace) == here and i.kind != UPKEEP]

    def failures(self, cluster: str, namespace: str) -> dict[Item, str]:
        here = (cluster, namespace)
        with self.site.ledger.lock:
            return {i: why for i, why in self.site.ledger.failures.items() if (i.cluster, i.namespace) == here}

    def settled(self, cluster: str, namespace: str) -> bool:
        """Whether every object of the namespace is here, in step and healthy; Jobs that have ended need not be."""
        if not self.ready.is_set():
            return False
        home = self.site.homes.get(cluster, namespace)
        for kind, item in self.upstream.items(cluster, namespace, self.site.offered):
            obj, live = self.upstream.get(kind, item), self.site.live(item)
            if obj is None or stays_upstream(item.kind, obj) or over(item, obj):
                continue
            if home is None or live is None or live.fresh is not None or not live.healthy:
                return False
            rendered = render(item.kind, obj, home.destination(self.key), scaled=self.upstream.scaled(item))
            if live.digest != encode(rendered)[1]:
                return False
        return True

    def retire(self, cluster: str, namespace: str) -> bool:
        """Remove the copies of a namespace that is healthy at its new place; whether none is left."""
        if not self.ready.is_set():
            return False
        home = self.site.homes.get(cluster, namespace)
        done = home is None or not self.site.members(home.name)
        with self.site.ledger.lock:
            begun = (cluster, namespace) in self.site.ledger.retiring
            self.site.ledger.retiring.add((cluster, namespace))
        if not begun or not done:
            self.namespace(cluster, namespace)
        return done

    def keep(self, cluster: str, namespace: str) -> None:
        """The move is over."""
        with self.site.ledger.lock:
            self.site.ledger.retiring.discard((cluster, namespace))

    def _begin(self) -> None:
        pause = 0.1
        while not self._stopped.is_set():
            try:
                if self.upstream.loaded():
                    self.client.served()
                    self.site.open()
                    break
            except Expected as error:
                log_failure("syncer", self.site.identity.name, error)
                pause = min(pause * 2, 10.0)
            except Exception as error:
                log_failure("syncer", self.site.identity.name, error)
                pause = 10.0
            self._stopped.wait(pause)
        if self._stopped.is_set():
            return
        # Until the Lease is ours, every single object would fail for it.
        while self.client.barred() and not self._stopped.wait(_BARRED):
            pass
        if self._stopped.is_set():
            return
        self.ready.set()
        self._manager.start()
        self.everything()
        self._around.home("", "")
        if not self.client.embedded:
            self._warnings.start()

    def _warned(self, told: WarningTold) -> None:
        text = warned(told.text, told.item, self.site.homes)
        self._happened(told.item, told.reason, text, warning=True)

    def everything(self) -> None:
        """Look at all that is here and all that should be."""
        for cluster, namespace in self.site.homes.all():
            self.namespace(cluster, namespace)
            self._heard(cluster, namespace)
        for cluster in self.upstream.bindings.around(self.key):
            for namespace in self.upstream.bindings.namespaces(cluster):
                self.namespace(cluster, namespace)
                self._heard(cluster, namespace)

    def reconcile(self, item: Item) -> None:
        if item.kind == UPKEEP:
            with suppress(Outrun):
                self._upkeep(item)
            return
        try:
            self._sync(item)
        except (TargetRefused, NotServed, NothingNew, Foreign, Excessive, Unfit) as error:
            if not isinstance(error, TargetRefused) or _permanent(error):
                self._failed(item, why(error, item, self.site.homes))
            raise
        except Outrun:
            self.queue.add_after(item, self.settings.again)
        self._failed(item, "")
        self.queue.add_after(Item(UPKEEP, item.cluster, item.namespace, ""), self.settings.settle)

    def _sync(self, item: Item) -> None:
        # Looked at before the object: one that is not there in a workspace which is served only now may just have come.
        workspace = self.upstream.workspace(item.cluster)
        commit = workspace.commit if workspace is not None else NONE
        kind = self.upstream.kind(item.cluster, item.kind, self.site.offered)
        obj = self.upstream.get(kind, item) if kind is not None else None
        here = self.upstream.role(self.key, item.cluster, item.namespace) is NamespaceRole.HERE
        if here and kind is not None and obj is not None and _wanted(item, obj):
            self._forget_deletion(item)
            if (item.kind != JOBS or self._jobs.runs(item, kind, obj)) and self._applier.apply(item, kind, obj, commit):
                clusters.DRIFT.add()
                self._happened(item, DRIFT, "what was changed there was put back to what is declared")
            self._leftover(item, False)
            if self.upstream.role(self.key, item.cluster, item.namespace) is not NamespaceRole.HERE:
                self.queue.add(item)  # it was withdrawn meanwhile, when there was nothing of it here to be seen
            return
        live = self.site.live(item)
        if live is None:
            self._forget_deletion(item)
            self._leftover(item, False)
            if not here and not self.has(item.cluster, item.namespace):
                self._around.home(item.cluster, item.namespace)
            return
        known = workspace is None or (workspace.served and kind is not None)
        pruned = self._pruner.consider(item, live, obj, known=known)
        if pruned is Pruned.WITHDRAWN and kind is not None and not self.upstream.anywhere(item.cluster, item.namespace):
            self.upstream.forget(kind, item)
        if pruned is Pruned.WAITS:
            self.queue.add_after(item, self.settings.again)
        self._leftover(item, pruned is Pruned.UNEXPLAINED)

    def _forget_deletion(self, item: Item) -> None:
        with self.site.ledger.lock:
            self.site.ledger.explained.discard(item)

    def _leftover(self, item: Item, is_one: bool) -> None:
        """Note whether the item is there without an explanation."""
        ledger = self.site.ledger
        with ledger.lock:
            looks = ledger.leftovers.pop(item, 0)
            if is_one:
                ledger.leftovers[item] = looks + 1
        if is_one and looks < _LOOKS:
            # What is served may be noted a little later than what it changed.
            self.queue.add_after(item, self.settings.again * 2**looks)
        if bool(looks) != is_one:
            self._heard(item.cluster, item.namespace)

    def _failed(self, item: Item, why: str) -> None:
        """Note why an item fails ("": it does not)."""
        ledger = self.site.ledger
        with ledger.lock:
            before = ledger.failures.get(item, "")
        # Said before anybody can tell it in a condition, where a server that is started anew finds what was said.
        if why and before != why:
            clusters.FAILURES.add()
            self._happened(item, REFUSED, why, warning=True)
        elif before and not why:
            self._happened(item, TAKEN, "it is there as it is declared, or not to be there any more")
        with ledger.lock:
            ledger.failures.pop(item, "")
            if why:
                ledger.failures[item] = why
        moving = any(
            r is NamespaceRole.LEAVING for r in self.upstream.bindings.roles(item.cluster, item.namespace).values()
        )
        if before != why or moving:
            self._heard(item.cluster, item.namespace)

    def _happened(self, item: Item, reason: str, message: str, *, warning: bool = False) -> None:
        kind = self.upstream.kind(item.cluster, item.kind, self.site.offered)
        obj = self.upstream.get(kind, item) if kind is not None else None
        if obj is not None:
            target = self.upstream.workspace(self.site.identity.cluster)
            text = of_copy(f"{target.path if target else ''}:{self.site.identity.name}", message)
            self._around.happened(Notice(item.cluster, about(obj), reason, text, warning))

    def _upkeep(self, item: Item) -> None:
        cluster, namespace = item.cluster, item.namespace
        here = self.upstream.role(self.key, cluster, namespace) is NamespaceRole.HERE
        kinds = self._kinds(cluster, namespace) if here else frozenset()
        again = self._pruner.empty(cluster, namespace, wanted=bool(kinds))
        if again is not None:
            self.queue.add_after(item, again + 0.01)
        if kinds:
            self._note_commit(item, kinds)

    def _kinds(self, cluster: str, namespace: str) -> frozenset[tuple[str, str]]:
        """(group, kind) of the namespace's objects that are to be on the target."""
        found: set[tuple[str, str]] = set()
        for kind, item in self.upstream.items(cluster, namespace, self.site.offered):
            if (kind.group, kind.kind) not in found:
                obj = self.upstream.get(kind, item)
                if obj is not None and _wanted(item, obj) and not (over(item, obj) and self.site.live(item) is None):
                    found.add((kind.group, kind.kind))
        return frozenset(found)

    def _note_commit(self, item: Item, kinds: frozenset[tuple[str, str]]) -> None:
        """Have the inventory name the commit last applied, once all of it is; put it right where someone changed it.

        A commit that changed nothing here is not noted: pruning looks from the one that is named up to the served one,
        and a start would write to every namespace that a later commit passed by."""
        cluster, namespace = item.cluster, item.namespace
        revision, home = self.upstream.objects.store.revision(), self.site.homes.get(cluster, namespace)
        workspace, placements = self.upstream.placing(self.key, cluster, namespace)
        if workspace is None or home is None or home.terminating:
            return
        held = self.site.inventory(home.name) or Inventory("")
        wanted, ledger = Inventory(workspace.path, workspace.commit, held.kinds | kinds, placements), self.site.ledger
        late = (cluster, namespace) not in ledger.written and self._tells_of(held.commit, wanted.commit)
        if held == wanted or (late and replace(held, commit=wanted.commit) == wanted):
            return
        if self.failures(cluster, namespace):
            return  # its success brings us back
        if self.upstream.reached() < revision or self.waiting(cluster, namespace):
            self.queue.add_after(item, self.settings.settle)
            return
        with self.site.lock(cluster, namespace):
            now = self.site.inventory(home.name) or held
            ledger.noted(cluster, namespace)
            try:
                self._applier.note(home, Inventory(workspace.path, workspace.commit, now.kinds | kinds, placements))
            except Exception:
                ledger.wrote(cluster, namespace)
                raise

    def _tells_of(self, named: CommitRef, applied: CommitRef) -> bool:
        """Whether git can go from the commit that an inventory names to the one that was applied."""
        return named.repository == applied.repository and bool(named) and self.upstream.past.known(named)


def _wanted(item: Item, obj: Object) -> bool:
    return "deletionTimestamp" not in obj["metadata"] and not stays_upstream(item.kind, obj)


def _permanent(error: TargetRefused) -> bool:
    """Whether trying again is no remedy, so that a condition has to tell."""
    return error.code in _PERMANENT and "being terminated" not in error.message
