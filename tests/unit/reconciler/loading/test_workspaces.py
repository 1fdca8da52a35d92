"""Workspaces that come, go, move and are left behind; commits that are held for everybody."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same

from apiserver.model.commits import own
from apiserver.registry import tree
from apiserver.registry.lifecycles import PHASE
from apiserver.storage.protocol import Delete, Op

APP_A, APP_B = f"{A}/app.yaml", f"{B}/app.yaml"
C = "workspaces/root/c"
FRESH = {"workspace.yaml": "", "app.yaml": configmap()}
NEW = {f"{C}/{name}": text for name, text in FRESH.items()}
WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
BAD_FLEETS = {
    "missing": None,
    "broken": "kind: [",
    "of another kind": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n",
    "with an unknown field": TREEPLANE_YAML + "spec: {safty: {}}\n",
    "with another fleet id": (
        "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\n"
        "metadata: {name: test, uid: 0f3b2c1d-5a6e-4f70-8192-a3b4c5d6e7f8}\n"
    ),
}


def test_a_new_workspace_is_served(fleet: LoadedFleet) -> None:
    fleet.commit(NEW)
    assert fleet.data("root:c") == {"a": "b"}
    assert fleet.record("root:c").origin == own(fleet.repo.head)
    assert fleet.workspace("root:c")["metadata"]["creationTimestamp"] == "2026-01-01T00:01:00Z"
    assert {line.split("/")[1] for line in fleet.written()} == {"root", "root:c"}


def test_a_parent_and_its_children_may_come_at_once(fleet: LoadedFleet) -> None:
    fleet.commit({f"{C}/deep/er/workspace.yaml": "", f"{C}/deep/er/app.yaml": configmap(), **NEW})
    assert fleet.data("root:c:er") == {"a": "b"}
    assert fleet.workspace("root:c:er")["status"]["phase"] == "Ready"


def test_a_workspace_goes_with_all_it_holds(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/child/workspace.yaml": "", f"{A}/child/app.yaml": configmap()})
    gone = {path: fleet.record(path).cluster for path in ("root:a", "root:a:child")}
    loaded = fleet.delete({A: None})
    assert fleet.paths() == {"root", "root:b"}
    assert loaded.steps[0].deleted == ["root:a:child", "root:a"]
    assert not any(key.cluster in gone.values() for key in fleet.everything())
    assert fleet.find("root", "workspaces.tenancy.kcp.io", "a", "") is None
    for path, cluster in gone.items():
        assert tree.workspace_of(fleet.store, cluster) is None
        assert tree.workspace_at(fleet.store, path) is None
        assert tree.summary(fleet.store, path) == {}
    assert fleet.data("root:b") == {"a": "b"}


def test_runtime_objects_go_with_their_workspace(fleet: LoadedFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")._replace(resource="leases.coordination.k8s.io", name="l")
    metadata = {"name": "l", "namespace": "default"}
    fleet.put(key, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})
    fleet.delete({A: None})
    assert fleet.store.get(key) is None


def test_objects_that_nobody_serves_any_more_go_with_their_workspace(fleet: LoadedFleet) -> None:
    key = fleet.key("root:a", "configmaps", "app")._replace(resource="gadgets.example.io:of-an-earlier-binding")
    fleet.put(key, {"apiVersion": "example.io/v1", "kind": "Gadget", "metadata": {"name": "app"}})
    before = fleet.store.revision()
    fleet.delete({A: None})
    assert fleet.store.get(key) is None
    assert [change.value for change in fleet.store.changes(before) if change.key == key] == [None]


def test_many_workspaces_go_in_one_transaction(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    directories = [f"{A}/w{number}" for number in range(30)]
    fleet.commit({f"{each}/{name}": text for each in directories for name, text in FRESH.items()})
    deletions: list[tuple[Op, ...]] = []
    write = fleet.store.write

    def watched(*ops: Op) -> Future[list[int]]:
        deletions.extend([ops] if any(isinstance(op, Delete) for op in ops) else [])
        return write(*ops)

    monkeypatch.setattr(fleet.store, "write", watched)
    assert len(fleet.delete(dict.fromkeys(directories)).steps[0].deleted) == 30
    assert len(deletions) == 1


def test_deleted_and_recreated_is_another_workspace(fleet: LoadedFleet) -> None:
    before, uid = fleet.record("root:a"), fleet.workspace("root:a")["metadata"]["uid"]
    fleet.delete({A: None})
    fleet.commit({f"{A}/workspace.yaml": "", APP_A: configmap()})
    after = fleet.record("root:a")
    assert after.cluster != before.cluster
    assert after.origin == own(fleet.repo.head)
    assert fleet.workspace("root:a")["metadata"]["uid"] != uid
    assert fleet.data("root:a") == {"a": "b"}


def test_a_workspace_may_move_between_grouping_directories(fleet: LoadedFleet) -> None:
    before, objects = fleet.record("root:a"), fleet.get("root:a", "configmaps", "app")["metadata"]
    moved = "workspaces/root/0a/a"
    fleet.commit({A: None, f"{moved}/workspace.yaml": "", f"{moved}/app.yaml": configmap()})
    assert fleet.held() == {}
    after = fleet.record("root:a")
    assert (after.cluster, after.origin, after.directory) == (before.cluster, before.origin, moved)
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["uid"] == objects["uid"]
    assert metadata["annotations"]["treeplane.dev/source-path"] == f"{moved}/app.yaml"
    assert fleet.written() == ["~configmaps/root:a/default/app", "~workspaces.tenancy.kcp.io/root//a"]


def test_two_directories_of_one_path_are_an_error_of_both(fleet: LoadedFleet) -> None:
    other = "workspaces/root/0a/a"
    fleet.commit({f"{other}/workspace.yaml": "", f"{other}/more.yaml": configmap("more"), APP_B: configmap(a="c")})
    errors = fleet.held()["root:a"]
    assert len(errors) == 2
    assert all(A in error and other in error for error in errors)
    assert fleet.data("root:a") == {"a": "b"}
    assert fleet.data("root:b") == {"a": "c"}
    fleet.commit({other: None})
    assert fleet.held() == {}


def test_and_so_they_are_in_the_first_commit(empty: LoadedFleet) -> None:
    other = "workspaces/root/z/a"
    empty.begin({f"{other}/workspace.yaml": "", f"{other}/more.yaml": configmap("more")})
    assert len(empty.held()["root:a"]) == 2
    assert not empty.record("root:a").served
    assert empty.data("root:b") == {"a": "b"}
    empty.commit({other: None})
    assert empty.held() == {}
    assert empty.data("root:a") == {"a": "b"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tenancy.kcp.io/v1alpha1\nkind: Workspace", "a"),
        ("tenancy.kcp.io/v1alpha1\nkind: Workspace", "new"),
        ("core.kcp.io/v1alpha1\nkind: LogicalCluster", "cluster"),
    ],
)
def test_what_the_layout_declares_is_no_manifest(fleet: LoadedFleet, kind: str, name: str) -> None:
    fleet.commit({"workspaces/root/x.yaml": f"apiVersion: {kind}\nmetadata: {{name: {name}}}\nspec: {{}}\n"})
    [error] = fleet.held()["root"]
    assert error.startswith("workspaces/root/x.yaml:1: ")
    assert set(fleet.held()) == {"root"}


def test_a_workspace_yaml_that_goes_alone_holds_the_workspace(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/workspace.yaml": None, APP_B: configmap(a="c")})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{A}/workspace.yaml: was removed, but manifests remain below it: {APP_A}")
    # The parent inherits nothing, the workspace loses nothing.
    assert fleet.data("root:a") == {"a": "b"}
    assert fleet.get("root", "configmaps", "app")["metadata"]["annotations"]["treeplane.dev/source-path"] == (
        "workspaces/root/app.yaml"
    )
    assert fleet.data("root:b") == {"a": "c"}


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_left_behind_stays_so_until_it_is_put_right(fleet: LoadedFleet, restart: bool) -> None:
    fleet.commit({f"{A}/workspace.yaml": None})
    if restart:
        fleet.loader = fleet.new_loader()
    fleet.commit({APP_B: configmap(a="c")})
    assert set(fleet.held()) == {"root:a"}
    assert fleet.data("root:a") == {"a": "b"}
    fleet.commit({APP_A: configmap(a="edited while left behind")})
    assert fleet.data("root:a") == {"a": "b"}
    assert fleet.data("root") == {"a": "b"}
    cluster = fleet.record("root:a").cluster
    fleet.commit({f"{A}/workspace.yaml": ""})
    assert fleet.held() == {}
    assert fleet.record("root:a").cluster == cluster
    assert fleet.data("root:a") == {"a": "edited while left behind"}


def test_what_was_left_behind_goes_with_its_last_manifest(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/workspace.yaml": None})
    fleet.delete({APP_A: None})
    assert fleet.paths() == {"root", "root:b"}
    assert fleet.fleet().claims == {}


@pytest.mark.parametrize("restart", [False, True])
def test_what_was_left_behind_takes_nothing_of_its_parent_along(fleet: LoadedFleet, restart: bool) -> None:
    """Both have a ConfigMap `app`; the parent was last judged at a commit before the newest."""
    fleet.commit({f"{A}/workspace.yaml": None})
    fleet.commit({"workspaces/root/more.yaml": configmap("more")})
    fleet.commit({APP_B: configmap(a="c")})
    if restart:
        fleet.loader = fleet.new_loader()
    fleet.commit({"workspaces/root/more.yaml": configmap("more", a="c")})
    assert fleet.written() == ["~configmaps/root/default/more"]
    assert set(fleet.held()) == {"root:a"}
    fleet.commit({"workspaces/root/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"})
    assert fleet.written() == ["+namespaces/root//x"]
    assert set(fleet.held()) == {"root:a"}


def test_a_parent_that_goes_while_its_child_remains_is_held_and_keeps_it(fleet: LoadedFleet) -> None:
    child = f"{A}/child"
    fleet.commit({f"{child}/workspace.yaml": "", f"{child}/app.yaml": configmap()})
    fleet.commit({f"{A}/workspace.yaml": None, APP_A: None})
    assert set(fleet.held()) == {"root:a"}
    assert fleet.paths() == {"root", "root:a", "root:a:child", "root:b"}
    assert fleet.data("root:a:child") == {"a": "b"}


def test_a_directory_that_becomes_a_workspace_takes_its_manifests_along(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/group/one.yaml": configmap("one")})
    before = fleet.get("root:a", "configmaps", "one")["metadata"]["uid"]
    fleet.commit({f"{A}/group/workspace.yaml": ""})
    assert fleet.find("root:a", "configmaps", "one") is None
    assert fleet.get("root:a:group", "configmaps", "one")["metadata"]["uid"] != before


def test_an_ignored_workspace_is_a_removed_one(fleet: LoadedFleet) -> None:
    fleet.delete({"workspaces/root/.treeplaneignore": "/a/\n"})
    assert fleet.paths() == {"root", "root:b"}
    fleet.commit({"workspaces/root/.treeplaneignore": None})
    assert fleet.data("root:a") == {"a": "b"}


# -- commits that are held as a whole


@pytest.mark.parametrize("text", BAD_FLEETS.values(), ids=list(BAD_FLEETS))
def test_a_broken_treeplane_yaml_holds_the_whole_commit(fleet: LoadedFleet, text: str | None) -> None:
    good = fleet.repo.head
    loaded = fleet.commit({"treeplane.yaml": text, APP_A: configmap(a="c"), f"{B}/app.yaml": None})
    assert loaded.problems
    assert all(p.path == "treeplane.yaml" for p in loaded.problems)
    assert fleet.written() == []
    assert fleet.paths() == {"root", "root:a", "root:b"}
    assert fleet.fleet().commit == own(good)
    assert "treeplane.yaml" in fleet.fleet().error
    # Looking again writes nothing.
    again = fleet.load()
    assert again.problems == loaded.problems
    assert fleet.all_changes() == []
    # What the good commit that follows says is taken whole.
    fleet.commit({"treeplane.yaml": TREEPLANE_YAML})
    assert fleet.fleet().error == ""
    assert fleet.data("root:a") == {"a": "c"}
    assert fleet.find("root:b", "configmaps", "app") is None


@pytest.mark.parametrize(
    "files",
    [
        {"workspaces": None},
        {"workspaces/root": None},
        {"workspaces/root": None, "workspaces/root/README.md": "empty"},
        {"workspaces/root": None, "workspaces/ruut/a/workspace.yaml": ""},
    ],
    ids=["no workspaces", "no root", "no manifest", "misspelled"],
)
def test_without_a_root_nothing_is_deleted(fleet: LoadedFleet, files: dict[str, str | None]) -> None:
    loaded = fleet.commit(files)
    assert [p.path for p in loaded.problems] == ["workspaces/root"]
    assert fleet.written() == []
    assert fleet.paths() == {"root", "root:a", "root:b"}
    assert "workspaces/root" in fleet.fleet().error


def test_a_whole_commit_that_is_held_counts_as_no_change(fleet: LoadedFleet) -> None:
    before = fleet.record("root:a")
    fleet.repo.commit({"workspaces/root": None})
    fleet.repo.commit({path: text for path, text in fleet.first_files().items() if path.startswith("workspaces/")})
    loaded = fleet.load()
    assert (len(loaded.steps), loaded.problems) == (1, ())
    assert fleet.written() == []
    assert fleet.record("root:a") == before


# -- rewritten branches


def test_a_rewritten_branch_is_followed_and_keeps_recorded_origins(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({f"{A}/more.yaml": configmap("more"), **NEW})
    record, other = fleet.record("root:a"), fleet.record("root:c")
    more = fleet.get("root:a", "configmaps", "more")["metadata"]
    amended = {f"{A}/more.yaml": configmap("more"), **NEW, f"{A}/amended.yaml": configmap("amended")}
    fleet.commit(amended, parent=first)
    assert fleet.written() == ["+configmaps/root:a/default/amended"]
    assert fleet.get("root:a", "configmaps", "more")["metadata"] == more | {"resourceVersion": more["resourceVersion"]}
    assert fleet.record("root:a").origin == record.origin
    assert fleet.record("root:c") == other
    assert fleet.get("root:a", "configmaps", "amended")["metadata"]["creationTimestamp"] == "2026-01-01T00:02:00Z"


def test_a_rewritten_branch_takes_away_what_it_lacks(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({f"{A}/more.yaml": configmap("more"), f"{C}/workspace.yaml": ""})
    fleet.repo.reset(first)
    fleet.load()
    assert fleet.find("root:a", "configmaps", "more") is None
    assert fleet.paths() == {"root", "root:a", "root:b"}


def test_a_rewritten_branch_keeps_who_was_held(fleet: LoadedFleet) -> None:
    first = fleet.repo.head
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    fleet.commit({f"{A}/bad.yaml": "kind: [", APP_B: configmap(a="c")}, parent=first)
    assert set(fleet.held()) == {"root:a"}
    assert fleet.data("root:b") == {"a": "c"}


# -- types


def test_a_type_may_come_with_the_workspaces_that_have_it(fleet: LoadedFleet) -> None:
    gold = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: gold}\nspec: {}\n"
    fleet.commit({"workspaces/root/gold.yaml": gold, f"{C}/workspace.yaml": WORKSPACE + "spec: {type: {name: gold}}\n"})
    assert fleet.held() == {}
    assert fleet.workspace("root:c")["spec"]["type"] == {"name": "gold", "path": "root"}


def test_a_workspace_waits_for_its_type(fleet: LoadedFleet) -> None:
    fleet.commit({f"{C}/workspace.yaml": WORKSPACE + "spec: {type: {name: gold}}\n"})
    assert set(fleet.held()) == {"root:c"}
    gold = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: gold}\nspec: {}\n"
    fleet.commit({"workspaces/root/gold.yaml": gold})
    assert fleet.held() == {}


def test_a_type_cannot_be_changed(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/workspace.yaml": WORKSPACE + "spec: {type: {name: universal, path: root}}\n"})
    [error] = fleet.held()["root:a"]
    assert "spec.type is immutable: it is root:organization, not root:universal" in error
    assert fleet.workspace("root:a")["spec"]["type"]["name"] == "organization"


def test_a_type_that_may_not_stand_here_holds_the_workspace(fleet: LoadedFleet) -> None:
    fleet.commit({f"{C}/workspace.yaml": WORKSPACE + "spec: {type: {name: team}}\n"})
    [error] = fleet.held()["root:c"]
    assert "workspace type root:team may only stand under root:organization, root:team" in error


def test_a_type_brings_its_bindings(fleet: LoadedFleet) -> None:
    gold = (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: gold}\n"
        "spec: {defaultAPIBindings: [{path: root:compute, export: kubernetes}]}\n"
    )
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n"
    workspace = WORKSPACE + "spec: {type: {name: gold}}\n"
    fleet.commit({"workspaces/root/g.yaml": gold, f"{C}/workspace.yaml": workspace, f"{C}/svc.yaml": service})
    assert fleet.held() == {}
    assert fleet.get("root:c", "services", "web")["spec"]["ports"][0]["port"] == 80
    fleet.recheck(["root:c"])
    assert fleet.all_changes() == []


# -- workspaces with manifests of their own


def test_labels_of_a_workspace_change_without_touching_its_content(fleet: LoadedFleet) -> None:
    before = fleet.record("root:a").commit
    fleet.commit({f"{A}/workspace.yaml": WORKSPACE + "metadata: {labels: {team: web}}\n"})
    assert fleet.written() == ["~workspaces.tenancy.kcp.io/root//a"]
    assert fleet.workspace("root:a")["metadata"]["labels"] == {"team": "web", PHASE: "Ready"}
    assert fleet.record("root:a").commit in (before, own(fleet.repo.head))
    fleet.commit({f"{A}/workspace.yaml": WORKSPACE})
    assert fleet.workspace("root:a")["metadata"]["labels"] == {PHASE: "Ready"}


GOLD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: gold}\nspec: {}\n"
OF_GOLD = WORKSPACE + "spec: {type: {name: gold}}\n"
_BINDS = "defaultAPIBindings: [{path: 'root:compute', export: kubernetes}], defaultAPIBindingLifecycle: Maintain"
BRINGS = GOLD.replace("{}", f"{{{_BINDS}, writes: Store}}")


def test_a_workspace_follows_what_its_type_says(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({"workspaces/root/gold.yaml": GOLD, f"{C}/workspace.yaml": OF_GOLD})
    assert fleet.find("root:c", "services", "none") is None
    fleet.commit({"workspaces/root/gold.yaml": BRINGS})
    assert (fleet.record("root:c").writes, fleet.held()) == ("Store", {})
    assert any(kind.resource == "services" for kind in fleet.kinds("root:c"))
    assert_recovers(fleet, another)


@pytest.mark.parametrize("held", [False, True])
def test_the_end_of_a_type_holds_none_of_its_workspaces(fleet: LoadedFleet, another: Another, held: bool) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n"
    fleet.commit({"workspaces/root/gold.yaml": BRINGS, f"{C}/workspace.yaml": OF_GOLD, f"{C}/s.yaml": service})
    bad = {f"{C}/bad.yaml": "kind: ["} if held else {}
    fleet.commit({"workspaces/root/gold.yaml": None, **bad})
    assert set(fleet.held()) == ({"root:c"} if held else set())
    new = assert_recovers(fleet, another)
    fleet.commit({**dict.fromkeys(bad), f"{C}/app.yaml": configmap()})
    new.load()
    for each in (fleet, new):
        assert each.held() == {}
        assert each.get("root:c", "services", "s")["spec"]["ports"][0]["port"] == 80
    assert_same(new, fleet)


def test_a_workspace_keeps_its_type_when_another_one_would_be_its_default(fleet: LoadedFleet, another: Another) -> None:
    root = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: root}\n"
    fleet.commit(
        {"workspaces/root/types.yaml": f"{root}spec: {{defaultChildWorkspaceType: {{name: gold}}}}\n---\n{GOLD}"}
    )
    fleet.commit(
        {f"{A}/app.yaml": configmap(a="c"), f"{A}/workspace.yaml": WORKSPACE, f"{C}/workspace.yaml": WORKSPACE}
    )
    assert fleet.held() == {}
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        assert (each.record("root:a").type, each.record("root:c").type) == ("root:organization", "root:gold")


def test_a_workspace_that_says_its_type_no_more_asks_for_another(fleet: LoadedFleet) -> None:
    fleet.commit({"workspaces/root/gold.yaml": GOLD, f"{C}/workspace.yaml": OF_GOLD})
    fleet.commit({f"{C}/workspace.yaml": WORKSPACE})
    [error] = fleet.held()["root:c"]
    assert "spec.type is immutable: it is root:gold, not root:organization" in error
