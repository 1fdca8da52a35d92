"""Who holds a name keeps it: of definitions and bindings that claim one kind, the first is served."""

from __future__ import annotations

import json

import pytest
from support.loadedfleet import A, B, LoadedFleet
from support.recoveries import Another, assert_recovers, assert_same
from support.widgets import binding, crd, export, schema, widget

Files = dict[str, str | None]

CRDS, BINDINGS = "customresourcedefinitions.apiextensions.k8s.io", "apibindings.apis.kcp.io"
PROVIDER: Files = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
BOUND: Files = {f"{B}/binding.json": binding("root:a")}
DEFINED: Files = {f"{B}/crd.json": crd()}
OBJECT: Files = {f"{B}/w.json": widget(size=1)}


def accepted(fleet: LoadedFleet) -> tuple[str, str]:
    """Conditions NamesAccepted and Established of the definition."""
    found = fleet.get("root:b", CRDS, "widgets.example.io", "")
    return tuple(fleet.condition(found, kind)["status"] for kind in ("NamesAccepted", "Established"))  # type: ignore[return-value]


def bound(fleet: LoadedFleet) -> tuple[str, str]:
    """Phase, and reason of BindingUpToDate, of the binding."""
    found = fleet.get("root:b", BINDINGS, "widgets", "")
    return found["status"]["phase"], fleet.condition(found, "BindingUpToDate")["reason"]


def storage(fleet: LoadedFleet) -> str:
    """What the kind is served from: `own` or `bound`."""
    return "bound" if ":" in fleet.key("root:b", "widgets.example.io", "w").resource else "own"


def test_a_later_definition_waits_for_the_binding_that_has_its_name(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, **BOUND, **OBJECT})
    fleet.commit(DEFINED)
    assert fleet.held() == {}
    assert accepted(fleet) == ("False", "False")
    assert bound(fleet) == ("Bound", "BindingUpToDate")
    for each in (fleet, assert_recovers(fleet, another)):
        assert storage(each) == "bound"
        assert each.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 1}


def test_the_end_of_a_definition_that_waits_takes_nothing_along(fleet: LoadedFleet) -> None:
    fleet.commit({**PROVIDER, **BOUND, **OBJECT})
    fleet.commit(DEFINED)
    before = fleet.get("root:b", "widgets.example.io", "w")
    fleet.commit(dict.fromkeys(DEFINED))
    assert fleet.held() == {}
    assert fleet.get("root:b", "widgets.example.io", "w") == before


def test_a_later_binding_waits_for_the_definition_that_has_its_name(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, **DEFINED, **OBJECT})
    fleet.commit(BOUND)
    assert fleet.held() == {}
    assert accepted(fleet) == ("True", "True")
    assert bound(fleet) == ("Binding", "NamingConflicts")
    assert storage(assert_recovers(fleet, another)) == "own"


@pytest.mark.parametrize("first", ["definition", "binding"])
def test_who_waits_is_served_when_the_name_is_free(fleet: LoadedFleet, another: Another, first: str) -> None:
    one, other = (DEFINED, BOUND) if first == "definition" else (BOUND, DEFINED)
    fleet.commit({**PROVIDER, **one})
    fleet.commit(other)
    new = assert_recovers(fleet, another)
    fleet.commit(dict.fromkeys(one))
    new.load()
    for each in (fleet, new):
        assert each.held() == {}
        assert storage(each) == ("bound" if first == "definition" else "own")
    assert_same(new, fleet)


@pytest.mark.parametrize("first", ["definition", "binding"])
def test_objects_that_stay_behind_hold_the_commit_and_are_named(
    fleet: LoadedFleet, another: Another, first: str
) -> None:
    """They would become the other's, and those that there were would go."""
    one, other = (DEFINED, BOUND) if first == "definition" else (BOUND, DEFINED)
    fleet.commit({**PROVIDER, **one, **OBJECT})
    fleet.commit(other)
    before = fleet.get("root:b", "widgets.example.io", "w")
    fleet.commit(dict.fromkeys(one))
    [error] = fleet.held()["root:b"]
    assert error.startswith(f"{B}/w.json:1: Widget w: the kind changes hands")
    assert fleet.get("root:b", "widgets.example.io", "w") == before
    new = assert_recovers(fleet, another)
    fleet.delete(dict.fromkeys(OBJECT))
    new.load()
    for each in (fleet, new):
        assert each.held() == {}
        assert each.find("root:b", "widgets.example.io", "w") is None


def test_a_binding_that_goes_and_leaves_manifests_holds_the_commit(fleet: LoadedFleet) -> None:
    fleet.commit({**PROVIDER, **BOUND, **OBJECT})
    fleet.commit(dict.fromkeys(BOUND))
    [error] = fleet.held()["root:b"]
    assert error.startswith(f"{B}/w.json:1: ")
    assert fleet.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 1}


def test_another_binding_to_the_same_export_may_take_its_place(fleet: LoadedFleet) -> None:
    fleet.commit({**PROVIDER, **BOUND, **OBJECT})
    before = fleet.get("root:b", "widgets.example.io", "w")
    fleet.commit({f"{B}/binding.json": binding("root:a", "renamed")})
    assert fleet.held() == {}
    assert fleet.get("root:b", "widgets.example.io", "w") == before


def test_kinds_and_short_names_are_names_too(fleet: LoadedFleet, another: Another) -> None:
    """Two definitions that call their kinds alike: the second waits."""
    other = json.loads(crd())
    other["metadata"]["name"] = "gizmos.example.io"
    other["spec"]["names"] |= {"plural": "gizmos", "singular": "gizmo", "listKind": "GizmoList"}
    fleet.commit({**DEFINED, **OBJECT})
    fleet.commit({f"{B}/a.json": json.dumps(other)})
    waits = fleet.get("root:b", CRDS, "gizmos.example.io", "")
    assert fleet.condition(waits, "NamesAccepted")["message"] == '"Widget" is already in use'
    assert accepted(fleet) == ("True", "True")
    assert fleet.held() == {}
    assert_recovers(fleet, another)


def test_a_definition_that_git_does_not_know_keeps_its_name(fleet: LoadedFleet) -> None:
    """Made through the API, where writes go to the store."""
    fleet.commit(PROVIDER)
    runtime = json.loads(crd())
    runtime["metadata"] |= {"uid": "u", "annotations": {"treeplane.dev/origin": "runtime"}}
    runtime["status"] = {
        "conditions": [{"type": kind, "status": "True"} for kind in ("NamesAccepted", "Established")],
        "storedVersions": ["v1"],
    }
    fleet.put(fleet.key("root:b", CRDS, "widgets.example.io", ""), runtime)
    fleet.commit(BOUND)
    assert bound(fleet) == ("Binding", "NamingConflicts")
    assert fleet.held() == {}


@pytest.mark.parametrize(
    ("group", "plural", "kind"),
    [
        ("workload.kcp.io", "synctargets", "SyncTarget"),
        ("tenancy.kcp.io", "workspacetypes", "WorkspaceType"),
        ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"),
    ],
)
def test_what_is_built_in_has_no_versions_of_others(
    fleet: LoadedFleet, another: Another, group: str, plural: str, kind: str
) -> None:
    definition = anything(group, plural, kind, "v9")
    fleet.commit({f"{B}/crd.json": definition})
    found = fleet.get("root:b", CRDS, f"{plural}.{group}", "")
    assert fleet.condition(found, "Established")["status"] == "False"
    message = fleet.condition(found, "NamesAccepted")["message"]
    assert f'"{plural}" is already in use' in message
    assert_recovers(fleet, another)
    obj = {"apiVersion": f"{group}/v9", "kind": kind, "metadata": {"name": "it"}, "spec": {"anything": 1}}
    fleet.commit({f"{B}/it.json": json.dumps(obj)})
    [error] = fleet.held()["root:b"]
    assert error.startswith(f'{B}/it.json:1: no kind "{kind}" in apiVersion "{group}/v9"')


def test_kubernetes_rules_are_not_those_of_a_custom_resource(fleet: LoadedFleet) -> None:
    obj = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "it"}, "spec": "anything"}
    files = {"crd": anything("networking.k8s.io", "ingresses", "Ingress", "v1"), "it": json.dumps(obj)}
    fleet.commit({f"{B}/{name}.json": text for name, text in files.items()})
    assert fleet.held() == {}
    assert fleet.get("root:b", "ingresses.networking.k8s.io", "it", "")["spec"] == "anything"


def anything(group: str, plural: str, kind: str, version: str) -> str:
    """The definition of objects that may say anything."""
    found = json.loads(crd(group=group, scope="Cluster"))
    approved = {"api-approved.kubernetes.io": "unapproved, a test"}
    found["metadata"] = {"name": f"{plural}.{group}", "annotations": approved}
    found["spec"]["names"] = {"plural": plural, "kind": kind}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    found["spec"]["versions"] = [{"name": version, "served": True, "storage": True, "schema": schema}]
    return json.dumps(found)
