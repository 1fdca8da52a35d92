"""How many objects a workspace may have: requests and commits that would make one too many."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ApiFleet, Reply
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers

from apiserver.registry.room import BESIDES
from reconciler.loading.heads import BranchSettings

MOST = "core.kcp.io/max-total-objects"
CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
MAPS = "/api/v1/namespaces/default/configmaps"
PATCH = "application/merge-patch+json"
STORE = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\nspec: {writes: Store}\n"
OWNER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: owner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""


def limited(most: int) -> str:
    head = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
    return f"{head}metadata: {{annotations: {{{MOST}: '{most}'}}}}\n"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiFleet]:
    """ann owns root:a, which has four objects: app, its owner's binding, a namespace, the LogicalCluster."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": STORE, f"{A}/owner.yaml": OWNER})
    yield made
    made.close()


def number(fleet: LoadedFleet, path: str = "root:a") -> int:
    return fleet.store.number(fleet.record(path).cluster, BESIDES)


def make(fleet: ApiFleet, name: str, user: str = "ann", rest: str = MAPS, path: str = "root:a") -> Reply:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    return fleet.call("POST", path, rest, body, user=user)


def say(fleet: ApiFleet, most: str | None, user: str = "admin") -> Reply:
    body = {"metadata": {"annotations": {MOST: most}}}
    return fleet.call("PATCH", "root:a", CLUSTER, body, user=user, kind=PATCH)


def test_one_too_many_is_refused_in_kcps_words(api: ApiFleet) -> None:
    assert number(api) == 4
    assert say(api, "5").status == 200
    assert make(api, "one").status == 201
    found, cluster = make(api, "two"), api.record("root:a").cluster
    assert found.status == 403
    assert found.message == (
        f'configmaps "two" is forbidden: logical cluster "{cluster}" has reached its total object count limit '
        "(5/5 objects); delete objects to free up capacity"
    )
    for again in (make(api, "two", rest=f"{MAPS}?dryRun=All"), make(api, "two", user="admin")):
        assert (again.status, again.message) == (403, found.message)
    assert make(api, "one").json["reason"] == "AlreadyExists"
    assert api.call("DELETE", "root:a", f"{MAPS}/one", user="ann").status == 200
    assert make(api, "two").status == 201
    assert number(api) == 5


def test_a_patch_that_makes_one_counts_and_one_that_changes_one_does_not(api: ApiFleet) -> None:
    make(api, "one")
    say(api, "5")
    apply, kind = f"{MAPS}/two?fieldManager=t&force=true", "application/apply-patch+yaml"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}
    assert api.call("PATCH", "root:a", apply, body, user="ann", kind=kind).status == 403
    changed = api.call("PATCH", "root:a", f"{MAPS}/one", {"data": {"k": "v"}}, user="ann", kind=PATCH)
    assert changed.status == 200


def test_events_do_not_count(api: ApiFleet) -> None:
    say(api, "4")
    involved = {"kind": "ConfigMap", "namespace": "default", "name": "app"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": involved}
    assert api.call("POST", "root:a", "/api/v1/namespaces/default/events", event, user="ann").status == 201
    assert make(api, "one").message.endswith("(4/4 objects); delete objects to free up capacity")


def test_nobody_raises_their_own(api: ApiFleet) -> None:
    say(api, "4")
    for most in ("100", "0", None):
        assert say(api, most, user="ann").status == 403
    annotated: dict[str, Any] = {"metadata": {"annotations": {MOST: "100"}}}
    for place in (f"{MAPS}/app", "/api/v1/namespaces/default"):
        assert api.call("PATCH", "root:a", place, annotated, user="ann", kind=PATCH).status == 403
    assert make(api, "one").status == 403


def test_however_many_ask_at_once_none_is_beyond(api: ApiFleet) -> None:
    say(api, "10")
    with ThreadPoolExecutor(8) as pool:
        replies = [*pool.map(lambda n: make(api, f"n{n}").status, range(24))]
    assert sorted(replies) == [201] * 6 + [403] * 18
    assert number(api) == 10


def test_a_limit_of_none_is_taken_back(api: ApiFleet) -> None:
    say(api, "4")
    assert make(api, "one").status == 403
    say(api, "0")
    assert make(api, "one").status == 201


@pytest.mark.parametrize("wrong", ["-1", "many", "1e3", "٣", "01"])
def test_what_is_no_number_is_refused(api: ApiFleet, wrong: str) -> None:
    assert say(api, wrong).status == 403
    api.commit({f"{B}/workspace.yaml": limited(1).replace("'1'", f"'{wrong}'")})
    [error] = api.held()["root:b"]
    assert f"{B}/workspace.yaml:3: {MOST} is '{wrong}': it is a number of objects, 0 for any" in error


def test_a_commit_that_goes_over_holds_its_workspace(fleet: LoadedFleet, another: Another) -> None:
    """root:a has a namespace, a LogicalCluster and `app`."""
    fleet.commit({f"{A}/workspace.yaml": limited(4)})
    fleet.commit({f"{A}/one.yaml": configmap("one")})
    assert fleet.held() == {}
    fleet.commit({f"{A}/two.yaml": configmap("two")})
    told = "root:a would have 5 objects, and may have 4 (remove some, or have the limit raised)"
    assert fleet.held() == {"root:a": [f"{A}/workspace.yaml:1: {told}"]}
    assert fleet.find("root:a", "configmaps", "two") is None
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/two.yaml": None, f"{A}/one.yaml": configmap("one", b="c")})
    assert fleet.held() == {}
    fleet.commit({f"{A}/two.yaml": configmap("two"), f"{A}/workspace.yaml": limited(5)})
    assert fleet.held() == {}
    assert_recovers(fleet, another, "again")


def test_a_limit_that_comes_down_holds_who_declares_more(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/one.yaml": configmap("one"), f"{A}/two.yaml": configmap("two")})
    fleet.commit({f"{A}/workspace.yaml": limited(3), f"{A}/one.yaml": configmap("one", b="c")})
    assert fleet.held() == {}
    assert fleet.data("root:a", "one") == {"b": "c"}
    fleet.commit({f"{A}/two.yaml": None, f"{A}/three.yaml": configmap("three")})
    assert fleet.held() == {}
    fleet.commit({f"{A}/four.yaml": configmap("four")})
    assert set(fleet.held()) == {"root:a"}


def test_what_was_made_through_the_api_holds_no_commit(api: ApiFleet, another: Another) -> None:
    """Git goes before: no verdict follows from what the store alone knows."""
    say(api, "6")
    assert [make(api, f"n{n}").status for n in range(3)] == [201, 201, 403]
    api.commit({f"{A}/one.yaml": configmap("one"), f"{A}/two.yaml": configmap("two")})
    assert api.held() == {}
    assert number(api) == 8
    api.commit({f"{A}/three.yaml": configmap("three")})
    assert set(api.held()) == {"root:a"}


def test_a_new_workspace_may_be_too_large(fleet: LoadedFleet, another: Another) -> None:
    c = "workspaces/root/c"
    fleet.commit({f"{c}/workspace.yaml": limited(2), f"{c}/app.yaml": configmap()})
    assert set(fleet.held()) == {"root:c"}
    assert not fleet.record("root:c").served
    fleet.commit({f"{c}/workspace.yaml": limited(3)})
    assert fleet.held() == {}
    assert_recovers(fleet, another)


def test_the_servers_default_is_for_all_but_root(empty: LoadedFleet) -> None:
    empty.loader = empty.new_loader(BranchSettings(most_objects=4))
    c = [f"workspaces/root/c{n}" for n in range(4)]
    large = {f"{each}/{name}.yaml": configmap(name) for each in c for name in ("one", "two", "three")}
    many = {f"workspaces/root/m{n}.yaml": configmap(f"m{n}") for n in range(10)}
    empty.begin({**large, **many, **{f"{each}/workspace.yaml": "" for each in c}, f"{c[0]}/workspace.yaml": limited(5)})
    assert set(empty.held()) == {f"root:c{n}" for n in range(1, 4)}
    assert all(f"{c[1]}/workspace.yaml:1: root:c1 would have 5 objects" in text for text in empty.held()["root:c1"])


def test_where_writes_are_commits_no_commit_is_made(tmp_path: Path) -> None:
    made = ApiFleet(tmp_path / "commits")
    try:
        made.begin({"treeplane.yaml": STORE.replace("Store", "Commit"), f"{A}/owner.yaml": OWNER})
        made.serve()
        assert say(made, "5").status == 200
        assert make(made, "one").status == 201
        head = made.repo.head
        found = make(made, "two")
        assert (found.status, "(5/5 objects)" in found.message, made.repo.head) == (403, True, head)
    finally:
        made.close()


def test_it_is_asked_of_requests_too(api: ApiFleet) -> None:
    api.app._writes._most_objects = 5
    assert [make(api, f"n{n}").status for n in range(2)] == [201, 403]
    assert [make(api, f"n{n}", user="admin", path="root").status for n in range(6)] == [201] * 6
    say(api, "6")
    assert [make(api, f"n{n}").status for n in range(1, 3)] == [201, 403]
