"""Directories that are rendered: which are, what counts below them, and what differs between two trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.layout.compare import changes, touched
from reconciler.layout.level import RENDERED_BY, problem
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository import objects

Planted = Callable[..., WorkspaceTree]
Files = dict[str, bytes]
R = "workspaces/root"
MARK, KUSTOMIZATION = "workspace.yaml", "kustomization.yaml"
APP = f"{R}/shop/app"
FLEET: Files = {
    f"{R}/shop/{MARK}": b"",
    f"{R}/shop/plain.yaml": b"1",
    f"{APP}/{KUSTOMIZATION}": b"resources: [d.yaml]",
    f"{APP}/d.yaml": b"2",
    f"{APP}/notes.txt": b"3",
    f"{APP}/base/{KUSTOMIZATION}": b"4",
}


def shop(tree: WorkspaceTree) -> WorkspaceDir:
    found = tree.find("root:shop")
    assert found is not None
    return found


def named(tree: WorkspaceTree) -> list[str]:
    return [path for path, _ in tree.files(shop(tree))]


def told(new: WorkspaceTree, old: WorkspaceTree) -> dict[str, tuple[str, str]]:
    """The kinds of what differs of the workspace, before and after."""
    found = changes(new, shop(new), old, shop(old))
    return {c.path: (c.old.kind if c.old else "", c.new.kind if c.new else "") for c in found}


@pytest.mark.parametrize("marker", RENDERED_BY)
def test_a_directory_that_is_rendered_is_one_file(planted: Planted, marker: str) -> None:
    files = {**FLEET, f"{APP}/{KUSTOMIZATION}": None, f"{APP}/{marker}": b""}
    tree = planted(files)
    [(path, entry)] = tree.rendered(shop(tree))
    assert (path, entry.kind, entry.id) == (f"{APP}/{marker}", "rendered", tree.repo.tree_at(tree.tree_id, APP))
    assert named(tree) == [f"{R}/shop/plain.yaml", path]
    assert problem(path, entry) is None
    assert tree.problems(shop(tree)) == []


def test_of_several_markers_the_first_counts(planted: Planted) -> None:
    tree = planted({**FLEET, **{f"{APP}/{name}": b"" for name in RENDERED_BY}})
    assert [path for path, _ in tree.rendered(shop(tree))] == [f"{APP}/{KUSTOMIZATION}"]


@pytest.mark.parametrize("rule", [b"app\n", b"app/*\n", b"kustomization.yaml\n"])
def test_what_is_ignored_renders_nothing(planted: Planted, rule: bytes) -> None:
    tree = planted({**FLEET, f"{R}/shop/.treeplaneignore": rule})
    assert list(tree.rendered(shop(tree))) == []
    assert (f"{APP}/d.yaml" in named(tree)) == (rule == b"kustomization.yaml\n")


def test_a_directory_of_that_name_renders_nothing(planted: Planted) -> None:
    tree = planted({f"{R}/shop/{MARK}": b"", f"{R}/shop/{KUSTOMIZATION}/d.yaml": b""})
    assert named(tree) == [f"{R}/shop/{KUSTOMIZATION}/d.yaml"]


def test_a_workspace_itself_may_be_rendered(planted: Planted) -> None:
    tree = planted({f"{R}/shop/{MARK}": b"", f"{R}/shop/{KUSTOMIZATION}": b"", f"{R}/shop/sub/a.yaml": b""})
    assert named(tree) == [f"{R}/shop/{KUSTOMIZATION}"]
    assert [path for path, _ in tree.all_below(f"{R}/shop")] == [f"{R}/shop/{KUSTOMIZATION}", f"{R}/shop/sub/a.yaml"]


def test_whatever_differs_below_is_named_once_by_the_outermost(planted: Planted) -> None:
    old = planted(FLEET)
    for file in ("d.yaml", "notes.txt", "base/deep/x", KUSTOMIZATION):
        new = planted({f"{APP}/{file}": b"new"}, old)
        assert touched(new, old).changed == {"root:shop"}
        assert told(new, old) == {f"{APP}/{KUSTOMIZATION}": ("rendered", "rendered")}


def test_a_directory_turns_into_a_rendered_one_and_back(planted: Planted) -> None:
    plain = planted({**FLEET, f"{APP}/{KUSTOMIZATION}": None, f"{APP}/base/{KUSTOMIZATION}": None})
    made = planted({f"{APP}/{KUSTOMIZATION}": b""}, plain)
    assert told(made, plain) == {f"{APP}/{KUSTOMIZATION}": ("", "rendered"), f"{APP}/d.yaml": ("blob", "")}
    assert told(plain, made) == {f"{APP}/{KUSTOMIZATION}": ("rendered", ""), f"{APP}/d.yaml": ("", "blob")}


def test_workspaces_below_go_on_and_own_their_files(planted: Planted) -> None:
    tree = planted(
        {**FLEET, f"{APP}/web/{MARK}": b"", f"{APP}/web/own.yaml": b"", f"{APP}/web/in/{KUSTOMIZATION}": b""}
    )
    web = tree.find("root:shop:web")
    assert web is not None
    assert sorted(path for path, _ in tree.files(web)) == [f"{APP}/web/in/{KUSTOMIZATION}", f"{APP}/web/own.yaml"]
    found = {path: entry.kind for path, entry in tree.all_below(APP)}
    assert found[f"{APP}/web"] == "tree"
    assert not any(path.startswith(f"{APP}/web/") for path in found)


def test_what_lost_its_workspace_yaml_below_is_its_own_still(planted: Planted) -> None:
    old = planted({**FLEET, f"{APP}/web/{MARK}": b"", f"{APP}/web/own.yaml": b""})
    new = planted({f"{APP}/web/{MARK}": None}, old)
    touched(new, old)
    assert new.claims == {f"{APP}/web": "root:shop:web"}
    assert dict(new.all_below(APP))[f"{APP}/web"].kind == "tree"
    again = planted({}, new)
    again.claims.clear()
    assert told(again, new) == {f"{APP}/{KUSTOMIZATION}": ("rendered", "rendered")}


def test_what_stirs_in_a_workspace_is_said_of_ignored_files_too(planted: Planted) -> None:
    old = planted({**FLEET, f"{R}/shop/.treeplaneignore": b"hidden\n", f"{R}/shop/hidden/x": b"1"})
    new = planted({f"{R}/shop/hidden/x": b"2"}, old)
    found = touched(new, old)
    assert found.changed == set()
    assert found.stirred == {"root", "root:shop"}


# --- against a reference on dicts

Shown = dict[str, object]


def reference(files: Files) -> dict[str, Shown]:
    """Own files by workspace; of what is rendered all that is below."""
    marked = {p.rpartition("/")[0] for p in files if p.endswith("/" + MARK)} | {R}
    out: dict[str, Shown] = {directory: {} for directory in marked}
    for file, content in files.items():
        if file.endswith("/" + MARK):
            continue
        owner = max((d for d in marked if file.startswith(d + "/")), key=len)
        parts = file.split("/")
        above = ["/".join(parts[:n]) for n in range(owner.count("/") + 1, len(parts))]
        top = next((d for d in above if f"{d}/{KUSTOMIZATION}" in files), None)
        if top is None:
            out[owner][file] = content
        else:
            below = {p: c for p, c in files.items() if p.startswith(top + "/")}
            out[owner][f"{top}/{KUSTOMIZATION}"] = below
    return out


parts = st.lists(st.sampled_from("ab"), max_size=3).map(lambda found: "/".join([R, *found]))
below = st.tuples(parts, st.sampled_from([MARK, "x.yaml", KUSTOMIZATION])).map("/".join)
fleets = st.dictionaries(below, st.sampled_from([b"1", b"2"]), max_size=12).map(lambda f: {**f, f"{R}/a.yaml": b""})


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=fleets, after=fleets, wide=st.booleans())
def test_files_and_changes_agree_with_the_reference(planted: Planted, before: Files, after: Files, wide: bool) -> None:
    with patch.object(objects, "_WIDE", 0 if wide else objects._WIDE):
        old, new = planted(before), planted(after)
        was, now = reference(before), reference(after)
        for tree, said in ((old, was), (new, now)):
            assert files_by_place(tree) == {place: said[place].keys() for place in said}
        found = touched(new, planted(before))
        for place in was.keys() & now.keys():
            here, there = new.at(place), old.at(place)
            assert here is not None
            assert there is not None
            if here.path != there.path:
                continue
            differing = {p for p in was[place].keys() | now[place].keys() if was[place].get(p) != now[place].get(p)}
            assert {c.path for c in changes(planted(after), here, old, there)} == differing
            # What lost its workspace.yaml alone is its own still.
            unmarked = tuple(f"{each}/" for each in was.keys() - now.keys())
            if any(not path.startswith(unmarked) for path in differing):
                assert here.path in found.changed | found.appeared | found.removed


def files_by_place(tree: WorkspaceTree) -> Mapping[str, object]:
    places: dict[str, WorkspaceDir] = {}
    for path in {each.path for each in tree.workspaces()}:
        for directory in tree.directories(path):
            place = tree.at(directory)
            assert place is not None
            places[directory] = place
    return {directory: {p for p, _ in tree.files(place)} for directory, place in places.items()}
