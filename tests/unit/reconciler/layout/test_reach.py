from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.layout.compare import touched
from reconciler.layout.errors import BadFile
from reconciler.layout.ignore import FILE as IGNORE
from reconciler.layout.reach import OwnedPlace, TouchedPlace, reach
from reconciler.layout.tree import WorkspaceTree
from reconciler.repository import objects

Planted = Callable[..., WorkspaceTree]
Files = dict[str, bytes]
R = "workspaces/root"
MARK = "workspace.yaml"
ROOT = OwnedPlace("root", R)
SHOP = OwnedPlace("root:shop", f"{R}/shop")
WEB = OwnedPlace("root:shop:web", f"{R}/shop/web")
FLEET: Files = {
    "treeplane.yaml": b"",
    "README.md": b"",
    f"{R}/a.yaml": b"1",
    f"{R}/shop/{MARK}": b"",
    f"{R}/shop/x/d.yaml": b"2",
    f"{R}/shop/web/{MARK}": b"",
    f"{R}/shop/web/y.yaml": b"3",
}


def found(new: WorkspaceTree, old: WorkspaceTree) -> list[TouchedPlace]:
    return reach(new.repo, old.tree_id, new.tree_id, old.claims)


@pytest.fixture
def old(planted: Planted) -> WorkspaceTree:
    return planted(FLEET)


def test_nothing_is_touched_by_the_same_tree(old: WorkspaceTree) -> None:
    assert found(old, old) == []


def test_a_file_is_its_workspaces_which_those_above_may_touch_too(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/web/y.yaml": b"4", f"{R}/shop/web/deep/z.txt": b""}, old)
    (touched_place,) = found(new, old)
    assert touched_place == TouchedPlace((ROOT, SHOP, WEB), False, f"{R}/shop/web/deep/z.txt", 2)
    assert touched_place.answerable == (WEB, SHOP, ROOT)


def test_what_workspaces_share_is_roots_alone(planted: Planted) -> None:
    """Whoever is rendered of it: nobody else's word counts."""
    old = planted({**FLEET, "bases/web/x.yaml": b"1"})
    (touched_place,) = found(planted({"bases/web/x.yaml": b"2"}, old), old)
    assert (touched_place.path, touched_place.answerable) == ("", ())


@pytest.mark.parametrize("changes", [{f"{R}/shop/web/{MARK}": b"spec: {}"}, {f"{R}/shop/web/{MARK}": None}])
def test_a_workspace_manifest_is_the_parents(old: WorkspaceTree, planted: Planted, changes: Files) -> None:
    touched_place, *more = found(planted(changes, old), old)
    # Where it comes or goes, so does what is in the directory: to the parent, or from it.
    assert [each.path for each in more] == ["root:shop"] * (None in changes.values())
    assert (touched_place.path, touched_place.itself, touched_place.spreads) == ("root:shop:web", True, True)
    assert touched_place.answerable == (SHOP, ROOT)


def test_a_new_workspace_asks_its_parent_and_what_is_in_it_itself(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop/new/{MARK}": b"", f"{R}/shop/new/a.yaml": b""}, old)
    places = {(each.path, each.itself): each.answerable for each in found(new, old)}
    fresh = OwnedPlace("root:shop:new", f"{R}/shop/new")
    assert places == {
        ("root:shop:new", True): (SHOP, ROOT),
        ("root:shop", False): (SHOP, ROOT),
        ("root:shop:new", False): (fresh, SHOP, ROOT),
    }


def test_what_is_outside_of_workspaces_is_roots(old: WorkspaceTree, planted: Planted) -> None:
    changes = {"treeplane.yaml": b"1", "signers/allowed_signers": b"", "workspaces/.treeplaneignore": b"*"}
    (touched_place,) = found(planted({**changes, "workspaces/other/a.yaml": b""}, old), old)
    assert (touched_place.path, touched_place.answerable, touched_place.files) == ("", (), 4)


def test_what_an_ignore_file_hides_is_still_whose_it_would_be(planted: Planted) -> None:
    old = planted({**FLEET, f"{R}/{IGNORE}": b"shop/\n"})
    new = planted({f"{R}/shop/web/y.yaml": b"9"}, old)
    assert touched(new, old).changed == set()
    assert [each.path for each in found(new, old)] == ["root:shop:web"]


def test_an_ignore_file_spreads_and_is_the_workspaces_that_it_stands_in(old: WorkspaceTree, planted: Planted) -> None:
    (touched_place,) = found(planted({f"{R}/shop/{IGNORE}": b"web/\n"}, old), old)
    assert (touched_place.path, touched_place.spreads) == ("root:shop", True)


def test_a_directory_that_lost_its_manifest_is_its_workspaces(planted: Planted) -> None:
    before = planted(FLEET)
    old = planted({f"{R}/shop/web/{MARK}": None}, before)
    touched(old, before)
    new = planted({f"{R}/shop/web/y.yaml": b"9"}, old)
    places = [(each.path, each.itself) for each in found(new, old)]
    assert places == [("root:shop:web", True), ("root:shop:web", False)]


def test_a_submodule_or_a_link_in_place_of_a_directory_is_a_file(old: WorkspaceTree, planted: Planted) -> None:
    new = planted({f"{R}/shop": b"a file"}, planted({f"{R}/shop": None}, old))
    assert {(each.path, each.itself) for each in found(new, old)} >= {("root", False), ("root:shop", True)}


names = st.sampled_from(["a", "b", "c"])
directories = st.lists(names, max_size=4).map(lambda parts: "/".join([R, *parts]))
files_below = st.tuples(directories, st.sampled_from([MARK, MARK, "x.yaml", IGNORE])).map("/".join)
contents = st.sampled_from([b"a/\n", b"b/\n", b"x.yaml\n"])
fleets = st.dictionaries(files_below, contents, max_size=14).map(lambda files: {**files, f"{R}/always.yaml": b""})


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(fleets, min_size=2, max_size=3), wide=st.booleans(), owner=st.sampled_from(["a", "a/b", "c"]))
def test_no_workspace_is_touched_of_which_nobody_is_asked(
    planted: Planted, versions: list[Files], wide: bool, owner: str
) -> None:
    """Whatever compare finds touched is reached, with what spreads to all that is below; and what somebody's right in
    one directory covers stands in that directory."""
    with patch.object(objects, "_WIDE", 0 if wide else objects._WIDE):
        files, old = versions[0], planted(versions[0])
        for later in versions[1:]:
            new = planted({**dict.fromkeys(files), **later}, old)
            reached = reach(new.repo, old.tree_id, new.tree_id, old.claims)
            try:
                compared = touched(new, old)
            except BadFile:
                return  # of a root that hides all there is nothing is taken
            directory = f"{R}/{owner}"
            refused = [each for each in reached if directory not in {p.directory for p in each.answerable}]
            for path in compared.changed | compared.appeared | compared.removed:
                places = [w.directory for w in (new.find(path), old.find(path)) if w is not None]
                assert any(covers(each, path, places) for each in reached), path
                if not any(covers(each, path, places) for each in refused):
                    assert all(place == directory or place.startswith(f"{directory}/") for place in places)
            files, old = later, new


def covers(each: TouchedPlace, path: str, places: list[str]) -> bool:
    below = each.places and any(f"{place}/".startswith(f"{each.places[-1].directory}/") for place in places)
    return each.path == path or bool(each.spreads and below) or not each.path
