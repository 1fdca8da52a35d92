"""A status commit is made in pieces: what is held meanwhile does not follow what there is to record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.fleetrepo import FleetRepo
from support.statusfiles import forget_the_log, source_files

from apiserver.registry import tree
from apiserver.storage import paging
from apiserver.storage.protocol import Store
from reconciler.repository.mirror import Mirror
from reconciler.statusbranch import content, history, message, render, writer
from reconciler.statusbranch.folders import Folders
from reconciler.statusbranch.names import Names
from reconciler.statusbranch.writer import StatusWriter

MANY, MOST, PIECE = 60, 10, 8


@pytest.fixture
def many(served: Any) -> Any:
    for number in range(MANY):
        served.workspace(f"root:w{number}", f"w{number}", f"workspaces/root/{number % 7}/w{number}")
        served.bind(f"w{number}")
        served.put("deployments.apps:9f86", f"w{number}", "web", status={"replicas": number})
    return served


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much is held at a time, with bounds that a few workspaces reach."""
    found: list[int] = []
    edit = content.edit_tree

    def counted(repo: Any, base: str | None, changes: Mapping[str, Any]) -> str:
        found.append(len(changes))
        return edit(repo, base, changes)

    keep = render._keep
    monkeypatch.setattr(content, "edit_tree", counted)
    monkeypatch.setattr(render, "_keep", lambda kept, *said: (keep(kept, *said), found.append(len(kept)))[0])
    for module, name, most in (
        (content, "MOST", MOST), (render, "_PLACES", MOST), (render, "_PAGE", PIECE), (paging, "_PAGE", PIECE),
        (writer, "_BATCH", PIECE), (history, "_KEPT", MOST), (message, "_LISTED", MOST),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, most)
    return found


@pytest.mark.parametrize("log", [True, False], ids=["from the log", "from all there is"])
def test_what_is_held_at_a_time_does_not_follow_what_is_recorded(
    many: Any, store: Store, mirror: Mirror, held: list[int], log: bool
) -> None:
    if not log:
        forget_the_log(store, many)
    commit = StatusWriter(store, mirror).flush()
    assert commit is not None
    assert len(source_files(mirror, commit)) > 2 * MANY
    # A change of a workspace may touch its status, its end and its summary.
    assert max(held) <= MOST + 3 * PIECE


@pytest.mark.parametrize("arriving", [False, True])
def test_in_pieces_it_is_the_tree_that_it_is_at_once(
    many: Any, store: Store, mirror: Mirror, source: FleetRepo, monkeypatch: pytest.MonkeyPatch, arriving: bool
) -> None:
    if arriving:
        came = source.commit({"workspaces/root/b.yaml": ""})
        many.fleet(many.commit, arriving=(came,))
        for number in range(20):
            many.workspace(f"root:n{number}", f"n{number}", head=came, origin=came)
        many.bind("n3")
        many.put("deployments.apps:9f86", "n3", "web", status={"replicas": 3})
    under_way = writer.UnderWay()
    monkeypatch.setattr(under_way, "is_so", lambda: arriving)
    first = StatusWriter(store, mirror, under_way=under_way).flush()
    assert first is not None
    whole = mirror.repository.commit(first).tree
    if arriving:
        files = source_files(mirror, first)
        assert ("workspaces/root/n3/_summary.yaml" in files, "workspaces/root/n4/_summary.yaml" in files) == (
            True,
            False,
        )
    for most in (1, 5):
        for module, name in (
            (content, "MOST"),
            (render, "_PLACES"),
            (render, "_PAGE"),
            (paging, "_PAGE"),
            (writer, "_BATCH"),
        ):
            monkeypatch.setattr(module, name, most)
        again = StatusWriter(store, mirror, under_way=under_way)
        assert again.flush() is None, "nothing differs from what is there"
        again._whole = True
        assert again.flush() is None
        assert mirror.repository.commit(first).tree == whole


def test_what_the_store_does_not_explain_goes(many: Any, store: Store, mirror: Mirror, served: Any) -> None:
    written = StatusWriter(store, mirror)
    before = written.flush()
    assert before is not None
    for number in (1, 2):
        served.remove(f"root:w{number}", f"w{number}")
    forget_the_log(store, many)
    after = StatusWriter(store, mirror).flush()
    assert after is not None
    files = source_files(mirror, before)
    gone = {path for path in files if path.split("/")[3:4] in (["w1"], ["w2"])}
    assert gone
    assert set(source_files(mirror, after)) == set(files) - gone


def test_a_folder_is_called_as_its_workspace_is(many: Any, store: Store) -> None:
    folders = Folders(store, {"workspaces/root/gone": "root:gone"})
    assert folders.get("workspaces/root/3/w3") == "root:w3"
    assert folders.get("workspaces/root") == "root"
    assert folders.get("workspaces/root/3") is None
    assert folders.get("workspaces/root/gone") == "root:gone"
    assert tree.workspace_at(store, "root:w3") is not None


def test_names_come_back_in_their_order() -> None:
    names, more = Names(), Names()
    for name in ("a", "a", "b", "a"):
        names.add(name)
    more.update(names)
    assert (list(names), list(more), bool(names)) == (["a", "b", "a"], ["a", "b", "a"], True)
    names.clear()
    assert (list(names), bool(names)) == ([], False)
