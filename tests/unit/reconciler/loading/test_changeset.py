"""What a commit comes to, and that whoever tells of it tells the same."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loadedfleet import BEGINNING, A, B, LoadedFleet, configmap
from support.widgets import binding, export, schema, widget

from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.storage.protocol import Delete, Op, Put
from reconciler.commands.answers import told
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import ChangeKind, ChangeSet, ObjectChange, WorkspaceChanges, together
from reconciler.loading.loader import Loaded

R = "workspaces/root"
PATHS = ["root", "root:a", "root:b"]


def changes(path: str, became: ChangeKind, objects: int, unchanged: int) -> WorkspaceChanges:
    puts = [ObjectChange(ChangeKind.CREATED, Put(Key("configmaps", path, "", str(n)), b"")) for n in range(objects)]
    why = [LayoutError(path, 1, 0, "is bad")] if became is ChangeKind.HELD else []
    return WorkspaceChanges(path, became, puts, unchanged, why=why)


STEPS = st.lists(
    st.builds(changes, st.sampled_from(PATHS), st.sampled_from(ChangeKind), st.integers(0, 3), st.integers(0, 3)),
    max_size=6,
)


def step(found: list[WorkspaceChanges]) -> ChangeSet:
    out = ChangeSet()
    for each in found:
        out.add(each)
    return out


@given(one=STEPS, two=STEPS, three=STEPS)
def test_steps_one_after_the_other_come_to_the_same_however_they_are_grouped(
    one: list[WorkspaceChanges], two: list[WorkspaceChanges], three: list[WorkspaceChanges]
) -> None:
    a, b, c = step(one), step(two), step(three)
    assert a.then(b).then(c) == a.then(b.then(c))
    assert together([a, b, c]) == a.then(b).then(c)
    assert ChangeSet().then(a) == a == a.then(ChangeSet(kept=a.kept))


@given(found=STEPS)
def test_every_workspace_is_counted_once_and_is_held_where_its_last_word_is_that(found: list[WorkspaceChanges]) -> None:
    whole = step(found)
    last = {each.path: each.became for each in found}
    assert sum(whole.counts().values()) == len(last)
    assert whole.held.keys() == {path for path, became in last.items() if became is ChangeKind.HELD}
    assert whole.became.keys() == last.keys()


@given(found=STEPS, path=st.sampled_from(PATHS), objects=st.integers(0, 3))
def test_what_was_not_written_is_not_counted(found: list[WorkspaceChanges], path: str, objects: int) -> None:
    refused = changes(path, ChangeKind.CREATED, objects, 1)
    whole = step(found)
    before = dict(whole.objects)
    whole.add(refused)
    whole.withdraw(refused)
    assert {k: n for k, n in whole.objects.items() if n} == {k: n for k, n in before.items() if n}


def test_what_is_written_is_made_of_it_and_the_record_comes_last() -> None:
    answer: Op = Put(Key("~answers", "", "", "x"), b"done")
    one = ObjectChange(ChangeKind.CONFIGURED, Put(Key("a", "c", "", "a"), b"1"), (answer,))
    other = ObjectChange(ChangeKind.DELETED, Delete(Key("a", "c", "", "b"), 3))
    record: Op = Put(Key("~record", "c", "", ""), b"r")
    assert WorkspaceChanges("root", objects=[one, other], also=[record]).ops() == [one.op, answer, other.op, record]


# -- of a fleet


def became(loaded: Loaded) -> dict[str, str]:
    found = together(loaded.steps)
    return {path: str(found.of(path)) for path in found.became if path != "root:compute"}


def test_what_becomes_of_workspaces(fleet: LoadedFleet) -> None:
    assert became(fleet.commit({f"{A}/app.yaml": configmap(a="c"), f"{R}/c/workspace.yaml": ""})) == {
        "root:a": "configured",
        "root:c": "created",
    }
    moved = fleet.commit({f"{R}/c/workspace.yaml": None, f"{R}/group/c/workspace.yaml": "", f"{B}/bad.yaml": "kind: ["})
    assert became(moved) == {"root:c": "moved", "root:b": "held"}
    assert became(fleet.commit({f"{R}/group/c/workspace.yaml": None, f"{B}/bad.yaml": None})) == {
        "root:c": "deleted",
        "root:b": "configured",
    }
    [set_] = fleet.commit({f"{B}/bad.yaml": "kind: ["}).steps
    [why] = set_.held["root:b"]
    assert why.path == f"{B}/bad.yaml"


def test_what_becomes_of_objects(fleet: LoadedFleet) -> None:
    [found] = fleet.commit(
        {f"{A}/app.yaml": None, f"{A}/other.yaml": configmap(), f"{A}/new.yaml": configmap("new")}
    ).steps
    assert (found.objects[ChangeKind.MOVED], found.objects[ChangeKind.CREATED]) == (1, 1), (
        "a file was renamed, and one came"
    )
    [found] = fleet.commit({f"{A}/other.yaml": configmap(a="c"), f"{A}/new.yaml": None}).steps
    assert (found.objects[ChangeKind.CONFIGURED], found.objects[ChangeKind.DELETED]) == (1, 1)


def test_a_workspace_that_follows_what_it_takes_is_judged_twice_and_counted_once(fleet: LoadedFleet) -> None:
    files = {
        f"{A}/schema.json": schema("a1"),
        f"{A}/export.json": export("a1"),
        f"{A}/binding.json": binding("root:b"),
        f"{B}/schema.json": schema("b1"),
        f"{B}/export.json": export("b1"),
        f"{B}/binding.json": binding("root:a"),
        f"{B}/w.json": widget(size=1),
    }
    [found] = fleet.commit(files).steps
    assert found.judged > 2
    assert became(Loaded(own("0" * 40), (), (found,))) == {"root:a": "configured", "root:b": "configured"}
    assert found.held == {}


def test_the_log_line_the_answer_to_a_push_and_reports_say_the_same(
    fleet: LoadedFleet, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="reconciler.loading.loader"):
        loaded = fleet.commit(
            {
                f"{A}/app.yaml": configmap(a="c"),
                f"{B}/bad.yaml": "kind: [",
                **{f"{R}/w{n}/workspace.yaml": "" for n in range(3)},
            }
        )
    [line] = [record.getMessage() for record in caplog.records]
    assert line.endswith("workspaces 3 created, 1 configured, 1 held; objects 9 created, 3 configured, 1 unchanged"), (
        line
    )
    assert [*told(loaded)][:6] == [
        f"commit {fleet.repo.head:.10} is served in part: 3 created, 1 configured, 1 held",
        "workspace root:a configured (1 object)",
        *(f"workspace root:w{n} created (1 object)" for n in range(3)),
        "workspace root:b held:",
    ]


def test_a_load_keeps_of_a_workspace_that_is_done_what_became_of_it_and_no_object(empty: LoadedFleet) -> None:
    empty.repo.commit({**BEGINNING, **{f"{R}/w{n}/workspace.yaml": "" for n in range(100)}})
    [found] = empty.load().steps
    assert found.counts()[ChangeKind.CREATED] == 104
    assert found.objects[ChangeKind.CREATED] >= 300
    kept = [getattr(found, name) for name in ("held", "mended", "faults", "deleted", "refused", "kept")]
    assert not any(kept)
