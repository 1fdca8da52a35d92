"""docs/uninstall.md, typed as it stands, with a real cluster: all that runs there stays, and nothing of ours does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters.cluster import RealCluster
from support.locations import location
from support.pages import Step, Typist, steps
from support.plane import COMMAND, environment

PAGE = Path(__file__).parents[2] / "docs" / "uninstall.md"
OURS = "internal.workload.kcp.io/cluster"
INVENTORY = "ConfigMap/treeplane-inventory"
BEGIN = Step(
    """treeplane init fleet
cd fleet
git init --quiet --initial-branch main
cp ../europe.yaml workspaces/root/infra
cp ../besides.yaml workspaces/root/team
sed -i 's/region: local/region: eu/' workspaces/root/team/placement.yaml
git add .
git commit --quiet --message Begin
""",
    "",
)
SERVE = Step("treeplane up . --trust-targets root:infra\n", "")
ADD = Step(
    "export KUBECONFIG=$PWD/.treeplane/admin.kubeconfig\n"
    "treeplane target add paris --kubeconfig ../paris.kubeconfig --labels region=eu --wait\n",
    "",
)


BESIDES = """apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: web}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: "registry.example/once:1.0.0"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Secret
metadata: {name: web, namespace: web}
stringData: {password: hunter2}
"""
LATER = """apiVersion: v1
kind: ConfigMap
metadata: {name: later, namespace: web}
"""
LEFT = (
    "leases,roles,rolebindings,clusterroles,clusterrolebindings,serviceaccounts,configmaps,namespaces,"
    "deployments,replicasets,jobs,pods,services,secrets"
)
MARKS = ("kcp.io", "treeplane", "applyset")


@pytest.fixture
def cluster(two_real_clusters: tuple[RealCluster, RealCluster]) -> Iterator[RealCluster]:
    found = two_real_clusters[0]
    if not found.workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    before = set(found.kubectl("get", "namespaces", "-o", "name").split())
    yield found
    made = set(found.kubectl("get", "namespaces", "-o", "name").split()) - before
    found.kubectl("delete", "--ignore-not-found", "--timeout=240s", "namespace/treeplane-system", *sorted(made))
    found.kubectl("delete", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/managed-by=treeplane")


@pytest.fixture
def typist(cluster: RealCluster, tmp_path: Path, eventually: Any) -> Iterator[Typist]:
    """In a fleet whose team runs in Paris."""
    path = os.pathsep.join([str(COMMAND.parent), str(Path(cluster.binaries.kubectl).parent), os.environ["PATH"]])
    (tmp_path / "paris.kubeconfig").write_bytes(cluster.kubeconfig)
    (tmp_path / "europe.yaml").write_text(location("europe", "eu"))
    (tmp_path / "besides.yaml").write_text(BESIDES)
    author = {f"GIT_{who}_{what}": "ops@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    made = Typist(tmp_path, environment(PATH=path, TREEPLANE_LISTEN="127.0.0.1:0", **author), eventually)
    try:
        for step in (BEGIN, SERVE, ADD):
            made.type(step)
        eventually(lambda: "2/2" in cluster.kubectl("get", "deployments", "-A", "-l", OURS), 60, "it runs there")
        # That it has ended is written after how often it did: until then its version changes.
        eventually(lambda: " Complete " in cluster.kubectl("get", "jobs", "-A", "-l", OURS), 60, "the Job has ended")
        yield made
    finally:
        made.stop()


class Running:
    """What the team runs in Paris, by the names that it has there, whoever's it is."""

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        [namespace] = self._get("namespaces", "-l", OURS)
        self._namespace = namespace["metadata"]["name"]

    def same(self) -> dict[str, str]:
        """Uids, Pods among them: whoever has them all was neither made nor started anew."""
        return {key: metadata["uid"] for key, metadata in self._found().items()}

    def written(self) -> dict[str, str]:
        """Versions: who has them was not written to."""
        return {key: metadata["resourceVersion"] for key, metadata in self._found().items()}

    def has(self, name: str) -> bool:
        return any(key.endswith(f"/{name}") for key in self._found())

    def _found(self) -> dict[str, Any]:
        items = self._get("deployments,replicasets,jobs,pods,services,secrets,configmaps", "-n", self._namespace)
        items += self._get("namespaces", "--field-selector", f"metadata.name={self._namespace}")
        return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"] for item in items}

    def _get(self, *words: str) -> list[Any]:
        items: list[Any] = json.loads(self._cluster.kubectl("get", *words, "-o", "json"))["items"]
        return items


@pytest.mark.slow
def test_the_page_goes_as_it_is_printed(cluster: RealCluster, typist: Typist, tmp_path: Path, eventually: Any) -> None:
    there = Running(cluster)
    begun, written = there.same(), there.written()
    for step in steps(PAGE):
        if step.typed.startswith("while read"):
            nothing_is_touched_without_the_first_step(cluster, typist, there, eventually)
        typist.type(step)
        assert begun.items() <= {**there.same(), INVENTORY: begun[INVENTORY]}.items(), step.typed
        if step.shown.startswith("NAME    PHASE"):
            # The way back from a stop: what is pushed comes down again, and nothing else was written meanwhile.
            (tmp_path / "fleet" / "workspaces" / "root" / "team" / "later.yaml").write_text(LATER)
            typist.type(Step("git add workspaces\ngit commit --quiet --message Later\n", ""))
            eventually(lambda: there.has("later"), 60, "what was committed is in Paris")
            now = there.written()
            assert {key: now[key] for key in written if key != INVENTORY} == {
                key: version for key, version in written.items() if key != INVENTORY
            }
            begun = there.same()
        if step.shown.startswith("No resources found"):
            left = cluster.kubectl("get", LEFT, "-A", "-o", "json")
            assert '"name": "once"' in left
            assert not [mark for mark in MARKS if mark in left]
    assert not (tmp_path / "fleet" / ".treeplane").exists()


def nothing_is_touched_without_the_first_step(
    cluster: RealCluster, typist: Typist, there: Running, eventually: Any
) -> None:
    """A server that comes back says that the namespace, whose marks are off, is not its own."""
    written = there.written()
    for step in (SERVE, ADD):
        typist.type(step)
    asked = "kubectl ws :root:team > ../current\nkubectl get placements local --output yaml\n"
    eventually(lambda: "is not ours" in typist.run(asked), 60, "the Placement says why")
    assert there.written() == written
    assert cluster.kubectl("get", "namespaces", "-l", OURS, "-o", "name") == ""
    typist.stop()
