"""Which texts may name the folder of a fleet: each may be anybody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.repository.folder import named, unfit, without


@pytest.mark.parametrize("text", ["", "fleets/prod", "a", "ünter/ordner", "fleets/my prod", "x/keys", "x/apart"])
def test_a_path_from_the_top_may_be_one(text: str) -> None:
    assert unfit(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/etc", "begins at the top of the machine"),
        ("~/fleet", "begins at the top of the machine"),
        ("../other", "no .."),
        ("a/../../b", "no .."),
        ("./a", "no . "),
        ("a//b", "no empty part"),
        (".git", "what git keeps for itself"),
        ("a/.GIT/hooks", "what git keeps for itself"),
        ("a/.git. ", "what git keeps for itself"),
        ("git~1/x", "what git keeps for itself"),
        ("a\\b", "a character"),
        ("a\x1b[31mb", "a character"),
        ("a\nb", "a character"),
        ("a/workspaces/b", "workspaces/ is what stands in"),
        ("workspaces", "workspaces/ is what stands in"),
        ("keys", "keys/ at the top"),
        ("apart/x", "apart/ at the top"),
        ("a/" * 8 + "b", "more than"),
        ("a" * 401, "more than"),
    ],
)
def test_what_cannot_be_one_is_refused_with_the_reason(text: str, why: str) -> None:
    assert why in unfit(text)


def test_it_is_named_as_a_shell_completes_it() -> None:
    assert [named(text) for text in (".", "./", "fleets/prod/", "fleets/prod")] == [
        "",
        "",
        "fleets/prod",
        "fleets/prod",
    ]


@given(
    folder=st.text(max_size=30),
    below=st.sampled_from(["root", "root/a", "root/workspaces/root", "root/a/workspaces/b"]),
)
def test_a_directory_loses_the_folder_and_nothing_else(folder: str, below: str) -> None:
    """On the status branch it stands as it would without a folder, whatever workspaces are called."""
    directory = f"workspaces/{below}"
    assert without(directory) == directory
    if not unfit(folder):
        assert without(f"{folder}/{directory}" if folder else directory) == directory
