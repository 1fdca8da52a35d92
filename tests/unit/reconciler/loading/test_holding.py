"""A workspace with an error keeps its last good commit; its neighbour in the same commit moves on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fleetrepo import Files
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.model.commits import own
from apiserver.registry import tree

APP_A, APP_B, BAD = f"{A}/app.yaml", f"{B}/app.yaml", f"{A}/bad.yaml"

WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
CRD = """\
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
    schema:
      openAPIV3Schema: SCHEMA
"""
STRUCTURAL = "{type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}"
WIDGET = "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: w}\nspec:\n  size: SIZE\n"

CASES: dict[str, tuple[Files, list[str]]] = {
    "broken YAML": ({BAD: "kind: ConfigMap\nmetadata: {name: [\n"}, [f"{BAD}:3:1: "]),
    "a tab": ({BAD: "kind: ConfigMap\nmetadata:\n\tname: x\n"}, [f"{BAD}:3:1: "]),
    "a key twice": (
        {BAD: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: b\n  a: c\n"},
        [f"{BAD}:6:3: the key 'a' is given twice"],
    ),
    "not UTF-8": ({BAD: b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \xff}\n"}, [f"{BAD}:3"]),
    "too large": ({BAD: configmap("big", a="x" * (3 << 20))}, [f"{BAD}: "]),
    "an alias bomb": (
        {BAD: "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [" + ",".join([f"*{chr(97 + i)}"] * 9) + "]\n" for i in range(9)
        )},
        [f"{BAD}:"],
    ),
    "a symbolic link": ({}, [f"{BAD}: is a symbolic link"]),
    "no name": ({BAD: "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, [f"{BAD}:3: metadata.name is missing"]),
    "an invalid name": ({BAD: configmap("Not_A_Name")}, [f"{BAD}:3: ConfigMap Not_A_Name: metadata.name: Invalid"]),
    "an unknown kind": (
        {BAD: "apiVersion: example.io/v1\nkind: Gadget\nmetadata: {name: x}\n"},
        [f'{BAD}:1: no kind "Gadget" in apiVersion "example.io/v1" (declare its CustomResourceDefinition'],
    ),
    "an unknown version": (
        {BAD: "apiVersion: v2\nkind: ConfigMap\nmetadata: {name: x}\n"},
        [f'{BAD}:1: no kind "ConfigMap" in apiVersion "v2" (it is served here as v1)'],
    ),
    "a kind that has to be bound": (
        {BAD: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"},
        [f'{BAD}:1: no kind "Deployment" in apiVersion "apps/v1" (bind the export kubernetes of root:compute'],
    ),
    "an unknown field": (
        {BAD: configmap("x") + "nope: 1\n"},
        [f'{BAD}:6: unknown field "nope" in ConfigMap x'],
    ),
    "two unknown fields": (
        {BAD: configmap("x") + "nope: 1\nneither: 2\n"},
        [f'{BAD}:6: unknown field "nope" in ConfigMap x', f'{BAD}:7: unknown field "neither" in ConfigMap x'],
    ),
    "a value of the wrong type": (
        {BAD: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  count: 3\n"},
        [f"{BAD}:5: ConfigMap x: data.count: Invalid value"],
    ),
    "a value that the schema refuses": (
        {BAD: CRD.replace("SCHEMA", STRUCTURAL) + "---\n" + WIDGET.replace("SIZE", "much")},
        [f"{BAD}:19: Widget w: spec.size: Invalid value"],
    ),
    "a schema that is not structural": (
        {BAD: CRD.replace("SCHEMA", "{type: object, properties: {spec: {properties: {size: {type: integer}}}}}")},
        [f"{BAD}:"],
    ),
    "a cluster-scoped object with a namespace": (
        {BAD: "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n  namespace: default\n"},
        [f"{BAD}:5: Namespace x is cluster-scoped but names the namespace default"],
    ),
    "a namespace that is not declared": (
        {BAD: configmap("x", namespace="nowhere")},
        [f"{BAD}:1: ConfigMap x is in the namespace nowhere, which is not declared"],
    ),
    "the same object twice in a file": (
        {BAD: configmap("x") + "---\n" + configmap("x")},
        [f"{BAD}:1: ConfigMap x is declared twice: also in {BAD}:7",
         f"{BAD}:7: ConfigMap x is declared twice: also in {BAD}:1"],
    ),
    "the same object in two new files": (
        {BAD: configmap("x"), f"{A}/other.yaml": configmap("x")},
        [f"{BAD}:1: ConfigMap x is declared twice: also in {A}/other.yaml:1",
         f"{A}/other.yaml:1: ConfigMap x is declared twice: also in {BAD}:1"],
    ),
    "an object that stands in an old file": (
        {BAD: configmap("app")},
        [f"{APP_A}:1: ConfigMap app is declared twice: also in {BAD}:1",
         f"{BAD}:1: ConfigMap app is declared twice: also in {APP_A}:1"],
    ),
    "an unknown workspace type": (
        {f"{A}/workspace.yaml": WORKSPACE + "spec: {type: {name: gold, path: root}}\n"},
        [f"{A}/workspace.yaml:1: workspace type root:gold cannot be resolved: no such WorkspaceType"],
    ),
    "a broken workspace.yaml": ({f"{A}/workspace.yaml": "spec: {type: [\n"}, [f"{A}/workspace.yaml:2:1: "]),
    "another name in workspace.yaml": (
        {f"{A}/workspace.yaml": WORKSPACE + "metadata: {name: other}\n"},
        [f"{A}/workspace.yaml:1: metadata.name is 'other'"],
    ),
    "a second object in workspace.yaml": (
        {f"{A}/workspace.yaml": WORKSPACE + "---\n" + configmap()},
        [f"{A}/workspace.yaml:4: a second"],
    ),
    "two workspace files": ({f"{A}/workspace.yml": ""}, [f"{A}/workspace.yml: stands beside {A}/workspace.yaml"]),
    "a Git LFS pointer": (
        {BAD: "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"},
        [f"{BAD}: is a Git LFS pointer"],
    ),
}  # fmt: skip


@pytest.fixture(params=CASES.values(), ids=list(CASES))
def broken(request: pytest.FixtureRequest, empty: LoadedFleet) -> tuple[Files, list[str]]:
    files, errors = request.param
    return files or {BAD: empty.repo.link("app.yaml")}, errors


def test_a_bad_commit_holds_its_workspace_alone(fleet: LoadedFleet, broken: tuple[Files, list[str]]) -> None:
    files, expected = broken
    before = snapshot(fleet)
    good = fleet.repo.head
    loaded = fleet.commit({**files, f"{A}/innocent.yaml": configmap("innocent"), APP_B: configmap(a="moved")})

    # The workspace is as it was; its Workspace and LogicalCluster say why.
    said = {"~logicalclusters.core.kcp.io/root:a//cluster", "~workspaces.tenancy.kcp.io/root//a"}
    assert set(fleet.written()) == said | {"~configmaps/root:b/default/app"}
    assert {k: v for k, v in snapshot(fleet).items() if k in before} == before
    assert fleet.data("root:b") == {"a": "moved"}

    # All errors, with file and line, everywhere.
    errors = fleet.held(loaded)["root:a"]
    for begins, error in zip(sorted(expected), sorted(errors), strict=True):
        assert error.startswith(begins), errors
    record = fleet.record("root:a")
    assert (record.served, record.head, record.commit) == (True, own(good), own(good))
    summary = tree.summary(fleet.store, record.path)
    assert (summary["served"], summary["errors"]) == (good, errors)
    for obj in (fleet.workspace("root:a"), fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")):
        condition = fleet.condition(obj, "CommitApplied")
        assert (condition["status"], condition["lastTransitionTime"]) == ("False", "2026-01-01T00:01:00Z")
        assert all(error in condition["message"] for error in errors)
        assert obj["status"]["phase"] == "Ready"
    assert fleet.condition(fleet.workspace("root:b"), "CommitApplied")["status"] == "True"
    assert loaded.problems == ()
    assert fleet.fleet().commit == own(fleet.repo.head)

    # The same again writes nothing; what comes elsewhere does not heal it.
    fleet.recheck(["root:a"])
    assert fleet.all_changes() == []
    fleet.commit({APP_B: configmap(a="again")})
    assert fleet.written() == ["~configmaps/root:b/default/app"]
    assert fleet.held()["root:a"] == errors


def test_a_good_commit_heals_it(fleet: LoadedFleet, broken: tuple[Files, list[str]]) -> None:
    files, _ = broken
    was = {path: fleet.repo.files(fleet.repo.head).get(path) for path in files}
    fleet.commit({**files, f"{A}/innocent.yaml": configmap("innocent")})
    assert "root:a" in fleet.held()
    loaded = fleet.commit(was)
    assert fleet.held() == {}
    assert "root:a" in loaded.steps[-1].mended
    assert fleet.data("root:a", "innocent") == {"a": "b"}
    assert fleet.find("root:a", "configmaps", "x") is None
    assert fleet.condition(fleet.workspace("root:a"), "CommitApplied")["status"] == "True"
    summary = tree.summary(fleet.store, fleet.record("root:a").path)
    assert "served" not in summary
    assert "errors" not in summary


def test_an_error_from_the_first_commit_on(empty: LoadedFleet, broken: tuple[Files, list[str]]) -> None:
    files, expected = broken
    loaded = empty.begin(files)
    errors = empty.held(loaded)["root:a"]
    for begins, error in zip(sorted(expected), sorted(errors), strict=True):
        assert error.startswith(begins), errors
    record = empty.record("root:a")
    assert not record.served
    assert empty.find("root:a", "configmaps", "app") is None
    assert empty.data("root:b") == {"a": "b"}
    workspace = empty.workspace("root:a")
    assert workspace["status"]["phase"] == "Initializing"
    assert workspace["spec"]["cluster"] == record.cluster
    assert tree.summary(empty.store, record.path)["served"] == ""
    assert empty.fleet().loaded


def test_a_workspace_that_was_never_good_is_served_once_it_is(empty: LoadedFleet) -> None:
    empty.begin({BAD: "kind: ["})
    origin = empty.repo.head
    empty.commit({APP_B: configmap(a="c")})
    assert not empty.record("root:a").served
    empty.commit({BAD: None})
    record = empty.record("root:a")
    assert (record.served, record.errors, record.origin) == (True, [], own(origin))
    assert empty.data("root:a") == {"a": "b"}
    assert empty.workspace("root:a")["status"]["phase"] == "Ready"
    assert empty.workspace("root:a")["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_later_bad_commit_says_its_own_errors_and_keeps_what_is_served(fleet: LoadedFleet) -> None:
    good = fleet.repo.head
    fleet.commit({BAD: "kind: ["})
    fleet.commit({BAD: configmap("x", namespace="nowhere")})
    [error] = fleet.held()["root:a"]
    assert "nowhere" in error
    assert fleet.record("root:a").head == own(good)
    assert tree.summary(fleet.store, fleet.record("root:a").path)["served"] == good


def test_what_changed_while_held_arrives_with_the_commit_that_heals(fleet: LoadedFleet) -> None:
    fleet.commit({BAD: "kind: ["})
    fleet.commit({APP_A: configmap(a="meanwhile")})
    assert fleet.data("root:a") == {"a": "b"}
    fleet.commit({f"{A}/third.yaml": configmap("third"), APP_A: None})
    assert fleet.data("root:a") == {"a": "b"}
    fleet.commit({BAD: None})
    assert fleet.data("root:a", "third") == {"a": "b"}
    assert fleet.data("root:a") is None


def test_a_commit_that_is_held_counts_as_no_change_for_identities(fleet: LoadedFleet) -> None:
    """The object goes and comes back while the workspace is held: it was never gone."""
    before = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.commit({BAD: "kind: [", APP_A: None})
    fleet.commit({APP_A: configmap()})
    fleet.commit({BAD: None})
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["uid"] == before
    assert fleet.held() == {}


def test_a_new_object_has_the_identity_of_the_commit_that_is_good(fleet: LoadedFleet) -> None:
    fleet.commit({BAD: "kind: [", f"{A}/late.yaml": configmap("late")})
    fleet.commit({BAD: None})
    late = fleet.get("root:a", "configmaps", "late")["metadata"]
    assert late["creationTimestamp"] == "2026-01-01T00:02:00Z"


def test_errors_of_a_parents_manifests_hold_none_of_its_children(fleet: LoadedFleet) -> None:
    fleet.commit(
        {
            "workspaces/root/bad.yaml": "kind: [",
            APP_A: configmap(a="moved"),
            "workspaces/root/c/workspace.yaml": "",
            "workspaces/root/c/app.yaml": configmap(),
        }
    )
    assert set(fleet.held()) == {"root"}
    assert fleet.data("root:a") == {"a": "moved"}
    assert fleet.data("root:c") == {"a": "b"}
    assert fleet.workspace("root:c")["status"]["phase"] == "Ready"


def test_an_error_of_a_childs_workspace_yaml_is_not_the_parents(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/child/workspace.yaml": WORKSPACE + "spec: {type: {name: nope}}\n", APP_A: configmap(a="moved")})
    assert set(fleet.held()) == {"root:a:child"}
    assert fleet.data("root:a") == {"a": "moved"}


def test_a_child_of_a_workspace_that_was_never_good_is_judged_on_its_own(empty: LoadedFleet) -> None:
    empty.begin({BAD: "kind: [", f"{A}/child/workspace.yaml": "", f"{A}/child/app.yaml": configmap()})
    assert set(empty.held()) == {"root:a"}
    assert empty.data("root:a:child") == {"a": "b"}


def test_bindings_and_their_objects_are_checked_again_by_what_follows(fleet: LoadedFleet) -> None:
    """An error beside a kind's definition does not hide errors of its objects."""
    crd = CRD.replace("SCHEMA", STRUCTURAL)
    fleet.commit({BAD: crd + "---\n" + WIDGET.replace("SIZE", "much") + "---\n" + configmap("x", namespace="nowhere")})
    errors = fleet.held()["root:a"]
    assert len(errors) == 2
    assert "spec.size" in "".join(errors)
    assert "nowhere" in "".join(errors)


def snapshot(fleet: LoadedFleet) -> dict[object, bytes]:
    """The objects of root:a but for the one that says how it is."""
    cluster = fleet.record("root:a").cluster
    return {k: v for k, v in fleet.everything().items() if k.cluster == cluster and k.name != "cluster"}


def test_a_failure_of_the_program_itself_holds_its_workspace_alone(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judge = "reconciler.loading.judge.Judge.judge"
    real: Callable[..., object] = _resolve(judge)

    def fails(self: object, case: object) -> object:
        if getattr(case, "path", "") == "root:a":
            raise RuntimeError("a mistake of ours")
        return real(self, case)

    monkeypatch.setattr(judge, fails)
    fleet.commit({APP_A: configmap(a="c"), APP_B: configmap(a="c")})
    monkeypatch.undo()
    assert fleet.data("root:b") == {"a": "c"}
    assert fleet.data("root:a") == {"a": "b"}
    assert "an error inside Treeplane" in fleet.held()["root:a"][0]
    fleet.recheck(["root:a"])
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "c"}


def _resolve(name: str) -> Callable[..., object]:
    module, _, rest = name.partition(".Judge")
    judge = __import__(module, fromlist=["Judge"]).Judge
    found: Callable[..., object] = judge.judge
    assert rest == ".judge"
    return found


def test_a_namespace_that_exists_at_runtime_alone_is_none_to_build_on(fleet: LoadedFleet) -> None:
    """A clone would not have it, so it is an error now and not only after a recovery."""
    key = fleet.key("root:a", "namespaces", "made", "")
    annotations = {"kcp.io/cluster": key.cluster, "treeplane.dev/origin": "runtime"}
    fleet.put(key, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made", "annotations": annotations}})
    fleet.commit({f"{A}/x.yaml": configmap("x", namespace="made")})
    [error] = fleet.held()["root:a"]
    assert "ConfigMap x is in the namespace made, which is not declared" in error
    fleet.commit({f"{A}/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: made}\n"})
    assert fleet.held() == {}
