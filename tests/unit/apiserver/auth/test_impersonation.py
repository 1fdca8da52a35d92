"""Acting as someone else."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from apiserver.auth.impersonation import impersonated
from apiserver.auth.scopes import SCOPES, identities, in_scope
from apiserver.auth.user import AUTHENTICATED, MASTERS, PRIVILEGED, AccessDecision, Attributes, User
from apiserver.auth.warrants import ABROAD, CLUSTER_NAME, WARRANT, warranted
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


@pytest.mark.parametrize("twice", ["user", "uid"])
@pytest.mark.parametrize("other", ["", "bob"])
@pytest.mark.parametrize("first", [True, False])
def test_nobody_is_outdone_by_a_second_header(twice: str, other: str, first: bool) -> None:
    """What a proxy says of its client stays so, whatever that client sends besides: an empty name would make the
    request the proxy's own."""
    named = (
        [(twice, other), ("user", "ann"), ("uid", "1")] if first else [("user", "ann"), ("uid", "1"), (twice, other)]
    )
    with pytest.raises(StatusError, match=f"the header Impersonate-{twice.title()} is there more than once") as raised:
        impersonated(ADMIN, headers(*named), "ws", allow)
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


def warrant(user: str, *groups: str, **extra: list[str]) -> str:
    return orjson.dumps({"user": user, "groups": list(groups), "extra": extra}).decode()


def with_warrants(*texts: str) -> list[tuple[bytes, bytes]]:
    return headers(("user", "eve"), *((f"extra-{WARRANT}", text) for text in texts))


def test_a_warrant_that_is_sent_ends_at_the_workspace_like_the_user() -> None:
    nested = warrant("bea", "devs", **{WARRANT: [warrant("cy", "ops")]})
    user = impersonated(BOB, with_warrants(nested), "ws", allow)
    assert [each.name for each in identities(in_scope(user, "ws"), "ws")] == ["eve", "bea", "cy"]
    abroad = identities(in_scope(user, "other"), "other")
    assert {each.name for each in abroad} == {"system:anonymous"}
    assert {group for each in abroad for group in each.groups} == {AUTHENTICATED, "system:cluster:ws"}


def test_whoever_is_scoped_lends_no_more_than_their_scope() -> None:
    scoped = User("bob", (AUTHENTICATED,), extra={SCOPES: ("cluster:other",)})
    user = impersonated(scoped, with_warrants(warrant("bea")), "ws", allow)
    for cluster in ("ws", "other"):
        assert {each.name for each in identities(in_scope(user, cluster), cluster)} == {"system:anonymous"}


@pytest.mark.parametrize("group", sorted(PRIVILEGED))
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_no_warrant_brings_rights_beyond_a_workspace(group: str, depth: int) -> None:
    text = warrant("x", group)
    for _ in range(depth):
        text = warrant("x", **{WARRANT: [text]})
    with pytest.raises(StatusError, match="impersonation is not allowed for the requestor"):
        impersonated(BOB, with_warrants(text), "ws", allow)
    assert group in {
        g for each in warranted(impersonated(ADMIN, with_warrants(text), "ws", allow)) for g in each.groups
    }


def test_whom_a_warrant_names_is_impersonated_like_anybody() -> None:
    everything = {"users", "groups", f"userextras/{WARRANT}"}
    asked = with_warrants(warrant("bea", "devs"))
    impersonated(BOB, asked, "ws", only(*everything))
    for lacking in everything:
        with pytest.raises(StatusError, match="cannot impersonate resource"):
            impersonated(BOB, asked, "ws", only(*(everything - {lacking})))

    def but_bea(attributes: Attributes) -> AccessDecision:
        return AccessDecision(attributes.name != "bea")

    with pytest.raises(StatusError, match='"bea" is forbidden'):
        impersonated(BOB, asked, "ws", but_bea)


@pytest.mark.parametrize(
    "extra",
    [
        {CLUSTER_NAME: ["other"]},
        {ABROAD: ["system:kcp:serviceaccount:other:ns:sa"]},
        {SCOPES: ["cluster:other"]},
    ],
)
@pytest.mark.parametrize("name", ["system:anonymous", "system:serviceaccount:ns:sa"])
def test_no_extra_makes_one_an_account_of_another_workspace(name: str, extra: dict[str, Any]) -> None:
    theirs = "system:kcp:serviceaccount:other:ns:sa"
    sent = [(f"extra-{key}", value) for key, values in extra.items() for value in values]
    for asked in (headers(("user", name), *sent), with_warrants(warrant(name, **extra))):
        user = impersonated(BOB, asked, "ws", allow)
        for cluster in ("ws", "other"):
            seen = {each.name for each in identities(in_scope(user, cluster), cluster)}
            assert theirs not in seen
            assert cluster == "ws" or "system:serviceaccount:ns:sa" not in seen


def test_nobody_is_lent_who_was_not_asked_for() -> None:
    """Not by what is left out of a warrant, by how many there are, nor by how deep they stand."""
    account = "system:serviceaccount:ns:sa"
    deep = warrant("deep")
    for number in range(12):
        deep = warrant(f"d{number}", **{WARRANT: [deep]})
    texts = [warrant(account), deep, *(warrant(f"u{number}") for number in range(30))]
    asked: set[str] = set()

    def noted(attributes: Attributes) -> AccessDecision:
        asked.add(attributes.name)
        return AccessDecision(True)

    user = impersonated(BOB, with_warrants(*texts), "ws", noted)
    lent = {each.name for each in identities(in_scope(user, "ws"), "ws")}
    assert {"eve", "u0"} <= lent <= asked
    assert account not in lent


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"user": 7}', '{"groups": "devs"}', '{"extra": {"a": "b"}}'])
def test_what_is_no_warrant_gives_nothing(text: str) -> None:
    user = impersonated(BOB, with_warrants(text), "ws", allow)
    assert [each.name for each in identities(in_scope(user, "ws"), "ws")] == ["eve"]
