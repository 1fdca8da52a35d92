"""What a commit that takes many workspaces away reads and writes follows them, and not who else is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from support.loadedfleet import LoadedFleet, configmap

from apiserver.storage.protocol import Op
from reconciler.loading import files, plainfiles, takings
from reconciler.plan.deletions import PROTECTED

R = "workspaces/root"
_TREE = 2
FREE = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {{annotations: {{{PROTECTED}: 'false'}}}}\n"
TEAM = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: team%s}\nspec: {}\n"
OF_TEAM = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: team, path: root}}\n"
Begin = Callable[[int], LoadedFleet]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """A fleet with so many workspaces in root, all of which may go."""
    made: list[LoadedFleet] = []

    def new(count: int) -> LoadedFleet:
        made.append(LoadedFleet(tmp_path / f"fleet{len(made)}"))
        spread = {f"{R}/{n % 4}/w{n}/{name}": text for n in range(count) for name, text in _workspace(n).items()}
        made[-1].begin({f"{R}/workspace.yaml": FREE, **spread})
        return made[-1]

    yield new
    for fleet in made:
        fleet.close()


def _workspace(number: int) -> dict[str, str]:
    return {"workspace.yaml": "", "app.yaml": configmap(n=str(number))}


def delete(fleet: LoadedFleet, numbers: range) -> None:
    before = fleet.paths()
    fleet.commit({f"{R}/{n % 4}/w{n}": None for n in numbers})
    assert fleet.held() == {}
    assert before - fleet.paths() == {f"root:w{n}" for n in numbers}


def reads(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[int]:
    """The kinds of objects that are read of git meanwhile."""
    found: list[int] = []
    fleet.loader = fleet.new_loader()  # one that does not know yet which directories only group
    repo = fleet.mirror.repository
    raw = repo.raw
    with monkeypatch.context() as patched:
        patched.setattr(repo, "_narrow", {})
        patched.setattr(repo, "raw", lambda each, kind: found.append(kind) or raw(each, kind))
        act()
    return found


def trees_read(fleet: LoadedFleet, numbers: range, monkeypatch: pytest.MonkeyPatch) -> int:
    return reads(fleet, monkeypatch, lambda: delete(fleet, numbers)).count(_TREE)


def test_no_directory_of_the_others_is_opened(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = trees_read(begin(24), range(8), monkeypatch), trees_read(begin(240), range(8), monkeypatch)
    assert many == few


def test_each_directory_that_goes_is_opened_once(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = begin(96)
    few, many = trees_read(fleet, range(8), monkeypatch), trees_read(fleet, range(8, 40), monkeypatch)
    assert many - few == 24


def test_of_what_is_free_only_what_has_a_word_of_its_own_is_parsed(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = begin(24)
    fleet.commit(
        {f"{R}/3/w3/said.yaml": configmap("said").replace("{name:", f"{{annotations: {{{PROTECTED}: 'no'}}, name:")}
    )
    parsed: list[str] = []
    for module in (files, plainfiles):
        read = module.read
        monkeypatch.setattr(module, "read", lambda data, path, read=read: parsed.append(path) or read(data, path))
    monkeypatch.setattr(files.Shapes, "read", lambda _shapes, _data, path: parsed.append(path))
    delete(fleet, range(8))
    assert parsed == [f"{R}/3/w3/said.yaml"]


@pytest.mark.parametrize(
    "word", [PROTECTED, '"treeplane.dev/pro\\x74ected"', "!!binary dHJlZXBsYW5lLmRldi9wcm90ZWN0ZWQ="]
)
def test_a_word_counts_however_it_is_written(begin: Begin, word: str) -> None:
    fleet = begin(4)
    fleet.commit(
        {f"{R}/1/w1/said.yaml": configmap("said").replace("{name:", f"{{annotations: {{{word}: 'true'}}, name:")}
    )
    assert fleet.held() == {}
    fleet.commit({f"{R}/1/w1": None})
    [error] = fleet.held()["root:w1"]
    assert f"its annotation {PROTECTED} says so" in error
    assert "root:w1 configmaps default/app" in error, "all that would go is told"


def test_the_word_of_a_type_is_read_in_its_file_alone(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reads_of_a_type(begin(24), monkeypatch) == reads_of_a_type(begin(96), monkeypatch)


def reads_of_a_type(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many objects are read of git where workspaces go that are free by their type's word."""
    free = TEAM.replace("{name", f"{{annotations: {{{PROTECTED}: 'false'}}, name")
    fleet.commit({f"{R}/workspace.yaml": None, f"{R}/types/team.yaml": free % "", f"{R}/types/other.yaml": TEAM % "2"})
    fleet.commit({f"{R}/0/t{n}/{name}": text for n in range(4) for name, text in _of_team(n).items()})
    assert fleet.held() == {}
    found = reads(fleet, monkeypatch, lambda: fleet.commit({f"{R}/0/t{n}": None for n in range(4)}))
    assert fleet.held() == {} and "root:t1" not in fleet.paths()
    return len(found)


def _of_team(number: int) -> dict[str, str]:
    return {"workspace.yaml": OF_TEAM, "app.yaml": configmap(n=str(number))}


def test_the_store_is_asked_once_for_what_each_has_in_its_own_order(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = begin(24)
    keys, scan = fleet.store.keys, fleet.store.scan
    asked: list[str] = []
    monkeypatch.setattr(fleet.store, "keys", lambda cluster: asked.append(cluster) or keys(cluster))
    monkeypatch.setattr(fleet.store, "scan", lambda *a, **k: asked.append(a[0]) or scan(*a, **k))
    gone = {fleet.record(f"root:w{n}").cluster for n in range(8)}
    delete(fleet, range(8))
    assert [each for each in asked if each != "~intents"] == sorted(gone)


def test_the_next_are_looked_up_while_some_are_written(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = begin(24)
    keys, write = fleet.store.keys, fleet.store.write
    happened: list[str] = []

    class Noted(Future[list[int]]):
        def __init__(self, written: Future[list[int]]) -> None:
            self._written = written

        def result(self, timeout: float | None = None) -> list[int]:
            happened.append("waited")
            return self._written.result(timeout)

    def handed(*ops: Op) -> Future[list[int]]:
        if len(ops) < 4:
            return write(*ops)
        happened.append("handed over")
        return Noted(write(*ops))

    monkeypatch.setattr(takings, "_TOGETHER", 1)
    monkeypatch.setattr(fleet.store, "write", handed)
    monkeypatch.setattr(fleet.store, "keys", lambda cluster: happened.append("looked up") or keys(cluster))
    delete(fleet, range(3))
    first = ["looked up", "handed over"]
    assert happened == [*first, "looked up", "waited", "handed over", "looked up", "waited", "handed over", "waited"]
