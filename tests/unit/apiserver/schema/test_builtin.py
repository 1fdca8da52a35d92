from __future__ import annotations

from typing import Any

import pytest

from apiserver.schema.structural import Schema, compile_schema


def test_required_is_not_enforced_and_null_is_absent(deployment: Schema) -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "a", "creationTimestamp": None, "labels": {"a": None}},
        "spec": {"replicas": None, "paused": None},
    }
    assert deployment.decode_errors(obj) == []
    assert deployment.prune(obj) == []
    deployment.default(obj)
    assert deployment.validate(obj) == []
    assert obj["metadata"] == {"name": "a", "labels": {"a": ""}}
    assert "replicas" not in obj["spec"]


def test_unknown_fields(deployment: Schema) -> None:
    obj = {
        "metadata": {"name": "a", "nope": 1},
        "spec": {"replica": 1, "template": {"spec": {"containers": [{"n": 1}]}}},
    }
    assert deployment.prune(obj) == ["metadata.nope", "spec.replica", "spec.template.spec.containers[0].n"]


def test_defaults_are_those_of_the_definitions(deployment: Schema) -> None:
    obj: dict[str, Any] = {
        "spec": {"template": {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}}}
    }
    deployment.default(obj)
    (container,) = obj["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "a", "resources": {}, "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    assert obj["status"] == {}


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"replicas": "3"},
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (
        {"replicas": 1.5},
        "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    ({"paused": 1}, "json: cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of type bool"),
    (
        {"template": {"spec": {"containers": {}}}},
        "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers "
        "of type []v1.Container",
    ),
    (
        {"template": {"spec": {"containers": [{"env": [{"name": "A", "value": 1}]}]}}},
        "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value "
        "of type string",
    ),
    (
        {"template": {"spec": {"containers": [{"port": True}]}}},
        "json: cannot unmarshal bool into Go value of type int32",
    ),
    (
        {"selector": []},
        "json: cannot unmarshal array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
    ),
]


@pytest.mark.parametrize(("spec", "expected"), WRONG)
def test_wrong_types_in_the_words_of_go(deployment: Schema, spec: dict[str, Any], expected: str) -> None:
    assert deployment.decode_errors({"kind": "Deployment", "spec": spec}) == [expected]


def test_wrong_types_of_a_configmap(configmap: Schema) -> None:
    assert configmap.decode_errors({"data": True}) == [
        "json: cannot unmarshal bool into Go struct field ConfigMap.data of type map[string]string"
    ]
    assert configmap.decode_errors({"data": {"a": True}}) == [
        "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string"
    ]
    assert configmap.decode_errors({"binaryData": {"a": "?"}}) == ["illegal base64 data at input byte 0"]
    (late,) = configmap.decode_errors({"metadata": {"creationTimestamp": "soon"}})
    assert late.startswith('parsing time "soon" as')


def test_recursive_definitions(definitions: dict[str, Any]) -> None:
    schema = compile_schema({"$ref": "#/definitions/Props"}, builtin=True, definitions=definitions)
    obj = {"items": {"properties": {"a": {"items": {"x": 1, "type": "s"}}}}}
    assert schema.prune(obj) == ["items.properties.a.items.x"]
    assert schema.node("items") is schema.root


def test_definitions_are_shared_between_kinds(deployment: Schema, configmap: Schema) -> None:
    assert deployment.node("metadata") is configmap.node("metadata")
    assert deployment.node("spec", "template", "metadata") is configmap.node("metadata")


RESTORED = [
    ({"spec": "x"}, "cannot restore struct from: string"),
    ({"metadata": {"labels": "invalid"}}, "cannot restore map from string"),
    ({"metadata": {"labels": {"a": 1}}}, "cannot convert int64 to string"),
    ({"metadata": {"labels": {"a": {}}}}, "unrecognized type: string"),
    ({"spec": {"template": {"spec": {"containers": {}}}}}, "cannot restore slice from map"),
    ({"spec": {"replicas": 1.5}}, "cannot convert float64 to int32"),
    ({"spec": {"replicas": "x"}}, "unrecognized type: int32"),
    (
        {"metadata": {"creationTimestamp": "soon"}},
        'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
    ),
]


@pytest.mark.parametrize(("obj", "expected"), RESTORED)
def test_wrong_types_in_the_words_of_the_converter(deployment: Schema, obj: dict[str, Any], expected: str) -> None:
    assert deployment.decode_errors({"kind": "Deployment", **obj}, converted=True) == [expected]
