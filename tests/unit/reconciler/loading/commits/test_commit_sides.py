"""What passes git by where writes are commits: runtime state, Secrets, what controllers do."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from typing import Any

import orjson
from support import widgets
from support.commitfleet import MADE, CommitFleet, a_configmap
from support.loadedfleet import A, B, LoadedFleet

from apiserver.model.storagenames import BINDINGS, EXPORTS
from reconciler.controllers.disposal import delete_all, replaced, write
from reconciler.controllers.protection import Protection
from reconciler.loading import awaited

Object = dict[str, Any]

KUBERNETES = {
    "workspaces/root/type.yaml": (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: k}\n"
        "spec: {builtins: Kubernetes, writes: Commit}\n"
    ),
    "workspaces/root/k/workspace.yaml": (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: k, path: root}}\n"
    ),
}
"""The workspace root:k with all of Kubernetes' kinds."""


def _lease() -> Object:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}


def _value(fleet: CommitFleet) -> bytes:
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    return record.value if record is not None else b""


def without_owners(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}}


def test_runtime_objects_are_stored_and_not_committed(fleet: CommitFleet) -> None:
    head = fleet.repo.head
    owned = a_configmap("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "u", "controller": True}
    ]
    fleet.create("root:a", "configmaps", owned)
    fleet.create("root:a", "configmaps", a_configmap("account"), user="system:serviceaccount:default:x")
    fleet.create("root:a", "leases.coordination.k8s.io", _lease())
    assert fleet.repo.head == head
    for name in ("owned", "account"):
        annotations = fleet.get("root:a", "configmaps", name)["metadata"]["annotations"]
        assert annotations["treeplane.dev/origin"] == "runtime"
    fleet.change("root:a", "configmaps", "owned", data={"x": "y"})
    fleet.remove("root:a", "configmaps", "owned")
    assert fleet.repo.head == head


def test_a_status_and_a_change_of_nothing_are_no_commits(fleet: CommitFleet) -> None:
    fleet.create("root:a", "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    head = fleet.repo.head
    fleet.change("root:a", "namespaces", "n", sub="status", status={"phase": "Active", "conditions": []})
    fleet.change("root:a", "configmaps", "app")
    assert fleet.repo.head == head


def test_a_secret_is_kept_in_keys_and_not_in_git(fleet: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    head = fleet.repo.head
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw"}, "stringData": {"p": "w"}}
    answer = fleet.create("root:a", "secrets", secret)
    file = fleet.keys / "secrets" / "root:a" / "default.pw.yaml"
    assert "p: dw==" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert answer == fleet.get("root:a", "secrets", "pw")
    assert fleet.secrets.changed() == set()
    assert fleet.secrets.not_served(fleet.store) == set()
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    fleet.publish()
    second = another(fleet, keys=fleet.keys)
    second.load(second.recorded())
    assert second.get("root:a", "secrets", "pw")["metadata"]["uid"] == answer["metadata"]["uid"]
    fleet.change("root:a", "secrets", "pw", data={"p": "eA=="})
    assert "p: eA==" in file.read_text()
    fleet.remove("root:a", "secrets", "pw")
    assert not file.exists()
    assert fleet.repo.head == head
    assert fleet.find("root:a", "secrets", "pw") is None


def test_an_export_has_its_identity_of_a_secret_that_comes_through_the_api(
    fleet: CommitFleet, another: Callable[..., LoadedFleet]
) -> None:
    """And loses nothing with that Secret; a recovery finds the same."""
    offered = json.loads(widgets.export())
    offered["spec"]["identity"] = {"secretRef": {"namespace": "default", "name": "mine"}}
    fleet.commit({
        f"{A}/schema.json": widgets.schema(), f"{A}/export.json": json.dumps(offered),
        f"{B}/binding.json": widgets.binding("root:a"),
    })  # fmt: skip

    def told(at: LoadedFleet) -> tuple[str, str, str]:
        awaited.serve(at.store, at.loader.look_again)
        export = at.get("root:a", EXPORTS, "widgets")["status"]
        [valid] = [c["status"] for c in export["conditions"] if c["type"] == "IdentityValid"]
        return valid, export.get("identityHash", ""), at.get("root:b", BINDINGS, "widgets")["status"]["phase"]

    assert told(fleet) == ("False", "", "Binding")
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": {"key": "mine"}}
    fleet.create("root:a", "secrets", made)
    mine = hashlib.sha256(b"mine").hexdigest()
    assert told(fleet) == ("True", mine, "Bound")
    fleet.change("root:a", "secrets", "mine", data={"key": "b3RoZXI="})
    assert told(fleet) == ("False", mine, "Bound")
    fleet.remove("root:a", "secrets", "mine")
    assert told(fleet) == ("False", mine, "Bound")
    fleet.publish()
    second = another(fleet, keys=fleet.keys)
    second.load(second.recorded())
    assert told(second) == told(fleet)
    fleet.create("root:a", "secrets", made)
    assert told(fleet) == ("True", mine, "Bound")


def test_what_loops_delete_leaves_git_by_a_commit(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    at = fleet.at("root:a", "configmaps")
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    assert record is not None
    gone = threading.Event()
    fleet.store.subscribe(lambda: gone.set() if fleet.store.get(record.key) is None else None)
    assert delete_all(fleet.store, at.kind, [record]) == 1
    assert gone.wait(10)
    assert MADE not in fleet.tree()
    assert fleet.log()[-1] == "treeplane: Delete configmaps default/made in root:a"


def test_what_a_loop_changes_is_a_commit(fleet: CommitFleet) -> None:
    sent = a_configmap()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "u"}
    fleet.create("root:a", "configmaps", {**sent, "metadata": {**sent["metadata"], "ownerReferences": [owner]}})
    assert "uid: u" in fleet.tree()[MADE]
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    assert record is not None
    freed = threading.Event()
    fleet.store.subscribe(lambda: freed.set() if b'"ownerReferences":' not in _value(fleet) else None)
    write(fleet.store, replaced(record, without_owners(orjson.loads(record.value)))).result()
    assert freed.wait(10)
    assert "ownerReferences" not in fleet.tree()[MADE]


def test_a_service_keeps_what_it_was_given_when_the_store_is_lost(
    idle: CommitFleet, another: Callable[..., LoadedFleet]
) -> None:
    idle.commit(KUBERNETES)
    idle.serve()
    spec = {"type": "NodePort", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}]}
    spec["ports"][0]["name"] = "web"  # type: ignore[index]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    made = idle.create("root:k", "services", service)
    assert made["spec"]["clusterIP"]
    file = idle.tree()["workspaces/root/k/_objects/default/services/s.yaml"]
    assert "clusterIP" not in file
    assert "nodePort" not in file
    idle.publish()
    second = another(idle)
    second.load(second.recorded())
    assert second.get("root:k", "services", "s")["spec"] == made["spec"]


def test_a_headless_service_keeps_its_families_when_the_store_is_lost(
    idle: CommitFleet, another: Callable[..., LoadedFleet]
) -> None:
    idle.commit(KUBERNETES)
    idle.serve()
    made = {}
    for name, more in (("s", {"selector": {"app": "web"}}), ("t", {})):
        spec = {"clusterIP": "None", "ports": [{"port": 80}], **more}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        made[name] = idle.create("root:k", "services", service)["spec"]
    assert (made["t"]["ipFamilies"], made["t"]["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    idle.publish()
    second = another(idle)
    second.load(second.recorded())
    assert {name: second.get("root:k", "services", name)["spec"] for name in made} == made


def test_a_claim_that_is_used_no_more_leaves_git(idle: CommitFleet) -> None:
    idle.commit(KUBERNETES)
    idle.serve()
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    idle.create("root:k", "persistentvolumeclaims", claim)
    file = "workspaces/root/k/_objects/default/persistentvolumeclaims/c.yaml"
    assert file in idle.tree()
    assert not idle.remove("root:k", "persistentvolumeclaims", "c").removed
    key = idle.key("root:k", "persistentvolumeclaims", "c")
    gone = threading.Event()
    idle.store.subscribe(lambda: gone.set() if idle.store.get(key) is None else None)
    Protection(idle.store, lambda _: True).reconcile(key)
    assert gone.wait(10)
    assert file not in idle.tree()
