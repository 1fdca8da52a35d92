"""APIExport and APIBinding in v1alpha2 and v1alpha1: nothing is lost on the way there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.registry import apiversions
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.strategy import prepare

NEWER, OLDER = "apis.kcp.io/v1alpha2", "apis.kcp.io/v1alpha1"
PREFIX = "apis.v1alpha2.kcp.io/"

Object = dict[str, Any]


def export(version: str, **spec: Any) -> Object:
    return {"apiVersion": version, "kind": "APIExport", "metadata": {"name": "e"}, "spec": spec}


def binding(version: str, *claims: Object, **status: Any) -> Object:
    spec = {"reference": {"export": {"name": "e"}}, "permissionClaims": list(claims)}
    made = {"apiVersion": version, "kind": "APIBinding", "metadata": {"name": "b"}, "spec": spec}
    return made | ({"status": status} if status else {})


def errors(obj: Object) -> list[str]:
    group, _, version = obj["apiVersion"].partition("/")
    kind = workspace_builtins().by_kind(group, version, obj["kind"])
    assert kind is not None
    return [f"{cause.field}: {cause.message}" for cause in prepare(kind, json.loads(json.dumps(obj)))]


def test_schemas_become_resources_by_their_names() -> None:
    made = apiversions.export(export(OLDER, latestResourceSchemas=["v1.widgets.example.io", "v2.pods.core"]), NEWER)
    assert made["apiVersion"] == NEWER
    assert made["spec"] == {
        "resources": [
            {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}},
            {"name": "pods", "group": "", "schema": "v2.pods.core", "storage": {"crd": {}}},
        ]
    }
    back = apiversions.export(made, OLDER)["spec"]
    assert back == {"latestResourceSchemas": ["v1.widgets.example.io", "v2.pods.core"]}


def test_what_v1alpha1_cannot_say_of_a_claim_stands_in_kcps_annotations() -> None:
    plain = {"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"]}
    narrow = {"group": "", "resource": "configmaps", "identityHash": "", "verbs": ["get"]}
    older = apiversions.export(export(NEWER, permissionClaims=[plain, narrow]), OLDER)
    assert older["spec"]["permissionClaims"] == [
        {"group": "", "resource": "secrets", "all": True},
        {"group": "", "resource": "configmaps", "all": True},
    ]
    [(name, text)] = older["metadata"]["annotations"].items()
    assert (name, json.loads(text)) == (PREFIX + "permission-claims", [narrow])
    assert apiversions.export(older, NEWER) == export(NEWER, permissionClaims=[plain, narrow])


def test_a_binding_of_v1alpha1_accepts_everything() -> None:
    claim = {"group": "", "resource": "secrets", "all": True, "state": "Accepted"}
    made = apiversions.binding(binding(OLDER, claim), NEWER)
    assert made["spec"]["permissionClaims"] == [
        {"group": "", "resource": "secrets", "identityHash": "", "verbs": ["*"], "selector": {"matchAll": True},
         "state": "Accepted"}
    ]  # fmt: skip
    assert "annotations" not in made["metadata"]


TEXT = st.sampled_from(["", "example.io"])
VERBS = st.lists(st.sampled_from(["get", "list", "*"]), min_size=1, max_size=2, unique=True)
SELECTORS = st.sampled_from(
    [
        {"matchAll": True},
        {"matchLabels": {"a": "b"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
    ]
)
STATE = st.sampled_from(["Accepted", "Rejected"])
NAMED = {"group": TEXT, "resource": st.sampled_from(["secrets", "widgets"]), "identityHash": st.sampled_from(["", "i"])}
ASKED = st.fixed_dictionaries({**NAMED, "verbs": VERBS}, optional={"defaultSelector": SELECTORS})
SCOPED = st.fixed_dictionaries({**NAMED, "verbs": VERBS, "selector": SELECTORS})
ACCEPTED = st.fixed_dictionaries({**NAMED, "verbs": VERBS, "selector": SELECTORS, "state": STATE})
OLD = {"group": TEXT, "resource": st.sampled_from(["secrets", "widgets"])}
CHOICE = st.lists(st.fixed_dictionaries({"name": st.just("n")}), min_size=1, max_size=1)
CHOSEN = {"all": st.booleans(), "identityHash": st.just("i"), "resourceSelector": CHOICE}


def each_once(claims: Any) -> Any:
    def named(claim: Object) -> tuple[str, str, str]:
        return claim["group"], claim["resource"], claim.get("identityHash", "")

    return st.lists(claims, max_size=3, unique_by=named)


@given(each_once(ASKED), each_once(ACCEPTED), each_once(SCOPED))
def test_there_and_back_from_v1alpha2_is_nothing(asked: Any, accepted: Any, applied: Any) -> None:
    offered = export(NEWER, permissionClaims=asked)
    assert apiversions.export(apiversions.export(offered, OLDER), NEWER) == offered
    taken = binding(NEWER, *accepted, exportPermissionClaims=asked, appliedPermissionClaims=applied)
    assert apiversions.binding(apiversions.binding(taken, OLDER), NEWER) == taken


@given(
    each_once(st.fixed_dictionaries(OLD, optional=CHOSEN)),
    each_once(st.fixed_dictionaries({**OLD, "state": STATE}, optional=CHOSEN)),
)
def test_there_and_back_from_v1alpha1_is_nothing(asked: Any, accepted: Any) -> None:
    offered = export(OLDER, permissionClaims=asked)
    assert apiversions.export(apiversions.export(offered, NEWER), OLDER) == offered
    taken = binding(OLDER, *accepted)
    assert apiversions.binding(apiversions.binding(taken, NEWER), OLDER) == taken


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        '{"a": 1}',
        '[{"resource": "secrets", "verbs": []}]',
        '[{"resource": "secrets", "verbs": ["get"], "selector": {"matchLabels": {"a": 1}}}]',
        '[{"resource": "secrets", "verbs": ["get"], "selector": {"all": true}}]',
        '[{"resource": {}, "verbs": ["get"], "selector": {}}]',
    ],
)
def test_an_annotation_that_holds_no_claims_says_nothing(text: str) -> None:
    claim = {"group": "", "resource": "secrets", "state": "Accepted"}
    obj = binding(OLDER, claim)
    obj["metadata"]["annotations"] = {PREFIX + "acceptable-permission-claims": text}
    [made] = apiversions.binding(obj, NEWER)["spec"]["permissionClaims"]
    assert (made["verbs"], made["selector"]) == (["*"], {"matchAll": True})


def test_another_name_of_the_group_is_no_other_version() -> None:
    obj = export(NEWER, resources=[])
    assert apiversions.export(obj, "apis.kcp.dev/v1alpha2")["spec"] == {"resources": []}


def claim(resource: str, group: str = "", identity: str = "", **more: Any) -> Object:
    return {"group": group, "resource": resource, "identityHash": identity, "verbs": ["get"], **more}


def test_a_claim_on_what_is_not_built_in_names_an_identity() -> None:
    why = 'spec.permissionClaims[1].identityHash: Invalid value: "": '
    why += "identityHash is required for API types that are not built-in"
    for version in (NEWER, OLDER):
        claims = [claim("configmaps"), claim("widgets", "example.io"), claim("widgets", "example.io", "hash"),
                  claim("apibindings", "apis.kcp.io")]  # fmt: skip
        if version == OLDER:
            claims = [{key: each[key] for key in ("group", "resource", "identityHash")} for each in claims]
            claims = [each | {"all": True} for each in claims]
            claims.pop(2)
        else:
            claims[2]["resource"] = "gadgets"
        assert errors(export(version, permissionClaims=claims)) == [why]


def test_a_schema_is_named_after_its_resource() -> None:
    wrong = {"name": "widgets", "group": "", "schema": "v1.widgets.example.io"}
    assert errors(export(NEWER, resources=[wrong])) == [
        'spec.resources[0].schema: Invalid value: "v1.widgets.example.io": must end in .widgets.core'
    ]
    [short] = errors(export(OLDER, latestResourceSchemas=["v1.widgets"]))
    assert "must have at least 3 dot-separated segments" in short
    [double] = errors(export(OLDER, latestResourceSchemas=["v1.widgets.example.io", "v2.widgets.example.io"]))
    assert "a schema of widgets.example.io is named already" in double


def test_virtual_storage_is_refused_by_name() -> None:
    resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"virtual": {}}}
    [why] = errors(export(NEWER, resources=[resource]))
    assert why.startswith("spec.resources[0].storage.virtual: Forbidden: not supported")


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({}, ["selector: Required value: either one of matchAll, matchLabels, or matchExpressions must be set"]),
        ({"matchAll": True, "matchLabels": {"a": "b"}}, ["matchLabels cannot be used with matchAll"]),
        ({"matchLabels": {"a b": "c"}}, ["name part must consist of alphanumeric"]),
        ({"matchLabels": {"a": "b"}}, []),
    ],
)
def test_a_selector_says_what_it_selects(selector: Object, told: list[str]) -> None:
    found = errors(binding(NEWER, claim("secrets", selector=selector, state="Accepted")))
    assert len(found) == len(told) and all(text in why for text, why in zip(told, found, strict=True))


def test_accepting_single_objects_is_refused_since_the_provider_would_see_all() -> None:
    chosen = {"group": "", "resource": "secrets", "resourceSelector": [{"name": "a"}]}
    [why] = errors(binding(OLDER, chosen | {"state": "Accepted"}))
    assert why.startswith("spec.permissionClaims[0].resourceSelector: Forbidden: not supported")
    assert errors(binding(OLDER, chosen | {"state": "Rejected"})) == []
