"""A commit's text: what is written is read back, and nothing else is taken for one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import commits
from apiserver.model.commits import NONE, CommitRef

ID = "1f0c" * 10
_ids = st.text("0123456789abcdef", min_size=40, max_size=40).filter(lambda text: text.strip("0") != "")
_names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
_refs = st.builds(CommitRef, st.just("") | _names, _ids) | st.just(NONE)


@given(_refs)
def test_what_is_written_is_read_back(ref: CommitRef) -> None:
    assert commits.parse(str(ref)) == ref


@given(_refs, _refs)
def test_no_two_commits_share_a_text(one: CommitRef, other: CommitRef) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(_refs)
def test_its_text_can_be_the_value_of_a_label(ref: CommitRef) -> None:
    assert len(str(ref)) <= 63
    assert re.fullmatch(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]|", str(ref))


@given(st.text() | st.text("0123456789abcdef.-/", max_size=70) | st.builds(lambda n: f"{n}.{ID}", st.text(max_size=30)))
def test_whatever_is_read_is_what_would_be_written(text: str) -> None:
    try:
        ref = commits.parse(text)
    except ValueError as error:
        assert "names no commit" in str(error)
        assert str(error).isprintable()
        assert len(str(error)) < 700
    else:
        assert str(ref) == text


@pytest.mark.parametrize(
    "text",
    [
        ID[:-1],
        ID + "0",
        ID.upper(),
        "0" * 40,
        f"{ID}\n",
        f" {ID}",
        f".{ID}",
        f"{ID}.{ID}",
        f"charts\x00.{ID}",
        f"charts\n.{ID}",
        f"../charts.{ID}",
        f"github.com/charts.{ID}",
        f"Charts.{ID}",
        f"-charts.{ID}",
        f"charts-.{ID}",
        f"{'c' * 23}.{ID}",
        f"charts/{ID}",
        f"charts.{'0' * 40}",
        "٣" * 40,
        "main",
        "HEAD",
        "x" * 100_000,
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_nothing_else_is_taken_for_a_commit(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no commit: a (commit's id|repository's name) has"):
        commits.parse(text)


def test_that_of_the_fleets_own_repository_is_its_id() -> None:
    assert str(commits.own(ID)) == ID
    assert f"{commits.own(ID):.10}" == ID[:10]


def test_that_of_another_names_the_repository() -> None:
    assert str(CommitRef("charts", ID)) == f"charts.{ID}"
    assert f"{CommitRef('charts', ID):.10}" == f"charts.{ID[:10]}"


@given(_refs)
def test_its_text_is_shortened_as_it_is(ref: CommitRef) -> None:
    assert commits.shortened(str(ref), 10) == f"{ref:.10}"


def test_none_is_false_and_has_no_text() -> None:
    assert (bool(NONE), str(NONE), bool(commits.own(ID))) == (False, "", True)
