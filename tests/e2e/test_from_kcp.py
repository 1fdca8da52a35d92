"""docs/from-kcp.md, typed as it stands.

No kcp is at hand here: its part is played by `treeplane kcp start`, whose workspaces are in no repository and which
has kcp's URLs, kinds and contexts. What else a kcp would have in such a workspace, and one may not write, is put there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cowboys import COWBOY, EXPORT
from support.kcpplane import KcpPlane
from support.pages import Typist, steps
from support.plane import COMMAND, environment, kubectl_program

PAGE = Path(__file__).parents[2] / "docs" / "from-kcp.md"

OWN = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: horses.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: horses, singular: horse, kind: Horse, listKind: HorseList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {name: {type: string}}}
          status: {type: object, properties: {legs: {type: integer}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: stable}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: stable, labels: {of: team}, annotations: {says: hello}}
data: {food: hay}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: stable}
stringData: {password: hunter2}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ann}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""
HORSE = "apiVersion: example.org/v1\nkind: Horse\nmetadata: {name: jolly, namespace: stable}\nspec: {name: Jolly}\n"


LEGS = ("--subresource", "status", "--type", "merge", "-p", '{"status":{"legs":4}}')
ALL = "configmaps,secrets,cowboys,horses,apibindings,customresourcedefinitions,clusterrolebindings,namespaces"


def populate(kcp: KcpPlane) -> None:
    """An organization with a provider, and a team that takes its API and has one of its own."""
    run = kcp.run
    run("kubectl", "ws", "create", "org", "--type", "organization", "--enter")
    run("kubectl", "ws", "create", "provider", "--enter")
    run("kubectl", "apply", "-f", "-", stdin=EXPORT)
    run("kubectl", "ws", ":root:org")
    run("kubectl", "ws", "create", "team", "--enter")
    run("treeplane", "bind", "apiexport", "root:org:provider:cowboys")
    run("treeplane", "claims", "accept", "cowboys", "--resource", "configmaps")
    run("treeplane", "claims", "reject", "cowboys", "--resource", "secrets")
    # What kcp does besides: a binding to its own kinds, and a label that nobody else may write.
    run("treeplane", "bind", "apiexport", "root:tenancy.kcp.io")
    run("kubectl", "label", "apibinding", "cowboys", "internal.apis.kcp.io/export=0123456789abcdef")
    run("kubectl", "apply", "-f", "-", stdin=COWBOY)
    run("kubectl", "apply", "-f", "-", stdin=OWN)
    run("kubectl", "wait", "--for", "condition=Established", "crd/horses.example.org")
    run("kubectl", "apply", "-f", "-", stdin=HORSE)
    run("kubectl", "patch", "horse", "jolly", "-n", "stable", *LEGS)


@pytest.fixture
def kcp(tmp_path: Path) -> Iterator[KcpPlane]:
    """Its current workspace is root:org:team."""
    with KcpPlane("", tmp_path / "source" / ".kcp") as made:
        (tmp_path / "kcp.kubeconfig").write_bytes(made.kubeconfig.read_bytes())
        populate(made)
        yield made


def versions(kcp: KcpPlane) -> dict[str, str]:
    """Of all that the team has."""
    items = json.loads(kcp.run("kubectl", "get", ALL, "-A", "-o", "json"))["items"]
    return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in items}


@pytest.mark.slow
def test_the_page_goes_as_it_is_printed(kcp: KcpPlane, tmp_path: Path, eventually: Any) -> None:
    path = os.pathsep.join([str(COMMAND.parent), str(Path(kubectl_program()).parent), os.environ["PATH"]])
    typist = Typist(tmp_path, environment(PATH=path, TREEPLANE_LISTEN="127.0.0.1:0"), eventually)
    before = versions(kcp)
    seen = 0
    try:
        for step in steps(PAGE):
            typist.type(step)
            if "treeplane validate" in step.typed:
                seen += 1
                nothing_secret_is_to_be_committed(tmp_path)
            if "nothing is missing" in step.shown:
                seen += 1
                assert versions(kcp) == before, "kcp was only read"
                served_as_it_was(typist)
        assert seen == 2
    finally:
        typist.stop()
    food = ("-n", "stable", "-o", "jsonpath={.data.food}")
    assert kcp.run("kubectl", "get", "configmaps", "settings", *food) == "oats"
    assert not (tmp_path / ".treeplane").exists()


def nothing_secret_is_to_be_committed(folder: Path) -> None:
    written = "".join(file.read_text() for file in (folder / "fleet").rglob("*") if file.is_file())
    assert "aHVudGVyMg==" not in written
    assert "hunter2" not in written
    assert "kind: Secret" not in written
    secrets = list((folder / ".treeplane" / "keys" / "secrets").rglob("*.yaml"))
    assert len(secrets) == 3
    assert not [file for file in (*secrets, folder / ".treeplane" / "keys") if file.stat().st_mode & 0o077]


def served_as_it_was(typist: Typist) -> None:
    def told(words: str) -> str:
        return typist.run(f"./here root:org:team get {words}").strip()

    assert told("secrets password --namespace stable --output jsonpath={.data.password}") == "aHVudGVyMg=="
    assert told("cowboys lucky --output jsonpath={.spec.intent}") == "ride"
    assert told("horses jolly --namespace stable --output jsonpath={.spec.name}") == "Jolly"
    claims = json.loads(told("apibindings cowboys --output json"))["spec"]["permissionClaims"]
    assert {claim["resource"]: claim["state"] for claim in claims} == {"configmaps": "Accepted", "secrets": "Rejected"}
