"""Where a redirect leads is told where that can be followed, and nobody goes there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.gitserver import GitAsked
from support.sourcevisits import Tenant

from reconciler.repository.sourcerefs import address
from reconciler.sourcing import redirects
from reconciler.sourcing.faults import SourceFault

SOURCE = address("https://git.example.org/team/old.git", "main")
REFS = "/info/refs?service=git-upload-pack"
PACK = "/git-upload-pack"


@pytest.mark.parametrize(
    ("location", "told"),
    [
        (f"https://git.example.org/team/new.git{REFS}", "https://git.example.org/team/new.git"),
        (f"https://git.example.org:443/team/new{REFS}", "https://git.example.org:443/team/new"),
        (f"/team/new.git{REFS}", "https://git.example.org/team/new.git"),
        ("/login", ""),
        ("/team/new.git/info/refs", ""),
        (f"/team/old.git{REFS}", ""),
        (f"https://git.example.com/team/new.git{REFS}", ""),
        (f"https://git.example.org:8443/team/new.git{REFS}", ""),
        (f"http://git.example.org/team/new.git{REFS}", ""),
        (f"https://user:word@git.example.org/team/new.git{REFS}", ""),
        (f"/team/new.git?token=word{REFS}", ""),
        (f"/team/<b>{REFS}", ""),
        (f"/team/{'x' * 400}{REFS}", ""),
        (f"https://[::1/team/new.git{REFS}", ""),
        ("", ""),
    ],
)
def test_it_is_told_where_it_leads_to_a_repository_of_the_same_host(location: str, told: str) -> None:
    assert redirects.told(SOURCE, REFS, location) == told


def test_of_a_post_too() -> None:
    assert redirects.told(SOURCE, PACK, f"/team/new.git{PACK}") == "https://git.example.org/team/new.git"


@given(st.text())
def test_whatever_a_host_says_is_a_url_of_its_own_or_nothing(location: str) -> None:
    for text in (location, f"/{location}{REFS}", f"https://git.example.org/{location}{REFS}"):
        told = redirects.told(SOURCE, REFS, text)
        assert not told or address(told, "main").host == "git.example.org"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("inside", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost"])
def test_nobody_goes_where_it_leads(tenant: Tenant, status: int, inside: str) -> None:
    """Least of all to where this machine alone gets."""
    tenant.server.spoil = lambda asked: asked.reply(b"", status, Location=f"https://{inside}/a.git{REFS}") is None
    with pytest.raises(SourceFault, match=r"redirects are not followed; name the URL that it leads to$"):
        tenant.visit()
    assert len(tenant.server.asked) == len(tenant.server.sockets) == 1


def test_a_repository_that_was_renamed_is_told_by_its_new_name(tenant: Tenant) -> None:
    tenant.repository.path.rename(tenant.server.folder / "new.git")

    def leads(asked: GitAsked) -> bool:
        if asked.repository == "a.git":
            asked.reply(b"", 301, Location=f"/new.git{REFS}")
        return asked.repository == "a.git"

    tenant.server.spoil = leads
    with pytest.raises(SourceFault, match="redirects are not followed") as refused:
        tenant.visit()
    assert tenant.server.url("new.git") in str(refused.value)
    assert tenant.visit(tenant.server.source("new.git")).head == tenant.repository.commits[-1]
