from __future__ import annotations

from collections.abc import Callable, Mapping
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.layout import compare, ignore
from reconciler.layout.compare import Known, Touched, changes
from reconciler.layout.errors import BadFile
from reconciler.layout.level import Level
from reconciler.layout.tree import WorkspaceTree
from reconciler.repository import objects
from reconciler.repository.objects import Repository

Planted = Callable[..., WorkspaceTree]
Files = dict[str, bytes]
R = "workspaces/root"
MARK = "workspace.yaml"
FLEET: Files = {
    f"{R}/a.yaml": b"1",
    f"{R}/shop/{MARK}": b"",
    f"{R}/shop/x/d.yaml": b"2",
    f"{R}/shop/web/{MARK}": b"",
    f"{R}/shop/web/y.yaml": b"3",
    f"{R}/7f/bank/{MARK}": b"",
    f"{R}/7f/g.yaml": b"4",
}


def touched(new: WorkspaceTree, old: WorkspaceTree, known: Known | None = None) -> Touched:
    """What became of the paths; `places` and `left`, by-products, are checked here."""
    found = compare.touched(new, old, known)
    assert found.removed <= {*found.left}
    for tree, places in ((new, found.places), (old, found.left)):
        for path in places:
            place = places.get(path)
            assert place is not None and place.path == path
            there = tree.at(place.directory)
            assert there == place._replace(files=None)
            if place.files is not None:
                assert list(tree.files(there)) == list(tree.files(place))
    return found


def told(new: WorkspaceTree, old: WorkspaceTree, path: str) -> dict[str, str]:
    """Own files that changed, in words."""
    now, was = new.find(path), old.find(path)
    assert now is not None
    words = {(False, True): "created", (True, False): "deleted", (True, True): "configured"}
    return {c.path: words[c.old is not None, c.new is not None] for c in changes(new, now, old, was)}


@pytest.fixture
def old(planted: Planted) -> WorkspaceTree:
    return planted(FLEET)


def test_the_same_tree_touches_nothing(old: WorkspaceTree, planted: Planted) -> None:
    assert touched(planted({}, old), old) == Touched()


def test_an_own_file_touches_its_workspace_only(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/web/y.yaml": b"new", f"{R}/shop/web/more/z.yaml": b"", f"{R}/shop/notes.txt": b""}, old)
    assert touched(new, old) == Touched(changed={"root:shop:web"})
    assert told(new, old, "root:shop:web") == {
        f"{R}/shop/web/more/z.yaml": "created",
        f"{R}/shop/web/y.yaml": "configured",
    }
    assert told(new, old, "root:shop") == {}


def test_a_workspace_manifest_touches_its_workspace(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/{MARK}": b"kind: Workspace"}, old)
    assert touched(new, old) == Touched(changed={"root:shop"})
    assert told(new, old, "root:shop") == {}
    renamed = planted({f"{R}/shop/{MARK}": None, f"{R}/shop/workspace.yml": b""}, old)
    assert touched(renamed, old) == Touched(changed={"root:shop"})


def test_workspaces_come_and_go(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop": None, f"{R}/bar/{MARK}": b"", f"{R}/bar/b.yaml": b""}, old)
    assert touched(new, old) == Touched(appeared={"root:bar"}, removed={"root:shop", "root:shop:web"})
    assert told(new, old, "root:bar") == {f"{R}/bar/b.yaml": "created"}
    back = touched(old, new)
    assert back == Touched(appeared={"root:shop", "root:shop:web"}, removed={"root:bar"})


def test_files_go_over_when_a_child_appears_between(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/x/{MARK}": b""}, old)
    assert touched(new, old) == Touched(changed={"root:shop"}, appeared={"root:shop:x"})
    assert told(new, old, "root:shop") == {f"{R}/shop/x/d.yaml": "deleted"}
    assert told(new, old, "root:shop:x") == {f"{R}/shop/x/d.yaml": "created"}


def test_a_moved_directory_is_a_change(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/7f/bank": None, f"{R}/9/bank/{MARK}": b"", f"{R}/9/bank/f.yaml": b""}, old)
    assert touched(new, old) == Touched(changed={"root:bank"})
    assert told(new, old, "root:bank") == {f"{R}/9/bank/f.yaml": "created"}
    assert touched(new, old, lambda path: [f"{R}/7f/bank"]) == Touched(changed={"root:bank"})


def test_left_behind_manifests_stay_their_workspaces(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/{MARK}": None}, old)
    left = [f"{R}/shop/web/{MARK}", f"{R}/shop/web/y.yaml", f"{R}/shop/x/d.yaml"]
    assert touched(new, old) == Touched(changed={"root:shop"})
    assert new.claims == {f"{R}/shop": "root:shop"}
    assert told(new, old, "root") == {}
    root, shop = new.find("root"), new.find("root:shop")
    assert root is not None
    assert shop is not None
    assert sorted(p for p, _ in new.files(root)) == [f"{R}/7f/g.yaml", f"{R}/a.yaml"]
    assert new.find("root:shop:web") is not None
    assert new.find("root:web") is None
    assert sorted(w.path for w in new.workspaces()) == ["root", "root:bank", "root:shop", "root:shop:web"]
    (error,) = new.problems(shop)
    assert str(error) == (
        f"{R}/shop/{MARK}: was removed, but manifests remain below it: {', '.join(left)}"
        " (remove or move them too, or put it back)"
    )
    # A later commit elsewhere changes nothing about that, one inside is the workspace's still …
    elsewhere = planted({f"{R}/a.yaml": b"5"}, new)
    assert touched(elsewhere, new) == Touched(changed={"root"})
    assert elsewhere.claims == new.claims
    inside = planted({f"{R}/shop/x/d.yaml": b"5"}, new)
    assert touched(inside, new) == Touched(changed={"root:shop"})
    # … until the rest goes too, or the file comes back.
    gone = planted({f"{R}/shop": None}, new)
    assert touched(gone, new) == Touched(removed={"root:shop", "root:shop:web"})
    assert gone.claims == {}
    back = planted({f"{R}/shop/{MARK}": b""}, new)
    assert touched(back, new) == Touched(changed={"root:shop"})
    assert back.claims == {}


def test_a_second_directory_of_one_path(old: WorkspaceTree, planted: Planted) -> None:
    for known in (None, lambda path: [f"{R}/7f/bank"] if path == "root:bank" else []):
        twice = planted({f"{R}/8/bank/{MARK}": b""}, old)
        assert touched(twice, old, known) == Touched(changed={"root:bank"})
        assert twice.duplicates == {"root:bank": [f"{R}/7f/bank", f"{R}/8/bank"]}
        once = planted({f"{R}/7f/bank": None}, twice)
        assert touched(once, twice, lambda path: []) == Touched(changed={"root:bank"})
        assert once.duplicates == {}
        more = planted({f"{R}/8/bank/x.yaml": b""}, twice)
        assert touched(more, twice, lambda path: []) == Touched(changed={"root:bank"})
        assert more.duplicates == twice.duplicates


def test_directories_of_one_path_are_told_in_one_order_however_they_were_found(planted: Planted) -> None:
    at = [f"{R}/{group}c" for group in ("0/", "1/", "")]
    searched = planted({f"{each}/{MARK}": b"" for each in at})
    searched.find_twins("root:c")
    listed = planted({f"{each}/{MARK}": b"" for each in at})
    list(listed.workspaces())
    assert searched.duplicates == listed.duplicates == {"root:c": sorted(at)}


def test_of_two_directories_of_one_path_the_first_in_gits_order_is_its_place(
    old: WorkspaceTree, planted: Planted
) -> None:
    for number in range(8):  # in the order of a set, which is another in each process, some would come out wrong
        left, moved = f"{R}/w{number}", f"{R}/{number}/w{number}"
        before = planted({f"{left}/{MARK}": b"", f"{left}/a.yaml": b"1"}, old)
        after = planted({f"{left}/{MARK}": None, f"{moved}/{MARK}": b""}, before)
        place = touched(after, before).places.get(f"root:w{number}")
        assert place is not None and place.directory == moved


@pytest.mark.parametrize("more", [{}, {"own.yaml": b"5"}])
def test_of_workspaces_of_one_tree_each_is_where_it_stands(
    old: WorkspaceTree, planted: Planted, monkeypatch: pytest.MonkeyPatch, more: Files
) -> None:
    """All but the first of them are not opened."""
    alike = {f"{R}/{each}/{name}": said for each in ("g/a", "g/b", "h/c") for name, said in {MARK: b"", **more}.items()}
    new = planted(FLEET | alike)
    opened: list[str] = []
    look = WorkspaceTree.look

    def spy(tree: WorkspaceTree, tree_id: str, directory: str, stack: ignore.Stack) -> Level:
        opened.append(directory)
        return look(tree, tree_id, directory, stack)

    with monkeypatch.context() as patch:
        patch.setattr(WorkspaceTree, "look", spy)
        found = compare.touched(new, old, lambda _: [])
    assert f"{R}/g/a" in opened
    assert not {f"{R}/g/b", f"{R}/h/c"} & {*opened}
    assert found == touched(new, old)
    assert found.appeared == {"root:a", "root:b", "root:c"}


def test_what_is_like_the_second_directory_of_a_path_is_not_like_the_first(
    old: WorkspaceTree, planted: Planted
) -> None:
    said = {f"{R}/g/a/{MARK}": b"1", f"{R}/h/a/{MARK}": b"2", f"{R}/h/b/{MARK}": b"2", f"{R}/i/c/{MARK}": b"2"}
    assert touched(planted(FLEET | said), old).appeared == {"root:a", "root:b", "root:c"}


@pytest.mark.parametrize("rules", [f"{R}/.treeplaneignore", f"{R}/g/.treeplaneignore"])
def test_rules_count_for_each_of_one_tree(old: WorkspaceTree, planted: Planted, rules: str) -> None:
    alike = {f"{R}/g/{each}/{file}": b"" for each in "abc" for file in (MARK, "own.yaml")}
    new = planted(FLEET | alike | {rules: b"**/b/own.yaml\n"})
    places = touched(new, old).places
    own = {
        path: [file for file, _ in new.files(place)]
        for path in ["root:a", "root:b", "root:c"]
        if (place := places.get(path))
    }
    assert own == {"root:a": [f"{R}/g/a/own.yaml"], "root:b": [], "root:c": [f"{R}/g/c/own.yaml"]}


def test_ignore_rules_touch_what_they_hide_and_show(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/.treeplaneignore": b"web/\ng.yaml\n"}, old)
    assert touched(new, old) == Touched(changed={"root"}, removed={"root:shop:web"})
    assert told(new, old, "root") == {f"{R}/7f/g.yaml": "deleted"}
    assert told(new, old, "root:shop") == {}
    assert touched(old, new) == Touched(changed={"root"}, appeared={"root:shop:web"})
    top = planted({".treeplaneignore": b"d.yaml\n"}, old)
    assert touched(top, old) == Touched(changed={"root:shop"})
    assert told(top, old, "root:shop") == {f"{R}/shop/x/d.yaml": "deleted"}
    no_effect = planted({".treeplaneignore": b"# nothing\n"}, old)
    assert touched(no_effect, old) == Touched()


def test_a_lost_root_is_a_fault_and_removes_nothing(old: WorkspaceTree, planted: Planted) -> None:
    for lost in ({R: None, "x": b""}, {R: None, f"{R}/README.md": b""}):
        with pytest.raises(BadFile, match="nothing is deleted"):
            touched(planted(lost, old), old)


def test_cost_follows_change(planted: Planted, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"{R}/{i % 40:02x}/w{i}/{MARK}": b"" for i in range(4000)}
    files |= {f"{R}/{i % 40:02x}/w{i}/c.yaml": b"" for i in range(4000)}
    base = planted(files)
    new = planted({f"{R}/07/w7/c.yaml": b"new", f"{R}/08/new/{MARK}": b""}, base)
    reads = []
    raw = repo.raw
    monkeypatch.setattr(repo, "raw", lambda *a: reads.append(a) or raw(*a))
    found = touched(new, base, lambda path: [f"{R}/07/{path.removeprefix('root:')}"])
    assert found == Touched(changed={"root:w7"}, appeared={"root:new"})
    assert told_with_hint(new, base, f"{R}/07/w7") == 1
    assert len(reads) < 100


def told_with_hint(new: WorkspaceTree, old: WorkspaceTree, directory: str) -> int:
    now, was = new.at(directory), old.at(directory)
    assert now is not None
    return len(list(changes(new, now, old, was)))


# --- against a reference on dicts

Workspaces = dict[str, dict[str, tuple[bytes | None, Files]]]
"""path → directory → (workspace.yaml, own files)."""


def reference(files: Files, claims: Mapping[str, str]) -> Workspaces:
    marked = {p.rpartition("/")[0] for p in files if p.endswith("/" + MARK)} | {R} | claims.keys()
    found: Workspaces = {}
    place: dict[str, str] = {}
    for directory in sorted(marked, key=lambda d: d.count("/")):
        around = [d for d in marked if directory.startswith(d + "/")]
        path = claims.get(directory) if f"{directory}/{MARK}" not in files else None
        if path is None:
            path = f"{place[max(around, key=len)]}:{directory.rpartition('/')[2]}" if around else "root"
        place[directory] = path
        found.setdefault(path, {})[directory] = (files.get(f"{directory}/{MARK}"), {})
    for file, content in files.items():
        if not file.endswith("/" + MARK):
            directory = max((d for d in marked if file.startswith(d + "/")), key=len)
            found[place[directory]][directory][1][file] = content
    return found


def claims_after(old: Files, old_claims: Mapping[str, str], new: Files) -> dict[str, str]:
    before = {d: path for path, dirs in reference(old, old_claims).items() for d in dirs if d != R}
    return {
        d: path
        for d, path in before.items()
        if f"{d}/{MARK}" not in new and any(file.startswith(d + "/") for file in new)
    }


names = st.sampled_from(["a", "b", "c"])
directories = st.lists(names, max_size=4).map(lambda parts: "/".join([R, *parts]))
files_below = st.tuples(directories, st.sampled_from([MARK, MARK, "x.yaml", "y.json"])).map("/".join)
fleets = st.dictionaries(files_below, st.sampled_from([b"1", b"2"]), max_size=14).map(
    lambda files: {**files, f"{R}/always.yaml": b""}
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(fleets, min_size=2, max_size=4), with_known=st.booleans(), wide=st.booleans())
def test_touched_and_changes_agree_with_the_reference(
    planted: Planted, versions: list[Files], with_known: bool, wide: bool
) -> None:
    """`wide`: all directories are taken for such."""
    with patch.object(objects, "_WIDE", 0 if wide else objects._WIDE):
        check_touched(planted, versions, with_known=with_known)


def check_touched(planted: Planted, versions: list[Files], *, with_known: bool) -> None:
    old_files, claims = versions[0], dict[str, str]()
    old = planted(old_files)
    for new_files in versions[1:]:
        new = planted({**dict.fromkeys(old_files), **new_files}, old)
        was = reference(old_files, claims)
        claims_now = claims_after(old_files, claims, new_files)
        now = reference(new_files, claims_now)
        found = touched(new, old, (lambda path, was=was: list(was.get(path, {}))) if with_known else None)
        assert new.claims == claims_now
        assert found.appeared == now.keys() - was.keys()
        assert found.removed == was.keys() - now.keys()
        assert found.changed - set(claims_now.values()) <= {p for p in now.keys() & was.keys() if now[p] != was[p]}
        assert {p for p in now.keys() & was.keys() if now[p] != was[p]} <= found.changed
        twice = {p: sorted(dirs) for p, dirs in now.items() if len(dirs) > 1}
        assert {p: d for p, d in twice.items() if p in found.changed | found.appeared} == new.duplicates
        for path in now.keys() & was.keys() - twice.keys():
            if len(was[path]) == 1:
                check_changes(new, old, path, now[path], was[path])
        old_files, claims, old = new_files, claims_now, new
    listed = list(old.workspaces())
    assert {w.path: w.directory for w in listed if w.path not in old.duplicates} == {
        path: next(iter(dirs)) for path, dirs in reference(old_files, claims).items() if len(dirs) == 1
    }


def check_changes(
    new: WorkspaceTree,
    old: WorkspaceTree,
    path: str,
    now: dict[str, tuple[bytes | None, Files]],
    was: dict[str, tuple[bytes | None, Files]],
) -> None:
    ((old_directory, (_, old_own)),) = was.items()
    ((new_directory, (_, new_own)),) = now.items()
    new_workspace = new.find(path, new_directory)
    old_workspace = old.find(path, old_directory)
    assert new_workspace is not None
    assert {p: new.repo.blob(e.id) for p, e in new.files(new_workspace)} == new_own
    found = {
        c.path: (c.old and new.repo.blob(c.old.id), c.new and new.repo.blob(c.new.id))
        for c in changes(new, new_workspace, old, old_workspace)
    }
    if old_directory == new_directory:
        differing = {p for p in old_own.keys() | new_own.keys() if old_own.get(p) != new_own.get(p)}
    else:
        differing = set(old_own.keys() | new_own.keys())
    assert found.keys() == differing
    if old_directory == new_directory:
        assert found == {p: (old_own.get(p), new_own.get(p)) for p in differing}
