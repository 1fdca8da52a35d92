"""Which workspaces may use a Location, and whom a change of RBAC concerns."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.uses import Uses

SHOP, WEB = "root:shop", "root:shop:web"


@pytest.fixture
def uses(fleet: Any) -> Uses:
    fleet.admit("infra0")
    fleet.workspace(WEB, "web00")
    fleet.workspace("root:shop-two", "two00")
    return Uses(fleet.store)


@pytest.mark.parametrize(
    ("subject", "admitted"),
    [
        (("User", "system:workspace:root:shop:web"), {WEB}),
        (("User", "system:workspace:root:shop"), {SHOP}),
        (("Group", "system:workspaces:root:shop"), {WEB}),
        (("Group", "system:workspaces:root"), {SHOP, WEB, "root:shop-two"}),
        (("Group", "system:workspaces"), {"root", SHOP, WEB, "root:shop-two"}),
        # What is meant for people admits no workspace.
        (("Group", "system:authenticated"), set()),
        (("User", "root:shop"), set()),
    ],
)
def test_a_location_serves_whom_its_workspace_admits(
    fleet: Any, uses: Uses, subject: tuple[str, str], admitted: set[str]
) -> None:
    fleet.admit("infra0", subject)
    every = ("root", SHOP, WEB, "root:shop-two", "root:infra")
    assert {path for path in every if uses.may_use("infra0", "aws", path)} == {*admitted, "root:infra"}


def test_a_location_is_used_by_name(fleet: Any, uses: Uses) -> None:
    fleet.admit("infra0", ("User", "system:workspace:root:shop"), names=["aws"])
    assert uses.may_use("infra0", "aws", SHOP)
    assert not uses.may_use("infra0", "gcp", SHOP)
    assert not uses.may_use("elsewhere0", "aws", SHOP), "what another workspace grants is its own affair"


def test_a_change_concerns_those_whose_grants_of_use_are_others_now(fleet: Any, uses: Uses) -> None:
    def concerned() -> set[str] | None:
        found = uses.concerned("infra0")
        return None if found is None else set(found)

    fleet.admit("infra0", ("User", "system:workspace:root:shop"))
    assert concerned() is None, "nobody has asked, so it may be anybody"
    uses.may_use("infra0", "aws", SHOP)
    fleet.put("clusterroles", "infra0", "view", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
    assert concerned() == set(), "the rights of people"
    fleet.admit("infra0", ("User", "system:workspace:root:shop"), ("User", "ann"))
    assert concerned() == set()
    fleet.admit("infra0", ("User", "system:workspace:root:shop"), ("Group", "system:workspaces:root:shop"))
    assert concerned() == {WEB}
    assert concerned() == set(), "once"
    fleet.admit("infra0", ("Group", "system:workspaces:root:shop"), names=["aws"])
    assert concerned() == {SHOP, WEB}
    fleet.admit("infra0", ("Group", "system:workspaces"))
    assert concerned() is None
