"""A cluster is added, shown, renewed and removed by the commands of docs/targets.md, as they stand there."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from realclusters.cluster import TOKEN, RealCluster
from support.locations import location
from support.plane import Plane, environment

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
LOCATIONS = "root:infra:locations"
PLACEMENTS = "workspaces/root/shop/web/placements.yaml"
TARGET = f"/clusters/{LOCATIONS}/apis/workload.kcp.io/v1alpha1/synctargets/tokyo"


def printed() -> list[str]:
    """The page's commands, in its order."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def signed(token: str, key: Path, **claims: Any) -> str:
    """The cluster's own token with other claims, signed as the cluster does."""
    head, body, _ = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))) | claims
    made = f"{head}.{base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip('=')}"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(private, rsa.RSAPrivateKey)
    signature = private.sign(made.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{made}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def with_a_program(cluster: RealCluster, folder: Path) -> dict[str, Any]:
    """The administrator's kubeconfig, whose program says who he is."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": TOKEN}}
    (folder / "credential.json").write_text(json.dumps(credential))
    found: dict[str, Any] = yaml.safe_load(cluster.kubeconfig)
    program = {
        "apiVersion": credential["apiVersion"],
        "command": "cat",
        "args": [str(folder / "credential.json")],
        "interactiveMode": "IfAvailable",
    }
    found["users"][0]["user"] = {"exec": program}
    return found


class Machine:
    """The server's machine, where its administrator types."""

    def __init__(self, folder: Path, server: Plane, kubectl: str) -> None:
        self.folder, self._server = folder, server
        path = os.pathsep.join([str(server.command.parent), str(Path(kubectl).parent), os.environ["PATH"]])
        self._environment = environment(KUBECONFIG=str(server.kubeconfig), PATH=path)

    def type(self, line: str, code: int = 0) -> str:
        done = subprocess.run(
            shlex.split(line), cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    @property
    def secret(self) -> Path:
        return self._server.data / "keys" / "secrets" / LOCATIONS / "tokyo.yaml"

    def token(self) -> str:
        data = yaml.safe_load(self.secret.read_text())["data"]["kubeconfig"]
        found: str = yaml.safe_load(base64.b64decode(data))["users"][0]["user"]["token"]
        return found

    def replace(self, token: str) -> None:
        old = yaml.safe_load(self.secret.read_text())
        kubeconfig = base64.b64decode(old["data"]["kubeconfig"]).replace(self.token().encode(), token.encode())
        old["data"]["kubeconfig"] = base64.b64encode(kubeconfig).decode()
        part = self.secret.with_suffix(".part")
        part.write_text(yaml.safe_dump(old))
        part.rename(self.secret)


def runs(deployment: dict[str, Any]) -> bool:
    """Whether it is all there, so that its cluster writes no more of it."""
    status = deployment.get("status", {})
    reasons = {each["type"]: each["reason"] for each in status.get("conditions", [])}
    is_there = status.get("availableReplicas") == deployment["spec"]["replicas"]
    return is_there and reasons.get("Progressing") == "NewReplicaSetAvailable"


# Named before `plane` in the test, so that the server has ended when its namespaces are deleted.
@pytest.fixture
def cluster(two_real_clusters: tuple[RealCluster, RealCluster]) -> Iterator[RealCluster]:
    found = two_real_clusters[0]
    if not found.workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    yield found
    found.kubectl("delete", "namespaces", "-l", "kcp.io/tenant-id", "--wait=false")
    found.kubectl("delete", "leases,serviceaccounts,roles,rolebindings", "-n", "treeplane-system", "--all")
    found.kubectl("delete", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/managed-by=treeplane")


def test_a_cluster_is_added_shown_renewed_and_removed_as_the_page_says(
    example_fleet: Path,
    cluster: RealCluster,
    plane: Callable[..., Plane],
    tmp_path: Path,
    eventually: Any,
) -> None:
    dry, add, shown, described, empty, remove = printed()
    folder = tmp_path / "machine"
    folder.mkdir()
    (example_fleet / "workspaces/root/infra/locations/asia.yaml").write_text(location("asia", "ap", "continent: asia"))
    server = plane(example_fleet, "--trust-targets", LOCATIONS, data=folder / ".treeplane")
    machine = Machine(folder, server, str(cluster.binaries.kubectl))
    (folder / "tokyo.kubeconfig").write_text(json.dumps(with_a_program(cluster, folder)))

    # Shown, and nothing done.
    said = machine.type(dry)
    assert "kind: SyncTarget" in said
    assert "resourceNames:" in said
    assert cluster.kubectl("get", "serviceaccount", "-n", "treeplane-system", "treeplane", check=False) == ""
    assert not machine.secret.exists()

    # Added, and again.
    said = machine.type(add)
    assert "ServiceAccount treeplane-system/treeplane created" in said
    assert "workspaces/root/infra/locations/tokyo.yaml created" in said
    assert "the token ends at" in said
    assert "--trust-targets root:infra:locations" in said
    assert said.endswith("tokyo is Ready\n")
    assert machine.secret.stat().st_mode & 0o077 == 0
    kubeconfig = yaml.safe_load(machine.secret.read_text())["data"]["kubeconfig"]
    assert b"exec" not in base64.b64decode(kubeconfig)
    first = machine.token()
    assert first not in said
    again = machine.type(add)
    assert "configured" not in again
    assert "created" not in again
    assert machine.token() == first

    # Something runs there.
    clone = server.clone(tmp_path / "clone")
    clone.edit(PLACEMENTS, "continent: europe", "continent: asia")
    clone.commit("web runs in Asia")
    clone.push()
    selected = ("get", "deployments", "-A", "-l", "internal.workload.kcp.io/cluster", "-o", "name")
    eventually(lambda: "deployment.apps/web" in cluster.kubectl(*selected), 60, "web runs in Tokyo")
    eventually(lambda: all(map(runs, json.loads(cluster.kubectl(*selected[:-1], "json"))["items"])), 60, "all of it")
    eventually(lambda: re.search(r"tokyo +root:infra:locations +True .* open +1 ", machine.type(shown)), 20)
    said = machine.type(described)
    assert "root:shop:web production" in said
    assert "root:shop:web default" in said

    # Near its end the token is renewed, and nothing else changes.
    writes = cluster.kubectl(*selected, "-o", "jsonpath={.items[*].metadata.resourceVersion}")
    now = int(time.time())
    near = signed(first, cluster.folder / "sa.key", iat=now - 1000, nbf=now - 1000, exp=now + 120)
    machine.replace(near)
    eventually(lambda: machine.token() not in (first, near), 60, "the token is renewed")
    renewed = machine.token()
    assert machine.secret.stat().st_mode & 0o077 == 0

    def told() -> dict[str, Any]:
        found = server.get(TARGET)["status"]["conditions"]
        return {each["type"]: each for each in found}

    ends = json.loads(base64.urlsafe_b64decode(renewed.split(".")[1] + "=="))["exp"]
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
    eventually(lambda: f"ends at {moment}" in told()["CredentialsValid"]["message"], 30, "the new end is told")
    assert {each["status"] for each in told().values()} == {"True"}
    assert cluster.kubectl(*selected, "-o", "jsonpath={.items[*].metadata.resourceVersion}") == writes

    # One that has ended moves nothing, and says so.
    machine.replace(signed(first, cluster.folder / "sa.key", iat=now - 1000, nbf=now - 1000, exp=now - 400))
    eventually(lambda: told()["Ready"]["reason"] == "CredentialsEnded", 60, "the end is told")
    assert told()["CredentialsValid"]["reason"] == "CredentialsEnded"
    assert "deployment.apps/web" in cluster.kubectl(*selected)
    assert machine.type(add).endswith("tokyo is Ready\n")

    # No token stands anywhere but in keys/.
    logs = server.output() + json.dumps(server.get(TARGET))
    assert not [each for each in (first, near, renewed, machine.token()) if each.split(".")[1] in logs]

    # Emptied, and removed once it is empty.
    said = machine.type(empty)
    assert "namespace default of root:shop:web" in said
    eventually(lambda: " evicting " in machine.type(shown), 20)
    assert "not empty yet" in machine.type(remove, 1)
    clone.git("pull", "--quiet", "--rebase")
    clone.edit(PLACEMENTS, "continent: asia", "continent: europe")
    clone.commit("web runs in Europe")
    clone.push()
    eventually(lambda: "deployment.apps/web" not in cluster.kubectl(*selected), 60, "it left")
    eventually(
        lambda: not cluster.kubectl("get", "namespaces", "-l", selected[4], "-o", "name"), 60, "so did its namespace"
    )
    eventually(lambda: re.search(r" evicting +0 ", machine.type(shown)), 30)
    eventually(lambda: "Namespaces:       0" in machine.type(described), 60)
    said = machine.type(remove)
    assert "no sync target stands behind the Location asia any more" in said
    assert "ClusterRole treeplane deleted" in said
    assert not machine.secret.exists()
    eventually(lambda: "tokyo" not in machine.type(shown), 20)
    assert cluster.kubectl("get", "serviceaccount", "-n", "treeplane-system", "treeplane", check=False) == ""
