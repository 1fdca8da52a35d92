"""The texts of 403, as clients match them."""

import pytest

from apiserver.auth.denial import denial
from apiserver.auth.user import Attributes, User


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (
            Attributes("get", "", "v1", "configmaps", "", "ns", "a"),
            'configmaps "a" is forbidden: User "bob" cannot get resource "configmaps" in API group "" '
            'in the namespace "ns"',
        ),
        (
            Attributes("list", "apps", "v1", "deployments"),
            'deployments.apps is forbidden: User "bob" cannot list resource "deployments" in API group "apps" '
            "at the cluster scope",
        ),
        (
            Attributes("get", "", "v1", "pods", "log", "ns", "p"),
            'pods "p" is forbidden: User "bob" cannot get resource "pods/log" in API group "" in the namespace "ns"',
        ),
        (Attributes("get", path="/metrics"), 'forbidden: User "bob" cannot get path "/metrics"'),
    ],
)
def test_texts(asked: Attributes, text: str) -> None:
    error = denial(User("bob"), asked)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", text)
    assert denial(User("bob"), asked, "access denied").message == f"{text}: access denied"


def test_details() -> None:
    asked = Attributes("get", "apps", "v1", "deployments", "", "ns", "a")
    assert denial(User("bob"), asked).details == {"name": "a", "group": "apps", "kind": "deployments"}
