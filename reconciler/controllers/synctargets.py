"""SyncTargets: are their credentials there, do they answer, what do they serve? Status and heartbeat of each.

One thread a target, so that a dead one delays nobody. Writes status only when its meaning changes; who needs the
connection (the syncer) is told of it. Candidates for placements are chosen elsewhere, from what is found here.

What a target answers is in no log, so each start looks at every SyncTarget; memory holds a thread for each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry.objects import Objects
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.failures import Expected, log_failure
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.targets import (
    CREDENTIALS,
    KEY_LABEL,
    Cluster,
    Credentials,
    Denied,
    Kubeconfig,
    Missing,
    Tending,
    since,
)
from reconciler.plan.placement import Sight
from reconciler.plan.syncable import SYNCED
from reconciler.plan.unsupported import stated, with_stated

SECRETS = "secrets"
_PATIENCE = 3.0
"""Seconds that a request to a target which hangs may hold up our end."""

Object = dict[str, Any]

_CONDITIONS = ("SyncerReady", "HeartbeatHealthy", "Ready")
"""Said anew together, or one of them would go on saying what was so before."""

Told = Callable[[str, Object | None, Cluster | None], None]
"""Key of a target, its object (None: it is no more), the connection (None: there is none)."""

Identities = Callable[[Object], Mapping[GroupResource, str]]
"""The resources that the exports of spec.supportedAPIExports offer, with their identity hashes."""


class SyncTargets(Controller[Key]):
    """`connect`: from a kubeconfig to a connection; raises Denied for one that cannot be used."""

    name = "synctargets"
    resources = frozenset({SYNC_TARGETS, SECRETS})
    shown = frozenset({SYNC_TARGETS})

    def __init__(
        self,
        objects: Objects,
        heartbeats: Heartbeats,
        credentials: Credentials,
        connect: Callable[[Kubeconfig], Cluster],
        offered: Identities,
        told: Told,
        settings: TargetSettings | None = None,
        tending: Tending | None = None,
    ) -> None:
        self.objects, self.heartbeats, self.settings = objects, heartbeats, settings or TargetSettings()
        self.tending = tending or _Untended()
        self.credentials, self.connect, self.offered, self.told = credentials, connect, offered, told
        self._hearts: dict[str, _Heart] = {}
        self._lock = threading.Lock()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        if entry.key.resource == SYNC_TARGETS:
            yield entry.key
        else:
            self._secret_changed(entry.key.cluster)

    def complete(self) -> Iterable[Key]:
        """Those that went while nobody heard of it."""
        with self._lock:
            return [heart.place for heart in self._hearts.values()]

    def look(self) -> None:
        """Look at every sync target that is known."""
        with self._lock:
            places = [heart.place for heart in self._hearts.values()]
        for place in places:
            self.queue.add(place)

    def end(self) -> None:
        """Stop asking, once no key is reconciled any more."""
        with self._lock:
            hearts = list(self._hearts.values())
        for heart in hearts:
            heart.stop()
        deadline = time.monotonic() + _PATIENCE
        for heart in hearts:
            heart.join(max(0.0, deadline - time.monotonic()))

    def _secret_changed(self, cluster: str) -> None:
        with self._lock:
            hearts = list(self._hearts.values())
        for heart in hearts:
            if heart.place.cluster == cluster:
                heart.wake()

    def reconcile(self, place: Key) -> None:
        obj = self.objects.get(place)
        key = sync_target_key(place.cluster, place.name)
        with self._lock:
            heart = self._hearts.get(key)
            if obj is None or (heart is not None and heart.uid != obj["metadata"]["uid"]):
                self._hearts.pop(key, None)
        if heart is not None and (obj is None or heart.uid != obj["metadata"]["uid"]):
            heart.stop()
            self.heartbeats.forget(key)
            self.tending.forget(key)
            self.told(key, None, None)
            heart = None
        if obj is None:
            return
        if heart is None:
            heart = _Heart(self, key, place, obj["metadata"]["uid"])
            with self._lock:
                self._hearts[key] = heart
            heart.start()
        else:
            heart.noticed(obj)
        self._write_status(key, place, heart)

    def _write_status(self, key: str, place: Key, heart: _Heart) -> None:
        if self.heartbeats.never_asked(key):
            return

        def change(obj: Object) -> Object:
            unused = stated(SYNC_TARGETS, obj, since(obj))
            status = obj.setdefault("status", {})
            labels = obj["metadata"].setdefault("labels", {})
            labels[KEY_LABEL] = key
            was = conditions.get(status.get("conditions"), "Ready")
            before = status.get("conditions") or ()
            ends = heart.ends
            if ends is None:
                before = [each for each in before if each["type"] != CREDENTIALS]
            told = [*self._conditions(key, was), *([{**ends, "lastTransitionTime": clock.now()}] if ends else [])]
            status["conditions"] = with_stated(conditions.merged(before, told), unused)
            if heart.generation is not None:
                status["observedGeneration"] = heart.generation
            now = conditions.get(status["conditions"], "Ready")
            if now is not None and now["status"] == "True":
                if was is None or was["status"] != "True" or "lastSyncerHeartbeatTime" not in status:
                    status["lastSyncerHeartbeatTime"] = now["lastTransitionTime"]
                if heart.served is not None:
                    status["syncedResources"] = synced_resources(heart.served, self.offered(obj))
            return obj

        self.objects.update(place, change)

    def _conditions(self, key: str, was: Condition | None) -> Iterable[Condition]:
        seen, now = self.heartbeats.seen(key), clock.now()
        match seen.sight:
            case Sight.ANSWERS:
                return [condition(c, True, at=now) for c in _CONDITIONS]
            case Sight.SILENT:
                message = f"no answer for more than {self.settings.threshold:.0f} s: {seen.why}"
                return [condition(c, False, "ErrorHeartbeat", message, at=now) for c in _CONDITIONS]
            case Sight.SHUT:
                return [condition(c, None, seen.reason, seen.why, at=now) for c in _CONDITIONS]
            case Sight.UNKNOWN if was is None or was["status"] == "Unknown":
                return [condition(c, None, "Connecting", seen.why, at=now) for c in _CONDITIONS]
            case _:
                return ()


def synced_resources(
    served: Mapping[GroupResource, tuple[str, ...]], offered: Mapping[GroupResource, str]
) -> list[Object]:
    """What a SyncTarget's status says: each resource that goes down, its versions there, and its identity hash."""
    out: list[Object] = []
    for resource in sorted(SYNCED | offered.keys()):
        entry: Object = {"resource": resource.resource, "state": "Accepted", "versions": []}
        if resource.group:
            entry["group"] = resource.group
        if offered.get(resource):
            entry["identityHash"] = offered[resource]
        entry["versions"] = list(served.get(resource, ()))
        if not entry["versions"]:
            continue
        out.append(entry)
    return out


def generation_of(target: Object) -> int:
    return int(target["metadata"].get("generation", 1))


class _Untended:
    """Of credentials that have no end."""

    def sees(self, key: str, target: Object, kubeconfig: Kubeconfig | None) -> None: ...

    def renew(self, key: str, cluster: Cluster) -> None: ...

    def explained(self, key: str, failure: Expected) -> Expected:  # noqa: ARG002
        return failure

    def told(self, key: str) -> Condition | None: ...

    def forget(self, key: str) -> None: ...


class _Heart(threading.Thread):
    """Keeps the connection to one target and asks it regularly. `generation`: of its object, and `ends`: what is told
    of its credentials, when what is known of it was found: by that object and these credentials."""

    def __init__(self, owner: SyncTargets, key: str, place: Key, uid: str) -> None:
        super().__init__(name=f"heartbeat-{place.name}", daemon=True)
        self.place, self.uid = place, uid
        self.served: Mapping[GroupResource, tuple[str, ...]] | None = None
        self._owner, self._key = owner, key
        self._kubeconfig: Kubeconfig | None = None
        self._cluster: Cluster | None = None
        self._told: Object | None = None
        self.generation: int | None = None
        self.ends: Condition | None = None
        self._answered: Kubeconfig | None = None
        self._asked = 0.0
        self._state: tuple[Sight, bool] = (Sight.UNKNOWN, True)
        self._wake = threading.Event()
        self._stopped = threading.Event()

    def wake(self) -> None:
        self._wake.set()

    def noticed(self, obj: Object) -> None:
        """The object changed; where the connection may come from is in its spec."""
        if self._told is None or self._told.get("spec") != obj.get("spec"):
            self._wake.set()

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()
        cluster = self._cluster
        if cluster is not None:
            cluster.close()

    def run(self) -> None:
        while not self._stopped.is_set():
            pause = self._owner.settings.heartbeat
            try:
                pause = self._beat()
            except Exception as error:
                log_failure("heartbeat", self.place.name, error)
            self._wake.wait(pause)
            self._wake.clear()

    def _beat(self) -> float:
        owner, obj = self._owner, self._owner.objects.get(self.place)
        if obj is None:
            return owner.settings.heartbeat
        kubeconfig = owner.credentials(obj)
        if isinstance(kubeconfig, Missing):
            owner.tending.sees(self._key, obj, None)
            self._connected(obj, None, None)
            return self._shut(Denied("CredentialsMissing", kubeconfig.why), obj)
        owner.tending.sees(self._key, obj, kubeconfig)
        failed: Expected | None = None
        try:
            if kubeconfig != self._kubeconfig and self._cluster is not None and self._cluster.goes_on(kubeconfig):
                self._kubeconfig = kubeconfig
            if kubeconfig != self._kubeconfig or self._cluster is None:
                self._connect(obj, kubeconfig)
            elif self._told is None or self._told.get("spec") != obj.get("spec"):
                self._connected(obj, kubeconfig, self._cluster)
            owner.tending.renew(self._key, self._ask())
        except Expected as error:
            failed = owner.tending.explained(self._key, error)
            if isinstance(failed, Denied):
                return self._shut(failed, obj)
            owner.heartbeats.failed(self._key, str(failed))
        self._noted(obj, kubeconfig, failed)
        return owner.settings.heartbeat if failed is None else min(owner.settings.heartbeat, owner.settings.again)

    def _connect(self, obj: Object, kubeconfig: Kubeconfig) -> None:
        try:
            cluster = self._owner.connect(kubeconfig)
        except Denied:
            self._connected(obj, None, None)  # what was good before is not what the Secret says now
            raise
        self._connected(obj, kubeconfig, cluster)

    def _shut(self, error: Denied, obj: Object) -> float:
        self._owner.heartbeats.shut(self._key, error.reason, str(error))
        self._state = (Sight.SHUT, True)
        self.generation, self.ends = generation_of(obj), self._owner.tending.told(self._key)
        self._owner.queue.add(self.place)
        return self._owner.settings.credentials

    def _ask(self) -> Cluster:
        cluster = self._cluster
        assert cluster is not None
        cluster.ping()
        if self.served is None or time.monotonic() - self._asked > self._owner.settings.discovery:
            self.served = cluster.served()
            self._asked = time.monotonic()
            self._state = (Sight.UNKNOWN, True)
        if self._owner.heartbeats.answered(self._key):
            self._state = (Sight.SILENT, False)  # somebody may have noted it, though no beat did
            self._owner.heartbeats.returned(self.place)
        return cluster

    def _noted(self, obj: Object, kubeconfig: Kubeconfig, failed: Expected | None) -> None:
        """Have the status looked at when something may have changed, not at every beat. Other credentials without an
        answer yet change nothing of what was found with those before."""
        state, before = (self._owner.heartbeats.seen(self._key).sight, False), (self._state, self.generation, self.ends)
        if failed is None:
            self._answered = kubeconfig
        if self._answered == kubeconfig:
            self.generation = generation_of(obj)
        if self._answered in (None, kubeconfig):
            self.ends = self._owner.tending.told(self._key)
        self._state = state
        if (state, self.generation, self.ends) != before or state[0] is not Sight.ANSWERS:
            self._owner.queue.add(self.place)

    def _connected(self, obj: Object, kubeconfig: Kubeconfig | None, cluster: Cluster | None) -> None:
        before, self._cluster, self._kubeconfig = self._cluster, cluster, kubeconfig
        again = self._told is None or before is not cluster or self._told.get("spec") != obj.get("spec")
        if again and not self._stopped.is_set():
            self._told = obj
            if before is not cluster:
                self.served = None
            self._owner.told(self._key, obj, cluster)
        if before is not None and before is not cluster:
            before.close()
