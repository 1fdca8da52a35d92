"""Acting as someone else."""

from collections.abc import Callable

import pytest

from apiserver.auth.impersonation import impersonated
from apiserver.auth.scopes import SCOPES, in_scope
from apiserver.auth.user import AUTHENTICATED, MASTERS, PRIVILEGED, AccessDecision, Attributes, User
from apiserver.model.errors import StatusError

ADMIN = User("admin", (MASTERS, AUTHENTICATED))
BOB = User("bob", (AUTHENTICATED,))


def headers(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(f"impersonate-{k}".encode(), v.encode()) for k, v in pairs]


def allow(_: Attributes) -> AccessDecision:
    return AccessDecision(True)


def only(*resources: str) -> Callable[[Attributes], AccessDecision]:
    return lambda asked: AccessDecision(asked.verb == "impersonate" and asked.qualified_resource in resources)


def test_without_headers_nothing_changes() -> None:
    assert impersonated(BOB, [(b"accept", b"*/*")], "ws", only()) is BOB


def test_user_groups_uid_and_extra() -> None:
    asked = headers(("user", "eve"), ("group", "a"), ("group", "b"), ("uid", "u"), ("extra-Acme.io%2fRole", "x"))
    user = impersonated(ADMIN, asked, "ws", allow)
    assert user == User("eve", ("a", "b", AUTHENTICATED), "u", {"acme.io/role": ("x",)})


@pytest.mark.parametrize(
    ("asked", "lacking"),
    [
        ([("user", "eve")], "users"),
        ([("user", "eve"), ("group", "g")], "groups"),
        ([("user", "eve"), ("uid", "1")], "uids"),
        ([("user", "eve"), ("extra-k", "v")], "userextras/k"),
        ([("user", "system:serviceaccount:ns:sa")], "serviceaccounts"),
    ],
)
def test_each_needs_the_verb(asked: list[tuple[str, str]], lacking: str) -> None:
    everything = {"users", "groups", "uids", "userextras/k", "serviceaccounts"}
    impersonated(BOB, headers(*asked), "ws", only(*everything))
    with pytest.raises(StatusError, match=f'cannot impersonate resource "{lacking}"'):
        impersonated(BOB, headers(*asked), "ws", only(*(everything - {lacking})))


def test_a_service_account_gets_its_groups() -> None:
    user = impersonated(ADMIN, headers(("user", "system:serviceaccount:ns:sa")), "ws", allow)
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED)


def test_borrowed_names_end_at_the_workspace() -> None:
    user = impersonated(BOB, headers(("user", "eve"), (f"extra-{SCOPES}", "cluster:other")), "ws", allow)
    assert user.extra[SCOPES] == ("cluster:other", "cluster:ws")


def test_masters_cannot_be_borrowed() -> None:
    with pytest.raises(StatusError, match="not allowed for the requestor"):
        impersonated(BOB, headers(("user", "eve"), ("group", MASTERS)), "ws", allow)
    assert impersonated(ADMIN, headers(("user", "eve"), ("group", MASTERS)), "ws", allow).is_master


def test_groups_without_user_are_a_bad_request() -> None:
    with pytest.raises(StatusError) as raised:
        impersonated(ADMIN, headers(("group", "g")), "ws", allow)
    assert raised.value.code == 400


@pytest.mark.parametrize("group", sorted(PRIVILEGED))
def test_groups_with_rights_everywhere_cannot_be_borrowed(group: str) -> None:
    asked = headers(("user", "eve"), ("group", group))
    with pytest.raises(StatusError, match="impersonation is not allowed for the requestor"):
        impersonated(BOB, asked, "ws", allow)
    # Whoever is in it lends nothing that was not theirs.
    assert group in impersonated(User("bob", (group, AUTHENTICATED)), asked, "ws", allow).groups


def test_nobody_can_be_impersonated_too() -> None:
    user = impersonated(ADMIN, headers(("user", "system:anonymous")), "ws", allow)
    assert user.groups == ("system:unauthenticated",)


def test_an_account_of_the_workspace_is_no_account_elsewhere() -> None:
    user = impersonated(ADMIN, headers(("user", "system:serviceaccount:ns:sa")), "ws", allow)
    assert in_scope(user, "ws") is user
    assert in_scope(user, "other").name == "system:anonymous"
