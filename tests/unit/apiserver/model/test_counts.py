"""Numbers of things in words."""

from __future__ import annotations

import pytest

from apiserver.model.counts import counted


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ["workspace"], "0 workspaces"),
        (1, ["workspace"], "1 workspace"),
        (2, ["workspace"], "2 workspaces"),
        (1, ["more copy"], "1 more copy"),
        (12000, ["more copy"], "12,000 more copies"),
        (3, ["key"], "3 keys"),
        (1, ["workspace is", "workspaces are"], "1 workspace is"),
        (0, ["workspace is", "workspaces are"], "0 workspaces are"),
    ],
)
def test_one_is_one(number: int, words: list[str], expected: str) -> None:
    assert counted(number, *words) == expected
