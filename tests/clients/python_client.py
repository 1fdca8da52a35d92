"""The official Python client against the server of $KUBECONFIG: typed, dynamic, watches, an informer, and the asyncio
twin. Run by e2e/test_clients.py as a process of its own; it fails with a traceback, and says `ok` at the end."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from kubernetes import aio, client, config, dynamic, watch
from kubernetes.aio import client as aio_client
from kubernetes.aio import config as aio_config
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer

NAMESPACE = "python"
SECONDS = 30


def until(condition: Any, what: str) -> Any:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {SECONDS} s: {what}")


def refused(code: int, reason: str, call: Any) -> None:
    try:
        call()
    except ApiException as error:
        assert error.status == code, error
        assert f'"reason":"{reason}"' in (error.body or "").replace('": "', '":"'), error.body
        return
    raise AssertionError(f"not refused with {code} {reason}")


def config_map(name: str, **data: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"app": name}), data=data)


def typed() -> None:
    core = client.CoreV1Api()
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    made = core.create_namespaced_config_map(NAMESPACE, config_map("a", k="1"))
    assert made.metadata.uid and made.metadata.resource_version
    refused(409, "AlreadyExists", lambda: core.create_namespaced_config_map(NAMESPACE, config_map("a")))
    refused(404, "NotFound", lambda: core.read_namespaced_config_map("none", NAMESPACE))
    merged = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"l": "2"}})
    assert merged.data == {"k": "1", "l": "2"}
    edited = core.patch_namespaced_config_map("a", NAMESPACE, [{"op": "remove", "path": "/data/k"}])
    assert edited.data == {"l": "2"}
    refused(409, "Conflict", lambda: core.replace_namespaced_config_map("a", NAMESPACE, made))
    assert [m.metadata.name for m in core.list_namespaced_config_map(NAMESPACE, label_selector="app=a").items] == ["a"]
    core.delete_namespaced_config_map("a", NAMESPACE)
    refused(404, "NotFound", lambda: core.read_namespaced_config_map("a", NAMESPACE))


def workloads() -> None:
    """Strategic merge, which the client takes for every dict, and the scale subresource."""
    apps = client.AppsV1Api()
    container = client.V1Container(name="main", image="x:1", ports=[client.V1ContainerPort(container_port=80)])
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": "web"}), spec=client.V1PodSpec(containers=[container])
    )
    spec = client.V1DeploymentSpec(selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template)
    made = apps.create_namespaced_deployment(
        NAMESPACE, client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    assert made.spec.replicas == 1
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "y:1"}]}}}}
    patched = apps.patch_namespaced_deployment("web", NAMESPACE, patch)
    assert sorted(c.name for c in patched.spec.template.spec.containers) == ["main", "side"]
    scaled = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    assert scaled.spec.replicas == 3
    assert apps.read_namespaced_deployment("web", NAMESPACE).spec.replicas == 3
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")


def watching() -> None:
    core = client.CoreV1Api()
    start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.create_namespaced_config_map(NAMESPACE, config_map("w", k="1"))
    core.patch_namespaced_config_map("w", NAMESPACE, {"data": {"k": "2"}})
    core.delete_namespaced_config_map("w", NAMESPACE)
    stream = watch.Watch().stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        resource_version=start,
        label_selector="app=w",
        timeout_seconds=SECONDS,
    )
    seen = []
    for event in stream:
        seen.append((event["type"], event["object"].data["k"]))
        if event["type"] == "DELETED":
            break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], seen


def informer() -> None:
    core = client.CoreV1Api()
    seen: list[str] = []
    done = threading.Event()
    shared = SharedInformer(list_func=core.list_namespaced_config_map, namespace=NAMESPACE, label_selector="app=i")
    shared.add_event_handler("ADDED", lambda obj: seen.append(f"ADDED {obj.metadata.name}"))
    shared.add_event_handler("DELETED", lambda obj: (seen.append(f"DELETED {obj.metadata.name}"), done.set()))
    shared.start()
    try:
        core.create_namespaced_config_map(NAMESPACE, config_map("i", k="1"))
        until(lambda: seen == ["ADDED i"], f"the informer tells what came: {seen}")
        core.delete_namespaced_config_map("i", NAMESPACE)
        assert done.wait(SECONDS), seen
    finally:
        shared.stop()


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gauges.python.example"},
    "spec": {
        "group": "python.example",
        "scope": "Namespaced",
        "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}, "unit": {"type": "string", "default": "m"}},
                            },
                            "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
}


def dynamically() -> None:
    found = dynamic.DynamicClient(client.ApiClient())
    crds = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    crds.create(body=CRD)

    def established() -> bool:
        conditions = crds.get(name=CRD["metadata"]["name"]).status.conditions or ()
        return any(c.type == "Established" and c.status == "True" for c in conditions)

    until(established, "the definition is established")
    found.resources.invalidate_cache()
    gauges = found.resources.get(api_version="python.example/v1", kind="Gauge")
    body = {"apiVersion": "python.example/v1", "kind": "Gauge", "metadata": {"name": "g"}, "spec": {"size": 3}}
    made = gauges.create(body=body, namespace=NAMESPACE)
    assert (made.spec.size, made.spec.unit, made.metadata.generation) == (3, "m", 1)
    merge = "application/merge-patch+json"
    patched = gauges.patch(name="g", namespace=NAMESPACE, body={"spec": {"size": 4}}, content_type=merge)
    assert (patched.spec.size, patched.metadata.generation) == (4, 2)
    applied = gauges.server_side_apply(
        name="g", namespace=NAMESPACE, body={**body, "spec": {"unit": "cm"}}, field_manager="me", force_conflicts=True
    )
    assert (applied.spec.size, applied.spec.unit) == (4, "cm")
    status = gauges.status.patch(name="g", namespace=NAMESPACE, body={"status": {"seen": True}}, content_type=merge)
    assert (status.status.seen, status.metadata.generation) == (True, 3)
    for event in gauges.watch(namespace=NAMESPACE, timeout=SECONDS):
        assert (event["type"], event["object"].metadata.name) == ("ADDED", "g")
        break
    gauges.delete(name="g", namespace=NAMESPACE)
    crds.delete(name=CRD["metadata"]["name"])


async def asynchronously() -> None:
    await aio_config.load_kube_config()
    async with aio_client.ApiClient() as api:
        core = aio_client.CoreV1Api(api)
        first = await core.list_namespaced_config_map(NAMESPACE)
        body = aio_client.V1ConfigMap(metadata=aio_client.V1ObjectMeta(name="aio"), data={"k": "1"})
        await core.create_namespaced_config_map(NAMESPACE, body)
        async with aio.watch.Watch().stream(
            core.list_namespaced_config_map, NAMESPACE, resource_version=first.metadata.resource_version
        ) as stream:
            async for event in stream:
                assert (event["type"], event["object"].metadata.name) == ("ADDED", "aio")
                break
        await core.delete_namespaced_config_map("aio", NAMESPACE)


def main() -> None:
    config.load_kube_config()
    for step in (typed, workloads, watching, informer, dynamically):
        step()
        print(step.__name__, flush=True)
    asyncio.run(asynchronously())
    client.CoreV1Api().delete_namespace(NAMESPACE)
    print("ok")


main()
