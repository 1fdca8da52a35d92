"""Workspaces' records: short, and read as they were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.registry.tree import WorkspaceRecord

COMMITS = st.sampled_from([NONE, own("1" * 40), own("2" * 40), CommitRef("charts", "1" * 40)])
TEXTS = st.sampled_from(["", "root:universal", "Kubernetes", '","errors":["', "é"])
PATHS = st.sampled_from(["root", "root:a", "root:a:b"])
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
    directory=TEXTS,
    errors=st.lists(TEXTS, max_size=2),
    writes=TEXTS,
    builtins=TEXTS,
)


@given(RECORDS)
def test_a_record_reads_as_it_was_written(record: WorkspaceRecord) -> None:
    assert WorkspaceRecord.decode(record.encode()) == record
    assert (b'"errors":[' in record.encode()) == bool(record.errors), "which is how held ones are found"


def test_a_record_that_says_what_most_say_is_short() -> None:
    at = own("1" * 40)
    directory = "workspaces/root/7f/ws-1"
    record = WorkspaceRecord("root:ws-1", "qvw2krkj1gseg229", "root", "root:universal", True, at, at, at, 1, directory)
    assert len(record.encode()) < 170
