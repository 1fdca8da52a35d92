"""Paths of workspaces."""

from __future__ import annotations

import pytest

from apiserver.model import paths


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("root:shop:web", ["root:shop:web", "root:shop", "root"]),
        ("root", ["root"]),
        (paths.home("ann@example.com"), ["user:ann@example.com"]),
        (f"{paths.home('ann')}:a", ["user:ann:a", "user:ann"]),
    ],
)
def test_upwards_it_stands_in_itself_first(path: str, found: list[str]) -> None:
    assert [*paths.upwards(path)] == found
