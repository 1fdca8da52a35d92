"""A workspace whose manifests a program makes is loaded, recovered and pruned like any other, and not written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.rendered import MARKER, PARAMETERS, Rendered

from apiserver.model.commits import own
from apiserver.model.errors import StatusError
from reconciler.loading import sources
from reconciler.loading.declared import Declarations
from reconciler.loading.plainfiles import PlainFiles
from reconciler.loading.realtargets import real_targets

C = "workspaces/root/c"
RENDER, SAID = f"{C}/{MARKER}", f"{C}/{PARAMETERS}"


def parameters(count: int, size: int = 1, *extra: Any) -> str:
    return orjson.dumps({"count": count, "size": size, "extra": extra}).decode()


def rendered(count: int, size: int = 1, *extra: Any) -> dict[str, str]:
    return {f"{C}/workspace.yaml": "", RENDER: "{}", SAID: parameters(count, size, *extra)}


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "KINDS", (Rendered.of, PlainFiles))


@pytest.fixture
def made(fleet: LoadedFleet) -> LoadedFleet:
    fleet.commit(rendered(2))
    assert fleet.held() == {}
    return fleet


def test_what_is_made_is_served_and_says_of_which_file(made: LoadedFleet) -> None:
    assert made.data("root:c", "n0") == made.data("root:c", "n1") == {"size": "1"}
    annotations = made.get("root:c", "configmaps", "n0")["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == RENDER
    assert annotations["treeplane.dev/source-commit"] == made.repo.head
    assert "treeplane.dev/origin" not in annotations


def test_changed_parameters_change_what_differs(made: LoadedFleet) -> None:
    made.commit({SAID: parameters(3)})
    assert made.written() == ["+configmaps/root:c/default/n2"]
    made.commit({SAID: parameters(2, 2)})
    assert made.written() == [
        "-configmaps/root:c/default/n2",
        "~configmaps/root:c/default/n0",
        "~configmaps/root:c/default/n1",
    ]
    made.commit({SAID: parameters(2, 2).replace(",", " , \n")})
    assert made.written() == []


def test_a_fault_holds_the_workspace_and_names_the_file(made: LoadedFleet) -> None:
    made.commit({SAID: parameters(1, 1, {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}})})
    [error] = made.held()["root:c"]
    assert error.startswith(f'{RENDER}: no kind "Nothing"')
    made.commit({SAID: "{"})
    [error] = made.held()["root:c"]
    assert error.startswith(f"{SAID}: cannot be rendered")
    assert made.data("root:c", "n1") == {"size": "1"}
    made.commit({SAID: parameters(2)})
    assert made.held() == {}
    assert {line for line in made.written() if "configmaps" in line} == set()


def test_an_object_that_is_made_twice(made: LoadedFleet) -> None:
    twice = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n0"}}
    made.commit({SAID: parameters(1, 1, twice)})
    assert any("ConfigMap n0 is declared twice" in error for error in made.held()["root:c"])


def test_plain_files_turn_into_what_a_program_makes_and_back(made: LoadedFleet) -> None:
    uid = made.get("root:c", "configmaps", "n0")["metadata"]["uid"]
    plain = {f"{C}/n.yaml": configmap("n0", size="1") + "---\n" + configmap("n1", size="1")}
    made.commit({RENDER: None, SAID: None, **plain})
    assert made.held() == {}
    assert made.written() == ["~configmaps/root:c/default/n0", "~configmaps/root:c/default/n1"]
    found = made.get("root:c", "configmaps", "n0")["metadata"]
    assert (found["uid"], found["annotations"]["treeplane.dev/source-path"]) == (uid, f"{C}/n.yaml")
    made.commit({RENDER: "{}", SAID: parameters(2), f"{C}/n.yaml": None})
    assert made.written() == ["~configmaps/root:c/default/n0", "~configmaps/root:c/default/n1"]


def test_many_that_are_no_more_made_have_to_be_allowed(made: LoadedFleet) -> None:
    made.commit({SAID: parameters(12)})
    made.commit({SAID: parameters(0)})
    assert "12 objects would be deleted" in made.held()["root:c"][0]
    made.allow()
    assert made.find("root:c", "configmaps", "n0") is None


def test_a_directory_that_goes_takes_what_was_made_of_it(made: LoadedFleet) -> None:
    made.commit({C: None})
    assert "it has manifests" in made.held()["root:c"][0]
    made.allow()
    assert "root:c" not in made.paths()


def test_a_recovery_finds_the_same(made: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    made.commit({SAID: parameters(3, 2), f"{A}/app.yaml": configmap(a="c")})
    made.publish()
    assert_same(recover(made, another), made)


def test_what_was_made_earlier_may_be_pruned(made: LoadedFleet) -> None:
    before = own(made.repo.head)
    made.commit({SAID: parameters(1)})
    found = Declarations(made.store, made.mirror.repositories)
    assert found.declared("root:c", before, "", "configmaps", "default", "n1")
    assert not found.declared("root:c", before, "", "configmaps", "default", "n7")


def test_a_real_cluster_that_a_program_names_is_one(made: LoadedFleet) -> None:
    target = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": {"name": "eu"}}
    connection = {"kubeconfigSecretRef": {"name": "eu"}}
    made.commit({SAID: parameters(0, 0, {**target, "spec": {"connection": connection}})})
    assert real_targets(made.mirror.repositories, [own(made.repo.head)]) == ["root:c:eu"]


# --- writing


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[CommitFleet]:
    found = CommitFleet(tmp_path / "commits")
    found.begin({"treeplane.yaml": WRITES_COMMIT, **rendered(2)})
    assert found.held() == {}
    found.serve()
    yield found
    found.close()


def test_nothing_is_written_back_and_the_answer_says_what_to_change(writing: CommitFleet) -> None:
    head = writing.repo.head
    asked: list[Callable[[], object]] = [
        lambda: writing.create("root:c", "configmaps", a_configmap("mine")),
        lambda: writing.change("root:c", "configmaps", "n0", data={"size": "9"}),
        lambda: writing.remove("root:c", "configmaps", "n0"),
    ]
    for ask in asked:
        with pytest.raises(
            StatusError, match=f"workspace root:c is not written to: .* made of {SAID}: change that"
        ) as e:
            ask()
        assert e.value.code == 403
    assert writing.repo.head == head
    assert writing.data("root:c", "n0") == {"size": "1"}


def test_its_neighbours_are_written_to(writing: CommitFleet) -> None:
    writing.change("root:b", "configmaps", "app", data={"a": "c"})
    assert writing.data("root:b") == {"a": "c"}
    assert "a: 'c'" in writing.repo.files(writing.repo.head)[f"{B}/app.yaml"]
