"""What a start reads and writes follows what changed, not how many workspaces there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.loadedfleet import BEGINNING, LoadedFleet, configmap
from support.widgets import crd

from reconciler.loading.secrets import SecretFiles
from reconciler.plan import system
from reconciler.repository.mirror import Mirror

R = "workspaces/root"
_TREE = 2


def flat(count: int) -> dict[str, str]:
    return {f"{R}/w{n}/{name}": text for n in range(count) for name, text in _workspace(n).items()}


def spread(count: int) -> dict[str, str]:
    return {f"{R}/{n % 4}/w{n}/{name}": text for n in range(count) for name, text in _workspace(n).items()}


def _workspace(number: int) -> dict[str, str]:
    return {"workspace.yaml": "", "app.yaml": configmap(n=str(number))}


@pytest.fixture
def new(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], LoadedFleet]]:
    """A fleet that is loaded and recorded."""
    made: list[LoadedFleet] = []

    def begin(files: dict[str, str]) -> LoadedFleet:
        made.append(LoadedFleet(tmp_path / f"fleet{len(made)}"))
        made[-1].begin({f"{R}/crd.json": crd(), **files})
        made[-1].publish()
        return made[-1]

    yield begin
    for fleet in made:
        fleet.close()


class Counted:
    trees = 0
    writes = 0


@contextmanager
def counted(fleet: LoadedFleet) -> Iterator[Counted]:
    """What is read of git and written to the store."""
    count, repo, raw, write = Counted(), fleet.mirror.repository, fleet.mirror.repository.raw, fleet.store.write

    def read(object_id: str, expected: int) -> bytes:
        count.trees += expected == _TREE
        return raw(object_id, expected)

    def written(*ops: Any) -> Any:
        count.writes += 1
        return write(*ops)

    repo.raw, fleet.store.write = read, written  # type: ignore[method-assign]
    try:
        yield count
    finally:
        repo.raw, fleet.store.write = raw, write  # type: ignore[method-assign]


def restarted(fleet: LoadedFleet) -> None:
    """Everything that a process remembers is gone."""
    fleet.mirror = Mirror(fleet.directory, str(fleet.repo.path), fleet.repo.branch, "treeplane/status")
    fleet.secrets = SecretFiles(fleet.keys)
    fleet.loader = fleet.new_loader()


def start(fleet: LoadedFleet) -> Counted:
    restarted(fleet)
    with counted(fleet) as count:
        assert fleet.load(fleet.recorded()).steps == ()
        fleet.loader.recheck(fleet.secrets.changed())
        assert fleet.loader.renew()
        assert fleet.writer().flush() is None
    return count


@pytest.mark.parametrize("layout", [flat, spread])
def test_a_start_with_nothing_new_reads_the_same_however_many_workspaces_there_are(
    new: Callable[..., LoadedFleet], layout: Callable[[int], dict[str, str]]
) -> None:
    few, many = start(new(layout(8))), start(new(layout(200)))
    assert few.trees == many.trees
    assert (few.writes, many.writes) == (0, 0)


@pytest.mark.parametrize("layout", [flat, spread])
def test_what_a_newer_version_ships_is_looked_for_in_each_directory_once(
    new: Callable[..., LoadedFleet], layout: Callable[[int], dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = new(layout(200))
    restarted(fleet)
    ship_more(monkeypatch)
    fleet._seen = fleet.store.revision()
    with counted(fleet) as count:
        assert fleet.loader.renew()
    assert fleet.written() == [
        "+workspacetypes.tenancy.kcp.io/root//newer",
        "~apiexports.apis.kcp.io/root:compute//kubernetes",
    ]
    assert 200 < count.trees < 240
    assert start(fleet).writes == 0


def ship_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a newer version would: another type, and an export that is another."""
    types, export = system.workspace_types(), system.compute_export()
    newer = {**types[0], "metadata": {**types[0]["metadata"], "name": "newer"}}
    export[-1]["metadata"]["labels"] = {"newer": "true"}
    monkeypatch.setattr(system, "workspace_types", lambda: [*types, newer])
    monkeypatch.setattr(system, "compute_export", lambda: export)


@pytest.mark.parametrize("layout", [flat, spread])
def test_a_definition_that_changes_in_a_parent_opens_no_child(
    new: Callable[..., LoadedFleet], layout: Callable[[int], dict[str, str]]
) -> None:
    fleet = new(layout(200))
    for number, field in enumerate(("colour", "shape", "weight")):
        child = fleet.record("root:w7").directory
        fleet.repo.commit({f"{R}/crd.json": crd("v1", field, "string"), f"{child}/app.yaml": configmap(n=field)})
        with counted(fleet) as count:
            fleet.load()
        assert fleet.held() == {}
        properties = str(fleet.get("root", "customresourcedefinitions.apiextensions.k8s.io", "widgets.example.io", ""))
        assert field in properties
        assert count.trees < 60, f"the {number + 1}. time"


def test_a_first_load_seeks_what_ships_in_no_directory(tmp_path: Path) -> None:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.repo.commit({**BEGINNING, **flat(200)})
    with counted(fleet) as count:
        fleet.load()
    fleet.close()
    assert count.trees < 4 * 200 + 60, "weighed, seen, judged, and once for root"
