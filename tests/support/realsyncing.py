"""Syncing of a store to real clusters: what a workspace declares, and what of that is on a cluster."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Collection
from itertools import count
from typing import Any

from realclusters.cluster import RealCluster

from apiserver.model import conditions, marks
from apiserver.model.commits import CommitRef, own
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Delete, Put, Store
from reconciler.controllers.feed import Feed
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.targets import Kubeconfig, Missing
from reconciler.plan import system
from reconciler.plan.notices import Notice
from reconciler.syncing.inventory import PARENT_NAME
from reconciler.syncing.lease import Contender
from reconciler.syncing.service import Syncing
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.upstream import Item, Past

C1 = "c1" * 20
IDENTITY = "1d3n7i7y"
DEPLOYMENTS, JOBS = f"deployments.apps:{IDENTITY}", f"jobs.batch:{IDENTITY}"
QUICK = SyncSettings(
    discovery=0.2,
    grace=0.2,
    settle=0.05,
    targets=TargetSettings(heartbeat=0.3, again=0.2, threshold=1.5, tolerance=1.0, credentials=0.2),
)


def container(image: str = "web:1") -> dict[str, Any]:
    return {"name": "web", "image": image, "resources": {"limits": {"cpu": "0.5"}}, "ports": [{"containerPort": 80}]}


def deployment(replicas: int = 1, image: str = "web:1") -> dict[str, Any]:
    return {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container(image)]}},
    }


class World:
    """A store as git's loader fills it: `root:shop` binds the kubernetes export, `root:infra` has the targets."""

    def __init__(self, store: Store) -> None:
        self.store, self.objects = store, Objects(store)
        self.clusters: dict[str, RealCluster] = {}
        self.kubeconfigs: dict[str, bytes] = {}
        self.git: set[tuple[str, str]] = set()
        self.taken = False
        self.recorded = threading.Event()
        self.recorded.set()
        self.awaited: list[int] = []
        self.told: list[Notice] = []
        """What happened on targets that is to be told."""
        for path in ("root", "root:compute", "root:infra", "root:shop"):
            self.workspace(path)
        self.installation = uuid.uuid4().hex
        store.write(tree.put_fleet(tree.FleetRecord(self.installation, True))).result()
        bound = []
        for manifest in system.compute_export():
            name = manifest["metadata"]["name"]
            if manifest["kind"] == "APIResourceSchema":
                self.put("apiresourceschemas.apis.kcp.io", "compute0", name, **manifest)
                spec = manifest["spec"]
                schema = {"name": name, "UID": "", "identityHash": IDENTITY}
                bound.append({"group": spec["group"], "resource": spec["names"]["plural"], "schema": schema})
            else:
                self.put("apiexports.apis.kcp.io", "compute0", name, status={"identityHash": IDENTITY}, **manifest)
        status = {"apiExportClusterName": "compute0", "boundResources": bound}
        self.put("apibindings.apis.kcp.io", "shop0", "kubernetes", status=status)

    def workspace(self, path: str, commit: str = C1) -> None:
        cluster = path.rpartition(":")[2] + ("0" if ":" in path else "")
        record = tree.WorkspaceRecord(path, cluster, path.rpartition(":")[0], commit=own(commit))
        self.store.write(tree.put_workspace(record), tree.placed(record)).result()

    def put(self, resource: str, cluster: str, name: str, namespace: str = "", /, **content: Any) -> Key:
        key = Key(resource, cluster, namespace, name)
        old = self.objects.get(key)
        metadata: dict[str, Any] = {
            "name": name,
            "uid": old["metadata"]["uid"] if old else str(uuid.uuid4()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": old["metadata"]["generation"] + 1 if old else 1,
            "labels": content.pop("labels", {}),
            "annotations": {marks.CLUSTER: cluster, marks.SOURCE_COMMIT: C1, marks.SOURCE_PATH: "a.yaml"},
        }
        if namespace:
            metadata["namespace"] = namespace
        content.pop("metadata", None)
        if old:
            metadata["annotations"] = {**old["metadata"]["annotations"], **metadata["annotations"]}
            content.setdefault("status", old.get("status", {}))
        obj = {"kind": "", "apiVersion": "", **content, "metadata": metadata}
        self.store.write(Put(key, codec.encode(obj))).result()
        return key

    def target(self, name: str) -> None:
        self.put("synctargets.workload.kcp.io", "infra0", name, labels={"name": name}, spec={})

    def deploy(self, name: str = "web", **more: Any) -> Key:
        content = {"kind": "Deployment", "apiVersion": "apps/v1", "spec": deployment(**more)}
        return self.put(DEPLOYMENTS, "shop0", name, "web", **content)

    def config(self, name: str, **data: str) -> Key:
        return self.put("configmaps", "shop0", name, "web", kind="ConfigMap", apiVersion="v1", data=data)

    def place(self) -> Key:
        self.put("locations.scheduling.kcp.io", "infra0", "any", spec={"instanceSelector": {}})
        group = "rbac.authorization.k8s.io"
        rule = {"apiGroups": ["scheduling.kcp.io"], "resources": ["locations"], "verbs": ["use"]}
        self.put(f"clusterroles.{group}", "infra0", "use", rules=[rule])
        subject = {"apiGroup": group, "kind": "User", "name": "system:workspace:root:shop"}
        role = {"apiGroup": group, "kind": "ClusterRole", "name": "use"}
        self.put(f"clusterrolebindings.{group}", "infra0", "use", roleRef=role, subjects=[subject])
        self.put("namespaces", "shop0", "web", labels={"app": "shop"}, kind="Namespace", apiVersion="v1")
        spec = {
            "locationSelectors": [{}],
            "namespaceSelector": {"matchLabels": {"app": "shop"}},
            "locationWorkspace": "root:infra",
        }
        return self.put("placements.scheduling.kcp.io", "shop0", "prod", spec=spec)

    def delete(self, key: Key) -> None:
        self.store.write(Delete(key)).result()

    def get(self, key: Key) -> dict[str, Any]:
        found = self.objects.get(key)
        assert found is not None, f"{key} is not there"
        return found

    def annotation(self, key: Key, name: str) -> str:
        return str(self.get(key)["metadata"]["annotations"].get(name, ""))

    def condition(self, key: Key, kind: str) -> dict[str, Any]:
        return conditions.get((self.get(key).get("status") or {}).get("conditions"), kind) or {}

    def credentials(self, target: dict[str, Any]) -> Kubeconfig | Missing:
        cluster = self.clusters.get(target["metadata"]["name"])
        if cluster is None:
            return Missing("there is no such cluster")
        return Kubeconfig(self.kubeconfigs.get(cluster.name, cluster.kubeconfig), anywhere=True)

    def durable(self, revision: int) -> None:
        """The status branch holds it, as soon as `recorded` is set."""
        self.awaited.append(revision)
        assert self.recorded.wait(120)

    def job(self, name: str = "once", **spec: Any) -> Key:
        pods = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
        content = {"kind": "Job", "apiVersion": "batch/v1", "spec": {"template": pods, **spec}}
        return self.put(JOBS, "shop0", name, "web", **content)

    def ended(self, key: Key) -> bool:
        return self.condition(key, "Complete").get("status") == "True"

    def declared(self, path: str, commit: CommitRef, item: Item) -> bool:
        return path == "root:shop" and commit == own(C1) and (item.kind.resource, item.name) in self.git

    def withdrawn(self, path: str, commit: CommitRef, namespace: str, by: Collection[str]) -> bool:
        return self.taken and (path, commit, namespace, set(by)) == ("root:shop", own(C1), "web", {"prod"})


class Downstream:
    """What is ours on a cluster."""

    def __init__(self, cluster: RealCluster, name: str) -> None:
        self.cluster, self.selector = cluster, f"internal.workload.kcp.io/cluster={sync_target_key('infra0', name)}"

    def list(self, resource: str) -> dict[str, dict[str, Any]]:
        found = json.loads(self.cluster.kubectl("get", resource, "-A", "-l", self.selector, "-o", "json"))
        return {i["metadata"]["name"]: i for i in found["items"]}

    def names(self, resource: str) -> set[str]:
        return set(self.list(resource)) - {PARENT_NAME}

    @property
    def namespace(self) -> str:
        return next(iter(self.list("namespaces")))

    def revisions(self) -> dict[str, str]:
        kinds = ("namespaces", "configmaps", "deployments", "secrets", "services", "serviceaccounts")
        return {f"{k}/{n}": o["metadata"]["resourceVersion"] for k in kinds for n, o in self.list(k).items()}

    def applied(self) -> float:
        """How often somebody applied something on the cluster, or asked what that would do."""
        lines = self.cluster.kubectl("get", "--raw", "/metrics").splitlines()
        found = (line for line in lines if line.startswith("apiserver_request_total{") and 'verb="APPLY"' in line)
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def clean(self) -> None:
        self.cluster.kubectl("delete", "namespaces", "-l", self.selector, "--wait=true")

    @staticmethod
    def of(cluster: RealCluster, name: str, world: World) -> Downstream:
        """The world gets a sync target of that name, which is this cluster."""
        world.clusters[name] = cluster
        world.target(name)
        return Downstream(cluster, name)


class Starts:
    """Starts syncing of a world anew with each call, as a restart of the reconciler does."""

    def __init__(self, world: World) -> None:
        self._world, self._count = world, count(1)
        self._running: list[tuple[Feed, Syncing]] = []

    def __call__(self) -> Syncing:
        self.stop()
        world, feed, now = self._world, Feed(self._world.store), next(self._count)
        past = Past(world.declared, world.withdrawn)
        contender = Contender(f"{world.installation}/{now}", 1, f"{world.installation}/{now - 1}")
        told = world.told.append
        made = Syncing(feed, QUICK, world.credentials, world.durable, past, contender=contender, happened=told)
        self._running.append((feed, made))
        made.start()
        feed.start()
        return made

    def stop(self) -> None:
        while self._running:
            feed, made = self._running.pop()
            feed.stop()
            made.stop()
