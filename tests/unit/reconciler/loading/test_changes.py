"""Commits after the first: what changed is written, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.model.commits import own
from apiserver.model.identity import object_uid
from apiserver.model.tables import Table
from apiserver.registry import tree

APP_A, APP_B = f"{A}/app.yaml", f"{B}/app.yaml"
WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              colour: {type: string, default: red}
              parts: {type: array, items: {type: string}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def widget(**spec: Any) -> str:
    return f"apiVersion: example.io/v1\nkind: Widget\nmetadata: {{name: w}}\nspec: {spec}\n"


def test_one_object_changed_is_one_object_written(fleet: LoadedFleet) -> None:
    fleet.commit({APP_A: configmap(a="c")})
    assert fleet.written() == ["~configmaps/root:a/default/app"]
    assert [c.key.resource for c in fleet.all_changes() if c.key.resource.startswith("~")] == []
    assert fleet.data("root:a") == {"a": "c"}


def test_a_change_moves_the_commit_of_object_and_workspace_alone(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({APP_A: configmap(a="c")})
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["annotations"]["treeplane.dev/source-commit"] == fleet.repo.head
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["uid"] == object_uid(first, fleet.key("root:a", "configmaps", "app"), own(first))
    assert (fleet.record("root:a").commit, fleet.record("root:a").origin) == (own(fleet.repo.head), own(first))
    assert fleet.record("root:b").commit == fleet.record("root").commit == own(first)
    assert fleet.fleet().commit == own(fleet.repo.head)
    assert tree.summary(fleet.store, fleet.record("root:a").path) == {
        "origin": first,
        "commit": fleet.repo.head,
        "type": "root:organization",
    }
    left = fleet.residue("root:a", "configmaps", "app")
    assert left is not None
    assert left["metadata"] == {
        "name": "app",
        "namespace": "default",
        "annotations": {"treeplane.dev/source-commit": fleet.repo.head},
    }
    assert fleet.residue("root:b", "configmaps", "app") is None


@pytest.mark.parametrize(
    "files",
    [
        {APP_A: "# a comment\n\n\n" + configmap()},
        {APP_A: configmap() + "---\n# nothing\n"},
        {APP_A: '{"data": {"a": "b"}, "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "app"}}'},
        {APP_A: configmap(namespace="default")},
        {"README.md": "elsewhere"},
        {f"{A}/notes.txt": "not a manifest"},
        {f"{A}/.treeplaneignore": "*.txt\n"},
        {f"{A}/workspace.yaml": "# still nothing\n"},
        {"workspaces/root/empty.yaml": "# nothing\n"},
        {},
    ],
    ids=["comment", "empty document", "json", "namespace", "elsewhere", "text", "ignore", "workspace", "empty", "none"],
)
def test_what_changes_no_content_writes_nothing(fleet: LoadedFleet, files: dict[str, str]) -> None:
    rows = fleet.store.scan_rows(Table.WORKSPACES)
    fleet.commit(files)
    assert fleet.written() == []
    assert fleet.store.scan_rows(Table.WORKSPACES) == rows
    assert fleet.fleet().commit == own(fleet.repo.head)
    # What was passed over is no trap for what comes next.
    fleet.commit({APP_A: configmap(a="c")})
    assert fleet.written() == ["~configmaps/root:a/default/app"]


def test_objects_that_move_within_a_file_write_nothing(empty: LoadedFleet) -> None:
    empty.begin({APP_A: configmap("one") + "---\n" + configmap("two")})
    empty.commit({APP_A: configmap("two") + "---\n" + configmap("one")})
    assert empty.written() == []


def test_a_file_that_moves_changes_only_where_it_is_said_to_stand(fleet: LoadedFleet) -> None:
    before = fleet.get("root:a", "configmaps", "app")
    fleet.commit({APP_A: None, f"{A}/deep/er/app.yml": configmap()})
    after = fleet.get("root:a", "configmaps", "app")
    assert fleet.held() == {}
    assert fleet.written() == ["~configmaps/root:a/default/app"]
    assert after["metadata"]["annotations"]["treeplane.dev/source-path"] == f"{A}/deep/er/app.yml"
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    commits = [o["metadata"]["annotations"]["treeplane.dev/source-commit"] for o in (before, after)]
    assert commits[0] == commits[1]


def test_a_manifest_that_goes_takes_its_object_along(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    assert fleet.written() == ["+configmaps/root:a/default/more"]
    fleet.commit({f"{A}/more.yaml": None})
    assert fleet.written() == ["-configmaps/root:a/default/more"]
    assert fleet.data("root:b") == {"a": "b"}


def test_one_of_two_documents_that_goes_takes_its_object_along(empty: LoadedFleet) -> None:
    empty.begin({APP_A: configmap("one") + "---\n" + configmap("two")})
    empty.commit({APP_A: configmap("two")})
    assert empty.written() == ["-configmaps/root:a/default/one"]


def test_what_git_never_declared_is_not_deleted(fleet: LoadedFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")._replace(name="runtime")
    metadata = {"name": "runtime", "namespace": "default", "uid": "u"}
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    fleet.commit({APP_A: None})
    assert fleet.written() == ["-configmaps/root:a/default/app"]
    fleet.commit({APP_A: configmap(), f"{A}/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"})
    assert fleet.store.get(key) is not None


def test_deleted_and_recreated_is_another_object(fleet: LoadedFleet) -> None:
    before = fleet.get("root:a", "configmaps", "app")["metadata"]
    fleet.commit({APP_A: None})
    fleet.commit({APP_A: configmap()})
    after = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert fleet.written() == ["+configmaps/root:a/default/app"]
    assert after["uid"] != before["uid"]
    assert after["creationTimestamp"] == "2026-01-01T00:02:00Z"


def test_deleted_and_recreated_is_another_object_when_both_arrive_at_once(fleet: LoadedFleet) -> None:
    before = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.repo.commit({APP_A: None})
    fleet.repo.commit({APP_A: configmap()})
    loaded = fleet.load()
    assert len(loaded.steps) == 2
    assert fleet.written() == ["+configmaps/root:a/default/app", "-configmaps/root:a/default/app"]
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["uid"] != before


def test_an_object_with_finalizers_waits_for_them(fleet: LoadedFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")
    fleet.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/wait"]))
    fleet.commit({APP_A: None})
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["deletionTimestamp"] == "2026-01-01T00:01:00Z"
    assert metadata["finalizers"] == ["example.io/wait"]
    fleet.commit({"README.md": "elsewhere"})
    assert fleet.written() == []


def test_many_commits_at_once_are_judged_in_turn(fleet: LoadedFleet) -> None:
    for number in range(5):
        fleet.repo.commit({APP_A: configmap(count=str(number))})
    loaded = fleet.load()
    assert len(loaded.steps) == 5
    assert fleet.written() == ["~configmaps/root:a/default/app"] * 5
    assert fleet.data("root:a") == {"count": "4"}


def test_merges_count_as_the_one_commit_that_they_are(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    side = fleet.repo.commit({APP_A: configmap(a="side")}, parent=first)
    fleet.repo.reset(first)
    fleet.repo.commit({APP_B: configmap(a="main")})
    fleet.load()
    merge = fleet.repo.merge({APP_A: configmap(a="side")}, side)
    loaded = fleet.load()
    assert len(loaded.steps) == 1
    assert fleet.written() == ["~configmaps/root:a/default/app"]
    commit = fleet.get("root:a", "configmaps", "app")["metadata"]["annotations"]["treeplane.dev/source-commit"]
    assert commit == merge


def test_the_same_commit_twice_writes_nothing_at_all(fleet: LoadedFleet) -> None:
    fleet.commit({APP_A: configmap(a="c")})
    fleet.load()
    assert fleet.all_changes() == []
    fleet.loader = fleet.new_loader()
    fleet.load()
    assert fleet.all_changes() == []


@pytest.mark.parametrize("restart", [False, True])
def test_looking_again_writes_nothing_at_all(empty: LoadedFleet, restart: bool) -> None:
    binding = (
        "apiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata: {name: k}\n"
        "spec: {reference: {export: {path: root:compute, name: kubernetes}}}\n"
    )
    empty.begin({f"{A}/crd.yaml": WIDGETS, f"{A}/w.yaml": widget(size=1), f"{B}/binding.yaml": binding})
    empty.commit({f"{A}/w.yaml": widget(size=2)})
    if restart:
        empty.loader = empty.new_loader()
    empty.recheck(empty.paths())
    assert empty.written() == []
    assert empty.all_changes() == []


def test_what_others_write_stays_and_what_git_names_wins(empty: LoadedFleet) -> None:
    empty.begin({f"{A}/crd.yaml": WIDGETS, f"{A}/w.yaml": widget(size=1, parts=["a"])})
    key = empty.key("root:a", "widgets.example.io", "w")

    def others(obj: dict[str, Any]) -> None:
        obj["status"] = {"ready": True}
        obj["metadata"]["labels"] = {"other": "x"}
        obj["metadata"]["annotations"]["other"] = "x"
        obj["metadata"]["finalizers"] = ["example.io/wait"]
        obj["spec"]["size"] = 7

    empty.update(key, others)
    empty.commit({f"{A}/w.yaml": widget(size=2, parts=["b", "c"])})
    found = empty.get("root:a", "widgets.example.io", "w")
    assert found["spec"] == {"size": 2, "parts": ["b", "c"], "colour": "red"}
    assert found["status"] == {"ready": True}
    assert found["metadata"]["labels"] == {"other": "x"}
    assert found["metadata"]["annotations"]["other"] == "x"
    assert found["metadata"]["finalizers"] == ["example.io/wait"]


def test_what_git_drops_goes_and_its_default_comes_back(empty: LoadedFleet) -> None:
    empty.begin({f"{A}/crd.yaml": WIDGETS, f"{A}/w.yaml": widget(size=1, colour="blue")})
    empty.commit({f"{A}/w.yaml": widget()})
    assert empty.get("root:a", "widgets.example.io", "w")["spec"] == {"colour": "red"}


def test_the_generation_counts_changes_of_the_spec_alone(empty: LoadedFleet) -> None:
    empty.begin({f"{A}/crd.yaml": WIDGETS, f"{A}/w.yaml": widget(size=1)})

    def generation() -> int:
        number: int = empty.get("root:a", "widgets.example.io", "w")["metadata"]["generation"]
        return number

    assert generation() == 1
    empty.commit({f"{A}/w.yaml": "# comment\n" + widget(size=1)})
    assert generation() == 1
    labelled = widget(size=1).replace("{name: w}", "{name: w, labels: {a: b}}")
    empty.commit({f"{A}/w.yaml": labelled})
    assert empty.written() == ["~widgets.example.io/root:a/default/w"]
    assert generation() == 1
    empty.commit({f"{A}/w.yaml": widget(size=2)})
    assert generation() == 2
    assert (empty.residue("root:a", "widgets.example.io", "w") or {})["metadata"]["generation"] == 2


def test_a_label_that_git_drops_goes_and_others_stay(empty: LoadedFleet) -> None:
    empty.begin({APP_A: configmap().replace("{name: app}", "{name: app, labels: {git: one, old: one}}")})
    empty.update(empty.key("root:a", "configmaps", "app"), lambda obj: obj["metadata"]["labels"].update(other="x"))
    empty.commit({APP_A: configmap().replace("{name: app}", "{name: app, labels: {git: two}}")})
    assert empty.get("root:a", "configmaps", "app")["metadata"]["labels"] == {"git": "two", "other": "x"}


def test_a_manifest_adopts_what_was_created_through_the_api(fleet: LoadedFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")._replace(name="mine")
    annotations = {"kcp.io/cluster": key.cluster, "treeplane.dev/origin": "runtime"}
    metadata = {
        "name": "mine",
        "namespace": "default",
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2025-12-31T00:00:00Z",
        "annotations": annotations,
    }
    fleet.put(key, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"theirs": "x"}})
    fleet.commit({f"{A}/mine.yaml": configmap("mine", git="y")})
    found = fleet.get("root:a", "configmaps", "mine")
    assert found["metadata"]["uid"] == metadata["uid"]
    assert found["data"] == {"theirs": "x", "git": "y"}
    assert "treeplane.dev/origin" not in found["metadata"]["annotations"]
    assert (fleet.residue("root:a", "configmaps", "mine") or {})["metadata"]["uid"] == metadata["uid"]
    fleet.commit({f"{A}/mine.yaml": None})
    assert fleet.store.get(key) is None


def test_a_controller_that_writes_in_between_is_not_overwritten(fleet: LoadedFleet) -> None:
    """The load takes what it read a moment ago; somebody else was quicker."""
    fleet.interleave(
        "root:a", "configmaps", "app", lambda obj: obj["metadata"].setdefault("labels", {}).update(late="x")
    )
    fleet.commit({APP_A: configmap(a="c")})
    found = fleet.get("root:a", "configmaps", "app")
    assert found["metadata"]["labels"] == {"late": "x"}
    assert found["data"] == {"a": "c"}
