"""What would limit rights and is not done: refused by name, whoever asks."""

from typing import Any


def test_computed_statuses_are_nobodys_to_write(api: Any, run: Any) -> None:
    """Nothing would put right what somebody wrote there."""
    path = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspacetypes/universal/status"
    reply = run(api.call("PATCH", path, {"status": {}}, kind="application/merge-patch+json"))
    assert (reply.status, "its status is computed" in reply.message) == (403, True)
