"""What would limit rights and is not done: refused by name, whoever asks."""

from typing import Any


def test_computed_statuses_are_nobodys_to_write(api: Any, run: Any) -> None:
    """Nothing would put right what somebody wrote there."""
    for group, resource in (("tenancy.kcp.io", "workspacetypes"), ("core.kcp.io", "logicalclusters")):
        path = f"/clusters/root/apis/{group}/v1alpha1/{resource}/cluster/status"
        reply = run(api.call("PATCH", path, {"status": {}}, kind="application/merge-patch+json"))
        assert (reply.status, "its status is computed" in reply.message) == (403, True)
