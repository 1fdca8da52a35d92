"""Where a pull request is opened, as far as the repository's URL tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.forges.comparing import ForgeHint, compare_url

BRANCH = "treeplane/proposals/ann/root-a"


@pytest.mark.parametrize(
    ("source", "page"),
    [
        ("https://github.com/o/r.git", f"https://github.com/o/r/compare/main...{BRANCH}?expand=1"),
        ("https://ann:token@github.com/o/r", f"https://github.com/o/r/compare/main...{BRANCH}?expand=1"),
        ("git@github.com:o/r.git", f"https://github.com/o/r/compare/main...{BRANCH}?expand=1"),
        ("ssh://git@gitlab.com:2222/g/sub/r.git", f"https://gitlab.com/g/sub/r/-/compare/main...{BRANCH}"),
        ("https://gitlab.example.org/g/r.git", f"https://gitlab.example.org/g/r/-/compare/main...{BRANCH}"),
        ("http://gitea.example.org:3000/o/r.git", f"http://gitea.example.org:3000/o/r/compare/main...{BRANCH}"),
        ("https://codeberg.org/o/r", f"https://codeberg.org/o/r/compare/main...{BRANCH}"),
        ("https://git.example.org/o/r.git", ""),
        ("https://notgithub.com/o/r.git", ""),
        ("/srv/fleet.git", ""),
        ("file:///srv/github.com/o/r.git", ""),
        ("https://github.com/only", ""),
        ("https://github.com/o/r?x=1 2", f"https://github.com/o/r/compare/main...{BRANCH}?expand=1"),
        ("https://github.com/../o/r", ""),
        ("https://github.com:port/o/r", ""),
    ],
)
def test_it_follows_from_the_url(source: str, page: str) -> None:
    assert compare_url(source, "main", BRANCH) == page


@pytest.mark.parametrize(
    ("hint", "page"),
    [
        (ForgeHint("gitea", "https://git.example.org/api/v1", "o/r"), f"https://git.example.org/o/r/compare/main...{BRANCH}"),
        (ForgeHint("gitea"), f"https://code.example.org/a/b/compare/main...{BRANCH}"),
        (ForgeHint("gitlab", "", "g/r"), f"https://gitlab.com/g/r/-/compare/main...{BRANCH}"),
        (ForgeHint("github", "https://api.github.com", "o/r"), f"https://github.com/o/r/compare/main...{BRANCH}?expand=1"),
        (ForgeHint("gitea", "https://example.org/git/", "o/r"), f"https://example.org/git/o/r/compare/main...{BRANCH}"),
    ],
)  # fmt: skip
def test_what_was_said_of_the_forge_goes_before(hint: ForgeHint, page: str) -> None:
    assert compare_url("https://code.example.org/a/b.git", "main", BRANCH, hint) == page


@given(st.text(max_size=40), st.text(max_size=20))
def test_nothing_secret_and_nothing_odd_is_in_it(user: str, path: str) -> None:
    """Whatever the URL is, what is told is one word of ASCII."""
    for source in (f"https://{user}:secret@github.com/o/{path}", f"{user}@github.com:o/{path}", user):
        found = compare_url(source, "main", BRANCH)
        assert "secret" not in found or "secret" in path
        assert found.isascii()
        assert not any(each.isspace() or not each.isprintable() for each in found)
