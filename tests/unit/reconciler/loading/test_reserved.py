"""What the system sets is nobody's to say in a file; of workspaces the parent's workspace.yaml says what is its own."""

from __future__ import annotations

import pytest
from support.loadedfleet import A, LoadedFleet, configmap
from support.widgets import crd

APP = f"{A}/app.yaml"
OF_WORKSPACES = {
    "core.kcp.io/inactive": "true",
    "core.kcp.io/max-total-objects": "100",
    "authorization.kcp.io/required-groups": "team-a",
}


def marked(part: str, key: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  {part}:\n    {key}: x\n"


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("annotations", "core.kcp.io/shard"),
        ("annotations", "kcp.io/path"),
        ("labels", "tenancy.kcp.io/phase"),
        ("labels", "initializer.internal.kcp.io/abc"),
    ],
)
def test_a_manifest_that_says_it_holds_its_workspace(fleet: LoadedFleet, part: str, key: str) -> None:
    fleet.commit({APP: marked(part, key)})
    said = f"{APP}:6: ConfigMap app: {key} is a reserved {part[:-1]} (remove it: the server sets it)"
    assert fleet.held() == {"root:a": [said]}
    fleet.commit({APP: configmap(a="c")})
    assert fleet.held() == {}


@pytest.mark.parametrize(("key", "value"), OF_WORKSPACES.items())
def test_what_is_the_parents_to_say_stands_in_workspace_yaml(fleet: LoadedFleet, key: str, value: str) -> None:
    """Whoever may write a workspace's manifests alone does not reach it."""
    fleet.commit({APP: marked("annotations", key)})
    [error] = fleet.held()["root:a"]
    assert error.endswith(f"{key} is a reserved annotation (a workspace's own workspace.yaml says it)")
    head = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
    fleet.commit({APP: configmap(), f"{A}/workspace.yaml": f"{head}metadata: {{annotations: {{{key}: {value!r}}}}}\n"})
    assert fleet.held() == {}
    assert fleet.workspace("root:a")["metadata"]["annotations"][key] == value


def test_a_new_workspace_is_held_as_one_that_is_served(fleet: LoadedFleet) -> None:
    many = {f"workspaces/root/n{n}": marked("annotations", "core.kcp.io/shard") for n in range(4)}
    fleet.commit(
        {
            f"{place}/{name}": text
            for place, app in many.items()
            for name, text in (("workspace.yaml", ""), ("app.yaml", app))
        }
    )
    assert set(fleet.held()) == {f"root:n{n}" for n in range(4)}


def test_groups_of_the_system_are_nobodys(fleet: LoadedFleet) -> None:
    fleet.commit(
        {
            f"{A}/crd.json": crd()
            .replace("widgets.example.io", "widgets.apis.kcp.io")
            .replace("example.io", "apis.kcp.io")
        }
    )
    [error] = fleet.held()["root:a"]
    assert "apis.kcp.io is a reserved group (it is the server's: take another one)" in error
