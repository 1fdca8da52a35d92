"""Who pushed is written down by git's hooks as the server says it: by pushes over TLS, by path, and by the hook itself
with names that mean something to a shell."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.auth.user import User
from apiserver.endpoints import git as endpoint
from apiserver.endpoints.githooks import install_hooks
from apiserver.endpoints.pushhooks import LONGEST_PUSHER, PUSHED, PUSHER
from apiserver.model.errors import StatusError

ZERO = "0" * 40


class Hosted:
    """A bare repository with hooks, and a work tree to push from by its path."""

    def __init__(self, directory: Path, git: Any) -> None:
        self.git_dir, self.work, self._git = directory / "bare.git", directory / "work", git
        git(directory, "init", "--bare", "bare.git")
        install_hooks(self.git_dir, "main", "treeplane/status")
        git(directory, "init", "work")

    def commit(self) -> str:
        self._git(self.work, "commit", "--allow-empty", "-m", "x")
        return str(self._git(self.work, "rev-parse", "HEAD").stdout).strip()

    def push(self, *refs: str, pusher: str = "") -> Any:
        environment = {PUSHER: pusher} if pusher else {}
        return self._git(self.work, "push", "../bare.git", *(refs or ("HEAD:main",)), environment=environment)

    def records(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in (self.git_dir / PUSHED).iterdir()}


@pytest.fixture
def hosted(tmp_path: Path, git: Any) -> Hosted:
    return Hosted(tmp_path, git)


def test_over_the_network_it_is_the_authenticated_user_whatever_is_said_besides(running: Any, tmp_path: Path) -> None:
    running.allow("bob", "get")
    running.allow("bob", "update")
    work = tmp_path / "fleet"
    assert running.git(tmp_path, "clone", running.repository, "fleet").returncode == 0
    for user in ("admin", "bob"):
        author = ("-c", "user.name=mallory", "commit", "--allow-empty", "-qm", "x")
        assert running.git(work, *author).returncode == 0
        headers = [f"http.extraHeader={name}: forged" for name in (PUSHER, PUSHER.replace("_", "-"), "Git-Protocol")]
        forging = [part for header in headers for part in ("-c", header)]
        environment = {PUSHER: '{"username": "mallory"}', "GIT_PROTOCOL": f"{PUSHER}=mallory"}
        done = running.git(work, *forging, "push", "origin", "HEAD:main", user=user, environment=environment)
        assert done.returncode == 0, done.stderr
    records = running.settings.git_dir / PUSHED
    first, second = running.git(work, "rev-list", "--reverse", "HEAD").stdout.split()
    old, said = (records / first).read_text().splitlines()
    assert old == ZERO
    assert "system:authenticated" in json.loads(said)["groups"]
    old, said = (records / second).read_text().splitlines()
    assert old == first
    assert User.from_json(json.loads(said)).name == "bob"
    assert "devs" in json.loads(said)["groups"]
    assert [file.stat().st_mode & 0o777 for file in records.iterdir()] == [0o600] * 2


def test_one_of_whom_there_is_too_much_to_say_is_refused() -> None:
    assert len(endpoint._pusher(User("bob", ("g" * (LONGEST_PUSHER - 100),)))) <= LONGEST_PUSHER
    with pytest.raises(StatusError, match="more than 64 KiB"):
        endpoint._pusher(User("bob", ("g" * LONGEST_PUSHER,)))


def test_by_a_path_it_is_nobody_and_what_another_pushed_before_is_not_his(hosted: Hosted) -> None:
    first = hosted.commit()
    assert hosted.push(pusher="{}").returncode == 0
    assert hosted.records() == {first: f"{ZERO}\n{{}}\n"}
    second = hosted.commit()
    (hosted.git_dir / PUSHED / second).write_text("of one that came to nothing")
    assert hosted.push().returncode == 0
    assert hosted.records().keys() == {first}


def test_the_served_branch_alone_and_what_is_taken_alone(hosted: Hosted, git: Any) -> None:
    hosted.commit()
    assert hosted.push("HEAD:other", "HEAD:refs/tags/v1", pusher="{}").returncode == 0
    assert hosted.records() == {}
    hosted.push(pusher="{}")
    before = hosted.records()
    git(hosted.work, "commit", "--amend", "--allow-empty", "-m", "other")
    assert "cannot be rewritten" in hosted.push("+HEAD:main", pusher='{"a":1}').stderr
    assert hosted.push(":main", pusher='{"a":1}').returncode != 0
    assert hosted.records() == before


def test_nobody_says_of_what_others_pushed_that_it_was_him(hosted: Hosted) -> None:
    """With a client that says anything of where the branch is, it would be refused after the hooks."""
    first = hosted.commit()
    hosted.push(pusher='{"username":"alice"}')
    second = hosted.commit()
    hosted.push(pusher='{"username":"bob"}')
    before = hosted.records()
    for old, new in ((first, second), (ZERO, second), (ZERO, first), (second, second), (first, first)):
        assert update(hosted.git_dir, old, new, '{"username":"mallory"}').returncode in (0, 1)
        assert hosted.records() == before


@pytest.mark.parametrize("must", [False, True])
def test_where_it_cannot_be_written_down(hosted: Hosted, must: bool) -> None:
    """As another user of this machine could not."""
    if must:
        (hosted.git_dir / "treeplane" / "refuses").write_text("must\n")
    (hosted.git_dir / PUSHED).rmdir()
    done = update(hosted.git_dir, ZERO, "1" * 40, "{}")
    assert done.returncode == must
    assert ("who pushes cannot be written down here; try again" in done.stderr) == must
    # Nothing is there to be taken away.
    assert update(hosted.git_dir, ZERO, "1" * 40, "").returncode == 0
    (hosted.git_dir / PUSHED / ("1" * 40)).mkdir(parents=True)
    assert update(hosted.git_dir, ZERO, "1" * 40, "").returncode == must


def update(git_dir: Path, old: str, new: str, pusher: str) -> subprocess.CompletedProcess[str]:
    """The hook, as git runs it."""
    environment = {"PATH": os.environ["PATH"], "GIT_DIR": ".", **({PUSHER: pusher} if pusher else {})}
    command = ["sh", "hooks/update", "refs/heads/main", old, new]
    return subprocess.run(command, cwd=git_dir, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    git_dir = tmp_path_factory.mktemp("hook") / "bare.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(git_dir)], check=True)
    install_hooks(git_dir, "main", "treeplane/status")
    return git_dir


HOSTILE = st.lists(
    st.sampled_from(["'", '"', "$(touch x)", "`touch x`", "%s", "%n", "\\", "\\n", "\\0", "-n", "-e ", "*", "; touch x",
                     "${HOME}", "\u2028", "é", "\U0001f600", " ", "\t", "&", "|", "#", "~", "\n", "\r", "\x1b", "EOF"])
    | st.text(max_size=5)
).map("".join)  # fmt: skip


@given(HOSTILE, st.lists(HOSTILE, max_size=3).map(tuple))
@settings(max_examples=60, deadline=None)
def test_whatever_a_name_says_it_is_written_as_it_is(empty: Path, name: str, groups: tuple[str, ...]) -> None:
    user, commit = User(name, groups), "1" * 40
    before = sorted(empty.iterdir())
    done = update(empty, ZERO, commit, endpoint._pusher(user))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    old, said, end = (empty / PUSHED / commit).read_text().split("\n")
    assert (old, User.from_json(json.loads(said)), end) == (ZERO, user, "")
    assert [file.name for file in (empty / PUSHED).iterdir()] == [commit]
    assert sorted(empty.iterdir()) == before


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_even_where_it_is_no_json(empty: Path, anything: str) -> None:
    assert update(empty, ZERO, "1" * 40, anything).returncode == 0
    assert (empty / PUSHED / ("1" * 40)).read_bytes() == f"{ZERO}\n{anything}\n".encode()


def test_the_longest_that_is_taken(empty: Path) -> None:
    pusher = "x" * LONGEST_PUSHER
    assert update(empty, ZERO, "1" * 40, pusher).returncode == 0
    assert (empty / PUSHED / ("1" * 40)).read_text() == f"{ZERO}\n{pusher}\n"


def test_only_a_push_is_told_who_it_is(running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fetch runs has no business with it."""
    seen: list[bool] = []
    made: Callable[..., Any] = endpoint.GitService

    def service(name: str, git_dir: Path, environment: dict[str, str], most: int) -> Any:
        seen.append(PUSHER in environment)
        return made(name, git_dir, environment, most)

    monkeypatch.setattr(endpoint, "GitService", service)
    running.git(tmp_path, "clone", running.repository, "x")
    assert seen
    assert not any(seen)
