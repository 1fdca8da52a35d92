"""The first load of a fleet: every workspace, every object, and identities that follow from the commit."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.commits import own
from apiserver.model.identity import logical_cluster_name, object_uid
from apiserver.registry import tree
from apiserver.storage.protocol import Delete

FIRST = "2026-01-01T00:00:00Z"


def test_every_workspace_is_served_with_its_objects(fleet: LoadedFleet) -> None:
    assert fleet.paths() == {"root", "root:a", "root:b"}
    for path in fleet.paths():
        record = fleet.record(path)
        assert (record.served, record.errors) == (True, [])
        assert record.commit == record.head == record.origin == own(fleet.repo.head)
        assert fleet.data(path) == {"a": "b"}
    assert fleet.fleet().loaded
    assert fleet.fleet().commit == own(fleet.repo.head)


def test_logical_clusters_lead_back_to_their_workspaces(fleet: LoadedFleet) -> None:
    for path in fleet.paths():
        found = tree.workspace_of(fleet.store, fleet.record(path).cluster)
        assert found == fleet.record(path)
    assert fleet.record("root").cluster == "root"
    assert fleet.record("root:a").cluster == logical_cluster_name(fleet.repo.head, "root:a", own(fleet.repo.head))


def test_an_object_has_the_identity_of_the_commit_and_says_where_it_stands(fleet: LoadedFleet) -> None:
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    head = fleet.repo.head
    assert metadata["uid"] == object_uid(head, fleet.key("root:a", "configmaps", "app"), own(head))
    assert metadata["creationTimestamp"] == FIRST
    assert metadata["annotations"] == {
        "kcp.io/cluster": fleet.record("root:a").cluster,
        "treeplane.dev/source-path": f"{A}/app.yaml",
        "treeplane.dev/source-commit": head,
    }


def test_every_object_names_its_cluster_and_has_an_identity(fleet: LoadedFleet) -> None:
    objects = fleet.everything()
    assert len(objects) > 10
    seen = set()
    for key in objects:
        path = fleet.path_of(key.cluster)
        obj = fleet.get(path, key.resource, key.name, key.namespace)
        assert obj["metadata"]["annotations"]["kcp.io/cluster"] == key.cluster
        assert obj["metadata"]["creationTimestamp"] == FIRST
        seen.add(obj["metadata"]["uid"])
    assert len(seen) == len(objects)


def test_what_every_workspace_has(fleet: LoadedFleet) -> None:
    for path in ("root", "root:a", "root:b", "root:compute"):
        assert fleet.get(path, "namespaces", "default", "")["status"]["phase"] == "Active"
        cluster = fleet.get(path, "logicalclusters.core.kcp.io", "cluster", "")
        assert cluster["status"]["phase"] == "Ready"
        assert cluster["metadata"]["annotations"]["kcp.io/path"] == path


def test_a_workspace_is_an_object_of_its_parent(fleet: LoadedFleet) -> None:
    workspace = fleet.workspace("root:a")
    assert workspace["spec"]["cluster"] == fleet.record("root:a").cluster
    assert workspace["spec"]["type"] == {"name": "organization", "path": "root"}
    assert workspace["status"]["phase"] == "Ready"
    assert {c["status"] for c in workspace["status"]["conditions"]} == {"True"}
    assert workspace["metadata"]["annotations"]["treeplane.dev/source-path"] == f"{A}/workspace.yaml"


def test_a_workspace_has_the_labels_of_its_manifest(empty: LoadedFleet) -> None:
    manifest = "apiVersion: tenancy.kcp.dev/v1alpha1\nkind: Workspace\nmetadata: {labels: {team: web}}\n"
    empty.begin({f"{A}/workspace.yaml": manifest})
    assert empty.held() == {}
    assert empty.workspace("root:a")["metadata"]["labels"]["team"] == "web"


def test_grouping_directories_are_no_workspaces(empty: LoadedFleet) -> None:
    empty.begin(
        {
            "workspaces/root/group/c/workspace.yaml": "",
            "workspaces/root/group/c/deep/er/app.yml": configmap("deep"),
            "workspaces/root/group/j.json": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}}',
        }
    )
    assert empty.paths() == {"root", "root:a", "root:b", "root:c"}
    assert empty.data("root:c", "deep") == {"a": "b"}
    assert empty.record("root:c").directory == "workspaces/root/group/c"
    assert empty.find("root", "configmaps", "j") is not None


def test_several_objects_a_file_and_lists(empty: LoadedFleet) -> None:
    listed = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: three}}\n"
    empty.begin({f"{A}/more.yaml": "---\n".join([configmap("one"), configmap("two"), listed])})
    assert empty.held() == {}
    for name in ("one", "two", "three"):
        assert empty.find("root:a", "configmaps", name) is not None


def test_the_export_of_workload_kinds_ships(fleet: LoadedFleet) -> None:
    export = fleet.get("root:compute", "apiexports.apis.kcp.io", "kubernetes", "")
    assert len(export["status"]["identityHash"]) == 64
    assert "treeplane.dev/source-path" not in export["metadata"]["annotations"]
    assert export["metadata"]["annotations"]["treeplane.dev/origin"] == "system"


def test_a_directory_named_as_what_ships_adds_to_it(empty: LoadedFleet) -> None:
    directory = "workspaces/root/compute"
    empty.begin({f"{directory}/workspace.yaml": "", f"{directory}/app.yaml": configmap("mine")})
    assert empty.data("root:compute", "mine") == {"a": "b"}
    assert empty.find("root:compute", "apiexports.apis.kcp.io", "kubernetes", "") is not None
    assert empty.record("root:compute").directory == directory


def test_a_first_load_is_not_in_the_log(fleet: LoadedFleet) -> None:
    assert [c.key.resource for c in fleet.store.changes(fleet.store.oldest())] == []


def test_progress_is_told(empty: LoadedFleet) -> None:
    empty.begin()
    told: list[int] = []
    other = LoadedFleet(empty.directory / "other", repo=empty.repo)
    other.loader.load(own(empty.repo.head), None, told.append)
    other.close()
    assert told == [1, 2, 3, 4]


def test_the_same_repository_gives_the_same_objects(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    other = another(fleet, keys=fleet.keys)
    other.load()
    assert other.everything() == fleet.everything()


def test_a_fleet_id_in_treeplane_yaml_counts(empty: LoadedFleet) -> None:
    uid = "0f3b2c1d-5a6e-4f70-8192-a3b4c5d6e7f8"
    text = f"apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: test, uid: {uid}}}\n"
    empty.begin({"treeplane.yaml": text})
    assert empty.fleet().fleet == uid
    assert empty.record("root:a").cluster == logical_cluster_name(uid, "root:a", own(empty.repo.head))


def test_without_a_fleet_id_the_first_commit_gives_it(empty: LoadedFleet) -> None:
    first = empty.repo.commit({"README.md": "begin"})
    empty.begin()
    assert empty.fleet().fleet == first


def test_a_first_commit_that_cannot_be_taken_is_waited_out(empty: LoadedFleet) -> None:
    loaded = empty.begin({"treeplane.yaml": "kind: ["})
    assert [p.path for p in loaded.problems] == ["treeplane.yaml"]
    assert not empty.fleet().loaded
    assert "treeplane.yaml:2" in empty.fleet().error
    assert empty.paths() == set()
    loaded = empty.commit({"treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: x}\n"})
    assert loaded.problems == ()
    assert empty.fleet().loaded
    assert empty.fleet().error == ""
    assert empty.paths() == {"root", "root:a", "root:b"}


def test_a_load_that_was_cut_off_is_completed(empty: LoadedFleet) -> None:
    empty.begin()
    expected = empty.everything()
    record = empty.fleet()
    half = [key for key in expected if key.cluster == empty.record("root:b").cluster]
    # As if the process had died before root:b was written.
    half += [key for key in expected if key.resource == "workspaces.tenancy.kcp.io" and key.name == "b"]
    empty.forget([*map(Delete, half), *tree.forgotten(empty.record("root:b"))], loaded=False)
    assert not empty.fleet().loaded
    empty.loader = empty.new_loader()
    empty.load()
    assert empty.everything() == expected
    assert empty.fleet() == record


def test_every_object_says_of_which_logical_cluster_it_is(empty: LoadedFleet) -> None:
    compat = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: kube-compat, path: root}}\n"
    opened = f"{TREEPLANE_YAML}spec: {{rootAccess: Authenticated}}\n"
    empty.begin({"workspaces/root/c/workspace.yaml": compat, "treeplane.yaml": opened})
    found = {key: orjson.loads(value)["metadata"].get("annotations") or {} for key, value in empty.everything().items()}
    assert {said.get("kcp.io/cluster") == key.cluster for key, said in found.items()} == {True}
