"""Which files follow from the store: after changes, and from scratch."""

from __future__ import annotations

from typing import Any

import pytest
from support.fleetrepo import FleetRepo

from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.storage.protocol import Delete, Put, Store
from reconciler.plan.summary import Summary
from reconciler.statusbranch import format
from reconciler.statusbranch.render import Files, Rendering

WEB, CLUSTER = "workspaces/root/web", "webcluster000000"
DEPLOYMENT = f"{WEB}/_status/default/deployments.apps/web.yaml"


def changed(store: Store, after: int) -> Files:
    """Without the summary of root, which holds the Workspace objects and may be written again as it was."""
    files = Rendering(store).changed(store.changes(after))
    return {path: data for path, data in files.items() if path != "workspaces/root/_summary.yaml"}


def everything(store: Store) -> Files:
    return {path: data for piece in Rendering(store).everything() for path, data in piece.items()}


def statuses(store: Store, after: int) -> Files:
    return {path: data for path, data in changed(store, after).items() if not path.endswith("_summary.yaml")}


def test_a_summary_is_a_file(store: Store, served: Any, source: FleetRepo) -> None:
    begin = store.revision()
    served.summary(CLUSTER, Summary(own(source.head), errors=["wrong"], served=own(source.head)))
    files = changed(store, begin)
    assert list(files) == [f"{WEB}/_summary.yaml"]
    assert format.load(files[f"{WEB}/_summary.yaml"] or b"") == {
        "origin": source.head,
        "served": source.head,
        "errors": ["wrong"],
    }


def test_a_status_is_a_file_and_goes_with_the_object(store: Store, served: Any) -> None:
    begin = store.revision()
    key = served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    assert list(statuses(store, begin)) == [DEPLOYMENT]
    assert b"replicas: 1" in (statuses(store, begin)[DEPLOYMENT] or b"")
    there = store.revision()
    store.write(Delete(key)).result()
    assert statuses(store, there) == {DEPLOYMENT: None}
    assert statuses(store, begin) == {}, "what came and went between two looks never had a file"


def test_what_an_object_was_in_between_is_not_rendered(
    store: Store, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, rendered = store.revision(), list[bytes]()
    for replicas in range(5):
        served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": replicas})
    dump = format.dump
    monkeypatch.setattr(format, "dump", lambda value: rendered.append(dump(value)) or rendered[-1])
    assert b"replicas: 4" in (statuses(store, begin)[DEPLOYMENT] or b"")
    assert len([text for text in rendered if b"replicas" in text]) == 1


def test_a_status_that_goes_takes_its_file_along(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    begin = store.revision()
    served.put("deployments.apps:9f86", CLUSTER, "web")
    assert statuses(store, begin) == {DEPLOYMENT: None}


def test_objects_that_no_commit_knows_are_no_files(store: Store, served: Any) -> None:
    begin = store.revision()
    origin = {"treeplane.dev/origin": "runtime"}
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1}, annotations=origin)
    assert statuses(store, begin) == {}
    adopted = {**origin, "treeplane.dev/source-path": "workspaces/root/web/a.yaml"}
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1}, annotations=adopted)
    assert b"replicas: 1" in (statuses(store, begin)[DEPLOYMENT] or b"")


def test_secrets_and_computed_statuses_are_no_files(store: Store, served: Any) -> None:
    begin = store.revision()
    for resource in ("secrets", "events", "namespaces", "apibindings.apis.kcp.io"):
        served.put(resource, CLUSTER, "x", status={"phase": "Active"}, data={"password": "aHVudGVyMg=="})
    assert statuses(store, begin) == {}
    assert not any(b"aHVudGVyMg" in (data or b"") for data in everything(store).values())


def test_objects_of_no_workspace_are_no_files(store: Store, served: Any) -> None:
    begin = store.revision()
    served.put("deployments.apps", "nobodyscluster00", "web", status={"replicas": 1})
    assert changed(store, begin) == {}


def test_a_removed_workspace_takes_its_folder_along(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    begin = store.revision()
    served.remove("root:web", CLUSTER)
    assert changed(store, begin) == {WEB: None}


def test_a_removed_and_recreated_workspace_keeps_only_what_is_new(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    begin = store.revision()
    served.remove("root:web", CLUSTER)
    served.workspace("root:web", "webcluster000001")
    files = changed(store, begin)
    assert files.pop(WEB, b"") is None
    assert set(files) == {f"{WEB}/_summary.yaml"}


def test_a_workspace_that_moves_to_another_directory_takes_its_files_along(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    begin = store.revision()
    served.workspace("root:web", CLUSTER, "workspaces/root/7f/web")
    files = changed(store, begin)
    assert files[f"{WEB}/_summary.yaml"] is None
    assert files[f"{WEB}/_status"] is None
    assert files["workspaces/root/7f/web/_summary.yaml"] is not None
    assert files["workspaces/root/7f/web/_status/default/deployments.apps/web.yaml"] is not None


def test_one_that_moved_on_from_below_another_stays_away_where_that_moves_too(store: Store, served: Any) -> None:
    """Both since the last commit; there is nobody any more where the one below stood."""
    below = "webbelow00000001"
    served.workspace("root:web:below", below)
    begin = store.revision()
    served.workspace("root:below", below)
    served.workspace("root:shop", CLUSTER)
    files = changed(store, begin)
    assert files[f"{WEB}/below/_summary.yaml"] is None
    assert files[f"{WEB}/_summary.yaml"] is None
    assert files["workspaces/root/below/_summary.yaml"] is not None


def test_everything_is_what_all_changes_give(store: Store, served: Any, source: FleetRepo) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    served.put("placements.scheduling.kcp.io", CLUSTER, "p", namespace="", status={"phase": "Bound"})
    served.put("resourcequotas", CLUSTER, "q", status={"used": {"pods": "1"}})
    served.put("deployments.apps:9f86", CLUSTER, "idle")
    crd = {"group": "example.io", "names": {"plural": "widgets"}}
    served.put("customresourcedefinitions.apiextensions.k8s.io", CLUSTER, "widgets.example.io", namespace="", spec=crd)
    served.put("widgets.example.io", CLUSTER, "w", status={"ready": True})
    served.summary("root", Summary(own(source.head), identities={"w": "9f86"}))
    files = Rendering(store).changed(store.changes(store.oldest()))
    from_changes = {path: data for path, data in files.items() if data is not None}
    assert everything(store) == from_changes
    assert len(from_changes) == 6


def test_workspaces_of_one_commit_share_a_blob(store: Store, served: Any) -> None:
    files = everything(store)
    assert files["workspaces/root/_summary.yaml"] == files[f"{WEB}/_summary.yaml"]


@pytest.mark.parametrize("said", [{}, {"origin": "x"}])
def test_what_ships_stands_where_its_directory_would_be(store: Store, served: Any, said: dict[str, str]) -> None:
    served.workspace("root:compute", "computecluster00", "")
    begin = store.revision()
    beside = Put(Key("events", "computecluster00", "default", "beside"), b"{}")
    record = tree.workspace_at(store, "root:compute")
    assert record is not None
    store.write(beside, tree.put_workspace(record, said)).result()
    assert list(changed(store, begin)) == ["workspaces/root/compute/_summary.yaml"]


def test_what_becomes_runtime_loses_its_file(store: Store, served: Any) -> None:
    declared = {"treeplane.dev/source-path": "workspaces/root/web/a.yaml"}
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1}, annotations=declared)
    begin = store.revision()
    runtime = {"treeplane.dev/origin": "runtime"}
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1}, annotations=runtime)
    assert statuses(store, begin) == {DEPLOYMENT: None}


def test_what_waits_for_its_finalizers_stands_apart(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    begin = store.revision()
    key = served.put("deployments.apps:9f86", CLUSTER, "web", annotations={"treeplane.dev/origin": "removed"})
    ending = DEPLOYMENT.replace("_status", "_ending")
    files = statuses(store, begin)
    assert (set(files), files[DEPLOYMENT]) == ({DEPLOYMENT, ending}, None)
    assert everything(store).keys() & {DEPLOYMENT, ending} == {ending}
    begin = store.revision()
    store.write(Delete(key)).result()
    assert statuses(store, begin) == {DEPLOYMENT: None, ending: None}


def test_a_secret_that_waits_for_its_finalizers_is_no_file(store: Store, served: Any) -> None:
    begin = store.revision()
    annotations = {"treeplane.dev/origin": "removed"}
    served.put("secrets", CLUSTER, "pw", annotations=annotations, data={"password": "aHVudGVyMg=="})
    assert statuses(store, begin) == {}
    assert not any(b"aHVudGVyMg" in data for data in everything(store).values() if data)


def test_what_git_takes_back_is_no_ending_any_more(store: Store, served: Any) -> None:
    served.put("deployments.apps:9f86", CLUSTER, "web", annotations={"treeplane.dev/origin": "removed"})
    begin = store.revision()
    served.put("deployments.apps:9f86", CLUSTER, "web", annotations={"treeplane.dev/source-path": "a.yaml"})
    assert statuses(store, begin) == {DEPLOYMENT: None, DEPLOYMENT.replace("_status", "_ending"): None}


def test_what_is_noted_of_a_workspace_stands_with_it(store: Store, served: Any) -> None:
    begin = store.revision()
    annotations = {"treeplane.dev/source-path": f"{WEB}/workspace.yaml", "treeplane.dev/source-commit": "c" * 40}
    spec = {"cluster": CLUSTER}
    key = served.put("workspaces.tenancy.kcp.io", "root", "web", namespace="", annotations=annotations, spec=spec)
    [path] = statuses(store, begin)
    assert path == f"{WEB}/_status/_/workspaces.tenancy.kcp.io/web.yaml"
    assert path in everything(store)
    store.write(Delete(key)).result()
    begin = store.revision()
    assert statuses(store, begin) == {}
