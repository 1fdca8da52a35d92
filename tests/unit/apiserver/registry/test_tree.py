"""Workspaces' records: short, and read as they were."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.registry import looks, tree
from apiserver.registry.looks import Looked
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Row

COMMITS = st.sampled_from([NONE, own("1" * 40), own("2" * 40), CommitRef("charts", "1" * 40)])
TEXTS = st.sampled_from(["", "root:universal", "Kubernetes", '","errors":["', "é"])
PATHS = st.sampled_from(["root", "root:a", "root:a:b"])
DIRECTORIES = st.sampled_from(["", "root", "workspaces", "workspaces/:a", "workspaces//root"]) | st.lists(
    st.sampled_from(["root", "a", "b", "c", "7f", ":", "\n", "é"])
).map(lambda names: "/".join(("workspaces", *names)))
RECORDS = st.builds(
    lambda path, **said: WorkspaceRecord(path=path, parent=paths.parent(path) or "", **said),
    PATHS,
    cluster=st.sampled_from(["root", "qvw2krkj1gseg229"]),
    type=TEXTS,
    served=st.booleans(),
    commit=COMMITS,
    head=COMMITS,
    origin=COMMITS,
    origin_time=st.integers(0, 2**40),
    directory=DIRECTORIES,
    errors=st.lists(TEXTS, max_size=2),
    judged=COMMITS,
    writes=TEXTS,
    builtins=TEXTS,
)


SUMMARIES = st.fixed_dictionaries(
    {},
    optional={
        "origin": COMMITS.map(str).filter(bool),
        "commit": COMMITS.map(str).filter(bool),
        "held": COMMITS.map(str),
        "errors": st.lists(TEXTS, max_size=2),
    },
)


@given(RECORDS, SUMMARIES)
def test_a_row_says_a_record_and_a_summary_as_they_were_written(record: WorkspaceRecord, said: dict[str, Any]) -> None:
    row = Row(record.path, record.encode(said))
    assert WorkspaceRecord.decode(*row) == record
    assert tree.summary_in(row) == said


@given(st.lists(st.tuples(RECORDS, st.booleans()), max_size=8), SUMMARIES)
def test_who_is_held_is_listed_whatever_stands_in_the_rows(
    history: list[tuple[WorkspaceRecord, bool]], said: dict[str, Any]
) -> None:
    """Each is written, and may be forgotten again."""
    store, stored = MemoryStore(), dict[str, WorkspaceRecord]()
    for record, goes in history:
        before = stored.get(record.path)
        store.write(tree.put_workspace(record, said), *tree.listed(record, before)).result()
        stored[record.path] = record
        if goes:
            store.write(*tree.forgotten(stored.pop(record.path))).result()
        assert tree.held(store) == {path: found.errors for path, found in stored.items() if found.errors}


@given(RECORDS)
def test_what_stands_for_a_workspace_says_where_it_is(record: WorkspaceRecord) -> None:
    value = tree.placed(record).value
    assert (tree.path_of(value), tree.directory_of(value)) == (record.path, record.directory)


def test_a_workspace_that_says_what_most_say_is_short() -> None:
    at = own("1" * 40)
    directory = "workspaces/root/7f/ws-1"
    record = WorkspaceRecord("root:ws-1", "qvw2krkj1gseg229", "root", "root:universal", True, at, at, at, 1, directory)
    said = {"origin": str(at)}
    assert len(record.encode(said)) < 52
    assert tree.directory_of(tree.placed(record).value) == directory
    assert len(tree.placed(record).value) < 16


def test_what_a_look_found_goes_with_the_workspace() -> None:
    store = MemoryStore()
    record = WorkspaceRecord("root:a", "qvw2krkj1gseg229", "root", follows={"repository": "https://example.org/a"})
    store.write(tree.put_workspace(record), looks.put_looked(Looked(1.0), record.cluster)).result()
    store.write(*tree.forgotten(record)).result()
    assert looks.looked(store, record.cluster) is None
