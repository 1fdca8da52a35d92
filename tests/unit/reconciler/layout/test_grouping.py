"""What is remembered of directories, from one tree to the next: it changes what is read, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.layout.grouping import Grouping
from reconciler.layout.tree import WorkspaceTree
from reconciler.repository.objects import Repository
from reconciler.repository.write import edit_tree

R = "workspaces/root"
Files = dict[str, bytes]
Reads = Callable[[], int]


@pytest.fixture
def reads(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """How many objects were read of git since it was asked last."""
    found: list[object] = []
    raw = repo.raw
    monkeypatch.setattr(repo, "raw", lambda *a: found.append(a) or raw(*a))

    def count() -> int:
        repo._narrow = {}
        number = len(found)
        found.clear()
        return number

    return count


def flat(count: int) -> Files:
    return {f"{R}/a.yaml": b"1", f"{R}/apps/x/b.yaml": b"2"} | {
        f"{R}/w{n}/workspace.yaml": b"# %d" % n for n in range(count)
    }


def spread(count: int) -> Files:
    """In directories that only group."""
    found = {f"{R}/a.yaml": b"1", f"{R}/apps/x/b.yaml": b"2"}
    return found | {f"{R}/{n % 4}/{n % 8}/w{n}/workspace.yaml": b"# %d" % n for n in range(count)}


class Trees:
    """Trees of one repository that share what is remembered."""

    def __init__(self, repo: Repository) -> None:
        self.repo, self.grouping = repo, Grouping(repo)

    def at(self, files: Files, claims: dict[str, str] | None = None) -> WorkspaceTree:
        return WorkspaceTree(self.repo, edit_tree(self.repo, None, files), claims, self.grouping)


def own(tree: WorkspaceTree, path: str) -> list[str]:
    found = tree.find(path)
    return sorted(file for file, _ in tree.files(found._replace(files=None))) if found is not None else []


@pytest.mark.parametrize("fleet", [flat, spread])
def test_own_files_beside_workspaces_are_found_without_opening_those(
    repo: Repository, reads: Reads, fleet: Callable[[int], Files]
) -> None:
    trees, files, found = Trees(repo), fleet(64), [f"{R}/a.yaml", f"{R}/apps/x/b.yaml"]
    tree = trees.at(files)
    reads()
    assert own(tree, "root") == found
    assert reads() > 64
    assert own(trees.at(files), "root") == found
    assert reads() < 12

    tree = trees.at({**files, f"{R}/a.yaml": b"another", f"{R}/apps/c.yaml": b"", f"{R}/more/new/workspace.yaml": b""})
    reads()
    assert own(tree, "root") == [f"{R}/a.yaml", f"{R}/apps/c.yaml", f"{R}/apps/x/b.yaml"]
    assert reads() < 16


@pytest.mark.parametrize("fleet", [flat, spread])
def test_a_name_is_sought_without_opening_workspaces(
    repo: Repository, reads: Reads, fleet: Callable[[int], Files]
) -> None:
    trees, files = Trees(repo), fleet(64)
    assert trees.at(files).find("root:nobody") is None
    tree = trees.at({**files, f"{R}/apps/x/late/workspace.yaml": b""})
    reads()
    assert tree.find("root:nobody") is None
    assert tree.directories("root:late") == [f"{R}/apps/x/late"]
    assert reads() < 48, "the directories that group, and no workspace"


def test_a_workspace_that_becomes_a_directory_is_its_parents(repo: Repository) -> None:
    trees, files = Trees(repo), {**flat(4), f"{R}/w1/c.yaml": b""}
    assert f"{R}/w1/c.yaml" not in own(trees.at(files), "root")
    del files[f"{R}/w1/workspace.yaml"]
    assert f"{R}/w1/c.yaml" in own(trees.at(files), "root")


def test_a_claim_that_ends_leaves_its_files_to_the_parent(repo: Repository) -> None:
    trees, files = Trees(repo), {**flat(4), f"{R}/gone/c.yaml": b""}
    assert f"{R}/gone/c.yaml" not in own(trees.at(files, {f"{R}/gone": "root:gone"}), "root")
    assert f"{R}/gone/c.yaml" in own(trees.at(files), "root")


def test_what_is_remembered_is_bounded(repo: Repository) -> None:
    grouping = Grouping(repo, most=8 * 1024)
    for number in range(64):
        files = {f"{R}/{number}/g/w/workspace.yaml": b"", f"{R}/{number}/workspace.yaml": b""}
        tree = WorkspaceTree(repo, edit_tree(repo, None, files), None, grouping)
        assert own(tree, f"root:{number}") == []
        assert grouping._known.size <= 8 * 1024
    assert len(grouping._known._kept) > 2


def test_a_tree_that_is_gone_from_the_repository_is_looked_at_anew(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees, files = Trees(repo), flat(4)
    assert own(trees.at(files), "root")
    known = trees.grouping._known.get(R)
    assert known is not None
    trees.grouping._known.put(R, known._replace(tree="0" * 40), 1)
    assert own(trees.at({**files, f"{R}/z.yaml": b""}), "root") == [*own(trees.at(files), "root"), f"{R}/z.yaml"]


# -- against a memory that is empty

NAMES = st.sampled_from(["a", "b", "c"])
DIRECTORIES = st.lists(NAMES, max_size=4).map(lambda parts: "/".join([R, *parts]))
FILES = st.sampled_from(["workspace.yaml", "workspace.yaml", "x.yaml", "note.txt"])
IGNORED = st.sampled_from(["a/\n", "/b/\n", "workspace.yaml\n", "x.yaml\n", "c/\n!c/\n"])
FLEETS = st.dictionaries(st.tuples(DIRECTORIES, FILES).map("/".join), st.sampled_from([b"1", b"2"]), max_size=14)
RULES = st.dictionaries(DIRECTORIES.map("{}/.treeplaneignore".format), IGNORED.map(str.encode), max_size=1)
CLAIMS = st.dictionaries(DIRECTORIES.filter(lambda d: d != R), st.just("root:claimed"), max_size=2)
VERSIONS = st.tuples(FLEETS, RULES, CLAIMS)


def questions(tree: WorkspaceTree) -> Iterator[object]:
    """Own files of each workspace, and where each path, or one that is not there, stands."""
    seen = list(tree.workspaces())
    for each in seen:
        yield list(tree.files(each._replace(files=None)))
    for path in ("root:a", "root:b:c", "root:claimed", *(each.path for each in seen)):
        yield tree.directories(path)
        yield tree.find(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(VERSIONS, min_size=2, max_size=4), turns=st.lists(st.integers(0, 3), max_size=6))
def test_answers_do_not_depend_on_what_is_remembered(
    repo: Repository, versions: list[tuple[Files, Files, dict[str, str]]], turns: list[int]
) -> None:
    trees = Trees(repo)
    for number in [*range(len(versions)), *turns]:
        files, rules, claims = versions[number % len(versions)]
        tree = trees.at({**files, **rules, f"{R}/always.yaml": b""}, claims)
        fresh = WorkspaceTree(repo, tree.tree_id, claims)
        assert list(questions(tree)) == list(questions(fresh))
