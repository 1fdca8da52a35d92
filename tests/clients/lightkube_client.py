"""lightkube against the server of $KUBECONFIG: create, read, update, patch, apply, watch, delete; generic resources.
Run by e2e/test_clients.py as a process of its own; it fails with a traceback, and says `ok` at the end."""

from __future__ import annotations

import threading

from lightkube import ApiError, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apiextensions_v1 import (
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceValidation,
    JSONSchemaProps,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import ConfigMap, Namespace, Service
from lightkube.types import PatchType

NAMESPACE = "lightkube"


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE, labels={"app": name}), data=data)


def objects(client: Client) -> None:
    made = client.create(config_map("a", k="1"))
    assert client.get(ConfigMap, "a").data == {"k": "1"}
    made.data["k"] = "2"
    made = client.replace(made)
    made.metadata.resourceVersion = "1"
    try:
        client.replace(made)
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (409, "Conflict"), error.status
    else:
        raise AssertionError("a stale update was taken")
    assert client.patch(ConfigMap, "a", {"data": {"l": "3"}}).data == {"k": "2", "l": "3"}
    edit = [{"op": "remove", "path": "/data/l"}]
    assert client.patch(ConfigMap, "a", edit, patch_type=PatchType.JSON).data == {"k": "2"}
    assert [m.metadata.name for m in client.list(ConfigMap, labels={"app": "a"})] == ["a"]
    names = [m.metadata.name for m in client.list(ConfigMap, namespace="*", fields={"metadata.name": "a"})]
    assert names == ["a"]
    client.delete(ConfigMap, "a")
    try:
        client.get(ConfigMap, "a")
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (404, "NotFound")
    else:
        raise AssertionError("it is still there")


def applying(client: Client) -> None:
    config = config_map("applied", k="1", l="1")
    config.apiVersion, config.kind = "v1", "ConfigMap"
    assert client.apply(config).data == {"k": "1", "l": "1"}
    config.data = {"k": "2"}
    assert client.apply(config).data == {"k": "2"}
    config.data = {"k": "3"}
    try:
        client.apply(config, field_manager="other")
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (409, "Conflict"), error.status
    else:
        raise AssertionError("no conflict")
    assert client.apply(config, field_manager="other", force=True).data == {"k": "3"}
    ports = {"spec": {"ports": [{"name": "http", "port": 80}]}}
    service = Service.from_dict(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": NAMESPACE}, **ports}
    )
    assert [p.port for p in client.apply(service).spec.ports] == [80]
    more = {"spec": {"ports": [{"name": "https", "port": 443}]}}
    merged = client.patch(Service, "s", more, patch_type=PatchType.STRATEGIC)
    assert sorted(p.port for p in merged.spec.ports) == [80, 443]


def watching(client: Client) -> None:
    listed = client.list(ConfigMap)
    list(listed)
    version = listed.resourceVersion
    threading.Thread(target=lambda: (client.create(config_map("w", k="1")), client.delete(ConfigMap, "w"))).start()
    seen = []
    for kind, obj in client.watch(ConfigMap, labels={"app": "w"}, resource_version=version, server_timeout=30):
        seen.append((kind, obj.metadata.name))
        if kind == "DELETED":
            break
    assert seen == [("ADDED", "w"), ("DELETED", "w")], seen


def generic(client: Client) -> None:
    schema = JSONSchemaProps(type="object", properties={"spec": JSONSchemaProps(type="object",
        properties={"size": JSONSchemaProps(type="integer", maximum=9)})})  # fmt: skip
    version = CustomResourceDefinitionVersion(
        name="v1", served=True, storage=True, schema=CustomResourceValidation(openAPIV3Schema=schema)
    )
    names = CustomResourceDefinitionNames(plural="dials", singular="dial", kind="Dial")
    spec = CustomResourceDefinitionSpec(group="light.example", names=names, scope="Namespaced", versions=[version])
    client.create(CustomResourceDefinition(metadata=ObjectMeta(name="dials.light.example"), spec=spec))
    client.wait(CustomResourceDefinition, "dials.light.example", for_conditions=["Established"])
    Dial = create_namespaced_resource("light.example", "v1", "Dial", "dials")
    made = client.create(Dial(metadata=ObjectMeta(name="d", namespace=NAMESPACE), spec={"size": 4}))
    assert made.spec == {"size": 4}
    try:
        client.create(Dial(metadata=ObjectMeta(name="e", namespace=NAMESPACE), spec={"size": 40}))
    except ApiError as error:
        assert (error.status.code, error.status.reason) == (422, "Invalid"), error.status
    else:
        raise AssertionError("the schema was not looked at")
    client.delete(CustomResourceDefinition, "dials.light.example")


def main() -> None:
    client = Client(namespace=NAMESPACE, field_manager="lightkube")
    client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    for step in (objects, applying, watching, generic):
        step(client)
        print(step.__name__, flush=True)
    client.delete(Namespace, NAMESPACE)
    print("ok")


main()
