"""Schemas that the tests of this room share: a custom resource, and a cut-out of Kubernetes' own Deployment."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.schema.structural import Schema, compile_schema

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
CORE = "io.k8s.api.core.v1."
APPS = "io.k8s.api.apps.v1."


def ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/definitions/{name}"}], **beside}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def keyed(name: str, *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": ref(name),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
INT32 = {"type": "integer", "format": "int32"}
INT64 = {"type": "integer", "format": "int64"}
TIME = ref(f"{META}Time")

DEFINITIONS: dict[str, Any] = {
    f"{META}Time": {"type": "string", "format": "date-time"},
    f"{META}FieldsV1": {"type": "object"},
    f"{META}ManagedFieldsEntry": struct(
        manager=TEXT,
        operation=TEXT,
        apiVersion=TEXT,
        subresource=TEXT,
        fieldsType=TEXT,
        time=TIME,
        fieldsV1=ref(f"{META}FieldsV1"),
    ),
    f"{META}OwnerReference": {
        **struct(apiVersion=TEXT, kind=TEXT, name=TEXT, uid=TEXT, controller={"type": "boolean"}),
        "x-kubernetes-map-type": "atomic",
    },
    f"{META}ObjectMeta": struct(
        name=TEXT,
        namespace=TEXT,
        uid=TEXT,
        resourceVersion=TEXT,
        generateName=TEXT,
        generation=INT64,
        creationTimestamp=TIME,
        labels=TEXTS,
        annotations=TEXTS,
        finalizers={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        ownerReferences=keyed(f"{META}OwnerReference", "uid"),
        managedFields={"type": "array", "items": ref(f"{META}ManagedFieldsEntry"), "x-kubernetes-list-type": "atomic"},
    ),
    f"{META}LabelSelector": {**struct(matchLabels=TEXTS), "x-kubernetes-map-type": "atomic"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    f"{CORE}ContainerPort": {
        **struct(containerPort={"default": 0, **INT32}, hostPort=INT32, name=TEXT, protocol={"default": "TCP", **TEXT}),
        "required": ["containerPort"],
    },
    f"{CORE}EnvVar": {**struct(name={"default": "", **TEXT}, value=TEXT), "required": ["name"]},
    f"{CORE}ResourceRequirements": struct(
        limits={
            "type": "object",
            "additionalProperties": ref("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        },
    ),
    f"{CORE}Container": {
        **struct(
            name={"default": "", **TEXT},
            image=TEXT,
            args={"type": "array", "items": {"default": "", **TEXT}, "x-kubernetes-list-type": "atomic"},
            ports=keyed(f"{CORE}ContainerPort", "containerPort", "protocol"),
            env=keyed(f"{CORE}EnvVar", "name"),
            resources=ref(f"{CORE}ResourceRequirements", default={}),
            port=ref("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        ),
        "required": ["name"],
    },
    f"{CORE}PodSpec": {
        **struct(
            containers=keyed(f"{CORE}Container", "name"),
            nodeSelector={**TEXTS, "x-kubernetes-map-type": "atomic"},
        ),
        "required": ["containers"],
    },
    f"{CORE}PodTemplateSpec": struct(
        metadata=ref(f"{META}ObjectMeta", default={}), spec=ref(f"{CORE}PodSpec", default={})
    ),
    f"{APPS}DeploymentCondition": struct(type=TEXT, status=TEXT, message=TEXT),
    f"{APPS}DeploymentSpec": {
        **struct(
            replicas=INT32,
            paused={"type": "boolean"},
            selector=ref(f"{META}LabelSelector"),
            template=ref(f"{CORE}PodTemplateSpec", default={}),
        ),
        "required": ["selector", "template"],
    },
    f"{APPS}DeploymentStatus": struct(readyReplicas=INT32, conditions=keyed(f"{APPS}DeploymentCondition", "type")),
    f"{APPS}Deployment": struct(
        apiVersion=TEXT,
        kind=TEXT,
        metadata=ref(f"{META}ObjectMeta", default={}),
        spec=ref(f"{APPS}DeploymentSpec", default={}),
        status=ref(f"{APPS}DeploymentStatus", default={}),
    ),
    f"{CORE}ConfigMap": struct(
        apiVersion=TEXT,
        kind=TEXT,
        metadata=ref(f"{META}ObjectMeta", default={}),
        data=TEXTS,
        binaryData={"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
        immutable={"type": "boolean"},
    ),
    "Props": struct(
        type=TEXT,
        properties={"type": "object", "additionalProperties": {"$ref": "#/definitions/Props"}},
        items={"$ref": "#/definitions/Props"},
    ),
}

GADGET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "port": {"x-kubernetes-int-or-string": True},
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "atoms": {"type": "array", "items": {"type": "string"}},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "kind"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "kind": {"type": "string", "default": "plain"},
                            "count": {"type": "integer"},
                        },
                    },
                },
                "selector": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {"depth": {"type": "integer", "default": 3}},
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.fixture(scope="session")
def gadget() -> Schema:
    return compile_schema(GADGET)


@pytest.fixture(scope="session")
def gadget_schema() -> dict[str, Any]:
    return copy.deepcopy(GADGET)


@pytest.fixture(scope="session")
def definitions() -> dict[str, Any]:
    return DEFINITIONS


@pytest.fixture(scope="session")
def deployment() -> Schema:
    return compile_schema({"$ref": f"#/definitions/{APPS}Deployment"}, builtin=True, definitions=DEFINITIONS)


@pytest.fixture(scope="session")
def configmap() -> Schema:
    return compile_schema({"$ref": f"#/definitions/{CORE}ConfigMap"}, builtin=True, definitions=DEFINITIONS)
