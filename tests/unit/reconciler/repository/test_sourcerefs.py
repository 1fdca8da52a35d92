"""What a tenant may write as a source, and what no text shows of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import commits
from reconciler.repository.sourcerefs import (
    SOURCE_NAME,
    SourceCredentials,
    SourceRefused,
    address,
    credentials,
    same_place,
    source_name,
)


def test_an_address_is_a_host_a_port_and_a_path() -> None:
    found = address("https://Git.Example.com/team/web.git/", "release/1.2")
    assert (found.host, found.port, found.path, found.branch) == (
        "git.example.com", 443, "/team/web.git", "release/1.2",
    )  # fmt: skip
    assert address("https://[2001:db8::1]:8443/a", "main")[2:] == ("2001:db8::1", 8443, "/a")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "team/web",
        "/srv/git/web.git",
        "file:///srv/git/web.git",
        "ssh://git@example.com/web.git",
        "git@example.com:web.git",
        "git://example.com/web.git",
        "http://example.com/web.git",
        "ext::sh -c id",
        "--upload-pack=id",
        "https://user:word@example.com/web.git",
        "https://@example.com/web.git",
        "https://example.com",
        "https://example.com/",
        "https://example.com/a?b=c",
        "https://example.com/a?",
        "https://example.com/a#b",
        "https://example.com/a/../b",
        "https://example.com/a/%2e%2E/b",
        "https://example.com:0/a",
        "https://example.com:99999/a",
        "https://exam ple.com/a",
        "https://example.com/a\nHost: other",
        "https://example.com\r/a",
        "https://exämple.com/a",
        "https://-example.com/a",
        "https://example.com/" + "a" * 2000,
    ],
)
def test_what_is_no_address_is_refused_before_anybody_goes_there(url: str) -> None:
    with pytest.raises(SourceRefused) as refused:
        address(url, "main")
    assert "word" not in str(refused.value)


@pytest.mark.parametrize(
    "branch",
    ["", "-d", "--all", "a b", "a..b", "a/", "/a", "a//b", "a/.b", "a.lock", "a/b.lock/c", "a~1", "a^", "a:b", "a@{1}",
     "a*", "a\nb", "a\\b", "a?", "a[", "x" * 300, "a.", "a/-b"],
)  # fmt: skip
def test_a_branch_is_a_name_and_no_option_pattern_or_expression(branch: str) -> None:
    with pytest.raises(SourceRefused):
        address("https://example.com/a", branch)


def test_credentials_are_those_keys_and_in_no_text() -> None:
    found = credentials({"username": b"u", "password": b"very-secret", "caFile": b"PEM-secret", "other": b"x"})
    assert found == SourceCredentials("u", "very-secret", "", b"PEM-secret")
    assert "secret" not in f"{found} {found!r} {[found]}"
    assert found.header() == "Basic dTp2ZXJ5LXNlY3JldA=="
    assert credentials({"bearerToken": b"abc"}).header() == "Bearer abc"
    assert credentials({"caFile": b"PEM"}).header() == ""


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"token": b"hidden"},
        {"bearerToken": b"hidden\n"},
        {"bearerToken": b"hidden", "password": b"hidden"},
        {"username": b"hid:den", "password": b"hidden"},
        {"username": b"hidden", "password": b"hidden\r\nX-Other: 1"},
        {"password": b"\xff\xfehidden"},
        {"password": b"hidden" * 4000},
        {"caFile": b"hidden" * 100_000},
    ],
)
def test_credentials_that_are_none_are_refused_without_their_values(data: dict[str, bytes]) -> None:
    with pytest.raises(SourceRefused) as refused:
        credentials(data)
    assert "hidden" not in str(refused.value)


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_name_is_of_one_workspace_and_one_url(cluster: str, url: str, other: str) -> None:
    name = source_name(cluster, url)
    assert SOURCE_NAME.fullmatch(name)
    assert str(commits.parse(f"{name}.{'a' * 40}")) == f"{name}.{'a' * 40}"
    assert (source_name(cluster, other) == name) == (other == url)
    assert (source_name(other, url) == name) == (other == cluster)


def test_the_same_place_however_it_is_written() -> None:
    own = "https://Git.example.com:443/team/Fleet.git"
    for other in (
        "https://user:word@git.example.com/team/fleet",
        "git@git.example.com:team/fleet.git",
        "ssh://git@git.example.com:2222/team/fleet/",
        "https://git.example.com//team/./fl%65et.git",
    ):
        assert same_place(own, other), other
    for other in ("https://git.example.com/team/other", "https://example.com/team/fleet", "/srv/fleet.git", "", "x:"):
        assert not same_place(own, other), other
    assert not same_place("", "")
