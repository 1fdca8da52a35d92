"""Names of proposals' branches: git takes each, and no two names share one."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.model.proposals import LONGEST, PROPOSALS, branch_of, branches_of, spelled

ODD = st.text(st.sampled_from("ab0A:-./@{=_+~^?*[\\ \n\té\x7f"), max_size=12)
USERS = st.one_of(ODD, st.text(max_size=40), st.sampled_from(["a.lock", "..", "@", "a@{0}", ".a", "a.", "a" * 300]))


def git_takes(ref: str) -> bool:
    return subprocess.run(["git", "check-ref-format", ref], check=False).returncode == 0


@pytest.mark.parametrize(
    ("user", "workspace", "branch"),
    [
        ("ann", "root:shop:web", "ann/root-shop-web"),
        ("ann@example.org", "root:shop-web", "ann@example.org/root-shop--web"),
        ("Ann", "root", "=41nn/root"),
        ("system:serviceaccount:default:ci", "root:a", "system-serviceaccount-default-ci/root-a"),
        ("a/../b", "root", "a=2f=2e=2e=2fb/root"),
        ("", "root", "=/root"),
    ],
)
def test_they_can_be_read(user: str, workspace: str, branch: str) -> None:
    assert branch_of(user, workspace) == PROPOSALS + branch
    assert branch_of(user, workspace).startswith(branches_of(user))


@given(USERS, USERS)
@settings(deadline=None, max_examples=60)
def test_git_takes_every_name(user: str, workspace: str) -> None:
    name = branch_of(user, workspace)
    assert git_takes(f"refs/heads/{name}")
    assert len(name.encode()) <= 244
    assert name.count("/") == 3
    assert name == name.lower()
    assert name.isascii()
    assert "\n" not in name


@given(USERS, USERS)
@settings(max_examples=1000)
def test_two_names_never_share_a_branch(one: str, other: str) -> None:
    """Nor where a file system takes capital and small letters for the same, or makes one of what is composed."""
    assert (spelled(one) == spelled(other)) == (one == other)
    assert not branches_of(other).startswith(branches_of(one)) or one == other


@pytest.mark.parametrize(("one", "other"), [("a:b", "a-b"), ("a:-b", "a-:b"), ("a--b", "a:b"), ("a=3ab", "a:b"),
                                            ("é", "e\u0301"), ("x" * 200, "x" * 201), ("", "=")])  # fmt: skip
def test_names_that_are_nearly_the_same(one: str, other: str) -> None:
    assert spelled(one) != spelled(other)


def test_what_is_too_long_is_nobodys_short_name() -> None:
    long = spelled("ann" * 200)
    assert len(long) <= LONGEST
    assert spelled(long) != long
