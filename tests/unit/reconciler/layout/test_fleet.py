"""treeplane.yaml beyond its samples: what may stand for the repository of the status branch."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import parse_fleet
from reconciler.repository.statusaddress import StatusAddress


def read(address: str) -> StatusAddress:
    spec = {"status": {"repository": address}}
    value = {"apiVersion": "treeplane.dev/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"}, "spec": spec}
    return parse_fleet(json.dumps(value).encode()).status_place


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example.org/shop/status.git",
        "https://git.example.org:8443/a/b/c",
        "https://[2001:db8::1]/status.git",
        "ssh://git@git.example.org:2222/shop/status.git",
        "ssh://git.example.org/~/status.git",
        "git@git.example.org:shop/status.git",
        "http://git.internal/status.git",
        "file:///srv/git/status.git",
    ],
)
def test_an_address_of_the_status_branch(address: str) -> None:
    assert read(address) == StatusAddress("treeplane/status", address)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://bob:secret@git.example.org/status.git", "holds credentials"),
        ("https://token@git.example.org/status.git", "holds credentials"),
        ("ssh://git:secret@git.example.org/status.git", "holds credentials"),
        ("ext::sh -c 'touch /tmp/x'", "is no address"),
        ("ext::https://git.example.org/x", "is no address"),
        ("fd::7", "is no address"),
        ("https::git.example.org/x.git", "is no address"),
        ("git://git.example.org/status.git", "is no address"),
        ("ftp://git.example.org/status.git", "is no address"),
        ("HTTPS://git.example.org/status.git", "is no address"),
        ("/srv/git/status.git", "is no address"),
        ("../status.git", "is no address"),
        ("file://elsewhere/srv/status.git", "is no address"),
        ("file:///srv/../etc", "is no address"),
        ("-oProxyCommand=x:y", "is no address"),
        ("ssh://-oProxyCommand=x/y", "is no address"),
        ("git@-oProxyCommand=x:y", "is no address"),
        ("git@host:-x", "is no address"),
        ("host:status.git", "is no address"),
        ("https://git.example.org", "is no address"),
        ("https://git.example.org/x?token=secret", "is no address"),
        ("https://git.example.org/x#y", "is no address"),
        ("https://git.example.org/a b", "is no address"),
        ("https://git.example.org/$(id)", "is no address"),
        ("https://git.example.org/x;id", "is no address"),
        ("git@git.example.org:x`id`", "is no address"),
        ("file:///srv/'x", "is no address"),
        ("https://git.example.org/a\n", "is no address"),
        ("https://git.example.org/\x1b[31m", "is no address"),
    ],
)
def test_what_is_no_address_of_it(address: str, said: str) -> None:
    with pytest.raises(BadFile, match=f"spec.status.repository {said}") as bad:
        read(address)
    assert "secret" not in str(bad.value)
    assert "token" not in str(bad.value)


@given(st.text(alphabet=st.characters(codec="ascii"), min_size=1, max_size=40))
def test_whatever_is_taken_for_one_is_one_word_that_no_program_takes_for_an_option(text: str) -> None:
    for address in (text, f"https://{text}", f"git@{text}", f"ssh://{text}"):
        try:
            taken = read(address).repository
        except BadFile:
            continue
        plain = taken.replace("~", "").replace("[", "").replace("]", "")
        assert shlex.quote(plain) == plain, "it is printed in commands"
        assert "::" not in taken or "[" in taken
        assert not taken.startswith("-")
