"""No header, impersonation or extra attribute raises privilege: who rules one workspace is elsewhere who they were.

`ann` is cluster-admin of root:shop, so she may impersonate whomever she likes there. In no other workspace does that
change an answer by a byte.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import orjson
import pytest

from apiserver.auth.user import KCP_ADMIN, MASTERS, PRIVILEGED

EVERYTHING = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]
WARRANT, SCOPES = "authorization.kcp.io/warrant", "authentication.kcp.io/scopes"
HOME, ABROAD = "authentication.kcp.io/cluster-name", "authentication.kcp.io/serviceaccount"
ROBOT = "system:serviceaccount:default:robot"


def extra(key: str, value: str) -> dict[str, str]:
    return {f"impersonate_extra_{key}".replace("/", "%2f"): value}


def warrant(*groups: str, user: str = "root-admin", **more: list[str]) -> str:
    return orjson.dumps({"user": user, "groups": list(groups), "extra": more}).decode()


HEADERS: list[dict[str, str]] = [
    {"x_kcp_internal_deep_subjectaccessreview": "true"},
    {"x_remote_user": "root-admin", "x_remote_group": MASTERS},
    {"x_remote_extra_scopes": "cluster:root"},
    {"x_forwarded_client_cert": "Subject=CN=root-admin"},
]
BORROWED: list[dict[str, str]] = [
    {"impersonate_user": "root-admin"},
    {"impersonate_user": "root-admin", **extra(SCOPES, "cluster:root,cluster:*")},
    {"impersonate_user": "ann", **extra(WARRANT, warrant())},
    {"impersonate_user": "ann", **extra(WARRANT, warrant("staff", **{WARRANT: [warrant()]}))},
    {"impersonate_user": ROBOT, **extra(HOME, "root")},
    {"impersonate_user": "system:anonymous", **extra(ABROAD, "system:kcp:serviceaccount:root:default:robot")},
    {"impersonate_user": "ann", **extra(WARRANT, warrant(user=ROBOT, **{HOME: ["root"]}))},
]
SPECIAL = [{"impersonate_user": "x", "impersonate_group": group} for group in sorted(PRIVILEGED)]
SPECIAL += [{"impersonate_user": "x", **extra(WARRANT, warrant(group))} for group in sorted(PRIVILEGED)]
ELSEWHERE = ["/clusters/root", "/clusters/root:broken", "/clusters/root:none", "/clusters/*", "/clusters/system:admin"]
ASKED = [
    "/api/v1/configmaps",
    "/api/v1/namespaces/default/secrets/s",
    "/api",
    "/apis/tenancy.kcp.io/v1alpha1/workspaces",
]


@pytest.fixture
def ruled(api: Any) -> Any:
    """root-admin and the ServiceAccount robot rule root, ann rules root:shop."""
    api.allow("ann", *EVERYTHING, cluster=api.SHOP)
    api.allow("root-admin", *EVERYTHING)
    for name in (ROBOT, "system:kcp:serviceaccount:root:default:robot"):
        api.allow(name, *EVERYTHING)
    return api


@pytest.mark.parametrize("sent", [*HEADERS, *BORROWED, *SPECIAL])
def test_who_rules_one_workspace_is_nobody_in_another_whatever_they_send(ruled: Any, run: Any, sent: Any) -> None:
    for world, asked in product(ELSEWHERE, ASKED):
        for method in ("GET", "DELETE"):
            plain = run(ruled.call(method, f"{world}{asked}", user="ann"))
            answer = run(ruled.call(method, f"{world}{asked}", user="ann", **sent))
            assert plain.status in (403, 405)
            assert answer.status == 403 or answer == plain


@pytest.mark.parametrize("sent", BORROWED)
def test_whom_she_acts_for_at_home_takes_nothing_from_elsewhere(ruled: Any, run: Any, sent: Any) -> None:
    """An export of root is bound by who may bind it as they came."""
    ruled.put(ruled.manifest("apis.kcp.io/v1alpha2 APIExport", "e", spec={}))
    ruled.put_workspace("root:shop", ruled.SHOP, directory="workspaces/root/shop", writes="Commit")
    spec = {"reference": {"export": {"path": "root", "name": "e"}}}
    binding = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "b"}, "spec": spec}
    path = "/clusters/root:shop/apis/apis.kcp.io/v1alpha2/apibindings?dryRun=All"
    reply = run(ruled.call("POST", path, binding, user="ann", **sent))
    assert reply.status == 403
    assert "no permission to bind to export root:e" in reply.message or "cannot" in reply.message


@pytest.mark.parametrize("sent", SPECIAL)
def test_special_groups_are_lent_by_who_is_in_them(ruled: Any, run: Any, sent: Any) -> None:
    reply = run(ruled.get("/clusters/root:shop/api/v1/configmaps", user="ann", **sent))
    assert (reply.status, reply.message) == (403, "impersonation is not allowed for the requestor")


def test_kcp_admins_lend_their_own_group_and_no_higher_one(ruled: Any, run: Any) -> None:
    as_admin = {"impersonate_user": "a", "impersonate_group": KCP_ADMIN}
    assert run(ruled.get("/clusters/root:shop/api/v1/configmaps", **as_admin)).status == 200
    # What system:masters lend has no scope, so it counts in every workspace.
    assert run(ruled.get("/clusters/root/api/v1/configmaps", **as_admin)).status == 200
