"""Logs, exec and the like, of a server that has no nodes to turn to."""

from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Put

BASE = "/targets/root:edge/api/v1"
PODS = f"{BASE}/namespaces/default/pods"
SERVICES = f"{BASE}/namespaces/default/services"


@pytest.fixture
def pods(api: Any, run: Any) -> None:
    for name, more in (("free", {}), ("placed", {"nodeName": "n"})):
        containers = [{"name": "c", "image": "x"}]
        made = run(api.call("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": containers, **more}}))
        assert made.status == 201


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("absent/log", 404, 'pods "absent" not found'),
        ("free/log?container=z", 400, "container z is not valid for pod free"),
        ("free/log?tailLines=-1", 422,
         'PodLogOptions "free" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'),
        ("free/exec?command=ls", 400, "pod free does not have a host assigned"),
        ("free/attach", 400, "pod free does not have a host assigned"),
        ("free/portforward?ports=80", 400, "pod free does not have a host assigned"),
        ("free/proxy/some/path", 400, "address not allowed"),
        ("free:80/proxy", 400, "address not allowed"),
        ("a:b:c:d/proxy", 400, 'invalid pod request "a:b:c:d"'),
        ("placed/log", 501,
         'pods/log is not supported: this server has no connection to node "n" of pod "placed"'),
        ("placed/exec?command=ls", 501,
         'pods/exec is not supported: this server has no connection to node "n" of pod "placed"'),
    ],
)  # fmt: skip
def test_what_pods_are_told(api: Any, run: Any, pods: None, path: str, status: int, message: str) -> None:
    reply = run(api.get(f"{PODS}/{path}"))
    assert (reply.status, reply.message) == (status, message)


def test_nobody_logs_where_nothing_runs(api: Any, run: Any, pods: None) -> None:
    assert run(api.get(f"{PODS}/free/log"))[::2] == (204, b"")


def test_methods(api: Any, run: Any, pods: None) -> None:
    for method, path in (("POST", "free/log"), ("PUT", "free/exec"), ("DELETE", "free/exec")):
        assert run(api.call(method, f"{PODS}/{path}")).status == 405
    assert run(api.call("POST", f"{PODS}/free/exec?command=ls")).status == 400
    assert run(api.call("PUT", f"{PODS}/free/proxy/x")).message == "address not allowed"


def test_services_without_and_with_endpoints(api: Any, run: Any) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    assert run(api.call("POST", SERVICES, service)).status == 201
    for path, message in (
        ("absent/proxy", 'services "absent" not found'),
        ("s/proxy", 'no endpoints available for service "s"'),
        ("https:s:80/proxy/x", 'no endpoints available for service "s"'),
        ("s:99/proxy", 'no service port 99 found for service "s"'),
    ):
        assert run(api.get(f"{SERVICES}/{path}")).message == message
    subsets = [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80}]}]
    api.put(api.manifest("v1 Endpoint", "s", "default", "target", subsets=subsets), store=api.target)
    reply = run(api.get(f"{SERVICES}/s/proxy"))
    assert (reply.status, "services/proxy is not supported" in reply.message) == (501, True)


def test_nodes(api: Any, run: Any) -> None:
    assert run(api.call("POST", f"{BASE}/nodes", {"metadata": {"name": "n"}})).status == 201
    assert run(api.get(f"{BASE}/nodes/n:10250/proxy/healthz")).message == "address not allowed"
    assert run(api.get(f"{BASE}/nodes/m/proxy")).status == 404


# -- Pods that a workspace binds


@pytest.fixture
def bound(api: Any) -> Any:
    """root:shop binds Pods and has one; root serves none."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}
    names = {"plural": "pods", "singular": "pod", "kind": "Pod", "listKind": "PodList"}
    spec = {"group": "", "names": names, "scope": "Namespaced", "versions": [version]}
    resource = {"group": "", "resource": "pods", "schema": {"name": "v1.pods.core", "identityHash": "hash"}}
    status = {"apiExportClusterName": "root", "boundResources": [resource]}
    api.put(
        api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.pods.core", spec=spec),
        api.manifest("apis.kcp.io/v1alpha1 APIBinding", "k", "", api.SHOP, spec={}, status=status),
    )
    pod = api.manifest("v1 Pod", "p", "default", api.SHOP, labels={"app": "a"}, spec={"containers": [{"name": "c"}]})
    api.store.write(Put(Key("pods:hash", api.SHOP, "default", "p"), codec.encode(pod))).result(10)
    return api


BOUND = "/clusters/root:shop/api/v1/namespaces/default/pods"


@pytest.mark.parametrize("what", ["log", "exec", "attach", "portforward", "proxy"])
def test_what_runs_elsewhere_says_so_at_once(bound: Any, run: Any, what: str) -> None:
    reply = run(bound.get(f"{BOUND}/p/{what}"))
    assert (reply.status, reply.json["reason"]) == (501, "NotImplemented")
    assert f"pods/{what} is not supported: what root:shop binds runs on sync targets" in reply.message
    assert run(bound.get(f"{BOUND}/absent/{what}")).status == 404


@pytest.mark.parametrize("command", ["logs", "exec", "attach", "port-forward", "cp"])
def test_a_program_that_seeks_a_pod_to_connect_to_does_not_wait_for_one(bound: Any, run: Any, command: str) -> None:
    """`kubectl logs deployment/web` lists Pods, and watches for a minute where there are none."""
    header = {"kubectl_command": f"kubectl {command}"}
    for query in ("labelSelector=app=b", "labelSelector=app=b&watch=1"):
        reply = run(bound.get(f"{BOUND}?{query}", **header))
        assert (reply.status, f"kubectl {command} is not supported" in reply.message) == (501, True)
    assert len(run(bound.get(f"{BOUND}?labelSelector=app=a", **header)).json["items"]) == 1
    assert run(bound.get(f"{BOUND}?labelSelector=app=b", kubectl_command="kubectl get")).json["items"] == []


def test_where_there_are_no_pods_that_is_said(bound: Any, run: Any) -> None:
    reply = run(bound.get("/api/v1/namespaces/default/pods/p/log"))
    assert (reply.status, "pods are not served in workspace root" in reply.message) == (404, True)
