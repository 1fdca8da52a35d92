"""Who a user is in a workspace."""

import pytest

from apiserver.auth.scopes import SCOPES, consumers, full_name, home_of, identities, in_scope, is_own_service_account
from apiserver.auth.user import AUTHENTICATED, BINDING_PREFIX, User
from apiserver.auth.warrants import CLUSTER_NAME, WARRANT

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
    assert (full_name(seen), full_name(ROBOT)) == (FULL, NAME)
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


BEA = '{"user": "bea", "groups": ["devs"]}'
"""A warrant."""


def names(user: User, cluster: str) -> list[str]:
    return [each.name for each in identities(in_scope(user, cluster), cluster)]


def test_a_warrant_adds_whom_it_names_and_outlasts_the_scope_of_who_bears_it() -> None:
    user = User("ann", (), extra={SCOPES: ("cluster:a",), WARRANT: (BEA,)})
    assert names(user, "a") == ["ann", "bea"]
    assert names(user, "b") == ["system:anonymous", "bea"]
    seen = in_scope(user, "b")
    assert in_scope(seen, "b") == seen


def test_a_warrant_has_a_scope_of_its_own() -> None:
    within = '{"user": "bea", "groups": ["devs"], "extra": {"authentication.kcp.io/scopes": ["cluster:a"]}}'
    user = User("ann", (), extra={WARRANT: (within,)})
    assert names(user, "a") == ["ann", "bea"]
    assert names(user, "b") == ["ann", "system:anonymous"]


def test_an_account_in_a_warrant_is_of_one_workspace() -> None:
    bare = f'{{"user": "{NAME}"}}'
    assert names(User("ann", extra={WARRANT: (bare,)}), "a") == ["ann"]
    of_a = f'{{"user": "{NAME}", "extra": {{"{CLUSTER_NAME}": ["a"]}}}}'
    user = User("ann", extra={WARRANT: (of_a,)})
    assert names(user, "a") == ["ann", NAME, FULL]
    assert names(user, "b") == ["ann", "system:anonymous", FULL]


def test_warrants_without_end_are_cut_short() -> None:
    user = User("ann", extra={WARRANT: tuple(f'{{"user": "u{n}"}}' for n in range(1000))})
    assert len(names(user, "a")) < 20


def test_a_provider_knows_consumers_by_a_prefix_and_accounts_in_full() -> None:
    def known(user: User, cluster: str) -> list[str]:
        return [each.name.removeprefix(BINDING_PREFIX) for each in consumers(in_scope(user, cluster), cluster)]

    (ann,) = consumers(User("ann", ("devs",)), "a")
    assert (ann.name, ann.groups) == (f"{BINDING_PREFIX}ann", (f"{BINDING_PREFIX}devs",))
    assert known(ROBOT, "a") == [FULL]
    assert known(ROBOT, "b") == [FULL]
    assert known(User(NAME, ROBOT.groups), "a") == ["system:anonymous"]
    assert known(User("ann", extra={WARRANT: (BEA,)}), "a") == ["ann", "bea"]
