"""A workspace whose directory is elsewhere, and says so, is the same workspace."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import HEAD, Files, move, moving, stating, uid_of
from support.recoveries import Another, assert_recovers, assert_same, recover
from support.widgets import binding, export, schema, widget

from apiserver.model import marks
from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Put
from reconciler.loading.moment import Moment
from reconciler.loading.moves import SAID
from reconciler.loading.storedworkspaces import coming

C, D = "workspaces/root/c", "workspaces/root/d"
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: lab}
spec: {additionalWorkspaceLabels: {tier: gold}, writes: Store}
"""
OFFERED = {f"{A}/schema.json": schema(), f"{A}/export.json": export(), f"{A}/type.yaml": TYPE}
TAKEN = {
    **{f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)},
    f"{B}/kid/workspace.yaml": f"{HEAD}spec: {{type: {{name: lab, path: root:a}}}}\n",
}
NOBODY = "00000000-0000-5000-8000-000000000000"


def identities(fleet: LoadedFleet, path: str) -> dict[str, str]:
    """UIDs of all that is in a workspace."""
    keys = [key for key in fleet.store.keys(fleet.record(path).cluster) if not key.resource.startswith("~")]
    found = (record for record in fleet.store.get_many(keys) if record is not None)
    return {"/".join(record.key): orjson.loads(record.value)["metadata"]["uid"] for record in found}


def make_at_runtime(fleet: LoadedFleet, path: str, name: str = "mine") -> Key:
    key = fleet.key(path, "configmaps", name)
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    metadata["annotations"] = {marks.ORIGIN: marks.RUNTIME, marks.CLUSTER: key.cluster}  # type: ignore[assignment]
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    return key


def make_below(fleet: LoadedFleet, path: str, name: str) -> None:
    """A workspace that was made through the API."""
    parent = fleet.record(path)
    key = Key(WORKSPACES, parent.cluster, "", name)
    metadata = {"name": name, "uid": f"uid-of-{name}", "annotations": {marks.ORIGIN: marks.RUNTIME}}
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": metadata, "spec": {}}
    fleet.store.write(Put(key, codec.encode(said))).result()
    stored = fleet.store.get(key)
    assert stored is not None
    made = coming(fleet.store, parent, stored, Moment.now(parent.head))
    assert isinstance(made, list)
    fleet.store.write(*made).result()


def before_of(record: WorkspaceRecord) -> tuple[str, str, dict[str, str]]:
    """What a workspace has of its type."""
    return record.type, record.writes, record.labels


def assert_stayed(fleet: LoadedFleet, had: dict[str, str], *, why: str) -> None:
    """root:a is what it was, and says why it did not move; root:c is nothing yet."""
    assert identities(fleet, "root:a") == had
    errors = fleet.held()
    assert why in errors["root:a"][0]
    assert any(SAID in error for error in errors["root:c"])
    assert not fleet.record("root:c").served
    assert not list(tree.below(fleet.store, "root:c"))


# -- what moves


def test_a_directory_that_states_the_uid_is_the_same_workspace(fleet: LoadedFleet) -> None:
    uid, before, had = uid_of(fleet, "root:a"), fleet.record("root:a"), identities(fleet, "root:a")
    loaded = fleet.commit(moving(fleet, A, C, uid))
    assert fleet.held(loaded) == {}
    after = fleet.record("root:c")
    assert (after.cluster, after.origin, after.commit) == (before.cluster, before.origin, before.commit)
    assert tree.workspace_at(fleet.store, "root:a") is None
    assert tree.workspace_of(fleet.store, before.cluster) == after
    assert uid_of(fleet, "root:c") == uid
    assert fleet.find("root", WORKSPACES, "a", "") is None
    assert identities(fleet, "root:c") == had
    app = fleet.get("root:c", "configmaps", "app")
    assert app["metadata"]["annotations"][marks.SOURCE_PATH] == f"{C}/app.yaml"
    cluster = fleet.get("root:c", "logicalclusters.core.kcp.io", "cluster", "")
    assert cluster["metadata"]["annotations"][marks.PATH] == "root:c"
    assert cluster["spec"]["owner"]["name"] == "c"
    assert [line for line in fleet.written() if line.startswith("-")] == [f"-{WORKSPACES}/root//a"]
    assert "1 moved" in str(loaded.steps[-1])
    assert loaded.steps[-1].moves == {"root:a": "root:c"}
    fleet.recheck()
    assert fleet.changes() == [], "it has come to rest"


def test_all_below_goes_along(fleet: LoadedFleet, another: Another) -> None:
    kids = {f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap(), f"{A}/group/kid2/workspace.yaml": ""}
    fleet.commit(kids)
    make_below(fleet, "root:a:kid", "made")
    mine = make_at_runtime(fleet, "root:a:kid")
    had = {f"root:c{below}": identities(fleet, f"root:a{below}") for below in ("", ":kid", ":kid2", ":kid:made")}
    clusters = {path: fleet.record(path.replace("root:c", "root:a")).cluster for path in had}
    fleet.publish()
    move(fleet)
    assert fleet.held() == {}
    assert {path: identities(fleet, path) for path in had} == had
    assert {path: fleet.record(path).cluster for path in had} == clusters
    assert fleet.store.get(mine) is not None
    assert not list(tree.below(fleet.store, "root:a"))
    files = {path for path in fleet.recorded().paths() if path.endswith("_summary.yaml")} if fleet.publish() else set()
    assert {f"{C}/_summary.yaml", f"{C}/kid/_summary.yaml", f"{C}/group/kid2/_summary.yaml"} <= files
    assert not [path for path in files if path.startswith(f"{A}/")]


def test_it_may_go_to_another_parent(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap("kid")})
    uid, had = uid_of(fleet, "root:a"), identities(fleet, "root:a")
    move(fleet, A, f"{B}/a")
    assert fleet.held() == {}
    assert uid_of(fleet, "root:b:a") == uid
    assert identities(fleet, "root:b:a") == had
    owner = fleet.get("root:b:a", "logicalclusters.core.kcp.io", "cluster", "")["spec"]["owner"]
    assert (owner["name"], owner["cluster"]) == ("a", fleet.record("root:b").cluster)
    marked = fleet.workspace("root:b:a")["metadata"]["annotations"]
    assert marked[marks.CLUSTER] == fleet.record("root:b").cluster
    assert_recovers(fleet, another)


def test_it_is_recovered_where_it_is_and_where_it_was(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap()})
    fleet.update(fleet.key("root:a", "configmaps", "app"), lambda obj: obj["metadata"].update(finalizers=["x.io/y"]))
    fleet.publish()
    move(fleet)
    early = recover(fleet, another, "early")
    assert early.record("root:c").cluster == fleet.record("root:c").cluster
    assert identities(early, "root:c:kid") == identities(fleet, "root:c:kid")
    late = assert_recovers(fleet, another, "late")
    assert late.get("root:c", "configmaps", "app")["metadata"]["finalizers"] == ["x.io/y"]


def test_it_goes_on_and_on_and_back(fleet: LoadedFleet, another: Another) -> None:
    uid, cluster = uid_of(fleet, "root:a"), fleet.record("root:a").cluster
    fleet.publish()
    for old, new in ((A, C), (C, D), (D, A), (A, f"{B}/x")):
        move(fleet, old, new)
        path = new.removeprefix("workspaces/").replace("/", ":")
        assert fleet.held() == {}
        assert (uid_of(fleet, path), fleet.record(path).cluster) == (uid, cluster)
    assert tree.summary(fleet.store, "root:b:x")["first"] == "root:a"
    assert_recovers(fleet, another)


def test_a_commit_that_takes_a_move_back_moves_it_back(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap()})
    had, whole = identities(fleet, "root:a"), fleet.repo.files(fleet.repo.head)
    kid = identities(fleet, "root:a:kid")
    move(fleet)
    fleet.commit({C: None} | whole)
    assert fleet.held() == {}
    assert identities(fleet, "root:a") == had
    assert identities(fleet, "root:a:kid") == kid
    assert "first" not in tree.summary(fleet.store, "root:a")
    assert_recovers(fleet, another)


def test_what_stands_there_later_says_something_else(fleet: LoadedFleet, another: Another) -> None:
    """The old path is anybody's, and the moved one follows its files."""
    move(fleet)
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="new"), f"{C}/app.yaml": configmap(c="d")})
    assert fleet.held() == {}
    assert fleet.record("root:a").cluster != fleet.record("root:c").cluster
    assert (fleet.data("root:a"), fleet.data("root:c")) == ({"a": "new"}, {"c": "d"})
    assert_recovers(fleet, another)


def test_who_states_his_own_uid_says_nothing_new(fleet: LoadedFleet) -> None:
    loaded = fleet.commit({f"{A}/workspace.yaml": stating(uid_of(fleet, "root:a"))})
    assert fleet.held(loaded) == {}


def test_consumers_of_what_moves_go_on_and_the_new_path_can_be_bound(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    had = identities(fleet, "root:b")
    move(fleet)
    assert fleet.held() == {}
    assert identities(fleet, "root:b") == had
    bound = fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", "")
    assert bound["status"]["phase"] == "Bound"
    assert fleet.listed()["root:b"] == {("root:a", "widgets")}
    fleet.commit({f"{D}/workspace.yaml": "", f"{D}/binding.json": binding("root:c")})
    assert fleet.get("root:d", "apibindings.apis.kcp.io", "widgets", "")["status"]["phase"] == "Bound"
    assert_recovers(fleet, another)


def test_who_takes_something_of_others_or_of_himself_is_listed_where_he_is(
    fleet: LoadedFleet, another: Another
) -> None:
    fleet.commit({f"{B}/schema.json": schema(), f"{B}/export.json": export()})
    fleet.commit({f"{A}/binding.json": binding("root:b"), f"{A}/w.json": widget(size=1)})
    move(fleet)
    assert fleet.held() == {}
    assert fleet.listed()["root:c"] == {("root:b", "widgets")}
    assert_recovers(fleet, another)


def test_workspaces_of_a_type_that_moves_keep_what_it_brought(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(OFFERED)
    fleet.commit(TAKEN)
    before = fleet.record("root:b:kid")
    assert before.writes == "Store"
    move(fleet)
    assert fleet.held() == {}
    after = fleet.record("root:b:kid")
    assert (after.cluster, after.type, after.writes, after.labels) == (before.cluster, *before_of(before))
    assert_recovers(fleet, another)


def test_what_was_made_through_the_api_follows_its_type_where_it_is(fleet: LoadedFleet) -> None:
    make_below(fleet, "root:a", "made")
    kind = fleet.record("root:a:made").type
    assert [*tree.of_type(fleet.store, kind)] == ["root:a:made"]
    move(fleet)
    assert [*tree.of_type(fleet.store, kind)] == ["root:c:made"]


def test_marks_of_runtime_and_limits_come_along(fleet: LoadedFleet, another: Another) -> None:
    key = fleet.key("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    said = {"core.kcp.io/max-total-objects": "77", "authorization.kcp.io/required-groups": "devs"}
    fleet.update(key, lambda obj: obj["metadata"]["annotations"].update(said))
    move(fleet)
    marked = fleet.get("root:c", "logicalclusters.core.kcp.io", "cluster", "")["metadata"]["annotations"]
    assert {name: marked[name] for name in said} == said
    assert_recovers(fleet, another)


def test_who_moves_below_a_workspace_with_a_type_of_its_own_keeps_his(fleet: LoadedFleet, another: Another) -> None:
    org = f"{HEAD}spec: {{type: {{name: organization, path: root}}}}\n"
    fleet.commit({f"{D}/workspace.yaml": org})
    had = fleet.record("root:a").type
    move(fleet, A, f"{D}/a")
    assert fleet.held() == {}
    assert fleet.record("root:d:a").type == had
    assert_recovers(fleet, another)


def test_a_move_and_a_deletion_in_one_commit_are_two_things(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{D}/workspace.yaml": ""})
    moved = moving(fleet, A, C, uid_of(fleet, "root:a"))
    fleet.commit(moved | {D: None, B: None})
    assert fleet.paths() == {"root", "root:b", "root:c"}
    assert "is protected" in fleet.held()["root:b"][0]
    assert_recovers(fleet, another)


# -- what does not


def test_a_rename_that_states_nothing_is_another_workspace(fleet: LoadedFleet) -> None:
    cluster = fleet.record("root:a").cluster
    fleet.commit(moving(fleet, A, C, ""))
    assert "is protected" in fleet.held()["root:a"][0]
    assert fleet.record("root:c").cluster != cluster


def test_an_unknown_uid_is_held_with_its_line_and_nothing_goes(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/app.yaml": None, f"{A}/kid/workspace.yaml": ""})  # nothing in it is protected
    had, before = identities(fleet, "root:a"), fleet.repo.files(fleet.repo.head)
    fleet.commit(moving(fleet, A, C, NOBODY))
    assert_stayed(fleet, had, why="root:c states the UID of a workspace that does not move there")
    [error] = fleet.held()["root:c"]
    assert error.startswith(f"{C}/workspace.yaml:3: metadata.uid is {NOBODY}, and no workspace of that UID moves here")
    assert "treeplane mv" in error
    fleet.recheck(["root:c"])
    assert_stayed(fleet, had, why="was removed")
    assert_recovers(fleet, another)
    fleet.commit({C: None} | before)
    assert fleet.held() == {}
    assert fleet.paths() == {"root", "root:a", "root:a:kid", "root:b"}
    assert identities(fleet, "root:a") == had


def test_without_the_line_it_is_a_new_workspace_with_all_that_stands_below(fleet: LoadedFleet) -> None:
    fleet.commit(
        {f"{C}/workspace.yaml": stating(NOBODY), f"{C}/kid/workspace.yaml": "", f"{C}/kid/k.yaml": configmap()}
    )
    assert fleet.paths() == {"root", "root:a", "root:b", "root:c"}
    fleet.commit({f"{C}/kid/more.yaml": configmap("more")})
    assert "root:c:kid" not in fleet.paths()
    fleet.commit({f"{C}/workspace.yaml": ""})
    assert fleet.held() == {}
    assert fleet.data("root:c:kid", "more") == {"a": "b"}


def test_a_copy_is_none_and_takes_nothing(fleet: LoadedFleet) -> None:
    here = moving(fleet, A, C, uid_of(fleet, "root:a"))
    del here[A]
    had = identities(fleet, "root:a")
    fleet.commit(here)
    assert set(fleet.held()) == {"root:c"}
    assert identities(fleet, "root:a") == had


def test_two_that_state_it_are_both_held(fleet: LoadedFleet) -> None:
    had, uid = identities(fleet, "root:a"), uid_of(fleet, "root:a")
    fleet.commit(moving(fleet, A, C, uid) | {f"{D}/workspace.yaml": stating(uid)})
    assert_stayed(fleet, had, why="root:d states its UID, too")
    assert "root:d" in fleet.held()


def test_who_is_served_keeps_his_own(fleet: LoadedFleet, another: Another) -> None:
    loaded = fleet.commit({f"{A}/workspace.yaml": stating(uid_of(fleet, "root:b")), f"{A}/app.yaml": configmap(c="d")})
    [error] = fleet.held(loaded)["root:a"]
    assert f"but this workspace's is {uid_of(fleet, 'root:a')}" in error
    assert fleet.data("root:a") == {"a": "b"}
    assert_recovers(fleet, another)


def test_two_that_change_places_are_held(fleet: LoadedFleet) -> None:
    one, other = uid_of(fleet, "root:a"), uid_of(fleet, "root:b")
    had = identities(fleet, "root:a"), identities(fleet, "root:b")
    fleet.commit({f"{A}/workspace.yaml": stating(other), f"{B}/workspace.yaml": stating(one)})
    assert set(fleet.held()) == {"root:a", "root:b"}
    assert (identities(fleet, "root:a"), identities(fleet, "root:b")) == had


@pytest.mark.parametrize(
    "more, why",
    [
        ({f"{C}/app.yaml": configmap(changed="yes")}, "root:a is not the same there"),
        ({f"{C}/more.yaml": configmap("more")}, "root:a is not the same there"),
        ({f"{C}/kid/workspace.yaml": None, f"{C}/kid/k.yaml": None}, "root:a:kid does not come along"),
        ({f"{C}/kid/k.yaml": configmap("other")}, "root:a:kid is not the same there"),
        ({f"{C}/kid/workspace.yaml": f"{HEAD}metadata: {{labels: {{a: b}}}}\n"}, "root:a:kid is not the same there"),
    ],
    ids=["content", "a file", "without a child", "a child's content", "a child's workspace.yaml"],
)
def test_a_move_changes_nothing_else(fleet: LoadedFleet, another: Another, more: Files, why: str) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/k.yaml": configmap()})
    had, kid = identities(fleet, "root:a"), identities(fleet, "root:a:kid")
    fleet.commit(moving(fleet, A, C, uid_of(fleet, "root:a")) | more)
    assert_stayed(fleet, had, why=f"it cannot move to root:c: {why}")
    assert identities(fleet, "root:a:kid") == kid
    assert_recovers(fleet, another)


def test_what_is_held_is_put_right_first(fleet: LoadedFleet) -> None:
    had = identities(fleet, "root:a")
    fleet.commit({f"{A}/app.yaml": "broken: [\n"})
    move(fleet)
    assert_stayed(fleet, had, why="root:a is held back: put it right where it is")


def test_the_parent_comes_first(fleet: LoadedFleet) -> None:
    had = identities(fleet, "root:a")
    moved = moving(fleet, A, f"{C}/a", uid_of(fleet, "root:a"))
    fleet.commit(moved | {f"{C}/workspace.yaml": ""})
    assert "root:c is not there yet" in fleet.held()["root:a"][0]
    assert identities(fleet, "root:a") == had


def test_who_is_below_cannot_hold_who_is_above(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": ""})
    had = identities(fleet, "root:a")
    here = moving(fleet, A, f"{A}/kid/a", uid_of(fleet, "root:a"))
    fleet.commit(
        {name: text for name, text in here.items() if "/kid/a/kid" not in name} | {f"{A}/kid/workspace.yaml": ""}
    )
    assert identities(fleet, "root:a") == had


def test_a_workspace_that_was_made_through_the_api_does_not_move(fleet: LoadedFleet) -> None:
    make_below(fleet, "root:b", "made")
    had, uid = identities(fleet, "root:b:made"), uid_of(fleet, "root:b:made")
    fleet.commit({f"{C}/workspace.yaml": stating("01234567-89ab-5def-8123-456789abcdef")})
    assert uid
    assert "root:c" in fleet.held()
    assert identities(fleet, "root:b:made") == had


def test_somebody_elses_that_goes_in_another_commit_is_nobodys(fleet: LoadedFleet) -> None:
    """Who may write in one directory does not get what another one loses, by a UID that he knows."""
    uid, had = uid_of(fleet, "root:a"), identities(fleet, "root:a")
    fleet.commit({A: None})
    assert "root:a" in fleet.held()
    fleet.commit({f"{C}/workspace.yaml": stating(uid), f"{C}/app.yaml": configmap()})
    assert_stayed(fleet, had, why="is protected")
    fleet.commit({C: None})
    fleet.allow()
    assert "root:a" not in fleet.paths()
    fleet.commit({f"{C}/workspace.yaml": stating(uid), f"{C}/app.yaml": configmap()})
    assert set(fleet.held()) == {"root:c"}


# -- ways to it


def test_a_fleet_that_nobody_knows_takes_what_is_stated(empty: LoadedFleet, another: Another) -> None:
    twice = "11111111-1111-5111-8111-111111111111"
    empty.begin({f"{A}/workspace.yaml": stating(NOBODY), f"{B}/workspace.yaml": stating(twice)})
    assert empty.held() == {}
    assert uid_of(empty, "root:a") == NOBODY
    empty.recheck(["root:a"])
    assert empty.held() == {}
    move(empty)
    assert uid_of(empty, "root:c") == NOBODY
    assert_recovers(empty, another)


def test_in_such_a_fleet_each_uid_is_one_workspaces(empty: LoadedFleet) -> None:
    empty.begin({f"{A}/workspace.yaml": stating(NOBODY), f"{B}/workspace.yaml": stating(NOBODY)})
    assert set(empty.held()) == {"root:b"}


@pytest.mark.parametrize("writes", range(1, 8))
def test_a_move_that_is_cut_off_ends_as_one_that_is_not(fleet: LoadedFleet, another: Another, writes: int) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/app.yaml": configmap(), **OFFERED})
    fleet.commit(TAKEN)
    fleet.publish()
    whole = recover(fleet, another, "whole", share=True)
    fleet.repo.commit(moving(fleet, A, C, uid_of(fleet, "root:a")))
    whole.load()
    write, left = fleet.store.write, [writes]

    def dying(*ops: Any) -> Any:
        if not left[0]:
            raise OSError("killed")
        left[0] -= 1
        return write(*ops)

    fleet.store.write = dying  # type: ignore[method-assign]
    with suppress(OSError):
        fleet.load()
    fleet.store.write = write  # type: ignore[method-assign]
    fleet.loader = fleet.new_loader()
    fleet.load()
    assert fleet.held() == {}
    assert fleet.everything() == whole.everything()
    assert fleet.fleet().commit == own(fleet.repo.head)
    assert_recovers(fleet, another)


@pytest.mark.parametrize("writes", range(1, 6))
def test_what_is_recorded_amid_a_move_brings_all_back(fleet: LoadedFleet, another: Another, writes: int) -> None:
    """Those too who take something of who moved, and have not heard of it."""
    fleet.commit(OFFERED)
    fleet.commit(TAKEN)
    fleet.repo.commit(moving(fleet, A, C, uid_of(fleet, "root:a")))
    write, left = fleet.store.write, [writes]

    def dying(*ops: Any) -> Any:
        if not left[0]:
            raise OSError("killed")
        left[0] -= 1
        return write(*ops)

    fleet.store.write = dying  # type: ignore[method-assign]
    with suppress(OSError):
        fleet.load()
    fleet.store.write = write  # type: ignore[method-assign]
    fleet.loader = fleet.new_loader()
    fleet.publish()
    new = recover(fleet, another)
    fleet.load()
    assert fleet.held() == {}
    assert_same(new, fleet)
    assert new.record("root:b:kid").writes == "Store"


def test_secrets_of_the_server_come_along(fleet: LoadedFleet) -> None:
    fleet.loader.steppers.carry = fleet.secrets.move
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
    fleet.keep_secret("root:a", text)
    uid = fleet.get("root:a", "secrets", "s")["metadata"]["uid"]
    move(fleet)
    assert fleet.held() == {}
    found = fleet.get("root:c", "secrets", "s")
    assert found["metadata"]["uid"] == uid
    assert found["metadata"]["annotations"][marks.SOURCE_PATH] == "keys/secrets/root:c/target.yaml"
    assert not (fleet.keys / "secrets/root:a").exists()
    assert fleet.secrets.changed() == set()
