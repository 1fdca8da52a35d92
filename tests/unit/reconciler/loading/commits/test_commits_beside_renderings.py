"""Writes that are commits, in a workspace of which some is rendered: that is not written to, all else is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.fakerenders import FakeRenders
from support.loadedfleet import A, B, configmap

from apiserver.model.errors import StatusError

K = f"{A}/k"
MARKER = f"{K}/kustomization.yaml"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[CommitFleet]:
    """root:a has a directory that is rendered, root:b is one."""
    made = CommitFleet(tmp_path / "fleet", renders=FakeRenders())
    made.begin(
        {
            "treeplane.yaml": WRITES_COMMIT,
            MARKER: "resources: [x.yaml]\n",
            f"{K}/x.yaml": configmap("x", v="1"),
            f"{B}/kustomization.yaml": "resources: [app.yaml]\n",
        }
    )
    assert made.held() == {}
    made.serve()
    yield made
    made.close()


def test_what_is_rendered_is_refused_with_the_directory(fleet: CommitFleet) -> None:
    head = fleet.repo.head
    asked: list[Callable[[], object]] = [
        lambda: fleet.change("root:a", "configmaps", "x", data={"v": "2"}),
        lambda: fleet.remove("root:a", "configmaps", "x"),
    ]
    for ask in asked:
        with pytest.raises(StatusError, match=f"it is rendered of {K}: change the files that {MARKER} names") as e:
            ask()
        assert e.value.code == 403
    assert fleet.repo.head == head
    assert fleet.data("root:a", "x") == {"v": "1"}


def test_files_beside_it_are_written_as_ever(fleet: CommitFleet) -> None:
    fleet.change("root:a", "configmaps", "app", data={"a": "c"})
    fleet.create("root:a", "configmaps", a_configmap("mine"))
    assert fleet.data("root:a") == {"a": "c"}
    files = fleet.repo.files(fleet.repo.head)
    assert any(path.startswith(f"{A}/_objects/") and "name: mine" in text for path, text in files.items())
    assert files[MARKER] == "resources: [x.yaml]\n"


def test_where_all_of_a_workspace_is_rendered_there_is_no_place(fleet: CommitFleet) -> None:
    with pytest.raises(StatusError, match=f"all of {B} is rendered, so no file can be added for it") as e:
        fleet.create("root:b", "configmaps", a_configmap("mine"))
    assert e.value.code == 403
    with pytest.raises(StatusError, match=f"all of {B} is rendered"):
        child = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "child"}}
        fleet.create("root:b", "workspaces.tenancy.kcp.io", child)
    with pytest.raises(StatusError, match=f"it is rendered of {B}"):
        fleet.change("root:b", "configmaps", "app", data={"a": "c"})
