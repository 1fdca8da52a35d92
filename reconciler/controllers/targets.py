"""The sync targets of all workspaces, found by key; and what the controllers ask of a connection to one.

An index fed by the log: SyncTargets are few, so all of them fit. Connections are made by syncing/, which stands
above this room, and are handed in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from apiserver.model import clock, marks
from apiserver.model.conditions import Condition
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry.objects import Objects
from reconciler.controllers.controller import NO_RESOURCES, Controller
from reconciler.controllers.entry import Entry
from reconciler.controllers.failures import Expected

KEY_LABEL = marks.TARGET_KEY
CREDENTIALS = "CredentialsValid"
"""Condition of a SyncTarget whose credentials have an end."""

Object = dict[str, Any]


def since(obj: Object) -> str:
    """The time of what is found of an object now (RFC 3339): it was so when that came, if nobody looked before."""
    return clock.now() if obj.get("status") else str(obj["metadata"]["creationTimestamp"])


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there are no credentials for a target, and what to do: shown in its conditions."""

    why: str


class Denied(Expected):
    """There is no way in until somebody changes something: we refuse what the kubeconfig says, or the target refuses
    us. `reason`: for a condition."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """`data`: YAML or JSON. `anywhere`: it may name any address; else `remedy` says what an administrator may do where
    the address is refused. `embedded`: of a target that this very server plays, to which nobody else writes. `first`:
    what a connection begins with, before TLS."""

    data: bytes = field(repr=False)
    anywhere: bool = False
    remedy: str = ""
    embedded: bool = False
    first: bytes = b""


Credentials = Callable[[Object], "Kubeconfig | Missing"]
"""From a SyncTarget (a stored object) to its kubeconfig."""


class Cluster(Protocol):
    """A connection to a sync target."""

    def ping(self) -> None:
        """A cheap question whether we are let in and may work. Raises Denied, and Expected, whose text says why it did
        not answer."""

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        """The namespaced resources that can be written, with their versions, the preferred first. Asks anew; raises as
        `ping`."""

    def goes_on(self, kubeconfig: Kubeconfig) -> bool:
        """Has it go on with other credentials, where these are the same but for the token; whether it does."""

    def close(self) -> None:
        """Ends all requests under way."""


class Tending(Protocol):
    """Who looks after the credentials of targets. Targets are named by key; called by the thread of each."""

    def sees(self, key: str, target: Object, kubeconfig: Kubeconfig | None) -> None:
        """These are the target's now; None: it has none."""

    def renew(self, key: str, cluster: Cluster) -> None:
        """The target has answered; it may be time for new ones."""

    def explained(self, key: str, failure: Expected) -> Expected:
        """Why there is no answer: Denied where the credentials have ended, which is no failure of the target."""

    def told(self, key: str) -> Condition | None:
        """What a condition tells of them, None for nothing."""

    def forget(self, key: str) -> None:
        """The target is no more."""


class TargetIndex(Controller[Key]):
    """Where each sync target's object stands: a controller that has nothing to reconcile. It is complete before any
    other of its feed begins."""

    name = "targets"
    resources = frozenset({SYNC_TARGETS})
    shown = NO_RESOURCES

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._places: dict[str, Key] = {}
        self._lock = threading.Lock()

    def begin(self) -> None:
        found = {}
        for obj in self._objects.list(SYNC_TARGETS):
            cluster, name = obj["metadata"]["annotations"]["kcp.io/cluster"], obj["metadata"]["name"]
            found[sync_target_key(cluster, name)] = Key(SYNC_TARGETS, cluster, "", name)
        with self._lock:
            self._places = found

    def place(self, key: str) -> Key | None:
        with self._lock:
            return self._places.get(key)

    def get(self, key: str) -> Object | None:
        """The SyncTarget with this key, as it is stored now."""
        place = self.place(key)
        return self._objects.get(place) if place else None

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        key = sync_target_key(entry.key.cluster, entry.key.name)
        with self._lock:
            if entry.value is None:
                self._places.pop(key, None)
            else:
                self._places[key] = entry.key
        return ()
