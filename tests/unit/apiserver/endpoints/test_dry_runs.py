"""A dry run answers as the write would: the same checks, the same refusals, the same success, and nothing done."""

from __future__ import annotations

from typing import Any

import pytest

CONFIGMAPS = "/clusters/{path}/api/v1/namespaces/default/configmaps"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
BODY = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "new"}, "data": {"k": "v"}}

WRITES: dict[str, tuple[str, str, str, Any]] = {
    "create": ("POST", "", "", BODY),
    "apply": ("PATCH", "/new?fieldManager=m", APPLY, BODY),
    "put": ("PUT", "/there", "", {**BODY, "metadata": {"name": "there"}, "data": {}}),
    "patch": ("PATCH", "/there", MERGE, {"data": {"k": "changed"}}),
    "delete": ("DELETE", "/there", "", b""),
    "deletecollection": ("DELETE", "", "", b""),
}


@pytest.fixture
def worlds(api: Any) -> Any:
    """A workspace in each mode of writes, and one that is held back, each with the ConfigMap `there`."""
    for name, mode, errors in (
        ("readonly", "ReadOnly", []),
        ("stored", "Store", []),
        ("held", "Commit", ["f.yaml:1: bad"]),
    ):
        cluster = f"{name}00000000"
        api.put_workspace(f"root:{name}", cluster, directory=f"workspaces/root/{name}", writes=mode, errors=errors)
        declared = {"treeplane.dev/source-path": "f.yaml", "treeplane.dev/source-commit": "c0ffee"}
        api.put(
            api.manifest("v1 Namespace", "default", cluster=cluster),
            api.manifest("v1 ConfigMap", "there", "default", cluster, annotations=declared, data={"k": "v"}),
        )
    return api


@pytest.mark.parametrize("path", ["root:readonly", "root:stored", "root:held"])
@pytest.mark.parametrize("write", WRITES)
def test_it_is_refused_in_the_same_words(worlds: Any, run: Any, path: str, write: str) -> None:
    method, below, kind, body = WRITES[write]
    at = CONFIGMAPS.format(path=path) + below
    before = worlds.store.revision()
    dry = run(worlds.call(method, f"{at}{'&' if '?' in at else '?'}dryRun=All", body, kind=kind))
    assert worlds.store.revision() == before
    real = run(worlds.call(method, at, body, kind=kind))
    assert dry.status == real.status
    if real.status >= 400:
        assert dry.json == real.json
    assert (real.status < 400) is (path == "root:stored" and write in ("create", "apply"))


def test_workspaces_are_tried_too(worlds: Any, run: Any) -> None:
    cluster, kind = "held00000000", "tenancy.kcp.io/v1alpha1 WorkspaceType"
    worlds.put_workspace("root:open", cluster, directory="workspaces/root/open", writes="Commit")
    worlds.put(
        worlds.manifest("tenancy.kcp.io/v1alpha1 Workspace", "child", cluster=cluster, spec={}),
        worlds.manifest(kind, "universal", spec={}),
    )
    base = "/clusters/root:open/apis/tenancy.kcp.io/v1alpha1/workspaces"
    body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "w"}}
    tried = run(worlds.call("POST", f"{base}?dryRun=All", body))
    assert (tried.status, tried.json["spec"]["type"]) == (201, {"name": "universal", "path": "root"})
    refused = run(worlds.call("DELETE", f"{base}/child?dryRun=All"))
    assert (refused.status, "changed in git, not here" in refused.message) == (403, True)


def test_what_is_runtime_state_is_tried_in_a_held_workspace_too(worlds: Any, run: Any) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "one"}}
    leases = "/clusters/root:held/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert run(worlds.call("POST", f"{leases}?dryRun=All", lease)).status == 201
