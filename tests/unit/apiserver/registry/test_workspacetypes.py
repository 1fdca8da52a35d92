"""Which type a workspace has, and whether it may stand where it stands."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.registry.workspacetypes import FindType, ResolvedType, TypeRef, circle_of, resolve
from reconciler.plan import system

Object = dict[str, Any]

ROOT = TypeRef("root", "root")
ORGANIZATION = TypeRef("organization", "root")
TEAM = TypeRef("team", "root")
UNIVERSAL = TypeRef("universal", "root")


def fleet(**more: Object) -> FindType:
    """The shipped types in root, and `more`: `root_shop__gold` is the type gold of root:shop."""
    types: dict[tuple[str, str], Object] = {("root", t["metadata"]["name"]): t for t in system.workspace_types()}
    for name, spec in more.items():
        path, _, kind = name.rpartition("__")
        types[path.replace("_", ":"), kind] = {"metadata": {"name": kind}, "spec": spec}
    return lambda path, name: types.get((path, name))


def workspace(name: str = "", path: str = "") -> Object:
    kind = {k: v for k, v in (("name", name), ("path", path)) if v}
    return {"kind": "Workspace", "metadata": {"name": "w"}, "spec": {"type": kind} if kind else {}}


def test_root_is_root_whatever_is_there() -> None:
    assert resolve(None, "root", None, lambda *_: None) == ResolvedType(ROOT)


@pytest.mark.parametrize(
    ("parent", "expected"), [(ROOT, ORGANIZATION), (ORGANIZATION, UNIVERSAL), (TEAM, UNIVERSAL), (UNIVERSAL, UNIVERSAL)]
)
@pytest.mark.parametrize("manifest", [None, {}, {"spec": None}, workspace(), {"spec": {"type": None}}])
def test_without_a_type_it_is_the_parents_default_child(
    manifest: Object | None, parent: TypeRef, expected: TypeRef
) -> None:
    assert resolve(manifest, "root:a:b", parent, fleet()) == ResolvedType(expected)


def test_without_a_parent_the_default_is_universal() -> None:
    assert resolve(None, "root:a", None, fleet()).ref == UNIVERSAL


def test_a_parent_type_without_default_child_gives_universal() -> None:
    assert resolve(None, "root:a:b", TypeRef("plain", "root:a"), fleet(root_a__plain={})).ref == UNIVERSAL


def test_a_default_child_without_path_is_the_parent_types_neighbour() -> None:
    find = fleet(root_a__gold={"defaultChildWorkspaceType": {"name": "silver"}}, root_a__silver={})
    assert resolve(None, "root:a:b", TypeRef("gold", "root:a"), find) == ResolvedType(TypeRef("silver", "root:a"))


def test_a_name_is_looked_up_in_the_parent_and_its_ancestors_nearest_first() -> None:
    near = fleet(root_a__gold={}, root__gold={})
    assert resolve(workspace("gold"), "root:a:b:c", UNIVERSAL, near).ref == TypeRef("gold", "root:a")
    far = fleet(root__gold={})
    assert resolve(workspace("gold"), "root:a:b:c", UNIVERSAL, far).ref == TypeRef("gold", "root")


def test_a_name_is_not_looked_up_in_the_workspace_itself() -> None:
    found = resolve(workspace("gold"), "root:a", ROOT, fleet(root_a__gold={}))
    assert "root:gold cannot be resolved" in found.error


def test_with_a_path_there_is_no_search() -> None:
    find = fleet(root__gold={}, root_b__silver={})
    assert resolve(workspace("silver", "root:b"), "root:a:c", UNIVERSAL, find).ref == TypeRef("silver", "root:b")
    assert "root:a:gold cannot be resolved" in resolve(workspace("gold", "root:a"), "root:a:c", UNIVERSAL, find).error


def test_an_unknown_type_is_named() -> None:
    found = resolve(workspace("nope"), "root:a:b", ORGANIZATION, fleet())
    assert found.error == "workspace type root:a:nope cannot be resolved: no such WorkspaceType"
    assert found.bindings == ()


@pytest.mark.parametrize(
    ("kind", "parent", "error"),
    [
        ("organization", ROOT, ""),
        ("organization", ORGANIZATION, "workspace type root:organization may only stand under root:root, not under"),
        ("team", ORGANIZATION, ""),
        ("team", TEAM, ""),
        ("team", ROOT, "workspace type root:team may only stand under root:organization, root:team, not under root:r"),
        ("home", ROOT, "workspace type root:home may stand under no other workspace"),
        ("root", UNIVERSAL, "workspace type root:root may stand under no other workspace"),
        ("universal", TEAM, ""),
    ],
)
def test_where_the_shipped_types_may_stand(kind: str, parent: TypeRef, error: str) -> None:
    found = resolve(workspace(kind, "root"), "root:a:b", parent, fleet())
    assert found.error.startswith(error)
    assert bool(found.error) is bool(error)


def test_a_parent_that_extends_an_allowed_type_is_allowed() -> None:
    find = fleet(
        root__squad={"extend": {"with": [{"name": "platoon", "path": "root"}]}},
        root__platoon={"extend": {"with": [{"name": "team"}]}},
    )
    assert resolve(workspace("team"), "root:a:b", TypeRef("squad", "root"), find).error == ""


def test_types_that_extend_each_other_end() -> None:
    find = fleet(
        root__a={"extend": {"with": [{"name": "b"}]}},
        root__b={"extend": {"with": [{"name": "a"}]}},
    )
    assert resolve(workspace("team"), "root:x:y", TypeRef("a", "root"), find).error != ""


def test_a_parent_may_allow_no_children_or_some() -> None:
    find = fleet(
        root__leaf={"limitAllowedChildren": {"none": True}},
        root__teams={"limitAllowedChildren": {"types": [{"name": "team", "path": "root"}]}},
        root__open={},
        root__squad={"extend": {"with": [{"name": "team"}]}},
    )
    under_leaf = resolve(workspace("universal"), "root:a:b", TypeRef("leaf", "root"), find)
    assert under_leaf.error == "workspace type root:leaf allows no children"
    under_teams = resolve(workspace("open"), "root:a:b", TypeRef("teams", "root"), find)
    assert under_teams.error == "workspace type root:teams allows only children of root:team, not root:open"
    assert resolve(workspace("squad"), "root:a:b", TypeRef("teams", "root"), find).error == ""


def test_a_type_brings_its_default_bindings() -> None:
    bindings = [{"path": "root:compute", "export": "kubernetes"}, {"export": "own"}]
    find = fleet(root_a__gold={"defaultAPIBindings": bindings})
    found = resolve(workspace("gold"), "root:a:b", ORGANIZATION, find)
    assert found.bindings == (("root:compute", "kubernetes"), ("root:a", "own"))


def test_what_a_type_extends_brings_its_default_bindings_too() -> None:
    find = fleet(
        root_a__gold={"extend": {"with": [{"name": "silver"}]}, "defaultAPIBindings": [{"export": "own"}]},
        root_a__silver={"defaultAPIBindings": [{"path": "root:compute", "export": "kubernetes"}]},
    )
    found = resolve(workspace("gold"), "root:a:b", ORGANIZATION, find)
    assert set(found.bindings) == {("root:a", "own"), ("root:compute", "kubernetes")}


def extending(*names: str) -> Object:
    return {"extend": {"with": [{"name": name} for name in names]}}


@pytest.mark.parametrize(
    ("kinds", "circle"),
    [
        ({"a": extending("a")}, "a a"),
        ({"a": extending("b"), "b": extending("c"), "c": extending("b")}, "b c b"),
        ({"a": extending("c", "b"), "b": extending("a"), "c": {}}, "a b a"),
        ({"a": extending("b", "c"), "b": extending("d"), "c": extending("d"), "d": {}}, ""),
        ({"a": extending("b", "b", "gone"), "b": {}}, ""),
    ],
)
def test_nothing_is_of_a_type_that_extends_itself(kinds: dict[str, Object], circle: str) -> None:
    find = fleet(**{f"root_x__{name}": spec for name, spec in kinds.items()})
    found = resolve(workspace("a", "root:x"), "root:x:w", UNIVERSAL, find)
    assert circle_of(TypeRef("a", "root:x"), find) == [TypeRef(name, "root:x") for name in circle.split()]
    way = " -> ".join(f"root:x:{name}" for name in circle.split())
    assert found.error == (
        f"circular dependency detected in workspace type root:x:{circle[:1]}: {way}" if circle else ""
    )
    assert found.remedy == ("take one of these out of spec.extend.with" if circle else "")


def test_who_has_a_type_keeps_it_in_a_circle() -> None:
    find = fleet(root_x__a=extending("a"))
    assert resolve(None, "root:x:w", UNIVERSAL, find, TypeRef("a", "root:x")).error == ""
