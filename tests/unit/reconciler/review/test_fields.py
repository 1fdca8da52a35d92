"""What differs between two objects, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model import marks
from apiserver.model.storagenames import WORKSPACES
from reconciler.review.fields import ABSENT, HIDDEN, FieldChange, content, differences

Object = dict[str, Any]


def changed(before: Object, after: Object, resource: str = "deployments.apps") -> list[FieldChange]:
    sides = (content(resource, {"metadata": {"name": "x"}, **each}) for each in (before, after))
    return list(differences(resource, *sides))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 2}}, [("spec.a", 1, 2)]),
        ({"spec": {"a": 1}}, {"spec": {}}, [("spec.a", 1, ABSENT)]),
        ({}, {"spec": {"a": {"b": True}}}, [("spec.a.b", ABSENT, True)]),
        ({"spec": {"a": {}}}, {"spec": {}}, [("spec.a", {}, ABSENT)]),
        ({"spec": {"a": 1}}, {"spec": {"a": True}}, [("spec.a", 1, True)]),
        ({"spec": {"a": 1}}, {"spec": {"a": 1.0}}, []),
        ({"data": {"tls.key": "a"}}, {"data": {"tls.key": "b"}}, [("data[tls.key]", "a", "b")]),
        ({"spec": {"l": [1, 2]}}, {"spec": {"l": [1, 3]}}, [("spec.l[1]", 2, 3)]),
        ({"spec": {"l": [1, 2]}}, {"spec": {"l": [1]}}, [("spec.l", [1, 2], [1])]),
    ],
)
def test_a_field(before: Object, after: Object, found: list[tuple[str, Any, Any]]) -> None:
    assert changed(before, after) == [FieldChange(*each) for each in found]


def test_items_are_told_by_what_names_them() -> None:
    web, log = {"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}
    before, after = {"spec": {"c": [web, log]}}, {"spec": {"c": [{**web, "image": "web:2"}, {"name": "new"}]}}
    assert changed(before, after) == [
        FieldChange("spec.c[name=web].image", "web:1", "web:2"),
        FieldChange("spec.c[name=log].image", "log:1", ABSENT),
        FieldChange("spec.c[name=log].name", "log", ABSENT),
        FieldChange("spec.c[name=new].name", ABSENT, "new"),
    ]
    assert changed({"spec": {"c": [web, log]}}, {"spec": {"c": [log, web]}}) == [
        FieldChange("spec.c", [["web"], ["log"]], [["log"], ["web"]])
    ], "their order is a change"


def test_what_servers_set_is_nobodys_change() -> None:
    ours = {
        "uid": "u", "generation": 3, "resourceVersion": "7", "managedFields": [{}],
        "annotations": {marks.SOURCE_PATH: "a", marks.SOURCE_COMMIT: "b", marks.CLUSTER: "c"},
    }  # fmt: skip
    assert changed({"spec": {}}, {"spec": {}, "metadata": {"name": "x", **ours}, "status": {"a": 1}}) == []
    labels = {"tenancy.kcp.io/phase": "Ready", "mine": "b"}
    made = {"spec": {"cluster": "c", "URL": "u"}, "metadata": {"name": "x", "labels": labels}}
    assert changed({}, made, WORKSPACES) == [FieldChange("metadata.labels.mine", ABSENT, "b")]


def test_of_a_secret_the_names_of_keys_are_told_and_nothing_else() -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"
    before = {
        "data": {"a": "czNjcjN0", "gone": "czNjcjN0"}, "type": "Opaque",
        "metadata": {"name": "s", "annotations": {applied: "czNjcjN0", "x": "czNjcjN0"}, "labels": {"l": "1"}},
    }  # fmt: skip
    after = {
        "data": {"a": "dDBwczNj", "new": "dDBwczNj"}, "type": "Other", "stringData": {"plain": "dDBwczNj"},
        "metadata": {"name": "s", "annotations": {applied: "dDBwczNj", "x": "dDBwczNj"}, "labels": {"l": "2"}},
    }  # fmt: skip
    found = changed(before, after, "secrets")
    assert found == [
        FieldChange("data.a", HIDDEN, HIDDEN),
        FieldChange("data.gone", HIDDEN, ABSENT),
        FieldChange("data.new", ABSENT, HIDDEN),
        FieldChange(f"metadata.annotations[{applied}]", HIDDEN, HIDDEN),
        FieldChange("metadata.annotations.x", HIDDEN, HIDDEN),
        FieldChange("metadata.labels.l", "1", "2"),
        FieldChange("stringData.plain", ABSENT, HIDDEN),
        FieldChange("type", "Opaque", "Other"),
    ]
    assert "czNjcjN0" not in repr(found)
    assert "dDBwczNj" not in repr(found)
    [applied_to_another] = changed(
        {"metadata": {"name": "x", "annotations": {applied: "a"}}},
        {"metadata": {"name": "x", "annotations": {applied: "b"}}},
    )
    assert applied_to_another == FieldChange(f"metadata.annotations[{applied}]", HIDDEN, HIDDEN), (
        "it may hold any object"
    )
