from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from reconciler.repository import command
from reconciler.repository.errors import (
    BranchCheckedOut,
    DivergedStatus,
    PushRejected,
    RepositoryUnreadable,
    redact,
)
from reconciler.repository.mirror import STATUS_REF, Heads, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree

Git = Callable[..., str]
STATUS = "treeplane/status"
BRANCH = f"refs/heads/{STATUS}"


def opened(tmp_path: Path, source: Path | str, data: str = "data") -> Mirror:
    return Mirror(tmp_path / data, str(source), "main", STATUS)


def status_commit(mirror: Mirror, parent: str | None, text: str, desired: str | None = None) -> str:
    """A status commit in the mirror, as the status writer makes them."""
    repo = mirror.repository
    base = repo.commit(parent).tree if parent else None
    tree = edit_tree(repo, base, {f"workspaces/root/{text}.yaml": text.encode(), "same/file": b"same"})
    parents = [p for p in (parent, desired) if p]
    return commit_tree(repo, tree, parents, text, 1)


@pytest.fixture(params=["bare", "clone", "url"])
def source(request: pytest.FixtureRequest, tmp_path: Path, clone: Path, git: Git) -> str:
    """A source of each kind whose main is the clone's."""
    if request.param == "clone":
        return str(clone)
    git(tmp_path, "clone", "-q", "--bare", str(clone), "fleet.git")
    git(clone, "remote", "add", "origin", str(tmp_path / "fleet.git"))
    path = tmp_path / "fleet.git"
    return f"file://{path}" if request.param == "url" else str(path)


def test_a_start_that_was_killed_while_it_made_the_mirror_is_made_good(tmp_path: Path, clone: Path) -> None:
    for left in ((), ("HEAD",), ("HEAD", "config")):
        folder = tmp_path / str(len(left))
        (folder / "mirror").mkdir(parents=True)
        for name in left:
            (folder / "mirror" / name).touch()
        assert opened(tmp_path, clone, str(len(left))).refresh().desired is not None


def test_a_source_is_followed(tmp_path: Path, source: str, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, source)
    first = git(clone, "rev-parse", "main")
    assert mirror.refresh() == Heads(first, None)
    (clone / "b.yaml").write_text("b")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "second")
    if source != str(clone):
        git(clone, "push", "-q", "origin", "main")
    second = git(clone, "rev-parse", "main")
    assert mirror.refresh() == Heads(second, None)
    assert mirror.repository.first_parents(first, second) == [second]
    assert opened(tmp_path, source).refresh().desired == second, "a second start finds the same"
    assert mirror.branches() == ["main"]


def test_a_status_is_pushed_with_compare_and_swap(tmp_path: Path, source: str, git: Git) -> None:
    mirror = opened(tmp_path, source)
    desired = mirror.refresh().desired
    one = status_commit(mirror, None, "one", desired)
    mirror.push_status(one, None)
    assert mirror.refresh() == Heads(desired, one)
    two = status_commit(mirror, one, "two")
    mirror.push_status(two, one)
    assert mirror.refresh().status == two

    other = opened(tmp_path, source, "other-data")
    assert other.refresh().status == two
    late = status_commit(other, one, "late")
    for expected in (one, None):
        with pytest.raises(PushRejected):
            other.push_status(late, expected)
    assert mirror.refresh().status == two
    with pytest.raises(PushRejected, match="does not descend"):
        other.push_status(late, two)
    directory = Path(source.removeprefix("file://"))
    assert git(directory, "fsck", "--full", "--strict") == ""
    assert git(directory, "show", f"{STATUS}:workspaces/root/one.yaml") == "one"


def test_many_status_commits_are_pushed_at_once(tmp_path: Path, source: str, git: Git) -> None:
    mirror = opened(tmp_path, source)
    mirror.refresh()
    last = None
    for number in range(30):
        last = status_commit(mirror, last, f"n{number}")
    assert last is not None
    mirror.push_status(last, None)
    directory = Path(source.removeprefix("file://"))
    assert git(directory, "rev-list", "--count", STATUS) == "30"
    assert git(directory, "fsck", "--full") == ""


def test_a_missing_branch_is_none_and_branches_are_named(tmp_path: Path, source: str) -> None:
    mirror = Mirror(tmp_path / "data", source, "trunk", STATUS)
    assert mirror.refresh() == Heads(None, None)
    assert mirror.branches() == ["main"]


def test_a_rewritten_branch_is_followed(tmp_path: Path, source: str, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, source)
    old = mirror.refresh().desired
    assert old is not None
    mirror.keep_served(old)
    git(clone, "commit", "-q", "--amend", "-m", "amended")
    if source != str(clone):
        git(clone, "push", "-qf", "origin", "main")
    new = mirror.refresh().desired
    assert new == git(clone, "rev-parse", "main")
    assert mirror.repository.first_parents(old, new) is None
    assert mirror.served() == old


def test_a_deleted_status_branch_is_gone(tmp_path: Path, source: str, git: Git) -> None:
    mirror = opened(tmp_path, source)
    mirror.refresh()
    mirror.push_status(status_commit(mirror, None, "one"), None)
    git(Path(source.removeprefix("file://")), "branch", "-D", STATUS)
    assert mirror.refresh().status is None


def test_objects_of_a_local_source_are_not_copied(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    head = mirror.refresh().desired
    assert head is not None
    assert mirror.repository.has(head)
    assert git(mirror.path, "count-objects").startswith("0 objects")


def test_the_mirror_may_be_lost_and_its_refs_dangle(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    assert (mirror.status(), mirror.served()) == (None, None)
    one = status_commit(mirror, None, "one")
    mirror.keep_status(one)
    assert mirror.status() == one
    (mirror.path / STATUS_REF).write_text("1" * 40 + "\n")
    assert opened(tmp_path, clone).status() is None


def test_of_two_status_branches_the_descendant_counts(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    one = status_commit(mirror, None, "one")
    mirror.push_status(one, None)
    two = status_commit(mirror, one, "two")
    tracked = f"refs/remotes/origin/{STATUS}"
    # A plain clone: the tracked branch alone, then ahead of an own one, then behind it, then apart.
    git(clone, "fetch", "-q", str(mirror.path), f"{two}:{tracked}")
    git(clone, "update-ref", "-d", BRANCH)
    assert mirror.refresh().status == two
    git(clone, "update-ref", BRANCH, one)
    assert mirror.refresh().status == two
    three = status_commit(mirror, two, "three")
    mirror.push_status(three, two)
    assert mirror.refresh().status == three
    git(clone, "update-ref", BRANCH, git(clone, "commit-tree", f"{one}^{{tree}}", "-p", one, "-m", "apart"))
    with pytest.raises(DivergedStatus, match="different ways"):
        mirror.refresh()


def test_a_plain_clone_has_the_desired_branch_as_tracked_one(tmp_path: Path, clone: Path, git: Git) -> None:
    git(clone, "branch", "release")
    git(tmp_path, "clone", "-q", str(clone), "second")
    mirror = Mirror(tmp_path / "data", str(tmp_path / "second"), "release", STATUS)
    assert mirror.refresh().desired == git(clone, "rev-parse", "release")


@pytest.mark.parametrize("linked", [False, True])
def test_a_checked_out_status_branch_is_never_moved(tmp_path: Path, clone: Path, git: Git, linked: bool) -> None:
    mirror = opened(tmp_path, clone)
    one = status_commit(mirror, None, "one")
    mirror.push_status(one, None)
    if linked:
        git(clone, "worktree", "add", "-q", str(tmp_path / "linked"), STATUS)
    else:
        git(clone, "switch", "-q", STATUS)
    two = status_commit(mirror, one, "two")
    with pytest.raises(BranchCheckedOut, match="linked" if linked else "work"):
        mirror.push_status(two, one)
    assert git(clone, "rev-parse", STATUS) == one
    if linked:
        git(clone, "worktree", "remove", str(tmp_path / "linked"))
    else:
        git(clone, "switch", "-q", "main")
    mirror.push_status(two, one)
    assert git(clone, "rev-parse", STATUS) == two


def test_a_checked_out_branch_behind_a_url_is_not_moved_either(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, f"file://{clone}")
    mirror.refresh()
    one = status_commit(mirror, None, "one")
    mirror.push_status(one, None)
    git(clone, "switch", "-q", STATUS)
    with pytest.raises(BranchCheckedOut):
        mirror.push_status(status_commit(mirror, one, "two"), one)


def test_a_push_that_a_hook_refuses_gives_its_reason(tmp_path: Path, clone: Path, git: Git) -> None:
    hook = clone / ".git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    mirror = opened(tmp_path, f"file://{clone}")
    with pytest.raises(PushRejected, match="pre-receive hook declined"):
        mirror.push_status(status_commit(mirror, None, "one"), None)


def test_shallow_clones_are_refused(tmp_path: Path, clone: Path, git: Git) -> None:
    git(clone, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{clone}", "shallow")
    with pytest.raises(RepositoryUnreadable, match="shallow fetch --unshallow"):
        opened(tmp_path, tmp_path / "shallow").refresh()


def test_sources_that_are_away(tmp_path: Path, clone: Path) -> None:
    with pytest.raises(RepositoryUnreadable, match="does not answer"):
        opened(tmp_path, f"file://{tmp_path}/nowhere").refresh()
    with pytest.raises(RepositoryUnreadable, match="does not exist"):
        opened(tmp_path, tmp_path / "nowhere")
    mirror = opened(tmp_path, clone, "data2")
    clone.rename(tmp_path / "moved")
    with pytest.raises(RepositoryUnreadable, match="there is no repository"):
        mirror.refresh()
    moved = opened(tmp_path, tmp_path / "moved", "data2")
    assert moved.refresh().desired is not None, "the mirror follows a repository that moved"


def test_no_credentials_in_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("https://user:hunter2@host/x.git and ssh://git@h/y") == "https://***@host/x.git and ssh://***@h/y"
    arguments: list[tuple[str, ...]] = []
    run = command.subprocess.Popen
    monkeypatch.setattr(command.subprocess, "Popen", lambda a, **k: arguments.append(tuple(a)) or run(a, **k))
    mirror = opened(tmp_path, "https://user:hunter2@127.0.0.1:1/x.git")
    with pytest.raises(RepositoryUnreadable) as raised:
        mirror.refresh()
    assert "hunter2" not in str(raised.value)
    assert arguments
    assert "hunter2" not in str(arguments)
    assert "hunter2" not in (mirror.path / "config").read_text()


def test_variables_of_another_repository_are_not_followed(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "elsewhere"))
    assert opened(tmp_path, f"file://{clone}").refresh().desired == Repository(clone).resolve("main")


def test_the_users_settings_count_wherever_they_stand(
    tmp_path: Path, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials, proxies and other addresses are often given by environment, on CI machines above all."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{clone}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://one.invalid/fleet")
    settings = tmp_path / "gitconfig"
    settings.write_text(f'{settings.read_text()}[url "file://{clone}"]\n\tinsteadOf = https://two.invalid/fleet\n')
    head = Repository(clone).resolve("main")
    for source in ("https://one.invalid/fleet", "https://two.invalid/fleet"):
        assert opened(tmp_path, source).refresh().desired == head


def test_what_was_seen_before_a_url_went_away(tmp_path: Path, clone: Path) -> None:
    url = f"file://{clone}"
    assert opened(tmp_path, url).last_seen() == Heads(None, None)
    seen = opened(tmp_path, url).refresh()
    clone.rename(tmp_path / "away")
    assert opened(tmp_path, url).last_seen() == seen
    assert opened(tmp_path, tmp_path / "away", "other").last_seen() == Heads(None, None)


def test_what_an_older_version_kept_is_found_under_its_new_name(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    one = status_commit(mirror, None, "one")
    git(mirror.path, "update-ref", "refs/treeplane/status", one)
    again = opened(tmp_path, clone)
    assert again.status() == one
    again.keep_history(one, date(2026, 1, 1))
    assert git(again.path, "for-each-ref", "--format=%(refname)", "refs/treeplane/status") == (
        "refs/treeplane/status/2026-01-01"
    )


def test_two_histories_that_end_on_one_day_are_both_kept(tmp_path: Path, clone: Path) -> None:
    mirror = opened(tmp_path, clone)
    one, two = status_commit(mirror, None, "one"), status_commit(mirror, None, "two")
    for each in (one, two, one):
        mirror.keep_history(each, date(2026, 1, 1))
    refs = mirror.repository.references
    found = {name: mirror.repository.ref(name) for name in refs if name.startswith("refs/treeplane/status/")}
    assert found == {"refs/treeplane/status/2026-01-01": one, "refs/treeplane/status/2026-01-01.2": two}
