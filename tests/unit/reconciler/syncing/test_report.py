"""The texts that conditions tell."""

from __future__ import annotations

from apiserver.model.kinds import GroupResource
from reconciler.syncing.report import explained, leased, synced
from reconciler.syncing.upstream import Item, kind_of_storage

CONFIG = GroupResource("", "configmaps")


def test_synced() -> None:
    assert synced({}, {})["status"] == "True"
    stays = synced({}, {"StorageClass": 2})
    assert (stays["status"], stays["reason"]) == ("True", "ClusterScopedStaysUpstream")
    assert "StorageClass (2)" in stays["message"]
    items = {Item(CONFIG, "c", "n", f"m{i}"): "Invalid: no" for i in range(7)}
    failed = synced(items, {})
    assert (failed["status"], failed["reason"]) == ("False", "ApplyFailed")
    assert failed["message"].startswith("configmaps n/m0: Invalid: no")
    assert failed["message"].endswith("and 2 more")


def test_explained() -> None:
    assert explained([], [])["status"] == "True"
    told = explained([Item(CONFIG, "c", "n", "x")], ["kcp-old"])
    assert told["status"] == "False"
    assert "configmaps n/x of logical cluster c; namespace kcp-old" in told["message"]


def test_leased() -> None:
    assert leased("")["status"] == "True"
    told = leased("Lease x of the target is not ours: it is gone")
    assert (told["type"], told["status"], told["reason"]) == ("LeaseHeld", "False", "NotHeld")
    assert told["message"] == "nothing is written to the target: Lease x of the target is not ours: it is gone"


def test_kinds_by_their_storage_name() -> None:
    assert kind_of_storage("deployments.apps:identity") == GroupResource("apps", "deployments")
    assert kind_of_storage("configmaps") == CONFIG
    assert kind_of_storage("ingresses.networking.k8s.io:x") == GroupResource("networking.k8s.io", "ingresses")
