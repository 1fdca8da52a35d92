from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.registry import kinds
from apiserver.registry.catalog import Catalog
from apiserver.registry.facts import generate, load
from apiserver.registry.objects import Objects
from apiserver.schema.rules import check_structural

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


def crd(group: str = "example.io", version: str = "v1", established: bool = True, plural: str = "widgets") -> Any:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    found: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": "Widget", "shortNames": ["wi"]},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    if established:
        found["status"] = {"conditions": [{"type": "Established", "status": "True"}]}
    return found


def resource_schema(group: str, plural: str, kind: str, version: str = "v1") -> dict[str, Any]:
    return {
        "kind": "APIResourceSchema",
        "apiVersion": "apis.kcp.io/v1alpha1",
        "metadata": {"name": f"v1.{plural}.{group or 'core'}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"type": "object"}}],
        },
    }


def binding(provider: str, *bound: tuple[str, str, str]) -> dict[str, Any]:
    resources = [
        {"group": g, "resource": r, "schema": {"name": f"v1.{r}.{g or 'core'}", "identityHash": identity}}
        for g, r, identity in bound
    ]
    return {
        "kind": "APIBinding",
        "apiVersion": "apis.kcp.io/v1alpha1",
        "metadata": {"name": "b"},
        "status": {"apiExportClusterName": provider, "boundResources": resources},
    }


def test_workspace_builtins() -> None:
    table = kinds.workspace_builtins()
    for group, version, resource in [("", "v1", "configmaps"), ("coordination.k8s.io", "v1", "leases"),
                                     ("tenancy.kcp.io", "v1alpha1", "workspaces")]:  # fmt: skip
        found = table.by_resource(group, version, resource)
        assert found is not None and found.schema.validate({}) is not None
    assert table.by_resource("apps", "v1", "deployments") is None
    core, other = table.by_resource("", "v1", "events"), table.by_resource("events.k8s.io", "v1", "events")
    assert core is not None and other is not None
    assert core.storage == other.storage == "events" and core.storage_version and not other.storage_version
    review = table.by_kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview")
    assert review is not None and review.storage == "" and review.verbs == {"create"}
    assert next(iter(table.groups())) == ""
    workspace = table.by_kind("tenancy.kcp.io", "v1alpha1", "Workspace")
    assert workspace is not None and workspace.short_names == ("ws",) and workspace.custom


def test_every_builtin_schema_compiles() -> None:
    for kind in kinds.target_builtins().all():
        assert kind.schema.node("metadata", "name") is not None, kind.qualified


def test_our_definitions_are_structural_and_in_step_with_their_yaml() -> None:
    assert load.treeplane() == generate.treeplane()
    for definition in load.treeplane():
        for version in definition["spec"]["versions"]:
            assert check_structural(version["schema"]["openAPIV3Schema"]) == []


def test_placement_of_2022_gets_its_location_resource() -> None:
    kind = kinds.exported_builtins().by_kind("scheduling.kcp.io", "v1alpha1", "Placement")
    assert kind is not None
    obj = {"apiVersion": "scheduling.kcp.io/v1alpha1", "kind": "Placement", "metadata": {"name": "aws"},
           "spec": {"namespaceSelector": {"matchLabels": {"app": "foo"}}, "locationWorkspace": "root:a"}}  # fmt: skip
    assert kind.schema.prune(obj) == []
    kind.schema.default(obj)
    assert kind.schema.validate(obj) == []
    assert obj["spec"]["locationResource"]["resource"] == "synctargets"


def test_kinds_of_crd() -> None:
    [kind] = kinds.kinds_of_crd(crd())
    assert (kind.singular, kind.list_kind, kind.storage) == ("widget", "WidgetList", "widgets.example.io")
    assert [c.name for c in kind.columns] == ["Name", "Age"] and kind.subresources == {"status"}
    assert kinds.kinds_of_crd(crd())[0] is kind
    finalizers = kind.schema.node("metadata", "finalizers")
    assert finalizers is not None and finalizers.list_type == "set"


def test_overlay_is_shared_by_content_and_leaves_builtins_alone() -> None:
    base = kinds.workspace_builtins()
    one = kinds.overlay(base, kinds.kinds_of_crd(crd()))
    assert one is kinds.overlay(base, kinds.kinds_of_crd(crd())) and one.digest != base.digest
    assert kinds.overlay(base, []) is base
    two = kinds.overlay(base, kinds.kinds_of_crd(crd("", plural="configmaps")))
    assert two.by_resource("", "v1", "configmaps") is base.by_resource("", "v1", "configmaps")
    # Its objects would be kept where the built-in kind's are.
    [other] = kinds.kinds_of_crd(crd("rbac.authorization.k8s.io", plural="clusterroles"))
    assert kinds.overlay(base, [replace(other, version="v9")]) is base


def test_versions_best_first() -> None:
    names = ["v1alpha1", "v2", "v1beta1", "foo", "v1", "v11", "v1beta2"]
    assert sorted(names, key=kinds.version_order) == ["v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]


def test_catalog_serves_established_crds_only(store: Any) -> None:
    catalog, objects = Catalog(store), Objects(store)
    assert catalog.kinds("a") is kinds.workspace_builtins()
    key = Key(CRDS, "a", "", "widgets.example.io")
    objects.create(key, crd(established=False))
    assert catalog.kinds("a").by_resource("example.io", "v1", "widgets") is None
    objects.update(key, lambda o: {**o, "status": {"conditions": [{"type": "Established", "status": "True"}]}})
    assert catalog.kinds("a").by_resource("example.io", "v1", "widgets") is not None
    assert catalog.kinds("b") is kinds.workspace_builtins()
    objects.create(key._replace(cluster="b"), crd(version="v2"))
    assert catalog.kinds("b").by_resource("example.io", "v2", "widgets") is not None
    objects.delete(key)
    assert catalog.kinds("a") is kinds.workspace_builtins()


def test_catalog_serves_bound_apis_under_their_identity(store: Any) -> None:
    catalog, objects = Catalog(store), Objects(store)
    objects.create(Key("apibindings.apis.kcp.io", "c", "", "b"),
                   binding("p", ("apps", "deployments", "id1"), ("acme.io", "gadgets", "id2")))  # fmt: skip
    assert catalog.kinds("c").by_resource("apps", "v1", "deployments") is None
    for group, plural, kind in [("apps", "deployments", "Deployment"), ("acme.io", "gadgets", "Gadget")]:
        name = f"v1.{plural}.{group}"
        objects.create(Key("apiresourceschemas.apis.kcp.io", "p", "", name), resource_schema(group, plural, kind))
    table = catalog.kinds("c")
    deployment, gadget = table.by_resource("apps", "v1", "deployments"), table.by_kind("acme.io", "v1", "Gadget")
    assert deployment is not None and deployment.storage == "deployments.apps:id1" and not deployment.custom
    assert gadget is not None and gadget.storage == "gadgets.acme.io:id2" and gadget.custom


def test_a_definition_costs_its_workspace_and_those_that_bind_it(store: Any) -> None:
    catalog, objects = Catalog(store), Objects(store)
    schema = Key("apiresourceschemas.apis.kcp.io", "p", "", "v1.gadgets.acme.io")
    objects.create(schema, resource_schema("acme.io", "gadgets", "Gadget"))
    objects.create(Key("apibindings.apis.kcp.io", "c", "", "b"), binding("p", ("acme.io", "gadgets", "id2")))
    before, other, scans = catalog.kinds("c"), catalog.kinds("d"), store.scans
    objects.create(Key(CRDS, "elsewhere", "", "x"), crd())
    objects.create(schema._replace(cluster="elsewhere"), resource_schema("acme.io", "gadgets", "Other"))
    assert (catalog.kinds("c"), catalog.kinds("d"), store.scans) == (before, other, scans)
    objects.delete(schema)
    assert catalog.kinds("c").by_resource("acme.io", "v1", "gadgets") is None
    objects.create(schema, resource_schema("acme.io", "gadgets", "Anew"))
    assert catalog.kinds("c").by_kind("acme.io", "v1", "Anew") is not None
    scans = store.scans
    assert (catalog.kinds("d"), store.scans) == (other, scans)


def test_start_is_cheap() -> None:
    """Beside parts of Python's own that every machine has, since machines differ, and with them seconds."""
    kinds = "from apiserver.registry import kinds; kinds.workspace_builtins()"
    pythons = (
        "import asyncio, concurrent.futures.process, email.mime.text, http.server, sqlite3, unittest, xml.dom.minidom"
    )

    def cost(code: str) -> float:
        timed = f"import time; t=time.process_time(); {code}; print(time.process_time()-t)"
        return float(subprocess.check_output([sys.executable, "-c", timed]))

    pairs = [(cost(kinds), cost(pythons)) for _ in range(3)]
    ours, theirs = (min(side) for side in zip(*pairs, strict=True))
    assert ours < 5 * theirs  # 2.6 times


def test_generated_data_reaches_all_it_refers_to() -> None:
    facts = load.kubernetes()
    names = {m.decode() for m in generate._REF.findall(orjson.dumps(facts["definitions"]))}
    assert names <= facts["definitions"].keys()
