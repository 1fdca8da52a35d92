"""Which kinds a workspace serves: its CRDs, and its bindings against the exports that they name."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.conditions import get, is_true
from apiserver.registry.kinds import workspace_builtins
from reconciler.plan import apis, bindings
from reconciler.plan.apis import Apis
from reconciler.plan.exports import Export

Object = dict[str, Any]

HOME = "root:shop:web"
AT = "2026-01-02T03:04:05Z"
ALL = {"APIExportValid", "BindingUpToDate", "InitialBindingCompleted", "PermissionClaimsValid",
       "PermissionClaimsApplied", "Ready"}  # fmt: skip


def crd(plural: str = "widgets", group: str = "example.io") -> Object:
    kind = plural.removesuffix("s").title()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "uid": "u"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def schema(plural: str = "widgets", group: str = "example.io", prefix: str = "v1") -> Object:
    kind = plural.removesuffix("s").title()
    return {
        "metadata": {"name": f"{prefix}.{plural}.{group or 'core'}", "uid": f"uid-{plural}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {"name": "v1alpha1", "served": True, "storage": False, "schema": {"type": "object"}},
                {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}},
            ],
        },
    }


def export(*schemas: Object, name: str = "widgets", missing: tuple[str, ...] = ()) -> Export:
    return Export("root:provider", name, "providercluster0", f"hash-of-{name}", schemas, missing)


def binding(name: str = "w", wanted: str = "widgets", path: str | None = "root:provider") -> Object:
    reference = {"name": wanted} | ({"path": path} if path else {})
    return {"metadata": {"name": name}, "spec": {"reference": {"export": reference}}}


def resolve(*bindings: Object, crds: tuple[Object, ...] = (), exports: tuple[Export, ...] = (), at: str = AT) -> Apis:
    known = {(e.path, e.name): e for e in exports}
    return apis.resolve(workspace_builtins(), crds, bindings, lambda path, name: known.get((path, name)), HOME, at)


def reason(status: Object, kind: str) -> str:
    found = get(status["conditions"], kind)
    assert found is not None
    return "" if found["status"] == "True" else str(found["reason"])


def test_without_definitions_the_builtins_are_served_as_they_are() -> None:
    found = resolve()
    assert found.kinds is workspace_builtins()
    assert (found.bindings, found.providers) == ({}, frozenset())


def test_a_crd_is_served() -> None:
    kind = resolve(crds=(crd(),)).kinds.by_kind("example.io", "v1", "Widget")
    assert kind is not None
    assert kind.storage == "widgets.example.io"


def test_a_binding_serves_what_the_export_offers() -> None:
    found = resolve(binding(), exports=(export(schema(), schema("gadgets")),))
    for version in ("v1alpha1", "v1"):
        kind = found.kinds.by_kind("example.io", version, "Widget")
        assert kind is not None
        assert kind.storage == "widgets.example.io:hash-of-widgets"
    assert found.kinds.by_kind("example.io", "v1", "Gadget") is not None
    assert found.providers == {("root:provider", "widgets")}
    status = found.bindings["w"]
    assert status["phase"] == "Bound"
    assert status["apiExportClusterName"] == "providercluster0"
    assert status["boundResources"][0] == {
        "group": "example.io",
        "resource": "widgets",
        "schema": {"name": "v1.widgets.example.io", "UID": "uid-widgets", "identityHash": "hash-of-widgets"},
        "storageVersions": ["v1"],
    }
    assert {c["type"] for c in status["conditions"]} == ALL
    assert all(c["status"] == "True" and c["lastTransitionTime"] == AT for c in status["conditions"])


def test_an_export_without_path_is_the_workspaces_own() -> None:
    found = resolve(binding(path=None))
    assert found.providers == {(HOME, "widgets")}
    message = get(found.bindings["w"]["conditions"], "APIExportValid")
    assert message is not None
    assert f"no APIExport widgets in workspace {HOME}" in message["message"]


def test_a_missing_export_is_said_and_remembered() -> None:
    found = resolve(binding())
    status = found.bindings["w"]
    assert found.kinds is workspace_builtins()
    assert found.providers == {("root:provider", "widgets")}
    assert (status["phase"], status["boundResources"]) == ("Binding", [])
    assert "apiExportClusterName" not in status
    assert reason(status, "APIExportValid") == reason(status, "Ready") == "APIExportNotFound"


def test_a_missing_schema_binds_nothing() -> None:
    broken = export(schema(), missing=("v1.gone.example.io",))
    status = resolve(binding(), exports=(broken,)).bindings["w"]
    assert reason(status, "APIExportValid") == "InternalError"
    assert status["boundResources"] == []
    assert any("v1.gone.example.io" in c["message"] for c in status["conditions"])


@pytest.mark.parametrize(
    ("plural", "group", "crds", "holder"),
    [
        ("configmaps", "", (), "a built-in kind"),
        ("widgets", "example.io", (crd(),), "the CustomResourceDefinition widgets.example.io"),
    ],
)
def test_what_is_served_already_cannot_be_bound(plural: str, group: str, crds: tuple[Object, ...], holder: str) -> None:
    found = resolve(binding(), crds=crds, exports=(export(schema("gadgets"), schema(plural, group)),))
    status = found.bindings["w"]
    assert reason(status, "BindingUpToDate") == reason(status, "Ready") == "NamingConflicts"
    assert reason(status, "APIExportValid") == ""
    assert status["phase"] == "Binding"
    message = get(status["conditions"], "BindingUpToDate")
    assert message is not None
    assert f"is served already by {holder}" in message["message"]
    # All of an export or nothing.
    assert found.kinds.by_kind("example.io", "v1", "Gadget") is None


def test_of_two_bindings_the_first_by_name_wins_in_whatever_order_they_come() -> None:
    exports = (export(schema()), export(schema(), name="more"))
    bindings = [binding("b", "more"), binding("a")]
    for given in (bindings, bindings[::-1]):
        found = resolve(*given, exports=exports)
        assert is_true(found.bindings["a"]["conditions"], "Ready")
        assert reason(found.bindings["b"], "Ready") == "NamingConflicts"
        conflict = get(found.bindings["b"]["conditions"], "Ready")
        assert conflict is not None
        assert "the APIBinding a" in conflict["message"]
        kind = found.kinds.by_kind("example.io", "v1", "Widget")
        assert kind is not None
        assert kind.storage.endswith(":hash-of-widgets")


def test_a_binding_that_fails_takes_no_names() -> None:
    exports = (export(schema(), schema("configmaps", "")), export(schema(), name="more"))
    found = resolve(binding("a"), binding("b", "more"), exports=exports)
    assert reason(found.bindings["a"], "Ready") == "NamingConflicts"
    assert reason(found.bindings["b"], "Ready") == ""


def test_conditions_keep_their_time_while_they_say_the_same() -> None:
    first = resolve(binding()).bindings["w"]
    again = resolve({**binding(), "status": first}, at="2027-01-01T00:00:00Z").bindings["w"]
    assert again == first
    healed = resolve({**binding(), "status": first}, exports=(export(schema()),), at="2027-01-01T00:00:00Z")
    times = {c["type"]: c["lastTransitionTime"] for c in healed.bindings["w"]["conditions"]}
    assert times["Ready"] == "2027-01-01T00:00:00Z"
    assert times["PermissionClaimsValid"] == AT


def test_the_same_content_gives_the_same_table() -> None:
    def one() -> Apis:
        return resolve(binding(), crds=(crd("gadgets"),), exports=(export(schema()),))

    assert one().kinds.digest == one().kinds.digest


def test_an_exports_status_has_its_identity_and_keeps_its_time() -> None:
    status = bindings.export_status({}, "9f86", AT)
    assert status["identityHash"] == "9f86"
    assert is_true(status["conditions"], "IdentityValid")
    assert bindings.export_status({"status": status}, "9f86", "2027-01-01T00:00:00Z") == status
