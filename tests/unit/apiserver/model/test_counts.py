"""Numbers of things in words."""

from __future__ import annotations

import pytest

from apiserver.model.counts import counted, some_of


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


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, ""), (1, "0"), (3, "0, 1, 2"), (4, "0, 1, 2 and 1 more"), (5003, "0, 1, 2 and 5,000 more")],
)
def test_some_are_named_and_the_rest_counted(number: int, expected: str) -> None:
    assert some_of([*map(str, range(number))], 3) == expected
