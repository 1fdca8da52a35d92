"""CustomResourceDefinitions: what a version must be, and what is said of one that is not."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from support.strategies import CRDS, crd, errors, kind, prepared

from apiserver.registry import kinds, strategy


def test_crd_defaults_and_status() -> None:
    obj = prepared(*CRDS, crd())
    assert obj["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert obj["spec"]["conversion"] == {"strategy": "None"}
    assert strategy.check_crd(obj) == []
    obj["status"] = strategy.crd_status(obj, "2026-01-01T00:00:00Z")
    found = [(c["type"], c["status"]) for c in obj["status"]["conditions"]]
    assert found == [("NamesAccepted", "True"), ("Established", "True")]  # in this order, as Kubernetes
    assert obj["status"]["storedVersions"] == ["v1"]
    assert strategy.crd_status(obj, "2026-02-02T00:00:00Z") == obj["status"]
    assert kinds.kinds_of_crd(obj)[0].singular == "widget"


def test_crd_errors() -> None:
    obj = crd(storage=False, additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a["}])
    obj["metadata"]["name"] = "x"
    obj["spec"]["conversion"] = {"strategy": "Magic"}
    found = errors(*CRDS, obj)
    column = "spec.additionalPrinterColumns[0]"
    assert set(found) == {
        "metadata.name",
        "spec.conversion.strategy",
        "spec.versions",
        f"{column}.type",
        f"{column}.jsonPath",
    }
    assert errors(*CRDS, crd(schema=None)) == {"spec.versions[0].schema.openAPIV3Schema": "Required value"}


def test_crd_schema_must_be_structural() -> None:
    schema = {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}}
    found = errors(*CRDS, crd(schema={"openAPIV3Schema": schema}))
    assert found and all(f.startswith("spec.validation.openAPIV3Schema.properties[spec]") for f in found)


def test_what_versions_do_not_share_is_said_of_each() -> None:
    """In the words and the order of kube-apiserver 1.36."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}}}
    parts = {
        "schema": schema,
        "subresources": {"scale": {}},
        "additionalPrinterColumns": [{"name": "a", "type": "x", "jsonPath": ".a"}],
        "selectableFields": [{"jsonPath": ".spec"}],
    }
    fields = ["openAPIV3Schema.properties[spec].type", "scale.specReplicasPath", "scale.statusReplicasPath"]
    places = [f"schema.{fields[0]}", *(f"subresources.{f}" for f in fields[1:])]
    places += ["additionalPrinterColumns[0].type", "selectableFields[0].jsonPath"]
    obj = crd(**parts)
    other = {**obj["spec"]["versions"][0], "name": "v2", "storage": False}
    obj["spec"]["versions"].append(other)
    same = [c.field for c in strategy.prepare_create(kind(*CRDS), copy.deepcopy(obj))]
    assert same == [f"spec.{p.replace('schema', 'validation', 1)}" for p in places]
    assert [strategy.in_manifest(kind(*CRDS), f) for f in same] == [f"spec.versions[0].{p}" for p in places]
    plain = {"openAPIV3Schema": {"type": "object"}}
    obj["spec"]["versions"][1] = {"name": "v2", "served": True, "storage": False, "schema": plain}
    apart = [c.field for c in strategy.prepare_create(kind(*CRDS), obj)]
    assert apart == [f"spec.versions[0].{p}" for p in places]


@pytest.mark.parametrize(
    ("version", "field", "why"),
    [
        ({"deprecationWarning": "x"}, "deprecationWarning", "can only be set for deprecated versions"),
        ({"deprecated": True, "deprecationWarning": ""}, "deprecationWarning", "must not be an empty string"),
        ({"deprecated": True, "deprecationWarning": "\u00e4\n"}, "deprecationWarning", "found at index 2"),
        ({"selectableFields": [{"jsonPath": ".spec.no"}]}, "selectableFields[0].jsonPath", "refer to a valid field"),
        ({"selectableFields": [{"jsonPath": "spec"}]}, "selectableFields[0].jsonPath", "expected [ or . but got: spec"),
        ({"selectableFields": [{"jsonPath": ".spec"}]}, "selectableFields[0].jsonPath", "of type string, boolean or"),
        ({"selectableFields": [{"jsonPath": ".spec['a']"}]}, "selectableFields[0].jsonPath", "array notation is not"),
        (
            {"additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": "a"}]},
            "additionalPrinterColumns[0].jsonPath",
            "must be a simple json path starting with .",
        ),
        (
            {"additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a", "format": "x"}]},
            "additionalPrinterColumns[0].format",
            "must be one of byte,date,date-time",
        ),
    ],
)
def test_versions_that_cannot_be_served(version: dict[str, Any], field: str, why: str) -> None:
    [cause] = strategy.prepare_create(kind(*CRDS), crd(**version))
    assert cause.field == (f"spec.versions[0].{field}" if field.startswith("deprecat") else f"spec.{field}")
    assert why in cause.message
