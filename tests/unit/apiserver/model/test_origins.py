"""Origins: what the marks of a stored object say is what was said of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import origins
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.origins import BOOTSTRAP, COMPUTED, SHIPPED, TYPED, Origin

ID = "1f0c" * 10
_commits = st.sampled_from([own(ID), CommitRef("charts", ID), NONE])
_paths = st.text(min_size=1)


@given(_paths, _commits, st.dictionaries(st.sampled_from(["a", "treeplane.dev/origin"]), st.text()))
def test_what_is_marked_is_read_back(path: str, commit: CommitRef, others: dict[str, str]) -> None:
    obj = {"metadata": {"annotations": {**others, **origins.marks_of(path, commit)}}}
    assert origins.origin_of(obj) == Origin(path, commit=commit)
    assert origins.file_of(obj) == path


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": {"treeplane.dev/origin": "runtime"}}])
def test_what_no_file_declares_has_none(metadata: dict[str, object]) -> None:
    assert origins.origin_of({"metadata": metadata}) is None
    assert origins.file_of({"metadata": metadata}) == ""


def test_a_mark_that_names_no_commit_is_refused() -> None:
    annotations = {"treeplane.dev/source-path": "a.yaml", "treeplane.dev/source-commit": "main"}
    with pytest.raises(ValueError, match="names no commit"):
        origins.origin_in(annotations)


@pytest.mark.parametrize(
    ("origin", "in_git", "in_keys"),
    [
        (Origin("workspaces/root/a.yaml"), True, False),
        (Origin("workspaces/root/render.json", "numbers"), True, False),
        (Origin("keys/secrets/root/a.yaml"), False, True),
        *((made, False, False) for made in (SHIPPED, COMPUTED, TYPED, BOOTSTRAP)),
    ],
)
def test_where_it_stands(origin: Origin, in_git: bool, in_keys: bool) -> None:
    assert (origin.in_git, origin.in_keys) == (in_git, in_keys)
    assert str(origin) == (origin.path or origin.generator) != ""
