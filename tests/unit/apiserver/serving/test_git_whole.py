"""What a push says is there, is there: checked by what the push brings, whatever the repository holds beside it."""

import http.client
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.packs import CONTENTS, FILE, LINK, SUBMODULE, TREE, Objects, bomb, edited, push_body, wide

from apiserver import gitvouch
from apiserver.endpoints import git as endpoint

ZERO, NOWHERE = "0" * 40, "1234567890" * 4


def plumbing(running: Any, *arguments: str, given: str = "") -> str:
    command = ["git", "--git-dir", str(running.settings.git_dir), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout.strip()


def push(running: Any, body: bytes) -> str:
    """What is answered, as far as it is text."""
    context = ssl.create_default_context(cafile=running.keys.ca)
    context.load_cert_chain(running.keys.admin.certificate, running.keys.admin.key)
    asking = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=60)
    asking.request("POST", "/git/fleet.git/git-receive-pack", body, {"Content-Type": RECEIVE})
    answer = asking.getresponse().read().decode(errors="replace")
    asking.close()
    return answer


RECEIVE = "application/x-git-receive-pack-request"


def state(running: Any) -> tuple[str, str, list[str]]:
    """Refs, objects, and what else lies among these."""
    found = plumbing(running, "cat-file", "--batch-all-objects", "--batch-check")
    others = [str(path) for path in running.settings.git_dir.glob("objects/*") if "tmp_objdir" in path.name]
    return plumbing(running, "for-each-ref"), found, others


# --- what it costs


def reads(running: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, directories: int) -> dict[str, int]:
    """How often the server's git opens an object of a pack, for a push of one file and for one that takes it back."""
    branch = f"fleet{directories}"
    tip = wide(running.settings.git_dir, directories, branch)
    log, made, found = tmp_path / "reads", Objects(), {}
    before = endpoint._environment
    monkeypatch.setattr(endpoint, "_environment", lambda *given: {**before(*given), "GIT_TRACE_PACK_ACCESS": str(log)})
    changed = edited(made, running.settings.git_dir, tip, "fleet/00003/07/a.yaml", f"other of {directories}")
    back = made.commit(plumbing(running, "rev-parse", f"{tip}^{{tree}}"), changed, message="back")
    pushes = {"changed": (tip, changed, set(made.made) - {back}), "back": (changed, back, {back})}
    for name, (old, new, names) in pushes.items():
        log.write_text("")
        answer = push(running, push_body([(old, new, f"refs/heads/{branch}")], made.pack(names)))
        assert "ok refs/heads/" in answer
        found[name] = len(log.read_text().splitlines())
    monkeypatch.undo()
    plumbing(running, "update-ref", "-d", f"refs/heads/{branch}")
    return found


def test_a_push_is_checked_by_what_it_changes(running: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a repository with ten times as many directories, as many objects are opened."""
    few = reads(running, monkeypatch, tmp_path, 1_000)
    assert all(0 < count < 50 for count in few.values())
    assert reads(running, monkeypatch, tmp_path, 10_000) == few


# --- what lies


@pytest.fixture
def based(running: Any) -> tuple[Any, Objects, str]:
    """The server, what is in its repository, and where main is: a directory with two files, a third beside it."""
    made = Objects()
    inner = made.tree([(FILE, "a", made.blob("a")), (FILE, "b", made.blob("b"))])
    first = made.commit(made.tree([(TREE, "dir", inner), (FILE, "c", made.blob("c"))]))
    answer = push(running, push_body([(ZERO, first, "refs/heads/main")], made.pack(made.made)))
    assert "ok refs/heads/main" in answer
    return running, made, first


def lie(made: Objects, first: str, kind: str) -> tuple[str, set[str], str]:
    """The commit that is pushed, what the pack lacks of what was made for it, and what a refusal has to name."""
    blob, inner = made.blob(f"new {kind}"), made.tree([(FILE, "x", made.blob(f"x {kind}"))])
    old = next(name for name, (what, _) in made.made.items() if what == "blob")
    honest = made.tree([(FILE, "n", blob), (TREE, "t", inner)])
    other = made.commit(honest, first, message="other")
    match kind:
        case "no blob":
            return other, {blob}, blob
        case "no subtree":
            return other, {inner}, inner
        case "no tree":
            return other, {honest}, honest
        case "no parent":
            return made.commit(honest, other, message="child"), {other}, other
        case "no commit":
            return other, {other}, other
        case "no link's target":
            return made.commit(made.tree([(LINK, "l", NOWHERE)]), first), set(), NOWHERE
        case "a blob for a tree":
            return made.commit(made.tree([(TREE, "t", blob)]), first), set(), blob
        case "an old blob for a tree":
            return made.commit(made.tree([(TREE, "t", old)]), first), set(), old
        case "a tree for a blob":
            return made.commit(made.tree([(FILE, "n", inner)]), first), set(), inner
        case "a commit for a blob":
            return made.commit(made.tree([(FILE, "n", first)]), first), set(), first
        case "a commit's tree is a blob":
            return made.commit(blob, first), set(), blob
        case "a parent is a tree":
            return made.commit(honest, inner), set(), inner
        case "a tag of nothing":
            return made.tag(NOWHERE, "commit"), set(), NOWHERE
        case _:
            return made.tag(honest, "commit"), set(), honest


LIES = ["no blob", "no subtree", "no tree", "no parent", "no commit", "no link's target", "a blob for a tree",
        "an old blob for a tree", "a tree for a blob", "a commit for a blob", "a commit's tree is a blob",
        "a parent is a tree", "a tag of nothing", "a tag of another kind"]  # fmt: skip


@pytest.mark.parametrize("kind", LIES)
def test_a_push_that_lies_is_refused_by_name(based: tuple[Any, Objects, str], kind: str) -> None:
    running, made, first = based
    there, before = set(made.made), state(running)
    tip, without, named = lie(made, first, kind)
    ref = "refs/tags/t" if made.made[tip][0] == "tag" else "refs/heads/side"
    answer = push(running, push_body([(ZERO, tip, ref)], made.pack(set(made.made) - there - without)))
    assert f"ng {ref}" in answer
    assert named in answer
    assert state(running) == before


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_pack_that_lacks_anything_is_refused(based: tuple[Any, Objects, str], data: st.DataObject) -> None:
    """Any directories, in any commits, upon each other or what is there, and of all that one object left out, or
    damaged."""
    running, base, first = based
    made, commits = Objects(), [first]
    for number in range(data.draw(st.integers(1, 3))):
        parents = data.draw(st.lists(st.sampled_from(commits), max_size=2, unique=True))
        commits.append(made.commit(made.planted(data.draw(CONTENTS)), *parents, message=f"{number}"))
    tip = commits[-1]
    needed = made.reachable(tip)
    lost = data.draw(st.sampled_from(sorted(needed)))
    if lost in base.made:
        return
    before = state(running)
    pack = made.pack(needed - {lost})
    if data.draw(st.booleans()):
        pack, at = made.pack(needed), data.draw(st.integers(12, len(made.pack(needed)) - 1))
        pack = pack[:at] + bytes([pack[at] ^ data.draw(st.integers(1, 255))]) + pack[at + 1 :]
    answer = push(running, push_body([(ZERO, tip, "refs/heads/side")], pack))
    assert "ng refs/heads/side" in answer
    assert state(running) == before
    answer = push(running, push_body([(ZERO, tip, "refs/heads/side")], made.pack(needed)))
    assert "ok refs/heads/side" in answer
    plumbing(running, "fsck", "--strict", "--no-dangling")
    forget(running, before)


def forget(running: Any, before: tuple[str, str, list[str]]) -> None:
    """The branch, and what came with it."""
    plumbing(running, "update-ref", "-d", "refs/heads/side")
    plumbing(running, "prune", "--expire=now")
    plumbing(running, "repack", "-adq")
    assert state(running) == before


def test_what_a_refused_push_brought_is_not_there(based: tuple[Any, Objects, str]) -> None:
    """Neither of one that lied, nor of one whose ref was not to be had."""
    running, made, first = based
    there = set(made.made)
    blob = made.blob("gone")
    tip = made.commit(made.tree([(FILE, "n", blob)]), first)
    lying = made.commit(made.tree([(FILE, "m", NOWHERE)]), tip)
    new = set(made.made) - there
    refused = push(running, push_body([(ZERO, lying, "refs/heads/side")], made.pack(new)))
    assert "ng refs/heads/side" in refused
    later = made.commit(made.tree([(FILE, "other", blob)]), first)
    pack = made.pack(made.reachable(later) - {blob} - there)
    for _ in range(2):
        answer = push(running, push_body([(ZERO, later, "refs/heads/side")], pack))
        assert "ng refs/heads/side" in answer
        assert blob in answer
        refused = push(running, push_body([(ZERO, tip, "refs/heads/treeplane/x")], made.pack(new - {lying})))
        assert "ng refs/heads/treeplane/x" in refused


def test_what_is_there_and_not_whole_does_not_count(based: tuple[Any, Objects, str]) -> None:
    """No push leaves such a thing. Whoever empties a repository by hand may, and a disk."""
    running, made, first = based
    half = made.tree([(FILE, "n", made.blob("was lost"))])
    made.store(running.settings.git_dir, [half])
    before = state(running)
    tip = made.commit(half, first)
    answer = push(running, push_body([(ZERO, tip, "refs/heads/side")], made.pack([tip])))
    assert "ng refs/heads/side missing necessary objects" in answer
    assert made.blob("was lost") in answer
    assert state(running) == before
    made.store(running.settings.git_dir, [made.blob("was lost")])
    answer = push(running, push_body([(ZERO, tip, "refs/heads/side")], made.pack([tip])))
    assert "ok refs/heads/side" in answer


def test_a_commit_that_is_there_and_not_whole_is_no_branch(based: tuple[Any, Objects, str]) -> None:
    running, made, first = based
    tip = made.commit(made.tree([(FILE, "n", made.blob("was lost"))]), first)
    made.store(running.settings.git_dir, made.reachable(tip) - set(made.made) | {tip})
    answer = push(running, push_body([(ZERO, tip, "refs/heads/side")], made.pack([])))
    assert "ng refs/heads/side missing necessary objects" in answer
    assert plumbing(running, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_push_of_what_is_all_there(based: tuple[Any, Objects, str]) -> None:
    """A revert to a tree of before, a branch at a commit of before, and a submodule, whose commit is another's."""
    running, made, first = based
    second = made.commit(made.tree([(FILE, "c", made.blob("c")), (SUBMODULE, "s", NOWHERE)]), first)
    answer = push(running, push_body([(first, second, "refs/heads/main")], made.pack(made.reachable(second))))
    assert "ok refs/heads/main" in answer
    tree = made.made[first][1].decode().split()[1]
    third = made.commit(tree, second)
    answer = push(running, push_body([(second, third, "refs/heads/main")], made.pack([third])))
    assert "ok refs/heads/main" in answer
    tag = made.tag(first, "commit")
    changes = [(ZERO, first, "refs/heads/old"), (ZERO, tag, "refs/tags/t"), (ZERO, tree, "refs/tags/tree")]
    answer = push(running, push_body(changes, made.pack([tag])))
    assert answer.count("ok refs/") == 3


def test_trees_whose_paths_do_not_end_are_left_to_git(
    based: tuple[Any, Objects, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, _, first = based
    ((key, command),) = gitvouch.SETTINGS.items()
    monkeypatch.setattr(gitvouch, "SETTINGS", {key: command.replace("ulimit -t 20", "ulimit -t 1")})
    for text in ("one", "two"):
        made = Objects()
        tip = made.commit(bomb(made, text), first)
        answer = push(running, push_body([(first, tip, "refs/heads/main")], made.pack(made.made)))
        assert "ok refs/heads/main" in answer
        first = tip


@pytest.mark.parametrize("name", ["two words", "a:b", 'quo"te', "back\\slash", "$(touch x)", "it's", "new\nline"])
def test_a_repository_whose_path_is_no_plain_word(tmp_path: Path, git: Any, name: str) -> None:
    """Where git would read its path for another, nothing is vouched for, and git looks by itself."""
    where, made = tmp_path / name / "fleet.git", Objects()
    where.mkdir(parents=True)
    assert git(where, "init", "-q", "--bare").returncode == 0
    git(tmp_path, "init", "-q", "--bare", "from.git")
    first = made.commit(made.tree([(FILE, "a", made.blob("a"))]))
    second = made.commit(made.tree([(FILE, "a", made.blob("b"))]), first)
    made.store(tmp_path / "from.git", made.made)
    ((key, value),) = gitvouch.SETTINGS.items()
    settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": value}
    for tip in (first, second):
        told = {**settings, **gitvouch.variables([tip])}
        done = git(tmp_path / "from.git", "push", str(where), f"{tip}:refs/heads/main", environment=told)
        assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("x"))
