"""What a comment may say, and how it is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.forges.body import harmless, is_marked, is_same, marker, written
from reconciler.forges.errors import NotSaid

PIECES = st.sampled_from(["/", "\n", "\r", "\0", " ", "<!--", "treeplane", "diff", "-->", "a", "merge", "é", "\t"])
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS)
def test_nothing_in_it_commands_or_poses(text: str) -> None:
    said = harmless(text)
    assert not any(line.startswith("/") for line in said.replace("\r", "").split("\n"))
    assert "\0" not in said
    assert not any(is_marked(line, "a") for line in said.split("\n"))
    assert harmless(said) == said


@given(TEXTS)
def test_what_is_written_is_known_again_and_the_same(text: str) -> None:
    if not harmless(text):
        with pytest.raises(NotSaid, match="nothing to say"):
            written("a", text)
        return
    body = written("a", text)
    assert not any(line.startswith("/") for line in body.split("\n"))
    assert is_marked(body, "a")
    assert not is_marked(body, "b")
    assert is_same(body, body.replace("\n", "\r\n") + "\n")


@pytest.mark.parametrize("name", ["a", "fleet", "fleet-eu.1", "a" * 63])
def test_names(name: str) -> None:
    assert marker(name) == f"<!-- treeplane diff {name} -->"


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a-", "a-->", "a\n", "a" * 64, "é"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(NotSaid, match="no name"):
        marker(name)
