"""The loops that look at sync targets and place namespaces, over a real store, with connections that tests control."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from apiserver.model.conditions import Condition
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.marks import SYNC_TARGET
from apiserver.registry.kinds import KindTable, kubernetes_builtins
from reconciler.controllers.bindings import Bindings
from reconciler.controllers.failures import Expected
from reconciler.controllers.feed import Feed
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.locations import Locations
from reconciler.controllers.manager import Manager
from reconciler.controllers.namespaces import Namespaces
from reconciler.controllers.placements import Placements, PlacementWorld
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.synctargets import SyncTargets
from reconciler.controllers.targets import Cluster, Denied, Kubeconfig, Missing, TargetIndex
from reconciler.controllers.uses import Uses

WEST, EAST = sync_target_key("infra0", "west"), sync_target_key("infra0", "east")

STEADY = TargetSettings(heartbeat=0.05, again=0.05, threshold=600.0, tolerance=600.0, credentials=0.05)
"""No target is ever silent for so long, whatever the machine is busy with."""
QUICK = replace(STEADY, threshold=0.3, tolerance=0.3)
"""For tests of those that are silent: any may seem so for a moment."""

PLACEMENT = {
    "locationSelectors": [{"matchLabels": {"cloud": "aws"}}],
    "namespaceSelector": {"matchLabels": {"app": "foo"}},
}

CLAIMS = GroupResource("", "persistentvolumeclaims")


class FakeCluster:
    def __init__(self, name: str) -> None:
        self.name, self.dead = name, False
        self.denied: Denied | None = None
        self._answers = threading.Event()
        self._answers.set()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It answers behind that."""
        self._answers.clear()
        try:
            yield
        finally:
            self._answers.set()

    def ping(self) -> None:
        self._answers.wait()
        if self.dead:
            raise Expected("connection refused")
        if self.denied is not None:
            raise self.denied

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        served = (GroupResource("apps", "deployments"), GroupResource("", "configmaps"), CLAIMS)
        return dict.fromkeys(served, ("v1",))

    def goes_on(self, kubeconfig: Kubeconfig) -> bool:
        return kubeconfig.data.decode().partition("+")[0] == self.name

    def close(self) -> None: ...


class Claims:
    """The one kind that a workspace serves here."""

    def kinds(self, cluster: str) -> KindTable:
        return KindTable([k for k in kubernetes_builtins().all() if k.group_resource == CLAIMS])


class Ends:
    """What is known of the ends of credentials, as the test says."""

    def __init__(self) -> None:
        self.over: set[str] = set()
        self.near: dict[str, Condition] = {}
        self.renewed: list[str] = []

    def sees(self, key: str, target: dict[str, Any], kubeconfig: Kubeconfig | None) -> None: ...

    def renew(self, key: str, cluster: Cluster) -> None:
        self.renewed.append(key)

    def explained(self, key: str, failure: Expected) -> Expected:
        return Denied("CredentialsEnded", "its token has ended") if key in self.over else failure

    def told(self, key: str) -> Condition | None:
        return self.near.get(key)

    def forget(self, key: str) -> None: ...


class Loops:
    """Everything below the syncers, started."""

    def __init__(self, fleet: Any, settings: TargetSettings = STEADY) -> None:
        self.fleet = fleet
        self.clusters: dict[str, FakeCluster] = {}
        self.missing: set[str] = set()
        self.content: dict[str, str] = {}
        self.lingering: dict[str, str] = {}
        self.ends = Ends()
        self.forgotten: list[tuple[str, ...]] = []
        self.told: list[tuple[str, bool]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Event()
        self.durable: list[int] = []
        objects = fleet.objects
        self.feed = Feed(fleet.store)
        self.heartbeats = Heartbeats(settings.threshold)
        self.index = TargetIndex(objects)
        self.bindings = Bindings(objects)
        uses = Uses(fleet.store)
        world = PlacementWorld(objects, Claims(), self.index, self.heartbeats, self.bindings, uses, self.make_durable)
        self.placements = Placements(world, settings)
        self.targets = SyncTargets(
            objects, self.heartbeats, self.credentials, self.connect, lambda _: {}, self.tell, settings, self.ends
        )
        self.deciding = [
            Manager(each.name, [each], self.feed)
            for each in (self.placements, self.placements.decisions, self.placements.grants)
        ]
        self.managers = [
            Manager("indexes", [self.index, self.bindings], self.feed),
            *(
                Manager(each.name, [each], self.feed)
                for each in (
                    self.targets,
                    Locations(objects, self.heartbeats),
                    Namespaces(objects, self.bindings, self),
                )
            ),
            *self.deciding,
        ]

    def busy(self) -> bool:
        """Whether anything is being decided or handed on."""
        return any(manager.working for manager in self.deciding)

    def beats_without_a_write(self, eventually: Callable[[Callable[[], bool]], object]) -> bool:
        """What other loops still had to write may come in between once, each beat may not."""
        at, beats = self.fleet.store.revision(), len(self.ends.renewed)
        eventually(lambda: len(self.ends.renewed) > beats + 3)
        return bool(self.fleet.store.revision() == at)

    def available(self, cluster: str, location: str) -> int:
        """Of the instances of a Location; -1 before any were counted."""
        found = self.fleet.get(self.fleet.key("locations", cluster, location)).get("status") or {}
        return int(found.get("availableInstances", -1))

    def make_durable(self, revision: int) -> None:
        self.waiting.set()
        self.gate.wait()
        self.durable.append(revision)

    def credentials(self, target: dict[str, Any]) -> Kubeconfig | Missing:
        name = target["metadata"]["name"]
        return (
            Missing(f"no Secret for {name}")
            if name in self.missing
            else Kubeconfig(self.content.get(name, name).encode())
        )

    def connect(self, kubeconfig: Kubeconfig) -> Cluster:
        name = kubeconfig.data.decode()
        if name == "exec":
            raise Denied("KubeconfigRefused", "the kubeconfig is refused for `exec`")
        return self.clusters.setdefault(name, FakeCluster(name))

    def linger(self, key: str, cluster: str, namespace: str) -> str:
        return self.lingering.get(key, "")

    def forget(self, cluster: str, namespace: str, keys: Collection[str]) -> None:
        self.forgotten.append((namespace, *sorted(keys)))

    def tell(self, key: str, obj: dict[str, Any] | None, cluster: Cluster | None) -> None:
        self.told.append((key, cluster is not None))

    def start(self) -> None:
        for manager in self.managers:
            manager.start()
        self.feed.start()

    def stop(self) -> None:
        self.gate.set()
        self.feed.stop()
        for manager in self.managers:
            manager.stop()
        self.targets.end()


def declare(fleet: Any, *targets: str) -> Key:
    for name in targets:
        fleet.put("synctargets", "infra0", name, labels={"cloud": "aws"}, spec={})
    fleet.put("locations", "infra0", "aws", labels={"cloud": "aws"}, spec={"instanceSelector": {}})
    fleet.put("namespaces", "shop0", "web", labels={"app": "foo"})
    key: Key = fleet.put("placements", "shop0", "prod", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    return key


def decided(fleet: Any, key: Key) -> str:
    return str(fleet.get(key)["metadata"]["annotations"].get(SYNC_TARGET, ""))
