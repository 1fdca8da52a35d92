"""While a binding is deleted, or a definition: nothing is made anew of it, and discovery says so."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.model.keys import Key

WIDGETS = "/clusters/root:shop/apis/example.io/v1/namespaces/default/widgets"
DISCOVERY = "/clusters/root:shop/apis/example.io/v1"
FINALIZER = "apis.kcp.io/apibinding-finalizer"
DYING = "2026-01-02T00:00:00Z"
TEXT = "create not allowed while custom resource definition is terminating"
SPEC = {
    "group": "example.io",
    "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
}
VERSION = {"name": "v1", "served": True, "storage": True}

Object = dict[str, Any]


def bind(api: Any, name: str, *, dying: bool, uid: str = "uid-v1.widgets.example.io") -> None:
    schema = {"name": "v1.widgets.example.io", "UID": uid, "identityHash": "hash"}
    bound = [{"group": "example.io", "resource": "widgets", "schema": schema}]
    status = {"phase": "Bound", "apiExportClusterName": "root", "boundResources": bound}
    spec = {"reference": {"export": {"path": "root", "name": name}}}
    made = api.manifest("apis.kcp.io/v1alpha2 APIBinding", name, "", api.SHOP, spec=spec, status=status)
    made["metadata"] |= {"deletionTimestamp": DYING, "finalizers": ["f"]} if dying else {}
    api.put(made)


@pytest.fixture
def shop(api: Any) -> Any:
    api.put_workspace("root:shop", api.SHOP, writes="Store")
    version = {**VERSION, "schema": {"type": "object"}}
    api.put(api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", "", "root",
                         spec={**SPEC, "versions": [version]}))  # fmt: skip
    return api


def verbs(api: Any, run: Any) -> list[str]:
    [widgets] = run(api.get(DISCOVERY)).json["resources"]
    found: list[str] = widgets["verbs"]
    return found


def body(name: str) -> Object:
    return {"kind": "Widget", "apiVersion": "example.io/v1", "metadata": {"name": name}}


def test_a_binding_that_is_deleted_refuses_what_is_new_before_it_looks_at_names(shop: Any, run: Any) -> None:
    bind(shop, "widgets", dying=False)
    assert run(shop.call("POST", WIDGETS, body("first"))).status == 201
    assert "create" in verbs(shop, run)
    bind(shop, "widgets", dying=True)
    assert verbs(shop, run) == ["delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    for name in ("second", "first", "No Name!"):
        refused = run(shop.call("POST", WIDGETS, body(name)))
        assert refused.status == 403 and TEXT in refused.message
    apply = run(
        shop.call("PATCH", f"{WIDGETS}/third?fieldManager=f", body("third"), kind="application/apply-patch+yaml")
    )
    assert apply.status == 403 and TEXT in apply.message
    merge = "application/merge-patch+json"
    change = {"metadata": {"labels": {"a": "b"}}}
    assert run(shop.call("PATCH", f"{WIDGETS}/first", change, kind=merge)).status == 200
    assert run(shop.call("DELETE", f"{WIDGETS}/first")).status == 200


def test_a_bound_binding_has_kcps_finalizer_and_the_store_none(shop: Any, run: Any) -> None:
    path = "/clusters/root:shop/apis/apis.kcp.io/v1alpha2/apibindings"

    def stored() -> list[str]:
        found = shop.store.get(Key("apibindings.apis.kcp.io", shop.SHOP, "", "widgets"))
        return list(orjson.loads(found.value)["metadata"].get("finalizers") or ())

    bind(shop, "widgets", dying=False)
    read = run(shop.get(f"{path}/widgets")).json
    assert read["metadata"]["finalizers"] == [FINALIZER]
    assert [i["metadata"]["finalizers"] for i in run(shop.get(path)).json["items"]] == [[FINALIZER]]
    older = run(shop.get(path.replace("v1alpha2", "v1alpha1") + "/widgets")).json
    assert older["metadata"]["finalizers"] == [FINALIZER]
    read["metadata"] |= {"labels": {"a": "b"}, "finalizers": [FINALIZER, "mine.io/f"]}
    assert run(shop.call("PUT", f"{path}/widgets", read)).status == 200
    assert stored() == ["mine.io/f"]
    assert run(shop.get(f"{path}/widgets")).json["metadata"]["finalizers"] == ["mine.io/f", FINALIZER]
    assert run(shop.call("DELETE", f"{path}/widgets")).status == 200
    assert stored() == ["mine.io/f", FINALIZER]
    dying = run(shop.get(f"{path}/widgets")).json
    dying["metadata"]["finalizers"] = [FINALIZER]
    assert run(shop.call("PUT", f"{path}/widgets", dying)).status == 200
    assert stored() == [FINALIZER]


def test_one_that_is_bound_to_nothing_has_none(shop: Any, run: Any) -> None:
    path = "/clusters/root:shop/apis/apis.kcp.io/v1alpha2/apibindings"
    spec = {"reference": {"export": {"path": "root", "name": "none"}}}
    made = shop.manifest("apis.kcp.io/v1alpha2 APIBinding", "none", "", shop.SHOP, spec=spec)
    made["metadata"]["finalizers"] = [FINALIZER]
    assert run(shop.call("POST", path, made)).status == 201
    assert "finalizers" not in run(shop.get(f"{path}/none")).json["metadata"]


def test_another_binding_of_the_same_schema_and_identity_keeps_it(shop: Any, run: Any) -> None:
    bind(shop, "one", dying=True)
    bind(shop, "two", dying=False)
    assert "create" in verbs(shop, run)
    assert run(shop.call("POST", WIDGETS, body("w"))).status == 201
    bind(shop, "two", dying=False, uid="another")
    assert run(shop.call("POST", WIDGETS, body("x"))).status == 403


def test_a_definition_that_is_deleted_says_so_in_discovery(shop: Any, run: Any) -> None:
    version = {**VERSION, "schema": {"openAPIV3Schema": {"type": "object"}}}
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    made = shop.manifest("apiextensions.k8s.io/v1 CustomResourceDefinition", "widgets.example.io", "", shop.SHOP,
                         spec={**SPEC, "versions": [version]}, status=established)  # fmt: skip
    shop.put(made)
    assert "create" in verbs(shop, run)
    made["metadata"] |= {"deletionTimestamp": DYING, "finalizers": ["f"]}
    shop.put(made)
    assert "create" not in verbs(shop, run)
    refused = run(shop.call("POST", WIDGETS, body("No Name!")))
    assert refused.status == 403 and TEXT in refused.message
