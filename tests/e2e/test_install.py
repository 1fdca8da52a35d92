"""docs/install.md, typed as it says: into an environment, and onto a real cluster as far as there are no kubelets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realclusters.cluster import RealCluster
from support.plane import environment

from release import build

ROOT = Path(__file__).parents[2]
_BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "install.md").read_text(), re.DOTALL)
INTO, BEGIN, APPLY, REMOVE = (block.strip().splitlines() for block in _BLOCKS)
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "for-treeplane"},
    "spec": {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "persistentVolumeReclaimPolicy": "Retain",
    },
}


def test_into_an_environment_of_its_own(tmp_path: Path) -> None:
    """Nothing is asked of an index: the release is in a folder, and what it needs is where the tests have it."""
    build.release(tmp_path / "dist")
    around = environment(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path / "dist"), PIP_NO_DEPS="1")
    around.pop("PYTHONPATH", None)

    def typed(line: str) -> str:
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=around, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    make, install, version = INTO
    typed(make)
    typed(install)
    [site] = (tmp_path / "treeplane-env").glob("lib/python*/site-packages")
    (site / "beside.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")) + "\n")
    assert (site / "reconciler" / "__main__.py").is_file()
    assert re.search(r"^client +0\.", typed(version), re.MULTILINE)
    init, validate = BEGIN
    assert "treeplane.yaml created" in typed(init)
    assert "no errors" in typed(validate)


def test_on_a_cluster(real_cluster: Callable[..., RealCluster], eventually: Any) -> None:
    cluster = real_cluster("install")

    def typed(line: str) -> str:
        words = line.split()
        assert words[0] == "kubectl"
        return cluster.kubectl(*(str(ROOT / word) if word.startswith("deploy/") else word for word in words[1:]))

    def told(*words: str) -> Any:
        return json.loads(cluster.kubectl("-n", "treeplane", "get", *words, "-o", "json"))

    cluster.kubectl("apply", "-f", "-", input=json.dumps(VOLUME))
    apply, status = APPLY
    typed(apply)
    typed(f"{apply} --dry-run=server --warnings-as-errors")
    typed(status)
    [pod] = told("pods")["items"]  # admitted where nothing but what is restricted is
    assert told("pvc", "treeplane")["status"]["phase"] == "Bound"
    assert "unchanged" in typed(apply)

    cluster.kubectl("-n", "treeplane", "rollout", "restart", "deployment/treeplane")
    eventually(
        lambda: [p for p in told("pods")["items"] if p["metadata"]["uid"] != pod["metadata"]["uid"]], 60, "the next pod"
    )
    assert pod["metadata"]["uid"] not in {each["metadata"]["uid"] for each in told("pods")["items"]}, "two at once"

    typed(REMOVE[0])
    left = told("deployment,service,pvc,networkpolicy")["items"]
    assert [each["kind"] for each in left] == ["PersistentVolumeClaim"]


def test_by_helm_which_keeps_the_claim(
    helm: Path, real_cluster: Callable[..., RealCluster], tmp_path: Path, eventually: Any
) -> None:
    cluster = real_cluster("helm")
    cluster.kubectl("apply", "-f", "-", input=json.dumps(VOLUME))
    [install] = re.findall(r"^helm install .*$", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)

    def run(*words: str) -> None:
        kept = {name: str(tmp_path / name) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        around = {**environment(KUBECONFIG=str(cluster.kubeconfig_path)), **kept}
        done = subprocess.run([helm, *words], cwd=ROOT, env=around, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def claim() -> Any:
        return json.loads(cluster.kubectl("-n", "treeplane", "get", "pvc", "treeplane", "-o", "json"))["metadata"][
            "uid"
        ]

    run(*install.split()[1:], "--wait", "--timeout", "240s")
    before = claim()
    run("uninstall", "treeplane", "--namespace", "treeplane", "--wait")
    assert claim() == before
    run(*install.split()[1:], "--wait", "--timeout", "240s")
    assert claim() == before
