from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.model import marks
from reconciler.layout import manifest
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import read_fleet
from reconciler.layout.secrets import read_secrets
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob, edit_tree

EXPORTED = b"""apiVersion: tenancy.kcp.dev/v1alpha1
kind: WorkspaceType
metadata:
  name: team
  uid: 1f7c
  resourceVersion: "7"
  generation: 2
  creationTimestamp: null
  managedFields: []
  labels:
  annotations:
    treeplane.dev/origin: runtime
    kcp.io/cluster: root
spec: {uid: stays}
status: {phase: Ready}
"""


def test_what_only_servers_set_is_left_out_with_a_notice() -> None:
    found = manifest.read(EXPORTED, "a.yaml")
    assert found.errors == []
    assert found.objects[0].value == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": "team"},
        "spec": {"uid": "stays"},
    }
    assert found.objects[0].gvk == ("tenancy.kcp.io", "v1alpha1", "WorkspaceType")
    assert [str(n) for n in found.notices] == [
        "a.yaml:1: WorkspaceType team: metadata.uid, metadata.resourceVersion, metadata.managedFields,"
        " metadata.generation, metadata.annotations[treeplane.dev/origin], metadata.annotations[kcp.io/cluster]"
        " left out: only the server sets it"
    ]


@pytest.mark.parametrize("finalizer", marks.FINALIZERS)
def test_no_manifest_says_that_an_object_waits_as_the_server_has_it_wait(finalizer: str) -> None:
    """As `kubectl get` prints it. What others have to do before it goes is somebody's word."""
    text = f"apiVersion: v1\nkind: A\nmetadata: {{name: a, finalizers: [{finalizer}%s]}}\n"
    found = manifest.read((text % "").encode(), "a.yaml")
    assert found.objects[0].value["metadata"] == {"name": "a"}
    assert str(found.notices[0]).endswith(f"metadata.finalizers[{finalizer}] left out: only the server sets it")
    found = manifest.read((text % ", example.io/mine, {odd: {}}").encode(), "a.yaml")
    assert found.objects[0].value["metadata"]["finalizers"] == ["example.io/mine", {"odd": {}}]


def test_no_manifest_says_which_cluster_a_placement_runs_on() -> None:
    """Or whoever knows the key of a sync target could run on it."""
    found = manifest.read(
        b"apiVersion: scheduling.kcp.io/v1alpha1\nkind: Placement\nmetadata:\n  name: p\n  annotations:\n"
        b"    internal.workload.kcp.io/synctarget: stolen\n    treeplane.dev/leaving: stolen\n    mine: stays\n",
        "p.yaml",
    )
    assert found.objects[0].value["metadata"]["annotations"] == {"mine": "stays"}
    assert "annotations[internal.workload.kcp.io/synctarget]" in str(found.notices[0])


def test_good_objects_of_a_file_with_faults_are_still_read() -> None:
    found = manifest.read(b"kind: A\n---\napiVersion: v1\nkind: B\nmetadata: {name: b, namespace: }\n", "a.yaml")
    assert [(m.name, m.index, m.line, m.namespace) for m in found.objects] == [("b", 1, 3, "")]
    assert [e.message for e in found.errors] == ["apiVersion is missing", "metadata is missing"]
    assert str(found.objects[0].error("is wrong", "fix it")) == "a.yaml:3: is wrong (fix it)"


def test_only_the_dev_groups_of_kcp_are_renamed() -> None:
    renamed = {"a.kcp.dev/v1": "a.kcp.io/v1", "kcp.dev/v1": "kcp.dev/v1", "kcp.dev.x/v1": "kcp.dev.x/v1"}
    for given, read in renamed.items():
        text = f"apiVersion: {given}\nkind: A\nmetadata: {{name: a}}\n".encode()
        assert manifest.read(text, "a.yaml").objects[0].value["apiVersion"] == read


@pytest.mark.parametrize("entry", [None, Blob("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", b"120000")])
def test_the_fleets_file_must_be_there(repo: Repository, entry: Blob | None) -> None:
    tree = edit_tree(repo, None, {"a": b"", "treeplane.yaml": entry})
    with pytest.raises(BadFile, match=r"treeplane\.yaml: is"):
        read_fleet(repo, tree)


def secret(name: str, namespace: str = "") -> str:
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: '{namespace}'}}\n"


def test_secrets_beside_the_keys(tmp_path: Path) -> None:
    files = {
        "root:shop/a.yaml": secret("one") + "---\n" + secret("two", "web"),
        "root:shop/b.yaml": secret("one", "default"),
        "root:shop/notes.txt": "x",
        "root:shop/broken.yaml": "a: [",
        "root/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
        "Not A Path/d.yaml": secret("x"),
    }
    for name, text in files.items():
        path = tmp_path / "secrets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = read_secrets(tmp_path)
    assert {w: [(m.namespace, m.name) for m in ms] for w, ms in found.by_workspace.items()} == {
        "root": [],
        "root:shop": [("", "one"), ("web", "two")],
    }
    top = f"{tmp_path}/secrets"
    assert found.by_workspace["root:shop"][0].path == f"{top}/root:shop/a.yaml"
    assert [str(e).removeprefix(top) for e in found.errors] == [
        "/Not A Path: is not a workspace path (the directory is named as the workspace, e.g. root:team)",
        "/root/c.yaml:1: ConfigMap settings: only Secrets may stand here",
        f"/root:shop/b.yaml:1: Secret default/one is also in {top}/root:shop/a.yaml",
        "/root:shop/broken.yaml:2:1: YAML: while parsing a flow node (begun in line 2),"
        " did not find expected node content",
    ]


def test_no_secrets_at_all(tmp_path: Path) -> None:
    assert read_secrets(tmp_path).by_workspace == {}
