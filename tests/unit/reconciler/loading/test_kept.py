"""A workspace whose directory goes stays served until that is allowed, for a recovery, too."""

from __future__ import annotations

import json
import re

import orjson
import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same

from apiserver.registry import tree
from reconciler.plan.deletions import Line, digest

CHILD = f"{A}/child"
FAMILY = {
    f"{A}/more.yaml": configmap("more"),
    f"{CHILD}/workspace.yaml": "",
    f"{CHILD}/app.yaml": configmap(),
    f"{CHILD}/deep/workspace.yaml": "",
    f"{CHILD}/deep/app.yaml": configmap(),
}
PATHS = {"root:a", "root:a:child", "root:a:child:deep"}


@pytest.fixture
def family(fleet: LoadedFleet) -> LoadedFleet:
    fleet.commit(FAMILY)
    assert fleet.held() == {}
    return fleet


def hashes(fleet: LoadedFleet) -> set[str]:
    return set(re.findall(r"Allow-Delete: ([0-9a-f]{40})", str(fleet.held())))


def test_a_removed_tree_stays_served_with_one_hash_for_all_of_it(family: LoadedFleet) -> None:
    before = family.everything()
    loaded = family.commit({A: None, f"{B}/app.yaml": configmap(a="c")})
    assert loaded.problems == ()
    held = family.held()
    assert set(held) == PATHS
    assert held["root:a"][0].startswith(f"{A}: was removed: 7 objects would be deleted, and root:a is protected: ")
    assert hashes(family) == {
        digest(
            [
                Line("root", "workspaces.tenancy.kcp.io", "", "a"),
                Line("root:a", "configmaps", "default", "app"),
                Line("root:a", "configmaps", "default", "more"),
                Line("root:a", "workspaces.tenancy.kcp.io", "", "child"),
                Line("root:a:child", "configmaps", "default", "app"),
                Line("root:a:child", "workspaces.tenancy.kcp.io", "", "deep"),
                Line("root:a:child:deep", "configmaps", "default", "app"),
            ]
        )
    }
    configmaps = {key: value for key, value in before.items() if key.resource == "configmaps"}
    after = {key: value for key, value in family.everything().items() if key.resource == "configmaps"}
    changed = {key for key in configmaps if after[key] != configmaps[key]}
    assert {family.path_of(key.cluster) for key in changed} == {"root:b"}
    condition = family.condition(family.workspace("root:a"), "CommitApplied")
    assert condition["status"] == "False"
    assert "Allow-Delete: " in condition["message"]


def test_it_goes_when_that_is_allowed(family: LoadedFleet) -> None:
    clusters = {family.record(path).cluster for path in PATHS}
    family.commit({A: None})
    family.commit({f"{B}/app.yaml": configmap(a="c")})
    assert set(family.held()) == PATHS
    family.allow()
    assert family.paths() == {"root", "root:b"}
    assert not any(key.cluster in clusters for key in family.everything())
    assert (family.fleet().kept, family.fleet().claims) == ({}, {})


def test_what_is_put_back_never_went(family: LoadedFleet) -> None:
    before = family.everything()
    family.commit({A: None})
    family.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(), **FAMILY})
    assert family.held() == {}
    after = family.everything()
    changed = {key: value for key, value in after.items() if value != before.get(key)}
    assert after.keys() == before.keys()
    assert {key.resource for key in changed} == {"workspaces.tenancy.kcp.io", "logicalclusters.core.kcp.io"}
    for value in changed.values():
        applied, *_ = orjson.loads(value)["status"]["conditions"]
        assert (applied["type"], applied["status"]) == ("CommitApplied", "True")
        assert applied["lastTransitionTime"] == "2026-01-01T00:03:00Z"
    assert (family.fleet().kept, family.fleet().claims) == ({}, {})


def test_what_is_put_back_by_half(family: LoadedFleet) -> None:
    uid = family.get("root:a:child", "configmaps", "app")["metadata"]["uid"]
    family.commit({A: None})
    whole = hashes(family)
    family.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="c"), f"{A}/more.yaml": configmap("more")})
    assert set(family.held()) == {"root:a:child", "root:a:child:deep"}
    assert family.data("root:a") == {"a": "c"}
    assert family.get("root:a:child", "configmaps", "app")["metadata"]["uid"] == uid
    assert hashes(family) != whole
    family.allow()
    assert family.paths() == {"root", "root:a", "root:b"}


def test_manifests_that_come_back_without_their_workspace_are_its_own(family: LoadedFleet) -> None:
    family.commit({A: None})
    family.commit({f"{A}/app.yaml": configmap(a="c"), f"{CHILD}/app.yaml": configmap(a="c")})
    assert set(family.held()) == PATHS
    assert family.data("root") == {"a": "b"}
    assert family.data("root:a") == family.data("root:a:child") == {"a": "b"}


def test_the_parent_of_one_that_stays_may_go(family: LoadedFleet, another: Another) -> None:
    family.commit({CHILD: None})
    assert set(family.held()) == PATHS - {"root:a"}
    family.commit({A: None})
    assert set(family.held()) == PATHS
    assert set(family.fleet().kept) == {"root:a", "root:a:child"}
    assert_recovers(family, another)
    family.allow()
    assert family.paths() == {"root", "root:b"}
    assert family.fleet().kept == {}


def test_those_that_go_for_free_do_not_wait(family: LoadedFleet) -> None:
    empty = "workspaces/root/empty"
    family.commit({f"{empty}/workspace.yaml": ""})
    family.commit({empty: None, A: None})
    assert family.paths() == {"root", "root:b", *PATHS}


def test_a_limit_holds_the_removals_alone(empty: LoadedFleet) -> None:
    limit = "spec: {safety: {maxDeletedWorkspaces: 1}}\n"
    vacant = {f"workspaces/root/{name}/workspace.yaml": "" for name in ("x", "y", "z")}
    empty.begin({"treeplane.yaml": TREEPLANE_YAML + limit, **vacant})
    loaded = empty.commit(
        {**dict.fromkeys(vacant), f"{B}/app.yaml": configmap(a="c"), "treeplane.yaml": TREEPLANE_YAML}
    )
    assert loaded.problems == ()
    assert set(empty.held()) == {"root:x", "root:y", "root:z"}
    assert "spec.safety.maxDeletedWorkspaces allows 1 in one commit" in empty.held()["root:x"][0]
    assert empty.data("root:b") == {"a": "c"}
    # Each has a hash, so each may go by itself.
    one = str(re.findall(r"Allow-Delete: ([0-9a-f]{40})", empty.held()["root:x"][0])[0])
    empty.repo.commit({}, f"Allow one\n\nAllow-Delete: {one}\n")
    empty.load()
    assert "root:x" not in empty.paths()


def test_no_limit_is_one_of_any_number(empty: LoadedFleet) -> None:
    vacant = {f"workspaces/root/{name}/workspace.yaml": "" for name in ("x", "y", "z")}
    empty.begin(vacant)
    empty.commit(dict.fromkeys(vacant))
    assert empty.paths() == {"root", "root:a", "root:b"}


@pytest.mark.parametrize("restart", [False, True])
def test_a_recovery_finds_it(family: LoadedFleet, another: Another, restart: bool) -> None:
    family.commit({A: None})
    family.commit({f"{B}/app.yaml": configmap(a="c")})
    if restart:
        family.loader = family.new_loader()
        family.load()
        family.recheck(family.paths())
    new = assert_recovers(family, another)
    assert new.fleet().kept == family.fleet().kept
    for each in (family, new):
        each.recheck(each.paths())
    assert_same(new, family)
    family.allow()
    new.load()
    assert_same(new, family)
    assert new.paths() == {"root", "root:b"}


def test_a_recovery_finds_it_and_it_may_be_put_back(family: LoadedFleet, another: Another) -> None:
    family.commit({A: None})
    new = assert_recovers(family, another)
    family.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(), **FAMILY})
    new.load()
    assert_same(new, family)
    assert new.held() == {}


def test_an_older_word_does_not_allow_it(family: LoadedFleet) -> None:
    family.delete({A: None})
    family.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(), **FAMILY})
    family.commit({A: None})
    assert set(family.held()) == PATHS
    family.commit({f"{B}/app.yaml": configmap(a="c")})
    assert set(family.held()) == PATHS


def test_a_workspace_that_never_was_good_has_nothing_to_lose(fleet: LoadedFleet) -> None:
    fleet.commit({"workspaces/root/new/bad.yaml": "kind: [", "workspaces/root/new/workspace.yaml": ""})
    assert set(fleet.held()) == {"root:new"}
    fleet.commit({"workspaces/root/new": None})
    assert fleet.paths() == {"root", "root:a", "root:b"}


def test_one_that_is_held_and_goes_stays_as_it_is_served(family: LoadedFleet, another: Another) -> None:
    family.commit({f"{A}/app.yaml": "kind: ["})
    family.commit({A: None})
    assert family.data("root:a") == {"a": "b"}
    assert "was removed" in family.held()["root:a"][0]
    assert_recovers(family, another)
    family.allow()
    assert family.paths() == {"root", "root:b"}


def test_a_moved_workspace_does_not_go(family: LoadedFleet) -> None:
    moved = {path.replace(A, "workspaces/root/0a/a"): text for path, text in FAMILY.items()}
    family.commit(
        {A: None, **moved, "workspaces/root/0a/a/workspace.yaml": "", "workspaces/root/0a/a/app.yaml": configmap()}
    )
    assert family.held() == {}


def test_what_writes_through_the_api_made_stays_with_it(family: LoadedFleet) -> None:
    key = family.key("root:a", "configmaps", "mine")
    family.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "default"}})
    family.commit({A: None})
    assert family.store.get(key) is not None
    assert json.dumps(tree.held(family.store))


def test_one_that_never_was_served_stays_with_the_one_above(fleet: LoadedFleet, another: Another) -> None:
    """It says so in the same words after a recovery, which knows nothing of what would go with it."""
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/bad.yaml": "a: ["})
    fleet.commit({A: None})
    assert "Allow-Delete" in str(fleet.held()["root:a"])
    assert [("bad.yaml" in each, "with a workspace above it" in each) for each in fleet.held()["root:a:kid"]] == [
        (False, True),
        (True, False),
    ]
    assert_recovers(fleet, another)
    fleet.allow()
    assert {"root:a", "root:a:kid"} & set(fleet.paths()) == set()
