"""Statuses that the server computes: whose they are to write all the same, and whose not."""

from typing import Any

import pytest

MERGE = "application/merge-patch+json"
KCP_ADMIN = {"impersonate_user": "x", "impersonate_group": "system:kcp:admin"}
OWNER = {"impersonate_user": "ann"}


def patched(api: Any, run: Any, kind: str, who: dict[str, str]) -> tuple[int, str]:
    """The answer to who writes a status; the user ann rules the workspace."""
    api.allow("ann", {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    group = "tenancy.kcp.io/v1alpha1" if kind.startswith("Workspace") else "apis.kcp.io/v1alpha2"
    spec = {"reference": {"export": {"name": "one"}}} if kind == "APIBinding" else {}
    api.put(api.manifest(f"{group} {kind}", "one", spec=spec, status={}))
    told = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Told"}
    body = {"status": {"conditions": [told]}}
    path = f"/clusters/root/apis/{group}/{kind.lower()}s/one/status"
    reply = run(api.call("PATCH", path, body, kind=MERGE, **who))
    return reply.status, reply.json.get("message", "")


@pytest.mark.parametrize(
    ("kind", "who", "status"),
    [
        ("WorkspaceType", {}, 200),
        ("WorkspaceType", KCP_ADMIN, 200),
        ("WorkspaceType", OWNER, 403),
        ("APIExport", {}, 200),
        ("APIExport", KCP_ADMIN, 403),
        ("APIExport", OWNER, 403),
        ("APIBinding", {}, 200),
        ("APIBinding", KCP_ADMIN, 403),
        ("APIBinding", OWNER, 403),
        ("Workspace", {}, 403),
    ],
)
def test_as_in_kcp_administrators_may_say_something_else(
    api: Any, run: Any, kind: str, who: dict[str, str], status: int
) -> None:
    assert patched(api, run, kind, who)[0] == status


def test_an_owner_is_told_whose_they_are(api: Any, run: Any) -> None:
    """Nothing would put right what somebody wrote there."""
    assert "its status is computed" in patched(api, run, "WorkspaceType", OWNER)[1]
