"""Kubernetes' own kinds by a definition or a schema of a tenant's: what git declares of them, and their end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet
from support.recoveries import Another, assert_recovers
from support.widgets import binding

CRDS, EXPORTS = "customresourcedefinitions.apiextensions.k8s.io", "apiexports.apis.kcp.io"
SIZED = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
DEFINED = f"{B}/crd.json"


def manifest(api: str, kind: str, name: str, **content: Any) -> str:
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content})


def spec(group: str, plural: str, kind: str, *, definition: bool, scope: str = "Namespaced") -> dict[str, Any]:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": SIZED} if definition else SIZED
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    return {"group": group, "scope": scope, "names": names, "versions": versions}


def crd(group: str, plural: str, kind: str, scope: str = "Namespaced") -> str:
    name, said = f"{plural}.{group or 'core'}", spec(group, plural, kind, definition=True, scope=scope)
    return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=said)


def provided(group: str, plural: str, kind: str) -> dict[str, str | None]:
    """In root:a, and bound in root:b."""
    name = f"mine.{plural}.{group or 'core'}"
    schema = manifest(
        "apis.kcp.io/v1alpha1", "APIResourceSchema", name, spec=spec(group, plural, kind, definition=False)
    )
    offered = {"resources": [{"group": group, "name": plural, "schema": name}]}
    export = manifest("apis.kcp.io/v1alpha2", "APIExport", "widgets", spec=offered)
    return {f"{A}/schema.json": schema, f"{A}/export.json": export, f"{B}/binding.json": binding("root:a")}


DEPLOYMENT = manifest(
    "apps/v1",
    "Deployment",
    "web",
    spec={
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
)
SERVICE = manifest("v1", "Service", "web", spec={"ports": [{"port": 80}]})
KINDS = [("apps", "deployments", "Deployment", DEPLOYMENT), ("", "services", "Service", SERVICE)]


def defaulted(obj: dict[str, Any]) -> Any:
    """What only Kubernetes knows of such an object."""
    return obj["spec"].get("strategy") or obj["spec"].get("sessionAffinity")


@pytest.mark.parametrize(("group", "plural", "kind", "obj"), KINDS)
def test_a_definition_brings_kubernetes_kind_under_its_own_store_name(
    fleet: LoadedFleet, another: Another, group: str, plural: str, kind: str, obj: str
) -> None:
    fleet.commit({DEFINED: crd(group, plural, kind), f"{B}/web.json": obj})
    storage = f"{plural}.{group}" if group else plural
    for each in (fleet, assert_recovers(fleet, another)):
        assert each.held() == {}
        [served] = [k for k in each.kinds("root:b") if (k.group, k.resource) == (group, plural)]
        assert (served.storage, served.custom, served.definition) == (storage, False, f"{plural}.{group or 'core'}")
        assert defaulted(each.get("root:b", storage, "web"))
        found = each.get("root:b", CRDS, f"{plural}.{group or 'core'}", "")
        assert "as Kubernetes has it" in each.condition(found, "ServedAsKubernetes")["message"]
    fleet.commit({f"{B}/web.json": obj.replace('"web"', '"web", "x": 1', 1)})
    assert f'unknown field "metadata.x" in {kind} web' in fleet.held()["root:b"][0]


@pytest.mark.parametrize(("group", "plural", "kind", "obj"), KINDS)
def test_a_schema_brings_it_under_the_bindings_identity(
    fleet: LoadedFleet, another: Another, group: str, plural: str, kind: str, obj: str
) -> None:
    fleet.commit({**provided(group, plural, kind), f"{B}/web.json": obj})
    for each in (fleet, assert_recovers(fleet, another)):
        assert each.held() == {}
        export = each.get("root:a", EXPORTS, "widgets", "")
        [served] = [k for k in each.kinds("root:b") if (k.group, k.resource) == (group, plural)]
        qualified = f"{plural}.{group}" if group else plural
        assert served.storage == f"{qualified}:{export['status']['identityHash']}"
        assert (served.custom, served.definition) == (False, "")
        assert defaulted(each.get("root:b", qualified, "web"))
        told = each.condition(export, "ServedAsKubernetes")["message"]
        assert told.startswith(f"mine.{plural}.{group or 'core'}: {kind} of ")


@pytest.mark.parametrize(("group", "plural", "kind", "obj"), KINDS)
def test_it_goes_with_its_definition(fleet: LoadedFleet, group: str, plural: str, kind: str, obj: str) -> None:
    fleet.commit({DEFINED: crd(group, plural, kind), f"{B}/web.json": obj})
    fleet.commit({DEFINED: None})
    assert "no kind" in fleet.held()["root:b"][0]
    fleet.commit({DEFINED: None, f"{B}/web.json": None})
    assert "there are objects of its kind" in " ".join(fleet.held()["root:b"])
    fleet.allow()
    assert fleet.held() == {}
    assert not fleet.store.scan(f"{plural}.{group}" if group else plural).records


def test_where_it_is_built_in_no_definition_brings_it(fleet: LoadedFleet, another: Another) -> None:
    compat = manifest(
        "tenancy.kcp.io/v1alpha1", "Workspace", "c", spec={"type": {"name": "kube-compat", "path": "root"}}
    )
    c = "workspaces/root/c"
    fleet.commit({f"{c}/workspace.yaml": compat, f"{c}/crd.json": crd("apps", "deployments", "Deployment")})
    for each in (fleet, assert_recovers(fleet, another)):
        found = each.get("root:c", CRDS, "deployments.apps", "")
        assert each.condition(found, "NamesAccepted")["status"] == "False"
        [served] = [k for k in each.kinds("root:c") if k.qualified == "deployments.apps"]
        assert served.definition == ""


def test_another_kind_of_that_name_is_what_its_definition_says(fleet: LoadedFleet) -> None:
    """Kubernetes' rules are for Kubernetes' kinds: what has another scope is none of them."""
    said = manifest("networking.k8s.io/v1", "Ingress", "it", spec={"size": 3})
    definition = json.loads(crd("networking.k8s.io", "ingresses", "Ingress", "Cluster"))
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    fleet.commit({DEFINED: json.dumps(definition), f"{B}/it.json": said})
    assert fleet.held() == {}
    assert fleet.get("root:b", "ingresses.networking.k8s.io", "it", "")["spec"] == {"size": 3}
