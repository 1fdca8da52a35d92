"""Workspaces that appear side by side and are alike are stamped, and are what their own verdicts would make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, Files
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same, recover

from apiserver.model.commits import own
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry.tree import put_workspace, workspace_at
from apiserver.storage.lmdb_alike import AlikeRows
from apiserver.storage.protocol import Put, PutAlike
from reconciler.loading import handover
from reconciler.loading.newcomers import Newcomers
from reconciler.loading.settled import SettledWorld
from reconciler.loading.siblings import Siblings
from reconciler.plan import system

R = "workspaces/root"
ROWS = (Table.WORKSPACES, Table.CONSUMERS, Table.KEPT_SECRETS, Table.HELD, Table.FLEET)


def workspace(type_name: str = "", path: str = "root", **metadata: Any) -> str:
    spec = {"type": {"name": type_name, **({"path": path} if path else {})}} if type_name else {}
    value = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": spec}
    return orjson.dumps({**value, "metadata": metadata} if metadata else value).decode()


USUAL = workspace("universal")


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of those that are stamped from now on, and count."""
    found, stamped = list[str](), Siblings.stamped

    def spy(*args: Any) -> Iterator[PutAlike]:
        for op in stamped(*args):
            found.extend(path for path, _ in op.rows)
            yield op

    monkeypatch.setattr(Siblings, "stamped", spy)
    return found


def everything(fleet: LoadedFleet) -> tuple[Any, ...]:
    """What was done to each object, in its order; all objects and rows."""
    done = [(tuple(each.key), each.value, each.previous) for each in fleet.all_changes()]
    done.sort(key=itemgetter(0))  # those that are alike come together
    return (
        done,
        fleet.everything(),
        {(table, row.key): row.value for table in ROWS for row in fleet.store.scan_rows(table)},
    )


def loaded(directory: Path, commits: Iterable[Files], *, stamped: bool) -> Any:
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if not stamped:
            patch.setattr(Siblings, "stamped", lambda *_: ())
        fleet = LoadedFleet(directory / str(stamped), keys=directory / "keys")
        stack.callback(fleet.close)
        for files in commits:
            fleet.repo.commit(files)
            fleet.load()
        return everything(fleet), fleet.held()


names = st.sampled_from(["Not_one", "é", "a:b", "x" * 64, "f.yaml", "grp/a", "grp/b", "other/a", "d/root", *"abcdefgh"])
SAID = ["", USUAL, workspace("universal", "root", name="a"), workspace("mine", ""), workspace("none"), "spec: ["]
MORE = {"settings": configmap("settings"), "type": workspace("mine", "").replace('"Workspace"', '"WorkspaceType"')}
TYPE = '{"apiVersion":"tenancy.kcp.io/v1alpha1","kind":"WorkspaceType","metadata":{"name":"mine"},"spec":%s}'
PROGRAM, LABELS = '{"initializer":true}', '{"additionalWorkspaceLabels":{"a":"b"}}'


def files(said: tuple[str, str, list[str], bool, str]) -> dict[str, str]:
    """A parent with children that say the same, some with a file of their own; a type beside them."""
    above, text, some, filed, of_type = said
    out = {f"{R}/mine.yaml": TYPE % of_type} if of_type else {}
    out |= {f"{R}/{above}/workspace.yaml": USUAL} if above else {}
    for name in some:
        out[f"{R}/{above}/{name}/workspace.yaml".replace("//", "/")] = text
    if filed and some:
        out[f"{R}/{above}/{some[-1]}/settings.yaml".replace("//", "/")] = MORE["settings"]
    return out


says = st.tuples(
    st.sampled_from(["", "team", "grp"]),
    st.sampled_from(SAID),
    st.lists(names, min_size=3, max_size=12, unique=True),
    st.booleans(),
    st.sampled_from(["", "", "{}", PROGRAM, LABELS]),
)
MANY = ("team", USUAL, [*"abcdefgh"], False, "")


@settings(max_examples=15, deadline=None)
@given(st.lists(says, min_size=1, max_size=3))
@example([MANY])
@example([("", USUAL, ["a", "b", "c", "Not_one", "é", "x" * 64, "grp/a"], False, "")])
@example([("", workspace("mine", ""), [*"abcd"], False, LABELS), ("grp", workspace("mine", ""), [*"abcd"], True, "{}")])
def test_they_are_what_their_verdicts_make_of_them(histories: list[tuple[str, str, list[str], bool, str]]) -> None:
    with TemporaryDirectory() as directory:
        commits: list[Files] = [{"treeplane.yaml": TREEPLANE_YAML, f"{R}/keep.yaml": ""}, *map(files, histories)]
        there = [loaded(Path(directory), commits, stamped=each) for each in (True, False)]
    assert there[0] == there[1]


def test_of_those_that_are_alike_few_have_a_verdict(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    stamped = spied(monkeypatch)
    fleet.commit(files(("team", USUAL, [f"n{number}" for number in range(40)], False, "")))
    assert len(stamped) >= 36
    assert {fleet.record(f"root:team:n{number}").served for number in range(40)} == {True}


def test_the_store_takes_them_together(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index that is declared looks into what each of them says."""
    usual, is_usual = list[bool](), AlikeRows.is_usual

    def spy(alike: AlikeRows) -> bool:
        usual.append(is_usual(alike))
        return usual[-1]

    monkeypatch.setattr(AlikeRows, "is_usual", spy)
    fleet.commit(files(("team", USUAL, [f"n{number}" for number in range(40)], False, "")))
    assert usual
    assert all(usual)


def test_a_recovery_finds_them(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(files(("team", USUAL, [f"n{number}" for number in range(12)], False, "")))
    fleet.publish()
    assert_same(recover(fleet, another), fleet)


def test_who_has_a_file_or_secrets_of_its_own_has_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "keys"
    (keys / "secrets" / "root:n7").mkdir(parents=True)
    (keys / "secrets" / "root:n7" / "s.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    fleet = LoadedFleet(tmp_path / "fleet", keys=keys)
    try:
        fleet.begin()
        stamped = spied(monkeypatch)
        fleet.commit({**files(("", USUAL, [f"n{n}" for n in range(12)], False, "")), f"{R}/n8/c.yaml": configmap()})
        assert len(stamped) >= 6
        assert not {"root:n7", "root:n8"} & {*stamped}
        assert fleet.get("root:n7", "secrets", "s", "default")
        assert fleet.data("root:n8") == {"a": "b"}
    finally:
        fleet.close()


def test_a_verdict_that_a_stamp_does_not_give_makes_it_none(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Newcomers.verdict

    def differing(newcomers: Newcomers, case: Any) -> Any:
        found = verdict(newcomers, case)
        if found is not None:
            found.changes.also.insert(0, Put(Key("things", found.record.cluster, "", case.path), b"{}"))
        return found

    monkeypatch.setattr(Newcomers, "verdict", differing)
    stamped = spied(monkeypatch)
    fleet.commit(files(("", USUAL, [f"n{number}" for number in range(12)], False, "")))
    assert stamped == []


def test_none_is_stamped_where_more_than_its_siblings_tells_what_it_comes_to(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a commit that moves a workspace, for example: however many have had their verdicts by then."""
    fleet.commit({f"{R}/from/workspace.yaml": USUAL, f"{R}/from/app.yaml": configmap()})
    stamped = spied(monkeypatch)
    moved = {f"{R}/from": None, f"{R}/to/workspace.yaml": USUAL, f"{R}/to/app.yaml": configmap()}
    fleet.commit({**moved, **files(("", USUAL, [f"n{number}" for number in range(40)], False, ""))})
    assert stamped == []
    assert {fleet.record(f"root:n{number}").served for number in range(40)} == {True}


@pytest.mark.parametrize("resource", [LOGICAL_CLUSTERS, WORKSPACES])
def test_where_something_stands_already_only_that_one_is_judged_again(
    fleet: LoadedFleet, resource: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamped = spied(monkeypatch)
    fleet.repo.commit(files(("", USUAL, [f"n{number}" for number in range(40)], False, "")))
    cluster = logical_cluster_name(fleet.fleet().fleet, "root:n7", own(fleet.repo.head))
    key = Key(resource, cluster, "", "cluster") if resource == LOGICAL_CLUSTERS else Key(resource, "root", "", "n7")
    fleet.store.write(Put(key, b'{"metadata":{"name":"x","uid":"1"}}')).result()
    fleet.load()
    assert "root:n7" in stamped
    assert {fleet.record(f"root:n{number}").served for number in range(40)} == {True}
    found = fleet.store.get(key)
    assert found is not None
    assert orjson.loads(found.value)["metadata"]["name"] == key.name


@pytest.mark.parametrize("together", [1, 1000])
def test_children_of_one_that_is_stamped_stand_in_it(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Whether the store has that one by then or not."""
    stamped = spied(monkeypatch)
    monkeypatch.setattr(handover, "_TOGETHER", together)
    monkeypatch.setattr(handover, "_IN_FLIGHT", 0)
    teams = {f"{R}/t{number}/workspace.yaml": USUAL for number in range(6)}
    fleet.commit({**teams, **{f"{R}/t{n}/c{m}/workspace.yaml": USUAL for n in range(6) for m in range(6)}})
    assert sum(path.count(":") == 2 for path in stamped) >= 12
    above = workspace_at(fleet.store, "root:t5")
    assert above is not None
    children = fleet.store.scan(WORKSPACES, above.cluster).records
    assert [each.key.name for each in children] == [f"c{m}" for m in range(6)]


def test_the_record_of_one_that_is_stamped_is_known_before_and_after_it_is_written(fleet: LoadedFleet) -> None:
    world, record = SettledWorld(fleet.store), fleet.record("root:a")
    put = put_workspace(replace(record, path="root:new"))
    assert world.record("root:new") is None
    world.appeared([("root:new", put.value)])
    before = world.record("root:new")
    fleet.store.write(put).result()
    world.written("root:new")
    assert before == world.record("root:new") == fleet.record("root:new")
    assert world.is_judged("root:new")


def test_who_has_what_ships_is_like_nobody(empty: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "shipped_workspaces", lambda: ("root:n7",))
    empty.begin()
    stamped = spied(monkeypatch)
    empty.commit(files(("", USUAL, [f"n{number}" for number in range(12)], False, "")))
    assert len(stamped) >= 6
    assert "root:n7" not in stamped
