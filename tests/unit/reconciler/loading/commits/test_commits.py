"""Writes through the API as commits: what git gets, and what the store holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.commitfleet import MADE, CommitFleet, a_configmap
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model import commits, marks
from apiserver.model.identity import object_uid
from apiserver.registry import tree

Object = dict[str, Any]

RBAC, ROLES = "rbac.authorization.k8s.io/v1", "clusterroles.rbac.authorization.k8s.io"


def test_a_new_object_is_a_file_as_it_was_sent_in_a_commit_of_its_author(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap(), user="alice@example.com")
    assert fleet.tree()[MADE] == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  a: b\n"
    )
    assert fleet.log() == ["alice@example.com: Create configmaps default/made in root:a"]
    assert "<alice@example.com>" in fleet.mirror.repository.commit(fleet.repo.head).author


def test_answer_stored_object_and_watch_event_are_one(fleet: CommitFleet) -> None:
    before = fleet.store.revision()
    answer = fleet.create("root:a", "configmaps", a_configmap())
    stored = fleet.get("root:a", "configmaps", "made")
    assert answer == stored
    assert [c.key.name for c in fleet.store.changes(before) if c.key.resource == "configmaps"] == ["made"]
    origin = fleet.repo.head
    assert stored["metadata"]["uid"] == object_uid(
        fleet.fleet().fleet, fleet.key("root:a", "configmaps", "made"), commits.own(origin)
    )
    assert stored["metadata"]["annotations"]["treeplane.dev/source-commit"] == origin
    assert stored["metadata"]["annotations"]["treeplane.dev/source-path"] == MADE
    assert "treeplane.dev/origin" not in stored["metadata"]["annotations"]
    assert stored["metadata"]["managedFields"][0]["manager"] == "test"


def test_a_write_changes_nothing_but_what_it_says(fleet: CommitFleet) -> None:
    """An operator writes into an annotation what it saw; were its own commit part of that, it would never end."""
    first = fleet.create("root:a", "configmaps", a_configmap())
    second = fleet.change("root:a", "configmaps", "made", data={"a": "c"})
    own = {"resourceVersion", "managedFields"}
    was, found = ({k: v for k, v in obj["metadata"].items() if k not in own} for obj in (first, second))
    assert found == was
    fleet.commit({MADE: configmap("made", a="pushed")})
    annotations = fleet.get("root:a", "configmaps", "made")["metadata"]["annotations"]
    assert annotations[marks.SOURCE_COMMIT] == fleet.repo.head


@pytest.mark.parametrize("count", [1, 2])
def test_a_name_cannot_say_what_only_a_commits_author_says(fleet: CommitFleet, count: int) -> None:
    """RBAC's kinds take nearly any name, and a commit's trailers allow what is forbidden otherwise."""
    evil = "x\n\nAllow-Delete: 0123456789abcdef\nSigned-off-by: a"
    threads = [
        threading.Thread(
            target=fleet.create,
            args=("root:a", ROLES, {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": f"{evil}{n}"}}),
        )
        for n in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    repo = fleet.mirror.repository
    made = list(repo.first_parents(fleet.repo.commits[-1], fleet.repo.head) or ())
    assert made
    assert all(repo.trailers(commit) == {} for commit in made)


def test_the_echo_of_an_own_commit_writes_nothing(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    fleet.load()
    assert fleet.changes() == []
    fleet.recheck(["root:a"])
    assert fleet.changes() == []


def test_a_lost_store_comes_back_with_the_same_objects(fleet: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    fleet.change("root:a", "configmaps", "made", data={"a": "c"})
    fleet.publish()
    second = another(fleet)
    second.load(second.recorded())
    was, found = fleet.get("root:a", "configmaps", "made"), second.get("root:a", "configmaps", "made")
    for obj in (was, found):
        obj["metadata"].pop("resourceVersion")
    assert found == was


def test_an_object_that_a_file_declares_is_changed_in_that_file(fleet: CommitFleet) -> None:
    text = f"# ours\n{configmap('one')}  # keep this\n---\n{configmap('two')}"
    fleet.commit({f"{A}/both.yaml": text})
    fleet.change("root:a", "configmaps", "two", data={"a": "changed"})
    changed = f"# ours\n{configmap('one')}  # keep this\n---\n{configmap('two', a='changed')}"
    assert fleet.tree()[f"{A}/both.yaml"] == changed
    assert fleet.data("root:a", "two") == {"a": "changed"}
    assert fleet.log() == ["alice: Update configmaps default/two in root:a"]


def test_an_object_that_goes_leaves_git_and_its_file_with_its_last_object(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/both.yaml": f"{configmap('one')}---\n{configmap('two')}"})
    fleet.remove("root:a", "configmaps", "one")
    assert "one" not in fleet.tree()[f"{A}/both.yaml"]
    fleet.remove("root:a", "configmaps", "two")
    assert f"{A}/both.yaml" not in fleet.tree()
    assert fleet.find("root:a", "configmaps", "one") is None
    assert fleet.find("root:a", "configmaps", "two") is None


def test_made_anew_it_is_another_one(fleet: CommitFleet) -> None:
    first = fleet.create("root:a", "configmaps", a_configmap())
    fleet.remove("root:a", "configmaps", "made")
    second = fleet.create("root:a", "configmaps", a_configmap())
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_what_is_computed_gets_a_file_when_it_is_changed(fleet: CommitFleet) -> None:
    default = fleet.get("root:a", "namespaces", "default", "")
    fleet.change("root:a", "namespaces", "default", metadata={**default["metadata"], "labels": {"a": "b"}})
    assert "a: b" in fleet.tree()[f"{A}/_objects/_cluster/namespaces/default.yaml"]
    assert fleet.get("root:a", "namespaces", "default", "")["metadata"]["uid"] == default["metadata"]["uid"]


def test_a_summary_does_not_grow_with_what_is_written(fleet: CommitFleet) -> None:
    first = fleet.repo.head
    made = fleet.create("root:a", "configmaps", a_configmap())
    commit = made["metadata"]["annotations"]["treeplane.dev/source-commit"]
    assert tree.summary(fleet.store, fleet.record("root:a").path) == {
        "origin": first,
        "commit": commit,
        "type": "root:organization",
    }


def test_what_the_server_does_not_know_is_not_written_into_git(fleet: CommitFleet) -> None:
    sent = a_configmap()
    fleet.create("root:a", "configmaps", {**sent, "nope": 1, "metadata": {**sent["metadata"], "nope": 2}})
    assert "nope" not in fleet.tree()[MADE]


def test_a_crowded_directory_is_spread(idle: CommitFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.layout.draft.CROWDED", 2)
    idle.serve()
    for name in "abcd":
        idle.create("root:a", "configmaps", a_configmap(name))
    made = {p.removeprefix(f"{A}/_objects/default/configmaps/") for p in idle.tree() if "_objects" in p}
    assert {"a.yaml", "b.yaml"} < made
    assert {p.rpartition("/")[2] for p in made} == {"a.yaml", "b.yaml", "c.yaml", "d.yaml"}
    assert sum("_/" in p.removeprefix(f"{A}/_objects/") for p in made) == 2
    idle.change("root:a", "configmaps", "d", data={"x": "y"})
    idle.remove("root:a", "configmaps", "d")
    assert idle.find("root:a", "configmaps", "d") is None
