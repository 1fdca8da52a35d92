"""A user whose number has no name: what ssh is shown in place of the machine's list of users."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from reconciler.repository import nameless

PLACES = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib")
NUMBER = 4_000_000_001
"""Nobody's."""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    return tmp_path


def with_library(machine: Path, place: str) -> Path:
    library = machine / place / "libnss_wrapper.so"
    library.parent.mkdir(parents=True)
    library.touch()
    return library


def test_whoever_has_a_name_needs_nothing(machine: Path) -> None:
    with_library(machine, PLACES[0])
    assert pwd.getpwuid(os.geteuid())
    assert nameless.words(machine) == []


@pytest.mark.parametrize("place", PLACES)
def test_one_more_in_the_list(machine: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = with_library(machine, place)
    monkeypatch.setattr(os, "geteuid", lambda: NUMBER)
    monkeypatch.setenv("HOME", "/somewhere")
    program, *settings = nameless.words(machine)
    told = dict(each.split("=", 1) for each in settings)
    assert program == "env"
    assert told["LD_PRELOAD"] == str(library)
    assert told["NSS_WRAPPER_GROUP"] == str(machine / "etc/group")
    users = Path(told["NSS_WRAPPER_PASSWD"])
    assert users.read_text().splitlines() == [
        "root:x:0:0::/root:/bin/sh",
        f"treeplane:x:{NUMBER}:{os.getegid()}::/somewhere:/usr/sbin/nologin",
    ]
    assert users.stat().st_mode & 0o077 == 0
    assert nameless.words(machine)[1:] == settings, "made once"


def test_without_the_library_ssh_says_what_it_lacks(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: NUMBER)
    assert nameless.words(machine) == []
