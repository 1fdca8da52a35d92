"""A fleet in a real repository, its store, and syncing to simulated targets: everything but processes.

`root:infra` has the targets west and east and a Location for each; `root:shop` runs there what it has of the export
`kubernetes`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.loadedfleet import LoadedFleet
from support.shipped import KUBERNETES, SCHEDULING, WORKLOAD, binding
from support.simulated import Cluster, SimulatedClient

from apiserver.model import conditions
from apiserver.model.commits import CommitRef
from reconciler.controllers.feed import Feed
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.targets import Kubeconfig
from reconciler.loading.declared import Declarations
from reconciler.loading.placed import Placed
from reconciler.plan.notices import Notice
from reconciler.syncing.service import Syncing
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.upstream import Item, Past
from reconciler.syncing.watcher import Pace

Object = dict[str, Any]

INFRA, SHOP = "workspaces/root/infra", "workspaces/root/shop"
QUICK = SyncSettings(
    threads=2,
    grace=0.05,
    settle=0.01,
    report=0.02,
    discovery=0.05,
    again=0.02,
    targets=TargetSettings(heartbeat=0.05, again=0.05, threshold=3600, tolerance=3600, credentials=0.05),
    pace=Pace(first=0.01, longest=0.05),
)

FREE = """apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {annotations: {treeplane.dev/protected: "false"}}
"""
"""A workspace.yaml: nothing in the workspace is held for being deleted."""

TARGET = """apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {{name: {name}, labels: {{name: {name}}}}}
spec: {{connection: {{kubeconfigSecretRef: {{name: {name}}}}}}}
---
apiVersion: scheduling.kcp.io/v1alpha1
kind: Location
metadata: {{name: {name}, labels: {{name: {name}}}}}
spec:
  resource: {{group: workload.kcp.io, version: v1alpha1, resource: synctargets}}
  instanceSelector: {{matchLabels: {{name: {name}}}}}
"""
USE = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: use}
rules: [{apiGroups: [scheduling.kcp.io], resources: [locations], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: use}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: use}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "system:workspaces"}]
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
"""


def placement(name: str = "prod", where: str = "west", app: str = "web") -> str:
    return (
        f"apiVersion: scheduling.kcp.io/v1alpha1\nkind: Placement\nmetadata: {{name: {name}}}\nspec:\n"
        f"  locationSelectors: [{{matchLabels: {{name: {where}}}}}]\n  locationWorkspace: root:infra\n"
        f"  namespaceSelector: {{matchLabels: {{app: {app}}}}}\n"
    )


def namespace(name: str = "web", **labels: str) -> str:
    said = ", ".join(f"{k}: {v}" for k, v in labels.items())
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{{said}}}}}\n"


def config(name: str, namespace: str = "web", **data: str) -> str:
    said = ", ".join(f"{k}: {v}" for k, v in data.items())
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {{{said}}}\n"


FILES = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n",
    f"{INFRA}/workspace.yaml": "",
    f"{INFRA}/apis.yaml": binding(WORKLOAD, SCHEDULING),
    f"{INFRA}/west.yaml": TARGET.format(name="west"),
    f"{INFRA}/east.yaml": TARGET.format(name="east"),
    f"{INFRA}/use.yaml": USE,
    f"{SHOP}/workspace.yaml": FREE,
    f"{SHOP}/apis.yaml": binding(KUBERNETES, SCHEDULING),
    f"{SHOP}/namespace.yaml": namespace(app="web"),
    f"{SHOP}/web.yaml": DEPLOYMENT,
    f"{SHOP}/settings.yaml": config("settings", a="b"),
    f"{SHOP}/placement.yaml": placement(),
}


class _Syncing(Syncing):
    def __init__(
        self,
        clusters: dict[str, Cluster],
        feed: Feed,
        durable: Callable[[int], None],
        past: Past,
        happened: Callable[[Notice], None],
    ) -> None:
        self._clusters = clusters

        def named(target: Object) -> Kubeconfig:
            return Kubeconfig(target["metadata"]["name"].encode())

        super().__init__(feed, QUICK, named, durable, past, happened=happened)

    def _connect(self, kubeconfig: Kubeconfig) -> SimulatedClient:
        return SimulatedClient(self._clusters[kubeconfig.data.decode()])


class SyncedFleet:
    """`begin`, then commits and whatever may happen to servers and targets."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory, self._stores = directory, 0
        self.fleet = LoadedFleet(directory / "0")
        self.clusters = {"west": Cluster(), "east": Cluster()}
        self.syncing: Syncing | None = None
        self.notices: list[Notice] = []
        """What was told of copies."""
        self.hears: Callable[[Notice], None] = lambda _: None
        """Who is told besides, in the syncer's thread."""

    def begin(self, **files: str | None) -> None:
        self.fleet.commit({**FILES, **files})
        self.start()

    def commit(self, **files: str | None) -> None:
        """Files of root:shop by name, without `.yaml`. A server that is not there loads it when it is."""
        self.fleet.repo.commit({f"{SHOP}/{name}.yaml": text for name, text in files.items()})
        if self.syncing is not None:
            self.fleet.load()

    def start(self) -> None:
        """As a server does whose store is there."""
        if self.syncing is not None:
            return
        self.fleet.load()
        writer = self.fleet.writer()
        writer.flush()
        repositories = self.fleet.mirror.repositories
        declarations, placed = Declarations(self.fleet.store, repositories), Placed(self.fleet.store, repositories)

        def declared(path: str, commit: CommitRef, item: Item) -> bool:
            kind = item.kind
            return declarations.declared(path, commit, kind.group, kind.resource, item.namespace, item.name)

        self.feed = Feed(self.fleet.store)
        past = Past(declared, placed.withdrawn, repositories.follows)
        self.syncing = _Syncing(self.clusters, self.feed, writer.durable, past, self._happened)
        self.syncing.start()
        self.feed.start()

    def _happened(self, notice: Notice) -> None:
        self.hears(notice)
        self.notices.append(notice)  # who waits for it here finds that it was heard

    def stop(self) -> None:
        if self.syncing is not None:
            self.feed.stop()
            self.syncing.stop()
            self.syncing = None

    def lose(self) -> None:
        """The server ends, its store and mirror are lost, and another starts from what the status branch says."""
        self.stop()
        self.fleet.publish()
        before = self.fleet
        before.close()
        self._stores += 1
        self.fleet = LoadedFleet(self._directory / str(self._stores), before.repo, before.keys)
        self.fleet.load(self.fleet.recorded())
        shutil.rmtree(before.directory / "store")
        self.start()

    def close(self) -> None:
        self.stop()
        self.fleet.close()

    # -- what there is

    def condition(self, obj: Object, kind: str) -> Object:
        return conditions.get((obj.get("status") or {}).get("conditions"), kind) or {}

    def namespace(self, name: str = "web") -> Object:
        return self.fleet.get("root:shop", "namespaces", name, "")

    def deployment(self) -> Object | None:
        return self.fleet.find("root:shop", "deployments.apps", "web", "web")

    def target(self, name: str = "west") -> Object:
        return self.fleet.get("root:infra", "synctargets.workload.kcp.io", name, "")
