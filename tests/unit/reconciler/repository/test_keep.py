"""What a head left behind stays in the mirror, whatever becomes of the source."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo

from reconciler.repository.keep import KEPT, keep
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository

Git = Callable[..., str]
TODAY = date(2026, 11, 22)


def opened(tmp_path: Path, source: Path | str) -> Mirror:
    return Mirror(tmp_path / "data", str(source), "main", "treeplane/status")


def test_what_the_head_left_outlives_the_sources_garbage_collection(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    (clone / "deep" / "er").mkdir(parents=True)
    (clone / "deep" / "er" / "b.yaml").write_text("b: 1\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "served")
    old = git(clone, "rev-parse", "HEAD")
    git(clone, "reset", "-q", "--hard", "HEAD~1")
    (clone / "c.yaml").write_text("c: 1\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "instead")
    new = git(clone, "rev-parse", "HEAD")
    ref = mirror.keep(old, new)
    assert ref is not None
    assert ref.startswith(KEPT)
    assert ref.endswith(f"-{old}")
    git(clone, "reflog", "expire", "--expire=now", "--all")
    git(clone, "gc", "-q", "--prune=now")
    assert not Repository(clone).has(old)
    again = opened(tmp_path, clone)
    assert git(again.path, "show", f"{ref}:deep/er/b.yaml") == "b: 1"
    assert git(again.path, "fsck", "--full", "--strict", "--no-dangling", ref) == ""


def test_a_head_that_moved_on_leaves_nothing(tmp_path: Path, clone: Path, git: Git) -> None:
    mirror = opened(tmp_path, clone)
    old = git(clone, "rev-parse", "HEAD")
    git(clone, "commit", "-q", "--allow-empty", "-m", "next")
    assert mirror.keep(old, git(clone, "rev-parse", "HEAD")) is None
    assert git(mirror.path, "for-each-ref", KEPT) == ""


def test_what_is_gone_cannot_be_kept(tmp_path: Path, clone: Path, git: Git) -> None:
    assert opened(tmp_path, clone).keep("1" * 40, git(clone, "rev-parse", "HEAD")) is None


def test_it_is_let_go_after_ninety_days(tmp_path: Path) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    base = repo.commit({"a": "a"})
    lost = [repo.commit({"a": str(n)}, parent=base) for n in range(3)]
    mirror = opened(tmp_path, repo.path).repository
    first = keep(mirror, lost[0], lost[1], TODAY)
    second = keep(mirror, lost[1], lost[2], TODAY + timedelta(days=90))
    assert first is not None
    assert second is not None
    assert mirror.ref(first) == lost[0], "the ninetieth day counts"
    keep(mirror, lost[2], lost[2], TODAY + timedelta(days=91))
    assert (mirror.ref(first), mirror.ref(second)) == (None, lost[1])


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=6))
def test_whatever_was_served_stays_readable(
    tmp_path_factory: pytest.TempPathFactory, git: Git, steps: list[tuple[int, int]]
) -> None:
    """Heads that jump anywhere, and a source that forgets at once what its branch does not hold."""
    folder = tmp_path_factory.mktemp("keep")
    repo = FleetRepo(folder / "fleet.git")
    repo.commit({"a": "0"})
    served = {repo.head: repo.files(repo.head)}
    mirror = opened(folder, repo.path)
    for back, more in steps:
        old = repo.head
        alive = git(repo.path, "rev-list", "--first-parent", "main").split()
        repo.reset(alive[min(back, len(alive) - 1)])
        for number in range(more):
            repo.commit({"a": f"{len(repo.commits)}", f"d/{number}": "x"})
        mirror.keep(old, repo.head)
        served[repo.head] = repo.files(repo.head)
        git(repo.path, "gc", "-q", "--prune=now")
        repo.repo, mirror = Repository(repo.path), opened(folder, repo.path)
    for commit, files in served.items():
        for path, text in files.items():
            assert git(mirror.path, "show", f"{commit}:{path}") == text.strip()
