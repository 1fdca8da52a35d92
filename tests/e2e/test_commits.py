"""kubectl at any commit: a cluster's past, a branch that nobody merged, and who may read which."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubectls import KUBECTLS
from support.plane import COMMAND, Clone, Credentials, Plane, environment, kubectl_program

A = "workspaces/root/a"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: past}\n"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gd]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, description: How large it is.}}}
"""
GADGET = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: big}\nspec: {size: 7}\n"
RIGHTS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
- {nonResourceURLs: ["/"], verbs: [access]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""


def config(said: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: said}}\ndata: {{a: {said}}}\n"


def fleet(folder: Path) -> Path:
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    for name, text in (("workspace.yaml", ""), ("said.yaml", config("first")), ("crd.yaml", CRD), ("big.yaml", GADGET)):
        (folder / A / name).write_text(text)
    (folder / A / "rights.yaml").write_text(RIGHTS)
    (folder / "workspaces" / "root" / "said.yaml").write_text(config("root"))
    return folder


Done = subprocess.CompletedProcess[str]


def kubectl(plane: Plane, kubeconfig: Path | None, *arguments: str, program: str = "") -> Done:
    path = f"{plane.command.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    variables = environment(KUBECONFIG=str(kubeconfig or plane.kubeconfig), PATH=path)
    command = [program or kubectl_program(), *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def kubeconfig(plane: Plane, tmp_path: Path, *arguments: str) -> Path:
    command = [str(COMMAND), "kubeconfig", *arguments]
    done = subprocess.run(
        command, env=environment(KUBECONFIG=str(plane.kubeconfig)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    file = tmp_path / f"{len(list(tmp_path.glob('*.kubeconfig')))}.kubeconfig"
    file.write_text(done.stdout)
    return file


def change(clone: Clone) -> str:
    """The second commit has neither the definition nor the gadget, and another text."""
    clone.write(f"{A}/said.yaml", config("second"))
    for name in ("crd.yaml", "big.yaml"):
        (clone.folder / A / name).unlink()
    made = clone.commit("Say second")
    said = clone.push("origin", "HEAD:main")
    allow(clone, said)
    return made


def allow(clone: Clone, said: str) -> None:
    """The deletions that a push was told of."""
    assert "Allow-Delete" in said, said
    hashes = " ".join({*re.findall(r"Allow-Delete: ([0-9a-f]{40})", said)})
    clone.git("commit", "--quiet", "--allow-empty", "--message", f"Allow\n\nAllow-Delete: {hashes}\n")
    clone.push("origin", "HEAD:main")


@pytest.mark.parametrize("program", KUBECTLS.values(), ids=list(KUBECTLS))
def test_kubectl_reads_a_workspace_as_a_commit_has_it(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any, program: str
) -> None:
    running = plane(fleet(tmp_path / "fleet"))
    clone = running.clone(tmp_path / "clone")
    first = clone.git("rev-parse", "HEAD").strip()
    change(clone)
    eventually(lambda: said(running) == "second", 30, "the second is served")
    assert kubectl(running, None, "-n", "default", "get", "gadgets").returncode != 0
    past = kubeconfig(running, tmp_path, "--at", first[:9], "root:a")

    assert yaml.safe_load(past.read_text())["clusters"][0]["cluster"]["server"].endswith(
        f"/commits/{first}/clusters/root:a"
    ), "it names the id"

    def past_says(*words: str) -> Done:
        return kubectl(running, past, *words, program=program)

    listed = past_says("get", "gadgets")
    assert listed.returncode == 0, listed.stderr
    assert [line.split() for line in listed.stdout.splitlines()][:2] == [
        ["NAME", "SIZE"],
        ["big", "7"],
    ]
    got = past_says("get", "cm", "said", "-o", "json")
    assert json.loads(got.stdout)["data"] == {"a": "first"}
    explained = past_says("explain", "gadget.spec.size")
    assert "How large it is." in explained.stdout, explained.stderr
    described = past_says("describe", "gadget", "big")
    assert "Size:  7" in described.stdout, described.stderr
    assert past_says("api-resources", "--api-group=example.com").stdout.count("Gadget") == 1

    for words in (["delete", "cm", "said"], ["label", "cm", "said", "a=b"], ["create", "cm", "new"]):
        refused = past_says(*words)
        assert refused.returncode != 0 and "read only" in refused.stderr, (words, refused)
    watched = past_says("get", "cm", "--watch-only", "--request-timeout=60s")
    assert "read only" in watched.stderr
    assert said(running) == "second"


def said(plane: Plane) -> str:
    return plane.kubectl("get", "configmap", "said", "-o", "jsonpath={.data.a}", workspace="root:a", check=False)


def test_one_goes_to_a_commit_and_back(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> None:
    running = plane(fleet(tmp_path / "fleet"))
    clone = running.clone(tmp_path / "clone")
    clone.git("switch", "--quiet", "--create", "proposal")
    clone.write(f"{A}/said.yaml", config("proposed"))
    clone.write(f"{A}/kid/workspace.yaml", "")
    proposed = clone.commit("Propose")
    clone.push("origin", "proposal")

    moved = kubectl(running, None, "ws", "--at", "proposal", "root:a")
    assert moved.stdout == f"Current workspace is 'root:a' (type root:organization) at commit {proposed[:10]}.\n", moved
    got = kubectl(running, None, "get", "cm", "said", "-o", "jsonpath={.data.a}")
    assert got.stdout == "proposed"
    assert "was not recorded as served" in got.stderr
    assert (
        kubectl(running, None, "get", "workspaces").stdout.split()[-5:-4] == ["kid"]
        or "kid" in kubectl(running, None, "get", "workspaces").stdout
    )
    assert kubectl(running, None, "ws", "kid").stdout.startswith("Current workspace is 'root:a:kid'")
    assert kubectl(running, None, "ws", "..").returncode == 0
    tree = kubectl(running, None, "ws", "tree")
    assert tree.stdout.split() == [".", "└──", "a", "└──", "kid"], tree
    back = kubectl(running, None, "ws", "--now")
    assert back.stdout == "Current workspace is 'root:a' (type root:organization).\n", back.stderr
    assert kubectl(running, None, "get", "cm", "said", "-o", "jsonpath={.data.a}").stdout == "first"
    assert f"at commit {proposed[:10]}" in kubectl(running, None, "ws", "-").stdout
    for rev in ("nope", "main~1"):
        refused = kubectl(running, None, "ws", "--at", rev)
        assert refused.returncode == 3 and rev in refused.stderr, refused


def test_a_tenant_reads_the_past_of_what_is_hers(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ann-token,ann,1,\neve-token,eve,2,\n")
    running = plane(fleet(tmp_path / "fleet"), "--token-auth-file", str(tokens))
    clone = running.clone(tmp_path / "clone")
    first = clone.git("rev-parse", "HEAD").strip()
    base = f"{Credentials.read(running.kubeconfig).url}/commits/{first}/clusters/root:a"

    def get(token: str, what: str) -> Done:
        arguments = ["get", what, "--token", token, "--server", base, "--certificate-authority"]
        return kubectl(running, Path(os.devnull), *arguments, str(running.data / "keys" / "ca.crt"))

    assert "said" in get("ann-token", "configmaps").stdout
    assert "Forbidden" in get("eve-token", "configmaps").stderr
    assert "Forbidden" in get("ann-token", "secrets").stderr

    # What stood at the path before is another workspace: not even its name is told.
    clone.git("rm", "--quiet", "-r", A)
    clone.commit("Remove a")
    told = clone.push("origin", "HEAD:main")
    allow(clone, told)
    eventually(lambda: "root:a" not in running.workspaces(), 30, "it is gone")
    clone.git("checkout", "--quiet", first, "--", A)
    clone.commit("Make another a")
    clone.push("origin", "HEAD:main")
    eventually(lambda: "root:a" in running.workspaces(), 30, "another is there")
    eventually(lambda: "said" in get_now(running, "ann-token"), 30, "which is hers")
    refused = get("ann-token", "configmaps")
    assert 'workspace "root:a" was not there' in refused.stderr, refused
    assert running.request("GET", f"/commits/{first}/clusters/root:a/api/v1/configmaps").status == 200


def get_now(plane: Plane, token: str) -> str:
    return plane.kubectl("get", "configmaps", workspace="root:a", token=token, check=False)


def test_it_reads_again_after_it_was_killed(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> None:
    running = plane(fleet(tmp_path / "fleet"))
    past = "/commits/main/clusters/root:a/api/v1/namespaces/default/configmaps/said"
    assert running.request("GET", past).body["data"] == {"a": "first"}
    found = subprocess.run(["pgrep", "-f", "reconciler.commands.viewer"], capture_output=True, text=True, check=True)
    mine = [pid for pid in found.stdout.split() if int(pid) in running.pids()]
    assert len(mine) == 1
    os.kill(int(mine[0]), 9)
    eventually(lambda: running.request("GET", past).status == 200, 30, "it is started again")
    assert running.request("GET", past).body["data"] == {"a": "first"}
