"""One mistake is one error: who only waits for another workspace to be mended is a number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers

from apiserver.model.conditions import get
from reconciler.commands.answers import told
from reconciler.commands.validate import validate_revision
from reconciler.layout.errors import LayoutError
from reconciler.loading.consequences import told_once, waiting_lines

ROOT = "workspaces/root"
TENANCY, APIS = "tenancy.kcp.io/v1alpha1", "apis.kcp.io/v1alpha2"
UNREADABLE = "a: ["


def crew(**spec: Any) -> str:
    return json.dumps({"apiVersion": TENANCY, "kind": "WorkspaceType", "metadata": {"name": "crew"}, "spec": spec})


def of_type(name: str, *paths: str, **where: str) -> dict[str, str]:
    said = {"apiVersion": TENANCY, "kind": "Workspace", "spec": {"type": {"name": name, **where}}}
    return {f"{ROOT}/{path}/workspace.yaml": json.dumps(said) for path in paths}


BAD = crew(limitAllowedParents=5)
"""What is wrong with it is the shape of a field."""
PROVIDES = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "apis.kcp.io/v1alpha1",
                "kind": "APIResourceSchema",
                "metadata": {"name": "v1.things.ex.io"},
                "spec": {
                    "group": "ex.io",
                    "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
                    "scope": "Namespaced",
                    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}],
                },
            },
            {
                "apiVersion": APIS,
                "kind": "APIExport",
                "metadata": {"name": "things"},
                "spec": {
                    "resources": [
                        {"group": "ex.io", "name": "things", "schema": "v1.things.ex.io", "storage": {"crd": {}}}
                    ]
                },
            },
        ],
    }
)


def taking(path: str, kind: str = "Thing") -> dict[str, str]:
    """A workspace that binds root:a's export and has an object of the kind."""
    export = {"export": {"path": "root:a", "name": "things"}}
    binding = {"apiVersion": APIS, "kind": "APIBinding", "metadata": {"name": "things"}, "spec": {"reference": export}}
    thing = {"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "x", "namespace": "default"}}
    return {
        f"{ROOT}/{path}/workspace.yaml": json.dumps({"apiVersion": TENANCY, "kind": "Workspace"}),
        f"{ROOT}/{path}/binding.json": json.dumps(binding),
        f"{ROOT}/{path}/thing.json": json.dumps(thing),
    }


def applied(fleet: LoadedFleet, path: str) -> str:
    found = get(fleet.workspace(path)["status"]["conditions"], "CommitApplied")
    assert found is not None
    return str(found["message"])


def test_a_mistake_in_a_type_is_one_error_and_a_number(fleet: LoadedFleet, another: Another) -> None:
    fleet.repo.commit({f"{ROOT}/crew.json": BAD, **of_type("crew", *"uvwxyz")})
    loaded = fleet.load()
    lines = [*told(loaded)]
    assert "6 workspaces wait for workspace root, which is held: root:u, root:v, root:w and 3 more" in lines
    assert [line for line in lines if line.endswith(" held:")] == ["workspace root held:"]
    assert sum("crew.json" in line for line in lines) == 1
    # Each says of itself why, by the path of the workspace alone: who reads it may not be one to read root's files.
    assert "while workspace root is held" in applied(fleet, "root:u")
    assert "crew.json" not in applied(fleet, "root:u")
    assert f"{ROOT}/u/workspace.yaml:1: " in applied(fleet, "root:u")
    assert_recovers(fleet, another)
    fleet.commit({f"{ROOT}/crew.json": crew()})
    assert fleet.held() == {}
    assert_recovers(fleet, another, "mended")


def test_what_is_mistyped_is_a_mistake_whoever_is_held(fleet: LoadedFleet) -> None:
    fleet.commit({f"{ROOT}/crew.json": BAD, **of_type("crew", "x"), **of_type("crwe", "y")})
    assert "root is held" in fleet.held()["root:x"][0]
    assert "no such WorkspaceType (correct spec.type" in fleet.held()["root:y"][0]
    # Nobody can tell what a file says that cannot be read.
    fleet.commit({f"{ROOT}/crew.json": UNREADABLE})
    assert "root is held" in fleet.held()["root:y"][0]
    fleet.commit({f"{ROOT}/crew.json": None})
    for path in ("root:x", "root:y"):
        assert "no such WorkspaceType (correct spec.type" in fleet.held()[path][0]


def test_whose_mistake_it_is_follows_what_the_other_says(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(of_type("crew", "x", path="root"))
    assert "(correct spec.type" in fleet.held()["root:x"][0]
    fleet.commit({f"{ROOT}/crew.json": BAD})
    assert "root is held" in fleet.held()["root:x"][0]
    assert_recovers(fleet, another)
    fleet.commit({f"{ROOT}/crew.json": None, f"{ROOT}/other.yaml": configmap("other", namespace="none")})
    assert "(correct spec.type" in fleet.held()["root:x"][0]  # root is held for something else
    assert_recovers(fleet, another, "else")


@pytest.mark.parametrize("where", [{}, {"path": "root:a"}])
def test_one_that_is_served_and_is_to_have_another_type_follows_it_too(
    fleet: LoadedFleet, another: Another, where: dict[str, str]
) -> None:
    """Whether that is to be found in a workspace above it, or is said by its path."""
    fleet.commit({f"{A}/x/workspace.yaml": "", f"{A}/x/app.yaml": configmap(a="1")})
    fleet.commit(of_type("crew", "a/x", **where))
    assert "(correct spec.type" in fleet.held()["root:a:x"][0]
    fleet.commit({f"{A}/crew.json": UNREADABLE})
    assert "while workspace root:a is held" in fleet.held()["root:a:x"][0]
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/crew.json": None})
    assert "(correct spec.type" in fleet.held()["root:a:x"][0]
    assert_recovers(fleet, another, "mended")


def test_a_kind_that_is_not_offered_since_its_provider_is_held(fleet: LoadedFleet, another: Another) -> None:
    first, bad = fleet.repo.head, {f"{A}/wrong.yaml": configmap("wrong", namespace="none")}
    fleet.commit({f"{A}/things.json": PROVIDES, **bad, **taking("x"), **taking("y", kind="Think")})
    assert "while workspace root:a is held" in fleet.held()["root:x"][0]
    assert "root:a" not in fleet.held()["root:y"][0]
    checked = validate_revision(fleet.repo.path, "main", base=first)
    assert checked.waiting == {"root:a": ["root:x"]}
    assert "1 workspace waits for workspace root:a, which is held: root:x\n2 errors in " in checked.render("text")
    assert json.loads(checked.render("json"))["waiting"] == [{"for": "root:a", "workspaces": ["root:x"]}]
    assert_recovers(fleet, another)
    fleet.commit(dict.fromkeys(bad))
    assert set(fleet.held()) == {"root:y"}


def test_a_mistake_that_was_not_told_is_not_waited_for_in_silence(fleet: LoadedFleet) -> None:
    fleet.commit({f"{ROOT}/crew.json": BAD})
    fleet.repo.commit(of_type("crew", "late"))
    lines = [*told(fleet.load())]
    assert any("late/workspace.yaml:1: workspace type root:crew cannot be resolved" in line for line in lines)


def error(message: str, waits_for: str = "") -> LayoutError:
    return LayoutError("f.yaml", 1, 0, message, waits_for=waits_for)


@pytest.mark.parametrize(
    ("held", "mistakes", "waiting"),
    [
        ({"root": [error("m")], "a": [error("w", "root")]}, {"root"}, {"root": ["a"]}),
        ({"a": [error("w", "root")]}, {"a"}, {}),
        ({"root": [error("m")], "a": [error("w", "root")], "b": [error("v", "a")]}, {"root"}, {"root": ["a", "b"]}),
        ({"root": [error("m")], "a": [error("own"), error("w", "root")]}, {"root", "a"}, {"root": ["a"]}),
        ({"a": [error("w", "b")], "b": [error("v", "a")]}, {"a", "b"}, {}),
    ],
)
def test_told_once(held: dict[str, list[LayoutError]], mistakes: set[str], waiting: dict[str, list[str]]) -> None:
    once = told_once(held)
    assert set(once.mistakes) == mistakes
    assert once.waiting == waiting
    left = {each for errors in held.values() for each in errors} - once.consequences(held)
    assert left == {each for errors in once.mistakes.values() for each in errors}
    assert len(waiting_lines(once.waiting)) == len(waiting)
