"""What would limit rights and is not done: refused by name, whoever asks."""

from typing import Any

EXPORTS = "/clusters/root:lab/apis/apis.kcp.io/v1alpha1/apiexports"


def test_a_maximal_permission_policy_is_refused_by_name(api: Any, run: Any) -> None:
    api.put_workspace("root:lab", "labcluster000000", directory="workspaces/root/lab", writes="Commit")
    spec = {"maximalPermissionPolicy": {"local": {}}}
    export = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "e"}, "spec": spec}
    for method, path, kind in (("POST", EXPORTS, ""), ("POST", f"{EXPORTS}?dryRun=All", ""),
                               ("PATCH", f"{EXPORTS}/e?fieldManager=m", "application/apply-patch+yaml")):  # fmt: skip
        reply = run(api.call(method, path, export, kind=kind))
        assert (reply.status, reply.json["details"]["causes"][0]["field"]) == (422, "spec.maximalPermissionPolicy")
        assert "maximal permission policies are not supported" in reply.message


def test_computed_statuses_are_nobodys_to_write(api: Any, run: Any) -> None:
    """Nothing would put right what somebody wrote there."""
    for group, resource in (("tenancy.kcp.io", "workspacetypes"), ("core.kcp.io", "logicalclusters")):
        path = f"/clusters/root/apis/{group}/v1alpha1/{resource}/cluster/status"
        reply = run(api.call("PATCH", path, {"status": {}}, kind="application/merge-patch+json"))
        assert (reply.status, "its status is computed" in reply.message) == (403, True)
