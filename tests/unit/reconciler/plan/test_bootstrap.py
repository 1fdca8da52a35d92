"""What a cluster starts with: everything is as the strategies would have it, and refers to what is there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.registry import strategy
from apiserver.registry.builtins.served import kubernetes_builtins
from reconciler.plan import bootstrap, flowcontrol

AT = "2026-01-01T00:00:00Z"
OBJECTS = bootstrap.objects(kubernetes_builtins().groups(), AT)


def named(kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    return {(o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in OBJECTS if o["kind"] == kind}


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda o: f"{o['kind']}/{o['metadata']['name']}")
def test_each_is_good(obj: dict[str, Any]) -> None:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = kubernetes_builtins().by_kind(group, version, obj["kind"])
    assert kind is not None
    made = json.loads(json.dumps(obj))
    assert strategy.unknown_fields(kind, made) == []
    assert strategy.prepare(kind, made) == []


def test_none_is_there_twice() -> None:
    keys = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in OBJECTS]
    assert len(keys) == len(set(keys))


def test_bindings_name_roles_that_are_there() -> None:
    roles = {"ClusterRole": named("ClusterRole"), "Role": named("Role")}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for (namespace, _), binding in named(kind).items():
            ref = binding["roleRef"]
            assert (namespace if ref["kind"] == "Role" else "", ref["name"]) in roles[ref["kind"]]


def test_flow_schemas_name_levels_that_are_there() -> None:
    levels, schemas = named("PriorityLevelConfiguration"), named("FlowSchema")
    assert (len(levels), len(schemas)) == (8, 11)
    for schema in schemas.values():
        assert ("", schema["spec"]["priorityLevelConfiguration"]["name"]) in levels
        assert schema["metadata"]["annotations"].items() >= flowcontrol.AUTOUPDATE.items()
