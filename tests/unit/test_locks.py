"""The lock files hold what pyproject.toml asks for, no more than that, and nothing that pip could be led astray by."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.locked import pinned

from release import environment, locks

BEYOND = {"prometheus_client", "uvicorn", "urllib3", "websockets"}
"""Libraries of which more is used than they document, so that a new version may break what worked."""


@pytest.mark.parametrize("lock", locks.locks(), ids=lambda lock: lock.name)
class TestEach:
    def test_it_was_made_of_what_is_asked_for_today(self, lock: locks.Lock) -> None:
        assert not lock.is_stale(), "pyproject.toml asks for something else than the lock files have: make lock"

    def test_it_satisfies_what_is_asked_for(self, lock: locks.Lock) -> None:
        have = pinned(lock.name)
        for asked in map(Requirement, lock.of):
            [version] = have[canonicalize_name(asked.name)].specifier
            assert version.operator == "=="
            assert asked.specifier.contains(version.version), asked

    def test_each_package_has_hashes_and_no_place(self, lock: locks.Lock) -> None:
        for entry in environment.entries(lock.path.read_text()):
            first, *rest = [line.rstrip("\\ ") for line in entry.splitlines()]
            assert re.fullmatch(r"[a-z0-9-]+==[^ ;]+( ; .+)?", first), first
            assert rest, f"{first}: no hashes"
            for line in rest:
                assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}", line), line
        assert "://" not in lock.path.read_text()

    def test_what_its_packages_need_is_in_it(self, lock: locks.Lock) -> None:
        """As those that are installed here say, which are of its versions."""
        have = pinned(lock.name)
        extras = {canonicalize_name(r.name): r.extras for r in map(Requirement, lock.of)}
        here = [name for name, each in have.items() if each.marker is None or each.marker.evaluate()]
        for name in here:
            needs = [Requirement(each) for each in distribution(name).requires or ()]
            for need in needs:
                of = [{"extra": extra} for extra in ("", *extras.get(name, ()))]
                if need.marker is None or any(need.marker.evaluate(each) for each in of):
                    assert canonicalize_name(need.name) in have, f"{name} needs {need}"


def test_tests_run_with_what_runs() -> None:
    tools = pinned("tools.txt")
    for name in ("run.txt", "build.txt"):
        for package, each in pinned(name).items():
            assert str(tools[package].specifier) == str(each.specifier), package


def test_what_runs_needs_none_of_the_tools() -> None:
    assert not {"kubernetes", "pytest", "hypothesis", "mypy", "ruff", "setuptools", "pip", "uv"} & set(
        pinned("run.txt")
    )


def test_what_is_used_beyond_its_documentation_is_bounded_above() -> None:
    [run] = [lock for lock in locks.locks() if lock.name == "run.txt"]
    bounded = {r.name for r in map(Requirement, run.of) if any(s.operator == "<" for s in r.specifier)}
    assert bounded == BEYOND


def test_a_change_of_what_is_asked_for_is_seen() -> None:
    [lock, *_] = locks.locks()
    other = locks.Lock(lock.name, (*lock.of, "another"), lock.python)
    assert other.is_stale()
    assert locks.Lock("missing.txt", lock.of, lock.python).is_stale()


def test_entries_of_a_lock_file() -> None:
    text = "# made\na==1 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\n\nb==2 ; x == 'y' \\\n    --hash=sha256:2\n"
    first, second = environment.entries(text)
    assert first == "a==1 \\\n    --hash=sha256:0 \\\n    --hash=sha256:1\n"
    assert second.startswith("b==2 ; x == 'y'")


def test_an_environment_that_cannot_be_filled_says_so(tmp_path: Path) -> None:
    """One pip that fails is enough."""
    failing = ["sh", "-c", "grep -q wrong $2", "--"]
    assert not environment.install(failing, ["right\n", "right\n"])
    assert environment.install(["true"], ["one\n", "two\n", "three\n"])
