"""Groups that workspace.yaml requires: they follow the file, and whatever becomes of the server they stay required."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.auth.rbac import Authorizer
from apiserver.auth.requiredgroups import requirements
from apiserver.auth.user import AUTHENTICATED, Attributes, User

KEY = "authorization.kcp.io/required-groups"
GET = Attributes("get", version="v1", resource="configmaps", namespace="default", name="app")
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: all}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
"""
CHILD = f"{A}/child"


def requiring(text: str) -> str:
    said = f"metadata: {{annotations: {{{KEY}: '{text}'}}}}\n" if text else ""
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n{said}"


@pytest.fixture
def opened(fleet: LoadedFleet) -> LoadedFleet:
    """root:a and root:a:child let everybody in."""
    fleet.commit({f"{A}/role.yaml": ROLE, f"{CHILD}/workspace.yaml": "", f"{CHILD}/role.yaml": ROLE})
    return fleet


def enters(fleet: LoadedFleet, *groups: str, path: str = "root:a:child") -> bool:
    user = User("bob", (*groups, AUTHENTICATED))
    return Authorizer(fleet.store).authorize(fleet.record(path).cluster, user, GET).allowed


def said(fleet: LoadedFleet, path: str = "root:a") -> str | None:
    """By the LogicalCluster."""
    found = fleet.get(path, "logicalclusters.core.kcp.io", "cluster", "")
    return found["metadata"]["annotations"].get(KEY)


def test_they_come_and_go_with_the_file(opened: LoadedFleet) -> None:
    assert enters(opened)
    opened.commit({f"{A}/workspace.yaml": requiring("devs;ops")})
    assert not enters(opened)
    assert not enters(opened, path="root:a")
    assert enters(opened, "ops")
    assert said(opened) == "devs;ops"
    assert said(opened, "root:a:child") is None
    opened.commit({f"{A}/workspace.yaml": requiring("ops")})
    assert not enters(opened, "devs")
    assert said(opened) == "ops"
    opened.commit({f"{A}/workspace.yaml": requiring("")})
    assert enters(opened)
    assert said(opened) is None


def test_a_workspace_that_is_new_requires_them_at_once(fleet: LoadedFleet) -> None:
    files = {"workspaces/root/c/workspace.yaml": requiring("devs"), "workspaces/root/c/role.yaml": ROLE}
    fleet.commit(files)
    assert not enters(fleet, path="root:c")
    assert enters(fleet, "devs", path="root:c")
    assert said(fleet, "root:c") == "devs"


def test_one_that_is_held_requires_what_it_did(opened: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    opened.commit({f"{A}/workspace.yaml": requiring("devs")})
    opened.commit({f"{A}/workspace.yaml": requiring(""), f"{A}/bad.yaml": "kind: ConfigMap\n"})
    assert "root:a" in opened.held()
    assert not enters(opened)
    assert said(opened) == "devs"
    opened.publish()
    new = another(opened)
    new.load(new.recorded())
    assert not enters(new)
    assert enters(new, "devs")
    assert said(new) == "devs"


def test_one_that_leaves_requires_them_to_its_end(opened: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    opened.commit({f"{A}/workspace.yaml": requiring("devs")})
    key = opened.key("root:a", "configmaps", "app")
    opened.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/wait"]))
    opened.delete({f"{A}/workspace.yaml": None, f"{A}/app.yaml": None, f"{A}/role.yaml": None,
                   f"{CHILD}/workspace.yaml": None, f"{CHILD}/role.yaml": None})  # fmt: skip
    left = opened.record("root:a")
    assert left.leaves
    assert requirements(opened.store, left.cluster) == ["devs"]
    opened.publish()
    new = another(opened)
    new.load(new.recorded())
    assert requirements(new.store, new.record("root:a").cluster) == ["devs"]


def test_root_requires_them_of_everybody(opened: LoadedFleet) -> None:
    opened.commit({"workspaces/root/workspace.yaml": requiring("staff")})
    assert not enters(opened)
    assert enters(opened, "staff")


def test_where_nobody_requires_anything_nothing_is_kept(opened: LoadedFleet) -> None:
    opened.commit({f"{A}/workspace.yaml": requiring("devs")})
    opened.commit({f"{A}/workspace.yaml": requiring("")})
    opened.commit({f"{A}/workspace.yaml": requiring("devs")})
    opened.delete({path: None for path in opened.repo.files(opened.repo.head) if path.startswith(f"{A}/")})
    assert requirements(opened.store, "root") == []


def test_what_an_administrator_requires_outlasts_the_server(
    opened: LoadedFleet, another: Callable[..., LoadedFleet]
) -> None:
    key = opened.key("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    opened.update(key, lambda obj: obj["metadata"]["annotations"].update({KEY: "devs"}))
    assert not enters(opened)
    opened.commit({f"{A}/app.yaml": configmap(c="d")})
    assert not enters(opened), "a commit that says nothing of it changes nothing of it"
    opened.publish()
    new = another(opened)
    new.load(new.recorded())
    assert not enters(new)
    assert enters(new, "devs")
