"""docs/beginning.md, *From Flux* and *The step back*, with Flux' own controller at a real cluster: neither touches what
the other made there, and nothing ends on the way forth and back that was not to."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters.cluster import RealCluster
from support.adoptable import configmap, deployment, flux
from support.locations import location
from support.plane import COMMAND, Clone, Plane, environment
from support.realflux import RealFlux, program

TEMPLATE = Path(__file__).parents[2] / "repo-layout" / "templates" / "workspaces" / "root" / "infra"
OURS = "internal.workload.kcp.io/cluster"
REPOSITORY = {
    "clusters/paris/web.yaml": flux("web", "./apps/web"),
    "apps/web/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n",
    "apps/web/web.yaml": deployment("web", "web"),
    "apps/web/settings.yaml": configmap("settings", "web"),
    "apps/web/old.yaml": configmap("old", "web"),
}
BINDING = """apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: scheduling.kcp.io}
spec: {reference: {export: {path: root:compute, name: scheduling.kcp.io}}}
"""
PLACEMENT = """apiVersion: scheduling.kcp.io/v1alpha1
kind: Placement
metadata: {name: europe}
spec:
  locationSelectors: [{matchLabels: {region: eu}}]
  locationResource: {group: workload.kcp.io, version: v1alpha1, resource: synctargets}
  locationWorkspace: root:infra
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: web}}
"""


# Named before the server in tests, so that it has ended when its namespaces are deleted.
@pytest.fixture
def cluster(two_real_clusters: tuple[RealCluster, RealCluster]) -> Iterator[RealCluster]:
    program()
    found = two_real_clusters[0]
    if not found.workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    yield found
    mine = ["namespaces", "--ignore-not-found", "--timeout=240s"]
    found.kubectl("delete", *mine, "-l", OURS)
    found.kubectl("delete", *mine, "treeplane-system", "web")
    found.kubectl("delete", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/managed-by=treeplane")


class There:
    """What runs at the cluster in one of its namespaces."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster

    def by_flux(self) -> dict[str, str]:
        """Uids by kind and name, Pods among them: whoever keeps them all was neither made nor started anew."""
        return self._in("web")

    def by_us(self) -> dict[str, str]:
        [namespace] = json.loads(self._cluster.kubectl("get", "namespaces", "-l", OURS, "-o", "json"))["items"]
        return self._in(namespace["metadata"]["name"])

    def runs(self, *where: str) -> bool:
        return "1/1" in self._cluster.kubectl("get", "deployments", *where, check=False)

    def _in(self, namespace: str) -> dict[str, str]:
        kinds = "deployments,replicasets,pods,configmaps"
        found = json.loads(self._cluster.kubectl("get", kinds, "-n", namespace, "-o", "json"))["items"]
        return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["uid"] for each in found}


def typed(folder: Path, *words: str, **variables: str) -> str:
    said = environment(**variables)
    done = subprocess.run([COMMAND, *words], cwd=folder, env=said, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fleet_of(repository: Path, folder: Path) -> Clone:
    """What `init --from` makes of it, with a Location to run at and no Placement."""
    typed(folder, "init", "--from", str(repository), "fleet")
    fleet = Clone(folder / "fleet")
    for name in ("apis.yaml", "workspace.yaml"):
        fleet.write(f"workspaces/root/infra/{name}", (TEMPLATE / name).read_text())
    access = (TEMPLATE / "access.yaml").read_text()
    fleet.write("workspaces/root/infra/access.yaml", access.replace(":workspace:root:team", ":workspace:root:apps-web"))
    fleet.write("workspaces/root/infra/europe.yaml", location("europe", "eu"))
    fleet.write("workspaces/root/apps-web/scheduling.yaml", BINDING)
    fleet.git("init", "--quiet", "--initial-branch=main")
    for name in ("name", "email"):
        fleet.git("config", f"user.{name}", "ops@example.org")
    fleet.commit("from Flux")
    return fleet


def test_forth_and_back(cluster: RealCluster, tmp_path: Path, eventually: Any) -> None:
    repository = Clone(tmp_path / "repository")
    for path, text in REPOSITORY.items():
        repository.write(path, text)
    theirs, there = RealFlux(cluster, tmp_path, eventually), There(cluster)
    fleet = fleet_of(repository.folder, tmp_path)
    (tmp_path / "paris.kubeconfig").write_bytes(cluster.kubeconfig)
    with theirs.running(), Plane(fleet.folder, tmp_path / "server" / "data", "--trust-targets", "root:infra") as server:
        theirs.offer(repository.folder)
        cluster.kubectl("apply", "-f", str(repository.folder / "clusters/paris/web.yaml"))
        theirs.applied("web")
        eventually(lambda: there.runs("-n", "web"), 60, "it runs by Flux")
        begun = there.by_flux()

        # A fleet of the repository runs nothing until a Placement says so.
        add = ("target", "add", "paris", "--kubeconfig", "../paris.kubeconfig", "--labels", "region=eu", "--wait")
        path = os.pathsep.join([str(COMMAND.parent), str(Path(cluster.binaries.kubectl).parent), os.environ["PATH"]])
        typed(fleet.folder, *add, "--data-dir", str(server.data), KUBECONFIG=str(server.kubeconfig), PATH=path)
        assert cluster.kubectl("get", "namespaces", "-l", OURS, "-o", "name") == ""
        fleet.write("workspaces/root/apps-web/placement.yaml", PLACEMENT)
        fleet.commit("apps-web runs in Paris")
        eventually(lambda: there.runs("-A", "-l", OURS), 90, "it runs a second time")
        ours = there.by_us()

        # Flux goes on beside: it looks again, it changes, it prunes, each its own.
        theirs.kick("web")
        theirs.applied("web")
        assert begun.items() <= there.by_flux().items()
        (repository.folder / "apps/web/old.yaml").unlink()
        theirs.offer(repository.folder)
        theirs.kick("web")
        theirs.applied("web")
        eventually(lambda: "ConfigMap/old" not in there.by_flux(), 30, "Flux prunes")
        assert ours.items() <= there.by_us().items()

        # Forth: suspended, what it made is deleted by hand, and it does not come back.
        theirs.suspend("web", True)
        cluster.kubectl("delete", "namespace", "web")
        theirs.kick("web")
        assert cluster.kubectl("get", "namespace", "web", "--ignore-not-found") == ""
        assert ours.items() <= there.by_us().items()

        # And back: it is resumed, the Placement deleted.
        theirs.suspend("web", False)
        theirs.applied("web")
        eventually(lambda: there.runs("-n", "web"), 60, "it runs by Flux again")
        again = there.by_flux()
        fleet.git("rm", "--quiet", "workspaces/root/apps-web/placement.yaml")
        fleet.commit("nothing runs by us")
        eventually(lambda: cluster.kubectl("get", "namespaces", "-l", OURS, "-o", "name") == "", 90, "ours has ended")
        assert again.items() <= there.by_flux().items()
