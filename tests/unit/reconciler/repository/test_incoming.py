"""What a URL sends is taken if it is all there: checked by what was sent, whatever the mirror holds beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.packs import CONTENTS, FILE, LINK, TREE, Content, Objects, bomb, edited, wide

from apiserver import gitvouch
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import Mirror

Git = Callable[..., str]
NOWHERE = "1234567890" * 4
GONE = ["no blob", "no subtree", "no tree", "no parent", "no commit", "no link's target", "a blob for a tree",
        "an old blob for a tree", "a commit's tree is a blob", "a parent is a tree", "damaged", "nothing"]  # fmt: skip


def mirror_of(tmp_path: Path, source: Path) -> Mirror:
    return Mirror(tmp_path / "data", f"file://{source}", "main", "treeplane/status")


def state(git: Git, mirror: Mirror) -> tuple[str, str, list[str]]:
    """Refs, objects, and what else lies among these."""
    refs = git(mirror.path, "for-each-ref")
    others = [path.name for path in mirror.path.glob("objects/*") if path.name.startswith("tmp_")]
    return refs, git(mirror.path, "cat-file", "--batch-all-objects", "--batch-check"), others


@pytest.fixture
def source(tmp_path: Path, git: Git) -> Path:
    git(tmp_path, "init", "-q", "--bare", "source.git")
    return tmp_path / "source.git"


# --- what it costs


def reads(tmp_path: Path, source: Path, git: Git, monkeypatch: pytest.MonkeyPatch, directories: int) -> list[int]:
    """How often git opens an object of the mirror's packs for one changed file, and when it is taken back."""
    made, log, found = Objects(), tmp_path / "reads", []
    tip = wide(source, directories)
    mirror = mirror_of(tmp_path / str(directories), source)
    mirror.refresh()
    changed = edited(made, source, tip, "fleet/00003/07/a.yaml", "other")
    back = made.commit(git(source, "rev-parse", f"{tip}^{{tree}}"), changed)
    made.store(source, made.made)
    for new in (changed, back):
        git(source, "update-ref", "refs/heads/main", new)
        log.write_text("")
        with monkeypatch.context() as traced:
            traced.setenv("GIT_TRACE_PACK_ACCESS", str(log))
            assert mirror.refresh().desired == new
        found.append(sum(str(mirror.path) in line for line in log.read_text().splitlines()))
    git(source, "update-ref", "-d", "refs/heads/main")
    return found


def test_a_fetch_is_checked_by_what_it_changes(
    tmp_path: Path, source: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a repository with ten times as many directories, as many objects are opened."""
    few = reads(tmp_path, source, git, monkeypatch, 1_000)
    assert all(0 < count < 60 for count in few)
    assert reads(tmp_path, source, git, monkeypatch, 10_000) == few


# --- what lies


def lying(tmp_path: Path, source: Path, pack: bytes) -> None:
    """From now on every fetch from this machine is answered with this pack."""
    answer, program = tmp_path / "answer.pack", tmp_path / "answer"
    answer.write_bytes(pack)
    program.write_text(f"#!/bin/sh\ncat >/dev/null\ncat {answer}\n")
    program.chmod(0o755)
    (tmp_path / "gitconfig").write_text(f"[uploadpack]\n\tpackObjectsHook = {program}\n")


@pytest.mark.parametrize("kind", GONE)
def test_what_lies_is_refused_by_name_and_leaves_nothing(tmp_path: Path, source: Path, git: Git, kind: str) -> None:
    made = Objects()
    old = made.blob("a")
    first = made.commit(made.tree([(FILE, "a", old)]))
    made.store(source, made.made)
    git(source, "update-ref", "refs/heads/main", first)
    mirror = mirror_of(tmp_path, source)
    assert mirror.refresh().desired == first
    before, there = state(git, mirror), set(made.made)
    blob, inner = made.blob("new"), made.tree([(FILE, "x", made.blob("x"))])
    honest = made.tree([(FILE, "n", blob), (TREE, "t", inner)])
    other = made.commit(honest, first, message="other")
    lies = {
        "no blob": (other, blob),
        "no subtree": (other, inner),
        "no tree": (other, honest),
        "no parent": (made.commit(honest, other, message="child"), other),
        "no commit": (other, other),
        "no link's target": (made.commit(made.tree([(LINK, "l", NOWHERE)]), first), NOWHERE),
        "a blob for a tree": (made.commit(made.tree([(TREE, "t", blob)]), first), blob),
        "an old blob for a tree": (made.commit(made.tree([(TREE, "t", old)]), first), old),
        "a commit's tree is a blob": (made.commit(blob, first), blob),
        "a parent is a tree": (made.commit(honest, inner), inner),
        "damaged": (other, ""),
        "nothing": (other, other),
    }
    tip, named = lies[kind]
    made.store(source, made.made)
    git(source, "update-ref", "--no-deref", "refs/heads/main", tip)
    lost = {named} if kind.startswith("no ") else set()
    pack = made.pack(set(made.made) - there - lost) if kind != "nothing" else made.pack([])
    if kind == "damaged":
        pack = pack[:40] + bytes([pack[40] ^ 1]) + pack[41:]
    lying(tmp_path, source, pack)
    with pytest.raises(RepositoryUnreadable, match=f"cannot be fetched(.|\n)*{named}"):
        mirror.refresh()
    assert state(git, mirror) == before
    if not lost and kind not in ("damaged", "nothing"):
        return
    lying(tmp_path, source, made.pack(set(made.made) - there))
    if named != NOWHERE:
        assert mirror.refresh().desired == tip
        assert mirror.repository.ref("refs/remotes/origin/main") == tip


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.lists(CONTENTS, min_size=2, max_size=4), data=st.data())
def test_a_pack_that_lacks_anything_is_refused(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, git: Git, contents: list[Content], data: st.DataObject
) -> None:
    """Any directories, in commits upon each other, and of all that is new one object left out."""
    folder, made, tip = tmp_path_factory.mktemp("fuzzed"), Objects(), ""
    source = folder / "source.git"
    git(folder, "init", "-q", "--bare", "source.git")
    mirror, there = mirror_of(folder, source), set[str]()
    for number, content in enumerate(contents):
        tip = made.commit(made.planted(content), *[tip][: bool(tip)], message=str(number))
        made.store(source, made.made)
        git(source, "update-ref", "refs/heads/main", tip)
        before, needed = state(git, mirror), made.reachable(tip) - there
        lying(tmp_path, source, made.pack(needed - {data.draw(st.sampled_from(sorted(needed)))}))
        with pytest.raises(RepositoryUnreadable):
            mirror.refresh()
        assert state(git, mirror) == before
        lying(tmp_path, source, made.pack(needed))
        assert mirror.refresh().desired == tip
        there |= needed


def test_what_came_beside_another_commit_is_looked_at_when_a_branch_is_there(
    tmp_path: Path, source: Path, git: Git
) -> None:
    """A pack may hold more than was asked for."""
    made = Objects()
    first = made.commit(made.tree([(FILE, "a", made.blob("a"))]))
    lost = made.blob("lost")
    beside = made.commit(made.tree([(FILE, "b", lost)]), first)
    made.store(source, made.made)
    git(source, "update-ref", "refs/heads/main", first)
    lying(tmp_path, source, made.pack(set(made.made) - {lost}))
    mirror = mirror_of(tmp_path, source)
    assert mirror.refresh().desired == first
    assert mirror.repository.has(beside)
    git(source, "update-ref", "refs/heads/main", beside)
    lying(tmp_path, source, made.pack([]))
    with pytest.raises(RepositoryUnreadable, match=lost):
        mirror.refresh()
    lying(tmp_path, source, made.pack([lost]))
    assert mirror.refresh().desired == beside


def test_trees_whose_paths_do_not_end_are_left_to_git(
    tmp_path: Path, source: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((key, command),) = gitvouch.SETTINGS.items()
    monkeypatch.setattr(gitvouch, "SETTINGS", {key: command.replace("ulimit -t 20", "ulimit -t 1")})
    mirror, tips = mirror_of(tmp_path, source), list[str]()
    for text in ("one", "two"):
        made = Objects()
        tips.append(made.commit(bomb(made, text), *tips))
        made.store(source, made.made)
        git(source, "update-ref", "refs/heads/main", tips[-1])
        lying(tmp_path, source, made.pack(made.made))  # whoever answers has the same trouble, and is another
        assert mirror.refresh().desired == tips[-1]


def test_a_branch_that_goes_back_is_there_without_a_transfer(tmp_path: Path, source: Path, git: Git) -> None:
    made = Objects()
    first = made.commit(made.tree([(FILE, "a", made.blob("a"))]))
    second = made.commit(made.tree([(FILE, "a", made.blob("b"))]), first)
    made.store(source, made.made)
    mirror = mirror_of(tmp_path, source)
    for tip in (second, first, second):
        git(source, "update-ref", "refs/heads/main", tip)
        assert mirror.refresh().desired == tip
    assert len(list(mirror.path.glob("objects/pack/*.pack"))) == 1


@pytest.mark.parametrize("name", ["two words", "a:b", 'quo"te', "back\\slash", "$(touch x)", "it's"])
def test_a_mirror_whose_path_is_no_plain_word(tmp_path: Path, source: Path, git: Git, name: str) -> None:
    made = Objects()
    first = made.commit(made.tree([(FILE, "a", made.blob("a"))]))
    second = made.commit(made.tree([(FILE, "a", made.blob("b"))]), first)
    made.store(source, made.made)
    mirror = mirror_of(tmp_path / name, source)
    for tip in (first, second):
        git(source, "update-ref", "refs/heads/main", tip)
        assert mirror.refresh().desired == tip
    assert not list(tmp_path.rglob("x"))
