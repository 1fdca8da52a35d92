"""Who is not of the groups that a workspace requires does not enter it, whatever RBAC says there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.auth.rbac import Authorizer
from apiserver.auth.scopes import SCOPES
from apiserver.auth.user import AUTHENTICATED, KCP_ADMIN, MASTERS, Attributes, User
from apiserver.auth.warrants import CLUSTER_NAME, WARRANT
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace

GET = Attributes("get", version="v1", resource="configmaps", namespace="ns", name="a")
CLUSTERS = {"root": "root", "root:org": "org", "root:org:team": "team"}


def of(*groups: str, **extra: tuple[str, ...]) -> User:
    return User("bob", (*groups, AUTHENTICATED), extra=extra)


@pytest.fixture
def require(store: Any) -> Callable[..., None]:
    """Has workspaces require groups; all there are may be entered by bob, and everything done in them."""

    def put(path: str, text: str) -> None:
        said = {"authorization.kcp.io/required-groups": text} if text else {}
        store.put(LOGICAL_CLUSTERS, CLUSTERS[path], {"metadata": {"annotations": said}}, "cluster")

    for path, cluster in CLUSTERS.items():
        record = WorkspaceRecord(path, cluster, path.rpartition(":")[0])
        store.write(put_workspace(record), placed(record)).result()
        put(path, "")
    return put


@pytest.fixture
def enters(store: Any, rbac: Any) -> Callable[..., bool]:
    authorizer = Authorizer(store)
    for cluster in CLUSTERS.values():
        rbac(cluster).bind("cluster-admin", ("User", "bob"), ("Group", "system:serviceaccounts"))
    return lambda user, cluster="team", **more: authorizer.authorize(cluster, user, GET, **more).allowed


@pytest.mark.parametrize(
    ("text", "groups", "enters_it"),
    [
        ("a", "a", True), ("a", "b", False), ("a,b", "a", False), ("a,b", "a b", True), ("a,b;c", "c", True),
        ("a,b;c", "b", False), (" a , b ; c ", "a b", True), ("a;", "b", False), (",", "a", False),
    ],
)  # fmt: skip
def test_all_of_one_alternative(require: Any, enters: Any, text: str, groups: str, enters_it: bool) -> None:
    require("root:org:team", text)
    assert enters(of(*groups.split())) is enters_it


def test_what_is_above_holds_below_and_nothing_below_takes_it_away(require: Any, enters: Any) -> None:
    require("root:org", "org")
    assert not enters(of())
    assert enters(of("org"))
    assert enters(of(), "root")
    require("root:org:team", "team")
    assert not enters(of("team"))
    assert not enters(of("org"))
    assert enters(of("org", "team"))
    require("root:org", "")
    assert enters(of("team"))


def test_a_workspace_that_is_gone_requires_nothing(require: Any, enters: Any, store: Any) -> None:
    require("root:org", "org")
    store.put(LOGICAL_CLUSTERS, "org", None, "cluster")
    assert enters(of())


def test_where_nobody_requires_anything_that_is_all_that_is_asked(require: Any, enters: Any, store: Any) -> None:
    looks: list[object] = []
    for name in ("get", "get_row", "indexed"):
        real = getattr(store, name)
        setattr(store, name, lambda *given, _real=real, **more: looks.append(given) or _real(*given, **more))
    assert enters(of())
    assert len(looks) == 1


def test_who_is_let_in_all_the_same(require: Any, enters: Any, rbac: Any) -> None:
    require("root:org", "nobody")
    own = User("system:serviceaccount:ns:robot", ("system:serviceaccounts",), extra={CLUSTER_NAME: ("team",)})
    assert enters(own)
    assert enters(User("a", (KCP_ADMIN,)))
    assert enters(User("a", (MASTERS,)))
    assert enters(of(), deep=True)
    other = User(own.name, own.groups, extra={CLUSTER_NAME: ("elsewhere",)})
    assert not enters(other), "it needs access like anybody"
    rbac("team").bind("cluster-admin", ("User", "system:kcp:serviceaccount:elsewhere:ns:robot"))
    assert enters(other)


def test_groups_count_where_their_user_is_somebody(require: Any, enters: Any) -> None:
    require("root:org:team", "devs")
    assert enters(of("devs", **{SCOPES: ("cluster:team",)}))
    assert not enters(of("devs", **{SCOPES: ("cluster:root",)}))
    assert enters(of(**{WARRANT: ('{"user": "eve", "groups": ["devs"]}',)}))
    within = '{"user": "eve", "groups": ["devs"], "extra": {"authentication.kcp.io/scopes": ["cluster:root"]}}'
    assert not enters(of(**{WARRANT: (within,)}))
