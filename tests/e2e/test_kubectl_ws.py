"""`kubectl ws`, `kubectl create workspace` and `treeplane ws` with a real kubectl, where writes are commits, and where
none are taken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters import binaries
from support.cowboys import COWBOY, EXPORT
from support.plane import COMMAND, Plane, environment, kubectl_program

FLEET = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: blog}
spec: {writes: Commit}
"""
CERT_MANAGER = (
    ("cert-manager.io", "certificaterequests", "CertificateRequest"),
    ("cert-manager.io", "certificates", "Certificate"),
    ("acme.cert-manager.io", "challenges", "Challenge"),
    ("cert-manager.io", "clusterissuers", "ClusterIssuer"),
    ("cert-manager.io", "issuers", "Issuer"),
    ("acme.cert-manager.io", "orders", "Order"),
)
DEFINITION = """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  names: {{plural: {plural}, kind: {kind}}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""
DEFINITIONS = "".join(DEFINITION.format(group=g, plural=p, kind=k) for g, p, k in CERT_MANAGER)
Run = Callable[..., subprocess.CompletedProcess[str]]


def serving(folder: Path, fleet: str) -> Iterator[Plane]:
    for name, text in (("treeplane.yaml", fleet), ("workspaces/root/there/workspace.yaml", "")):
        file = folder / "fleet" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with Plane(folder / "fleet", folder / "server" / "data") as server:
        yield server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Plane]:
    yield from serving(tmp_path, FLEET)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Plane]:
    yield from serving(tmp_path, FLEET.replace("Commit", "ReadOnly"))


def newest() -> str:
    """The kubectl that was built for real clusters, which is the newest, else the one there is."""
    built = sorted(binaries.cache_home().glob("*/kubectl"))
    return str(built[-1]) if built else kubectl_program()


def terminal(server: Plane, kubeconfig: Path) -> Run:
    """As in a terminal in which what `treeplane up` printed was typed; `run("kubectl", "ws")`."""
    shutil.copy(server.kubeconfig, kubeconfig)
    path = f"{COMMAND.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables = environment(KUBECONFIG=str(kubeconfig), PATH=path)
    programs = {"kubectl": newest(), "treeplane": str(COMMAND)}

    def run(program: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        words, more = [programs[program], *arguments], {"env": variables, "input": stdin, "timeout": 60}
        return subprocess.run(words, **more, capture_output=True, text=True, check=False)

    return run


def test_a_session(served: Plane, tmp_path: Path) -> None:
    """What somebody does who tries workspaces out."""
    run = terminal(served, tmp_path / "kubeconfig")

    def kubectl(*arguments: str, stdin: str = "") -> str:
        done = run("kubectl", *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def definitions() -> list[str]:
        return [line.split()[0] for line in kubectl("get", "crd", "--no-headers").splitlines()]

    names = sorted(f"{plural}.{group}" for group, plural, _ in CERT_MANAGER)
    assert kubectl("ws", "current") == "Current workspace is 'root' (type root:root).\n"
    kubectl("apply", "-f", "-", stdin=DEFINITIONS)
    assert definitions() == names
    made = kubectl("ws", "create", "blog-example")
    assert made == 'Workspace "blog-example" (type root:organization) is ready to use.\n'
    [row] = [line.split() for line in kubectl("get", "ws").splitlines() if line.startswith("blog-example")]
    assert row[1] == "organization"
    assert "Ready" in row
    there = "Current workspace is 'root:blog-example' (type root:organization).\n"
    assert kubectl("ws", "use", "blog-example") == there
    assert kubectl("get", "crd") == "No resources found\n"
    assert kubectl("ws", "..") == "Current workspace is 'root' (type root:root).\n"
    assert definitions() == names

    clone = served.clone(tmp_path / "clone")
    assert (clone.folder / "workspaces/root/blog-example/workspace.yaml").exists()

    # The other ways to make one, and to be somewhere.
    assert run("treeplane", "ws", "blog-example").stdout == there
    assert kubectl("create", "workspace", "web", "--type=root:team", "--enter") == (
        'Workspace "web" (type root:team) is ready to use.\n'
        "Current workspace is 'root:blog-example:web' (type root:team).\n"
    )
    assert kubectl("ws", "create-context", "web") == 'Created context "web" and switched to it.\n'
    assert kubectl("config", "current-context") == "web\n"
    tree = run("treeplane", "ws", ":root").stdout + run("treeplane", "ws", "tree").stdout
    assert tree.endswith(".\n└── root\n    ├── blog-example\n    │   └── web\n    ├── compute\n    └── there\n\n")
    again = run("treeplane", "ws", "create", "there")
    assert (again.returncode, again.stderr) == (3, 'Error: workspaces.tenancy.kcp.io "there" already exists\n')
    assert run("kubectl", "ws", "nope").stderr == 'Error: workspace "root:nope" not found\n'
    assert kubectl("ws", "~") == "Current workspace is 'user:kcp-admin' (type root:home).\n"
    assert kubectl("ws", "-") == "Current workspace is 'root' (type root:root).\n"


def test_an_api_is_offered_and_taken_by_commits(served: Plane, tmp_path: Path) -> None:
    """And a server that has the repository alone serves the same."""
    run = terminal(served, tmp_path / "kubeconfig")

    def said(*words: str, stdin: str = "") -> str:
        done = run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said("kubectl", "ws", "create", "provider", "--enter")
    said("kubectl", "apply", "-f", "-", stdin=EXPORT)
    said("kubectl", "ws", ":root")
    said("kubectl", "ws", "create", "consumer", "--enter")
    bound = said(
        "treeplane", "bind", "apiexport", "root:provider:cowboys", "--accept-permission-claim", "configmaps.core"
    )
    assert bound.splitlines()[-1] == "cowboys created and bound."
    said("kubectl", "apply", "-f", "-", stdin=COWBOY)
    reject = ("claims", "reject", "cowboys", "--resource", "secrets")
    assert said("treeplane", *reject) == 'claim "secrets" on APIBinding "cowboys" is rejected\n'
    claims = said("treeplane", "claims", "get", "apibinding")
    assert [line.split()[-1] for line in claims.splitlines()] == ["STATUS", "Accepted", "Rejected"]
    uid = said("kubectl", "get", "cowboy", "lucky", "-o", "jsonpath={.metadata.uid}")

    clone = served.clone(tmp_path / "clone")
    below = clone.folder / "workspaces" / "root"
    [file] = below.glob("consumer/_objects/**/cowboys.yaml")
    assert "state: Accepted" in file.read_text()
    assert [*below.glob("provider/_objects/**/cowboys.yaml")]
    assert [*below.glob("consumer/_objects/**/lucky.yaml")]

    served.stop()
    copy = tmp_path / "copy.git"
    words = ["git", "clone", "--quiet", "--mirror", str(served.data / "repo" / "fleet.git"), str(copy)]
    subprocess.run(words, env=environment(), check=True)
    with Plane(copy, tmp_path / "again" / "data") as again:
        run = terminal(again, tmp_path / "other")
        said("kubectl", "ws", ":root:consumer")
        assert said("treeplane", "claims", "get", "apibinding") == claims
        assert said("kubectl", "get", "cowboy", "lucky", "-o", "jsonpath={.metadata.uid}") == uid


def test_where_nothing_is_written_it_says_what_to_commit(read_only: Plane, tmp_path: Path) -> None:
    run = terminal(read_only, tmp_path / "kubeconfig")
    done = run("kubectl", "ws", "create", "blog-example")
    assert (done.returncode, done.stdout) == (3, "")
    assert "commit workspaces/root/blog-example/workspace.yaml, which may be empty, and push" in done.stderr


def test_the_plugin_comes_from_the_server(read_only: Plane, tmp_path: Path) -> None:
    """As docs/commands.md says, for who has kubectl and a kubeconfig; and it runs without anything else."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    [lines] = re.findall(r"^```\n(kubectl get --raw .*?)```", page, re.MULTILINE | re.DOTALL)
    words = {"KUBECONFIG": str(read_only.kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found: dict[str, Any] = {"cwd": tmp_path, "env": words, "capture_output": True, "text": True}
    subprocess.run(["bash", "-c", lines], check=True, **found)
    done = subprocess.run([sys.executable, "-I", "-S", "kubectl-ws", "tree"], check=True, **found)
    assert "└── root" in done.stdout
