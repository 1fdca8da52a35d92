"""kr8s against the server of $KUBECONFIG. Run by e2e/test_clients.py as a process of its own; it fails with a
traceback, and says `ok` at the end."""

from __future__ import annotations

import asyncio

import kr8s.asyncio
from kr8s.asyncio.objects import ConfigMap, CustomResourceDefinition, Deployment, Namespace, new_class

NAMESPACE = "kr8s"


def config_map(api: object, name: str) -> object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": name}}
    return ConfigMap({"metadata": metadata, "data": {"k": "1"}}, api=api)


async def main() -> None:
    api = await kr8s.asyncio.api()
    assert "gitVersion" in await api.version()
    await (await Namespace({"metadata": {"name": NAMESPACE}}, api=api)).create()

    made = await config_map(api, "a")
    await made.create()
    assert await made.exists()
    await made.patch({"data": {"l": "2"}})
    await made.patch([{"op": "remove", "path": "/data/k"}], type="json")
    await made.refresh()
    assert made.raw["data"] == {"l": "2"}
    await made.label(tier="front")
    found = [c.name async for c in api.get("configmaps", namespace=NAMESPACE, label_selector="tier=front")]
    assert found == ["a"], found
    print("objects", flush=True)

    async def change() -> None:
        other = await config_map(api, "w")
        await other.create()
        await other.delete()

    task, seen = asyncio.ensure_future(change()), []
    async for kind, obj in api.watch("configmaps", namespace=NAMESPACE, label_selector="app=w"):
        seen.append((kind, obj.name))
        if kind == "DELETED":
            break
    await task
    assert seen == [("ADDED", "w"), ("DELETED", "w")], seen
    print("watch", flush=True)

    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    deployment = await Deployment({"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}, api=api)
    await deployment.create()
    await deployment.patch({"spec": {"replicas": 2}}, subresource="scale")
    await deployment.refresh()
    assert deployment.replicas == 2
    print("scale", flush=True)

    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "meters", "singular": "meter", "kind": "Meter"}
    definition = {"group": "kr8s.example", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = await CustomResourceDefinition({"metadata": {"name": "meters.kr8s.example"}, "spec": definition}, api=api)
    await crd.create()
    await crd.wait("condition=Established", timeout=30)
    Meter = new_class(kind="Meter", version="kr8s.example/v1", namespaced=True, asyncio=True)
    meter = await Meter({"metadata": {"name": "m", "namespace": NAMESPACE}, "spec": {"size": 1}}, api=api)
    await meter.create()
    assert [m.name async for m in api.get("meters.kr8s.example", namespace=NAMESPACE)] == ["m"]
    await crd.delete()
    print("custom resources", flush=True)

    await (await Namespace.get(NAMESPACE, api=api)).delete()
    print("ok")


asyncio.run(main())
