"""A workspace as a commit has it is what was served then: over histories of commits, losses and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.happenings import BEGIN, EVENTS, PUSHES, Happening, History
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import SLICES
from support.widgets import binding

from apiserver.model.errors import StatusError
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.layout.tree import ROOT
from reconciler.repository.objects import Repository
from reconciler.viewing.filling import STORE, CommitFilling
from reconciler.viewing.recordings import Recordings

Said = dict[str, str]
NOT_ONES_OWN = {"workspaces.tenancy.kcp.io"}
"""What stands in a workspace for those below it."""


def said(store: Store, path: str) -> Said | None:
    """All that a workspace has, as text; None where it is not there."""
    record = tree.workspace_at(store, path)
    if record is None:
        return None
    found = {"": f"{record.cluster} {record.commit} {record.served} {record.errors}"}
    for resource in sorted(store.resources(record.cluster)):
        if resource.startswith("~") or resource in NOT_ONES_OWN:
            continue
        for each in store.scan(resource, record.cluster).records:
            obj = orjson.loads(each.value)
            if resource == SLICES:
                obj.pop("status", None)  # a controller's word, with the time that it is
            if (resource, each.key.namespace) == ("secrets", "kcp-system"):
                continue  # keys are not looked at
            found["/".join(each.key)] = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS).decode()
    return found


def filled(fleet: LoadedFleet, directory: Path, commit: str, path: str, *, children: bool = False) -> Store:
    """The store of a workspace as a commit has it."""
    repo, recordings = fleet.mirror.repository, Recordings()
    recordings.refresh(repo)
    directory.mkdir(parents=True, exist_ok=True)
    CommitFilling(Repository(repo.path), commit, path, recordings.of(repo, commit), children=children).into(directory)
    return open_at(directory / STORE, sync=False)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    yield made
    made.close()


def test_each_commit_has_what_was_served(fleet: LoadedFleet, tmp_path: Path) -> None:
    served: dict[str, Said | None] = {}
    fleet.begin()
    for number in range(3):
        fleet.commit({f"{A}/app.yaml": configmap(value=str(number))})
        fleet.publish()
        served[fleet.repo.head] = said(fleet.store, "root:a")

    assert len({str(each) for each in served.values()}) == 3
    for number, (commit, before) in enumerate(served.items()):
        store = filled(fleet, tmp_path / str(number), commit, "root:a")
        assert said(store, "root:a") == before
        assert tree.workspace_at(store, "root:b") is None, "who has nothing to do with it is not loaded"
        store.close()


def test_what_was_never_served_is_as_it_would_be(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.begin()
    fleet.publish()
    aside = fleet.repo.commit({f"{A}/app.yaml": configmap(value="aside"), f"{A}/more.yaml": configmap("more")})
    broken = fleet.repo.commit({f"{A}/app.yaml": "kind: ["}, parent=aside)

    store = filled(fleet, tmp_path / "aside", aside, "root:a")
    found = said(store, "root:a")
    assert found is not None and any('"value":"aside"' in each for each in found.values()), found
    store.close()

    store = filled(fleet, tmp_path / "broken", broken, "root:a")
    record = tree.workspace_at(store, "root:a")
    assert record is not None and record.served and "app.yaml" in record.errors[0]
    store.close()


def test_what_others_have_is_held_though_nobody_recorded_it(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Read of its provider, and of a consumer that has nothing of it itself."""
    consumers = {f"{ROOT}/d/workspace.yaml": "", f"{ROOT}/d/binding.json": binding("root:a")}
    fleet.begin({**BEGIN, **consumers})
    fleet.publish()
    fleet.commit({f"{A}/export.json": None, f"{A}/app.yaml": configmap(value="later")})

    for path in ("root:a", "root:b", "root:d"):
        store = filled(fleet, tmp_path / path.rpartition(":")[2], fleet.repo.head, path)
        assert said(store, path) == said(fleet.store, path), path
        store.close()
    assert fleet.record("root:a").errors


def test_what_nobody_has_goes_though_nobody_recorded_it(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.begin({**BEGIN, f"{B}/w.json": None})
    fleet.publish()
    fleet.commit({f"{A}/export.json": None})

    store = filled(fleet, tmp_path / "gone", fleet.repo.head, "root:a")
    assert said(store, "root:a") == said(fleet.store, "root:a")
    assert not fleet.record("root:a").errors
    store.close()


def test_the_workspaces_below_are_there_where_they_are_asked_for(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.begin({f"{A}/kid/workspace.yaml": "", f"{A}/kid/kid/workspace.yaml": ""})
    fleet.publish()

    store = filled(fleet, tmp_path / "with", fleet.repo.head, "root:a", children=True)
    record = tree.workspace_at(store, "root:a")
    assert record is not None
    names = [each.key.name for each in store.scan("workspaces.tenancy.kcp.io", record.cluster).records]
    assert names == ["kid"]
    assert tree.workspace_at(store, "root:a:kid:kid") is None
    store.close()


def test_what_nothing_is_recorded_of_is_as_a_first_load_has_it(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.begin()
    store = filled(fleet, tmp_path / "first", fleet.repo.head, "root:a")
    found, before = said(store, "root:a"), said(fleet.store, "root:a")
    assert found == before
    store.close()


def test_a_commit_without_a_fleet_is_told(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.begin()
    bad = fleet.repo.commit({"treeplane.yaml": "kind: ["})
    with pytest.raises(StatusError, match="nothing of commit"):
        filled(fleet, tmp_path / "bad", bad, "root:a")


HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *PUSHES, *EVENTS]), st.integers(0, 47), st.booleans()), max_size=8
)


@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@example([("remove", 0, False)])  # what root:b takes of root:a is served still, though its directory is gone
@example([("record in a load", 0, False), ("record and die", 2, False)])  # what is below one that stays
@given(HISTORIES)
def test_every_recorded_commit_is_read_as_it_was_served(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    folder = tmp_path_factory.mktemp("fillings")
    fleet = LoadedFleet(folder / "fleet")
    try:
        happening = Happening(fleet)
        happening.begin()
        served: dict[str, dict[str, Said | None]] = {}
        for name, number, load in [*history, ("nothing", 1, True)]:
            happening.happen(name, number, load=load)
            fleet.publish()
            if not fleet.fleet().arriving:
                served[fleet.fleet().commit.id] = {path: said(fleet.store, path) for path in fleet.paths()}
        for commit, workspaces in served.items():
            for path, before in workspaces.items():
                _assert_read(fleet, folder, (commit, path), before)
    finally:
        fleet.close()


def _assert_read(fleet: LoadedFleet, folder: Path, what: tuple[str, str], before: Said | None) -> None:
    commit, path = what
    try:
        store = filled(fleet, folder / f"{commit}{path}", commit, path)
    except StatusError as error:
        assert "removal" in error.message, "only a workspace that was held against its removal is not read"
        return
    try:
        assert said(store, path) == before, (commit, path)
    finally:
        store.close()
