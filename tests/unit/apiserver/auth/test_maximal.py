"""A provider says how far RBAC of those who bind its export may go; it gives nothing, and ends with the export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.auth.rbac import Authorizer
from apiserver.auth.scopes import SCOPES
from apiserver.auth.user import AUTHENTICATED, BINDING_PREFIX, KCP_ADMIN, MASTERS, Attributes, User
from apiserver.auth.warrants import CLUSTER_NAME, WARRANT
from apiserver.model.storagenames import BINDINGS, EXPORTS

BOB = User("bob", ("devs", AUTHENTICATED))
EVERYBODY = f"{BINDING_PREFIX}{AUTHENTICATED}"
GET, DELETE = (Attributes(verb, "toys.io", "v1", "toys", namespace="ns", name="a") for verb in ("get", "delete"))
READ = {"verbs": ["get", "list"], "apiGroups": ["toys.io"], "resources": ["toys"]}


@pytest.fixture
def allowed(store: Any) -> Callable[..., bool]:
    authorizer = Authorizer(store)
    return lambda user, asked, **more: authorizer.authorize("ws", user, asked, **more).allowed


@pytest.fixture
def bound(store: Any, rbac: Any) -> Any:
    """The workspace `ws`, whose cluster-admin bob is, has bound `toys` of the workspace `maker`, which limits it."""
    rbac("ws").bind("cluster-admin", ("User", "bob"))
    status = {"apiExportClusterName": "maker", "boundResources": [{"group": "toys.io", "resource": "toys"}]}
    binding = {"spec": {"reference": {"export": {"path": "root:maker", "name": "e"}}}, "status": status}
    store.put(BINDINGS, "ws", binding, "mine")
    limit(store, {"local": {}})
    return rbac("maker")


def limit(store: Any, policy: Any) -> None:
    export = {"metadata": {"name": "e"}, "spec": {"maximalPermissionPolicy": policy}}
    store.put(EXPORTS, "maker", export if policy is not None else None, "e")


def test_what_the_provider_does_not_leave_to_consumers_no_role_gives(bound: Any, allowed: Any) -> None:
    assert not allowed(BOB, GET)
    assert not allowed(User("a", (KCP_ADMIN, AUTHENTICATED)), GET)
    assert allowed(BOB, GET, deep=True)
    assert allowed(User("a", (MASTERS,)), GET)
    assert allowed(BOB, Attributes("get", "", "v1", "configmaps", namespace="ns", name="a"))
    bound.cluster_role("most", READ)
    bound.bind("most", ("Group", EVERYBODY))
    assert allowed(BOB, GET)
    assert not allowed(BOB, DELETE)
    assert not allowed(BOB, Attributes("get", "toys.io", "v1", "toys", "status", "ns", "a"))


def test_it_gives_nothing(bound: Any, allowed: Any) -> None:
    bound.bind("cluster-admin", ("Group", EVERYBODY))
    assert not allowed(User("eve", (AUTHENTICATED,)), GET)


def test_what_users_without_the_prefix_may_in_the_providers_workspace_does_not_count(bound: Any, allowed: Any) -> None:
    bound.bind("cluster-admin", ("User", "bob"))
    assert not allowed(BOB, GET)


def test_it_ends_with_its_export_and_comes_with_an_edit(bound: Any, allowed: Any, store: Any) -> None:
    for policy in (None, {}, {"local": None}):
        limit(store, policy)
        assert allowed(BOB, DELETE)
        limit(store, {"local": {}})
        assert not allowed(BOB, DELETE)


def test_of_another_export_it_says_nothing(bound: Any, allowed: Any, store: Any) -> None:
    store.put(EXPORTS, "maker", {"metadata": {"name": "e"}, "spec": {}}, "e")
    other = {"metadata": {"name": "other"}, "spec": {"maximalPermissionPolicy": {"local": {}}}}
    store.put(EXPORTS, "maker", other, "other")
    assert allowed(BOB, GET)


def test_an_account_is_known_to_the_provider_in_full_alone(bound: Any, allowed: Any, rbac: Any) -> None:
    robot = User("system:serviceaccount:ns:robot", (AUTHENTICATED,), extra={CLUSTER_NAME: ("ws",)})
    rbac("ws").bind("admin", ("Group", AUTHENTICATED))
    rbac("ws").bind("cluster-admin", ("User", robot.name))
    bound.cluster_role("most", READ)
    bound.bind("most", ("User", f"{BINDING_PREFIX}{robot.name}"))
    assert not allowed(robot, GET)
    bound.bind("most", ("User", f"{BINDING_PREFIX}system:kcp:serviceaccount:ws:ns:robot"))
    assert allowed(robot, GET)


def test_scopes_and_warrants_count_as_in_the_consumers_workspace(bound: Any, allowed: Any) -> None:
    bound.cluster_role("most", READ)
    bound.bind("most", ("User", f"{BINDING_PREFIX}bob"))
    assert allowed(User("bob", (AUTHENTICATED,), extra={SCOPES: ("cluster:ws",)}), GET)
    assert not allowed(User("bob", (AUTHENTICATED,), extra={SCOPES: ("cluster:maker",)}), GET)
    assert allowed(User("eve", (), extra={WARRANT: ('{"user": "bob"}',)}), GET)


def test_what_is_bound_from_ones_own_export_is_limited_too(store: Any, rbac: Any) -> None:
    status = {"boundResources": [{"group": "toys.io", "resource": "toys"}]}
    rbac("maker").bind("cluster-admin", ("User", "bob"))
    store.put(BINDINGS, "maker", {"spec": {"reference": {"export": {"name": "e"}}}, "status": status}, "own")
    limit(store, {"local": {}})
    assert not Authorizer(store).authorize("maker", BOB, GET).allowed


def test_a_provider_that_changes_nothing_costs_its_consumers_no_look_at_its_objects(
    bound: Any, allowed: Any, store: Any
) -> None:
    allowed(BOB, GET)
    before = store.scans
    for _ in range(5):
        assert not allowed(BOB, GET)
    assert store.scans == before
