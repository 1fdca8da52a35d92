"""Who may write to a real cluster: Leases of two servers on it, with the rights that docs/targets.md names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from realclusters.cluster import RealCluster

from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Kubeconfig
from reconciler.syncing.client import TargetClient, connect
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.keepers import Keepers
from reconciler.syncing.lease import NAMESPACE, Contender, LeaseSettings, name_of
from reconciler.syncing.lifetime import TargetAccount, of_token

FLEET = "two-servers"
QUICK = LeaseSettings(duration=12, renew=0.5, reserve=1.0, look=0.2)
"""It lasts long beside what happens at once: of that there has to be time to see it, and that it is not waited for."""
MAPS = "/api/v1/namespaces/default/configmaps"


class Server:
    """A process as far as the cluster's Lease is concerned."""

    def __init__(self, kubeconfig: bytes, writer: str, epoch: int = 1, ended: str = "") -> None:
        self.keepers = Keepers(
            Contender(writer, epoch, ended), lambda: FLEET, QUICK, lambda: "", lambda _, __: None
        )  # fmt: skip
        self.client: TargetClient = connect(Kubeconfig(kubeconfig, anywhere=True))
        self.keepers.connected("k", self.client)

    @property
    def why(self) -> str:
        return self.client.barred()

    def stop(self) -> None:
        self.keepers.end()
        self.keepers.release({"k": True})
        self.client.close()

    def crash(self) -> None:
        self.keepers.end()
        self.client.close()


@pytest.fixture
def cluster(two_real_clusters: tuple[RealCluster, RealCluster]) -> Iterator[RealCluster]:
    found = two_real_clusters[0]
    yield found
    found.kubectl("delete", "lease", "-n", NAMESPACE, name_of(FLEET), "--ignore-not-found")


@pytest.fixture
def server(cluster: RealCluster) -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def start(writer: str, epoch: int = 1, ended: str = "", kubeconfig: bytes = b"") -> Server:
        made.append(Server(kubeconfig or cluster.kubeconfig, writer, epoch, ended))
        return made[-1]

    yield start
    for each in made:
        each.crash()


def lease(cluster: RealCluster) -> Any:
    found = cluster.kubectl("get", "lease", "-n", NAMESPACE, name_of(FLEET), "-o", "json", "--ignore-not-found")
    return json.loads(found or '{"spec": {}}')


def test_two_servers_and_a_real_cluster(cluster: RealCluster, server: Callable[..., Server], eventually: Any) -> None:
    first = server("a/1")
    eventually(lambda: first.why == "", 60)
    found = lease(cluster)
    assert found["spec"]["holderIdentity"] == "a/1"
    assert found["metadata"]["annotations"] == {"treeplane.dev/epoch": "1"}
    eventually(lambda: lease(cluster)["spec"]["renewTime"] > found["spec"]["renewTime"], 60, "it is renewed")

    # A later epoch takes it, and waits.
    second = server("b/1", epoch=2)
    eventually(lambda: "may still write for a moment" in second.why, QUICK.duration)
    with pytest.raises(Expected, match="is not ours"):
        second.client.create(MAPS, b'{"metadata":{"name":"no"}}')
    eventually(lambda: "b/1 had it with epoch 2" in first.why, 60, "the first one notices")
    eventually(lambda: second.why == "", 60)
    assert lease(cluster)["spec"]["leaseTransitions"] == 1
    assert first.why

    # Killed and restarted, at once.
    second.crash()
    third = server("b/2", epoch=2, ended="b/1")
    eventually(lambda: third.why == "", QUICK.duration)

    # Given back it is the next one's; the earlier epoch does not get it.
    third.stop()
    assert "holderIdentity" not in lease(cluster)["spec"]
    assert first.why
    fourth = server("c/1", epoch=2)
    eventually(lambda: fourth.why == "", 60)

    # Somebody deletes it, or the namespace's content.
    cluster.kubectl("delete", "lease", "-n", NAMESPACE, name_of(FLEET))
    eventually(lambda: lease(cluster)["spec"].get("holderIdentity") == "c/1", 60, "it is made anew")

    # Nobody is left of that epoch: the command that the condition prints.
    fourth.stop()
    eventually(lambda: "c/1" not in first.why and "kubectl annotate" in first.why, 60)
    command = first.why.rsplit("\n", 1)[1].split()
    assert command[0] == "kubectl"
    cluster.kubectl(*command[1:])
    eventually(lambda: first.why == "", 60)


def test_the_documented_rights_are_enough_and_needed(
    cluster: RealCluster, server: Callable[..., Server], eventually: Any
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "targets.md").read_text()
    [block] = [each for each in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "kind: ClusterRole\n" in each]
    everywhere = [each for each in yaml.safe_load_all(block) if each["kind"] not in ("Role", "RoleBinding")]
    try:
        # Without the rights in the server's own namespace it lacks what the Lease needs, and gets no new token.
        cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(everywhere))
        token = cluster.kubectl("create", "token", "-n", NAMESPACE, "treeplane").strip()
        config = (
            json.loads(cluster.kubeconfig) if cluster.kubeconfig[:1] == b"{" else yaml.safe_load(cluster.kubeconfig)
        )
        config["users"][0]["user"] = {"token": token}
        limited = server("a/1", kubeconfig=yaml.safe_dump(config).encode())
        eventually(lambda: limited.client.ping() is None, 60)
        eventually(lambda: "leases.coordination.k8s.io in namespace treeplane-system" in limited.why, 60)
        cluster.kubectl("apply", "-f", "-", input=block)
        eventually(lambda: limited.why == "", 60)
        limited.client.served()
        limited.client.apply(f"{MAPS}/limited", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"limited"}}')
        made = limited.client.get(f"{MAPS}/limited")
        assert made is not None
        limited.client.delete(f"{MAPS}/limited", made["metadata"]["uid"])
        found = of_token(limited.client.token(NAMESPACE, "treeplane", 3600))
        assert found is not None
        assert found.account == TargetAccount(NAMESPACE, "treeplane")
        for namespace, name in ((NAMESPACE, "default"), ("kube-system", "default")):
            with pytest.raises(TargetRefused, match="Forbidden"):
                limited.client.token(namespace, name, 3600)
        limited.stop()
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            cluster.kubectl("delete", kind, "treeplane", "--ignore-not-found")
        for kind in ("rolebinding", "role", "serviceaccount"):
            cluster.kubectl("delete", kind, "treeplane", "-n", NAMESPACE, "--ignore-not-found")
