"""A push that is judged before it is taken: what is found out is what happens, and nothing of it stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.happenings import EVENTS, PUSHES, Happening
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.manyobjects import MANY
from support.widgets import binding, export, schema, widget

from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.loading.changeset import together
from reconciler.loading.trial import NotTried, Trial, Tried, newly
from reconciler.plan.deletions import command
from reconciler.repository.objects import Repository

HISTORIES = st.lists(st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23)), min_size=1, max_size=10)


def tried(fleet: LoadedFleet, old: str, new: str, seconds: float = 60) -> Tried:
    """What a push would come to; whatever the store and the keys say is as before."""
    trial = Trial(fleet.loader, fleet.secrets.of, fleet.keys / "identities", seconds)
    revision, keys = fleet.store.revision(), sorted(fleet.keys.rglob("*"))
    rows = _rows(fleet.store)
    try:
        with fleet.store.view() as view:
            return trial.run(view, Repository(fleet.mirror.path), old, new)
    finally:
        assert (fleet.store.revision(), sorted(fleet.keys.rglob("*")), _rows(fleet.store)) == (revision, keys, rows)


def pushed(fleet: LoadedFleet, files: dict[str, str | None], message: str = "Change") -> Tried:
    """A commit is tried, and loaded then, which finds the same."""
    old, new = fleet.repo.head, fleet.repo.commit(files, message)
    found, before = tried(fleet, old, new), tree.held(fleet.store)
    loaded = fleet.load()
    assert found.held == newly(before, tree.held(fleet.store))
    assert [*found.problems] == [*map(str, loaded.problems)]
    assert found.changes.became == together(loaded.steps).became
    return found


def _rows(store: Store) -> list[object]:
    return [tree.fleet(store), tree.held(store)]


def test_what_is_good_holds_nobody(fleet: LoadedFleet) -> None:
    found = pushed(fleet, {f"{A}/app.yaml": configmap(a="c"), f"{A}/kid/workspace.yaml": ""})
    assert not found.holds
    assert str(found.changes) == "workspaces 1 created, 1 configured; objects 3 created, 1 configured, 1 unchanged"


def test_who_would_be_held_and_why(fleet: LoadedFleet) -> None:
    found = pushed(fleet, {f"{B}/bad.yaml": "kind: [", f"{A}/app.yaml": configmap(a="c")})
    assert [*found.held] == ["root:b"]
    assert found.held["root:b"][0].startswith(f"{B}/bad.yaml:2:1: ")
    assert pushed(fleet, {"treeplane.yaml": "kind: ["}).problems


def test_one_that_is_held_already_is_no_reason(fleet: LoadedFleet) -> None:
    fleet.commit({f"{B}/bad.yaml": "kind: ConfigMap\nkind: ConfigMap\n"})
    assert fleet.held()
    assert not pushed(fleet, {f"{A}/app.yaml": configmap(a="c")}).holds
    # Nor is another line, or more of it that is good.
    assert not pushed(fleet, {f"{B}/bad.yaml": "# a word\nkind: ConfigMap\nkind: ConfigMap\n"}).holds
    assert [*pushed(fleet, {f"{B}/worse.yaml": "kind: ["}).held] == ["root:b"]


def test_nor_is_what_was_pushed_before_and_is_not_loaded_yet(fleet: LoadedFleet) -> None:
    old = fleet.repo.commit({f"{B}/bad.yaml": "kind: ["})
    new = fleet.repo.commit({f"{A}/app.yaml": configmap(a="c")})
    assert not tried(fleet, old, new).holds
    old, new = fleet.repo.commit({"treeplane.yaml": "kind: ["}), fleet.repo.commit({"README.md": "x"})
    assert not tried(fleet, old, new).holds


def test_what_is_pushed_together_is_judged_commit_by_commit(fleet: LoadedFleet) -> None:
    old = fleet.repo.head
    fleet.repo.commit({f"{B}/bad.yaml": "kind: ["})
    assert tried(fleet, old, fleet.repo.head).holds
    fleet.repo.commit({f"{B}/bad.yaml": None})
    assert not tried(fleet, old, fleet.repo.head).holds


def test_deletions_need_the_word_that_allows_them(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    found = pushed(fleet, {**dict.fromkeys(MANY), B: None})
    assert {*found.held} == {"root:a", "root:b"}
    hashes = [each.digest for each in found.changes.refused.values()]
    message = command(hashes).rpartition(" -m ")[2].strip("'")
    assert not pushed(fleet, {}, f"Allow it\n\n{message}\n").holds


def test_who_moves_is_held_by_nobody(fleet: LoadedFleet) -> None:
    uid = fleet.find("root", "workspaces.tenancy.kcp.io", "a", "")["metadata"]["uid"]  # type: ignore[index]
    said = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {{name: c, uid: {uid}}}\n"
    there = {"workspaces/root/c/workspace.yaml": said, "workspaces/root/c/app.yaml": configmap()}
    found = pushed(fleet, {A: None, **there})
    assert not found.holds
    assert found.changes.moves == {"root:a": "root:c"}


def test_whoever_follows_is_judged_too_and_no_key_is_made(fleet: LoadedFleet) -> None:
    provider = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
    assert not pushed(fleet, {**provider, f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)}).holds
    assert [*pushed(fleet, {f"{B}/w.json": widget(size="large")}).held] == ["root:b"]


def test_what_is_large_or_takes_long_is_not_judged(fleet: LoadedFleet) -> None:
    old = fleet.repo.head
    new = fleet.repo.commit({f"{A}/many/{n}.yaml": configmap(f"m{n}") for n in range(2100)})
    with pytest.raises(NotTried, match="more than 2,000 files"):
        tried(fleet, old, new)
    with pytest.raises(NotTried, match="more than 2,000 files"):  # nor what takes so many away
        tried(fleet, new, fleet.repo.commit({f"{A}/many": None}))
    large = {f"{A}/large{n}.yaml": configmap(a=str(n) + 3_000_000 * "x") for n in range(3)}
    with pytest.raises(NotTried, match="more than 8 MiB"):
        tried(fleet, old, fleet.repo.commit(large, parent=old))
    with pytest.raises(NotTried, match="longer than is waited for"):
        tried(fleet, old, fleet.repo.commit({f"{A}/app.yaml": configmap(a="c")}, parent=old), seconds=0)
    for _ in range(101):
        new = fleet.repo.commit({"README.md": str(_)})
    with pytest.raises(NotTried, match="more than 100 commits"):
        tried(fleet, old, new)


def test_what_is_on_its_way_comes_first(fleet: LoadedFleet, tmp_path: Path) -> None:
    happening = Happening(fleet)
    happening.push({f"{n}/app.yaml": configmap(a="c") for n in (A, B)})
    old, new = fleet.repo.head, fleet.repo.commit({f"{A}/app.yaml": configmap(a="d")})
    fleet.repo.commit({}, parent=old)
    happening.die(1)
    with pytest.raises(NotTried, match="a commit is being loaded"):
        tried(fleet, old, new)


def test_nothing_is_judged_where_nothing_is_served(empty: LoadedFleet) -> None:
    old, new = (empty.repo.commit({"README.md": text}) for text in "ab")
    with pytest.raises(NotTried, match="nothing is served yet"):
        tried(empty, old, new)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
@example(history=[("remove", 0), ("allow", 0), ("put back", 2)])
@example(history=[("relocate", 0), ("break", 1), ("remove", 1)])
@example(history=[("turn", 1), ("use", 2), ("withdraw", 1), ("widen", 3)])
def test_a_push_holds_who_is_held_once_it_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]
) -> None:
    fleet = LoadedFleet(tmp_path_factory.mktemp("trial") / "fleet")
    try:
        happening = Happening(fleet)
        happening.begin()
        for name, number in history:
            if name not in PUSHES:
                happening.happen(name, number)
                continue
            old = fleet.repo.head
            happening.push(PUSHES[name](number))
            before, error = tree.held(fleet.store), fleet.fleet().error
            try:
                found = tried(fleet, old, fleet.repo.head)
            except NotTried:
                happening.load()
                continue
            loaded = fleet.load()
            assert found.held.keys() == newly(before, tree.held(fleet.store)).keys(), name
            assert bool(found.problems) == (bool(loaded.problems) and not error), name
            happening.turns.look()
    finally:
        fleet.close()
