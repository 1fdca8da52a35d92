"""Packing loses nothing: whoever reads, writes or pushes meanwhile, and wherever the process is killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo

from reconciler.repository import packing
from reconciler.repository.keep import keep
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree, object_name, write_pack

Git = Callable[..., str]


def ids(git: Git, path: Path) -> set[str]:
    """Of every object, reachable or not."""
    return set(git(path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered").split())


def grow(repo: Repository, count: int, mark: str, packed: bool = False) -> list[str]:
    """Blobs that nothing refers to."""
    contents = [f"{mark} {number}\n".encode() * 9 for number in range(count)]
    if packed:
        objects = {object_name(3, content): (3, content) for content in contents}
        write_pack(repo, objects)
        return list(objects)
    return [str(repo.git.create_blob(content)) for content in contents]


def test_what_is_small_and_many_becomes_big_and_few(bare: Repository, git: Git) -> None:
    for number in range(60):
        grow(bare, 5, f"pack {number}", packed=True)
    grow(bare, 300, "loose")
    before = ids(git, bare.path)
    assert packing.load(bare.git_dir) == packing.Load(300, 60)
    packing.pack(bare.git_dir)
    assert packing.load(bare.git_dir) == packing.Load(0, 1)
    assert ids(git, bare.path) == before
    assert git(bare.path, "fsck", "--full", "--no-dangling") == ""


def test_what_is_big_is_not_written_again(bare: Repository) -> None:
    grow(bare, 2000, "big", packed=True)
    [big] = (bare.git_dir / "objects" / "pack").glob("*.pack")
    inode = big.stat().st_ino
    for number in range(100):
        grow(bare, 10, f"more {number}")
        packing.pack(bare.git_dir)
    assert big.stat().st_ino == inode
    assert packing.load(bare.git_dir).packs <= 10


@pytest.mark.parametrize("mark", [".keep", ".promisor"])
def test_packs_that_somebody_marked_are_left_alone(bare: Repository, mark: str) -> None:
    grow(bare, 5, "one", packed=True)
    [one] = (bare.git_dir / "objects" / "pack").glob("*.pack")
    one.with_suffix(mark).touch()
    grow(bare, 5, "two", packed=True)
    grow(bare, 5, "three")
    packing.pack(bare.git_dir)
    assert one.exists()


def test_what_the_mirror_borrows_stays_where_it_is_and_what_it_keeps_stays_here(
    tmp_path: Path, clone: Path, git: Git
) -> None:
    mirror = Mirror(tmp_path / "data", str(clone), "main", "treeplane/status")
    (clone / "b.yaml").write_text("b: 1\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "left")
    old = git(clone, "rev-parse", "HEAD")
    git(clone, "reset", "-q", "--hard", "HEAD~1")
    ref = mirror.keep(old, git(clone, "rev-parse", "HEAD"))
    status = commit_tree(mirror.repository, edit_tree(mirror.repository, None, {"a": b"a"}), [old], "status", 1)
    mirror.keep_status(status)
    git(clone, "gc", "-q")  # it still has everything, in a pack: git's own repack would let go of it here
    packing.pack(mirror.path)
    assert packing.load(mirror.path) == packing.Load(0, 1)
    assert git(mirror.path, "count-objects", "-v").count("in-pack: 6\n") == 1, "what is kept, and the status"
    git(clone, "reflog", "expire", "--expire=now", "--all")
    git(clone, "gc", "-q", "--prune=now")
    assert git(mirror.path, "show", f"{ref}:b.yaml") == "b: 1"
    assert mirror.repository.ref(STATUS_REF) == status


def test_what_was_left_half_written_goes_after_a_day(bare: Repository) -> None:
    objects = bare.git_dir / "objects"
    old, young = objects / "pack" / "tmp_pack_old", objects / "pack" / "tmp_pack_young"
    directory = objects / "tmp_objdir-incoming-old"
    directory.mkdir()
    for path in (old, young):
        path.touch()
    for path in (old, directory):
        os.utime(path, (time.time() - 90_000,) * 2)
    grow(bare, 3, "loose")
    packing.pack(bare.git_dir)
    assert (old.exists(), directory.exists(), young.exists()) == (False, False, True)


def test_a_repository_that_cannot_be_packed_is_left_as_it_is(bare: Repository, git: Git) -> None:
    [broken, *_] = grow(bare, 3, "loose")
    path = bare.git_dir / "objects" / broken[:2] / broken[2:]
    path.chmod(0o600)
    path.write_bytes(b"nonsense")
    with pytest.raises(packing.RepositoryUnreadable, match="cannot be packed"):
        packing.pack(bare.git_dir)
    assert packing.load(bare.git_dir) == packing.Load(3, 0)


KILLED = """
import os, signal, sys
from pathlib import Path
from reconciler.repository import packing
left = int(sys.argv[2])
def dying(run):
    def call(*a, **k):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return run(*a, **k)
    return call
Path.unlink = dying(Path.unlink)
os.fsync = dying(os.fsync)
packing.git = dying(packing.git)
packing.pack(Path(sys.argv[1]))
"""


def test_killed_at_any_moment_it_has_lost_nothing(tmp_path: Path, git: Git) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    for number in range(4):
        repo.commit({f"{number}/{each}.yaml": f"{number}\n" for each in range(3)})
        grow(repo.repo, 4, f"pack {number}", packed=True)
    expected, moment, ended = ids(git, repo.path), 0, -9
    while ended != 0:
        command = [sys.executable, "-c", KILLED, str(repo.path), str(moment)]
        ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[4]).returncode
        assert ended in (0, -9)
        assert ids(git, repo.path) == expected
        assert git(repo.path, "fsck", "--full", "--no-dangling") == ""
        grow(repo.repo, 4, f"again {moment}", packed=moment % 2 == 0)
        expected, moment = ids(git, repo.path), moment + 3
    packing.pack(repo.path)
    assert packing.load(repo.path).loose == 0


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_pushes_readers_and_writers_go_on_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, git: Git, seed: int
) -> None:
    """A repository that is served: pushed to through the quarantine, read by handles that stay open, written to by
    commits that have no ref yet, with a head that is left and kept."""
    folder, chance = tmp_path_factory.mktemp("packing"), random.Random(seed)
    repo = FleetRepo(folder / "fleet.git")
    repo.commit({"a.yaml": "0\n"})
    packing.own(repo.path)
    git(folder, "clone", "-q", str(repo.path), "work")
    long_open, errors, done = Repository(repo.path), list[BaseException](), threading.Event()

    def guarded(run: Callable[[], None]) -> threading.Thread:
        def loop() -> None:
            try:
                run()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=loop)
        thread.start()
        return thread

    def push() -> None:
        for number in range(5):
            (folder / "work" / f"{number}.yaml").write_text(f"{number}\n" * chance.randrange(1, 200))
            git(folder / "work", "add", ".")
            git(folder / "work", "commit", "-qm", str(number))
            git(folder / "work", "push", "-q", "origin", "HEAD:main")

    def propose() -> None:
        for number in range(30):
            base = repo.repo.commit(first)
            tree = edit_tree(repo.repo, base.tree, {f"p{number}.yaml": b"p\n"})
            proposed.append(commit_tree(repo.repo, tree, [first], f"proposed {number}", number))

    def read() -> None:
        while not done.is_set():
            for commit in [first, *proposed]:
                entry = long_open.entry_at(long_open.commit(commit).tree, "a.yaml")
                assert entry is not None
                assert long_open.blob(entry.id) == b"0\n"

    def tidy() -> None:
        while not done.is_set():
            packing.pack(repo.path)

    first, proposed = repo.head, list[str]()
    others = [guarded(read), guarded(tidy)]
    for thread in [guarded(push), guarded(propose)]:
        thread.join(60)
    left = keep(repo.repo, proposed[-1], first, date(2026, 1, 1))
    done.set()
    for thread in others:
        thread.join(60)
    assert not errors, errors
    packing.pack(repo.path)
    assert packing.load(repo.path).loose == 0
    assert git(repo.path, "fsck", "--full", "--no-dangling") == ""
    again = Repository(repo.path)
    assert again.ref(repo.ref) == git(folder / "work", "rev-parse", "HEAD")
    assert left is not None
    assert all(again.has(commit) for commit in proposed)
