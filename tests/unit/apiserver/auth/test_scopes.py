"""Who a user is in a workspace."""

import pytest

from apiserver.auth.scopes import CLUSTER_NAME, SCOPES, home_of, identities, in_scope, is_own_service_account
from apiserver.auth.user import AUTHENTICATED, User

NAME = "system:serviceaccount:default:robot"
ROBOT = User(NAME, ("system:serviceaccounts", AUTHENTICATED), "u", {CLUSTER_NAME: ("a",)})
FULL = "system:kcp:serviceaccount:a:default:robot"


def test_at_home_an_account_is_itself_and_has_its_full_name_too() -> None:
    assert in_scope(ROBOT, "a") is ROBOT
    assert [user.name for user in identities(ROBOT, "a")] == [NAME, FULL]
    assert is_own_service_account(ROBOT, "a")
    assert home_of(ROBOT) == "a"


def test_abroad_it_is_nobody_with_a_full_name() -> None:
    seen = in_scope(ROBOT, "b")
    assert (seen.name, seen.uid) == ("system:anonymous", "")
    assert seen.groups == (AUTHENTICATED, "system:cluster:a")
    assert [(u.name, u.groups) for u in identities(seen, "b")][1] == (FULL, (AUTHENTICATED,))
    assert not is_own_service_account(seen, "b")
    # Seen again, also by the workspace it came from, it stays what it is.
    assert in_scope(seen, "b") == seen
    assert in_scope(seen, "a") == seen


def test_an_account_that_names_no_workspace_is_local() -> None:
    local = User(NAME, ("system:serviceaccounts",))
    assert in_scope(local, "b") is local
    assert identities(local, "b") == (local,)
    assert not is_own_service_account(local, "b")


@pytest.mark.parametrize(
    ("scopes", "inside"),
    [(("cluster:a",), {"a"}), (("cluster:a,cluster:b",), {"a", "b"}), (("cluster:a,cluster:b", "cluster:b"), {"b"})],
)
def test_scopes(scopes: tuple[str, ...], inside: set[str]) -> None:
    user = User("ann", ("devs",), extra={SCOPES: scopes})
    for cluster in "abc":
        assert (in_scope(user, cluster) is user) is (cluster in inside)
    assert in_scope(user, "c").groups == (AUTHENTICATED, *(f"system:cluster:{c}" for c in sorted(inside)))


def test_a_scoped_account_out_of_scope_has_not_even_its_full_name() -> None:
    scoped = User(ROBOT.name, ROBOT.groups, extra={CLUSTER_NAME: ("a",), SCOPES: ("cluster:a",)})
    assert len(identities(in_scope(scoped, "b"), "b")) == 1
    assert home_of(scoped) == ""
