"""Exports, schemas, bindings and types that are made through the API where writes go to the store."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import WORKSPACES, ApiFleet
from support.labapis import (
    APIS,
    DECLARED,
    LAB,
    LOGICAL_CLUSTER,
    MERGE,
    PLAIN,
    SHOP,
    TYPES,
    WIDGETS,
    binding,
    bound,
    export,
    lab,
    put,
    schema,
    why,
    widget,
)

from apiserver.model import clock
from apiserver.registry.keptschemas import KEPT_SCHEMAS

LATER = "2126-05-05T00:00:00Z"


def slice_of(path: str, name: str = "widgets") -> Any:
    """An APIExportEndpointSlice that names another workspace's export."""
    kind = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice", "metadata": {"name": "s"}}
    return {**kind, "spec": {"export": {"path": path, "name": name}}}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = lab(tmp_path / "fleet")
    yield made
    made.close()


def test_an_api_is_offered_and_taken(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    offered = fleet.call("GET", "root:lab", f"{APIS}/apiexports/widgets").json
    assert len(offered["status"]["identityHash"]) == 64
    put(fleet, "root:shop", binding("root:lab"))
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    assert fleet.call("GET", "root:declared", WIDGETS).status == 404
    assert fleet.listed()["root:shop"] == {("root:lab", "widgets")}


def cluster_of(fleet: ApiFleet, path: str) -> str:
    found: str = fleet.call("GET", path, LOGICAL_CLUSTER).json["metadata"]["annotations"]["kcp.io/cluster"]
    return found


def test_a_provider_may_be_named_by_its_logical_cluster(fleet: ApiFleet) -> None:
    """As programs do that know an export by the object alone."""
    name = cluster_of(fleet, "root:lab")
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding(name))
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    put(fleet, "root:lab", schema("v2.widgets.example.io", size="integer", color="string"))
    change = {"spec": {"latestResourceSchemas": ["v2.widgets.example.io"]}}
    assert fleet.call("PATCH", "root:lab", f"{APIS}/apiexports/widgets", change, kind=MERGE).status == 200
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", ["v2.widgets.example.io"])
    found = fleet.call("GET", "root:shop", f"{APIS}/apibindings/widgets").json
    assert found["spec"]["reference"]["export"]["path"] == name, "as it was sent"


def test_who_may_not_bind_learns_nothing_by_a_logical_cluster(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    fleet.call("POST", "root:shop", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", RULES_SHOP)
    said = []
    for name in (cluster_of(fleet, "root:lab"), "0123456789abcdef"):
        refused = fleet.call("POST", "root:shop", f"{APIS}/apibindings", binding(name), user="ann")
        assert refused.status == 403
        said.append(refused.message.replace(name, "X"))
    assert said[0] == said[1] and "root:lab" not in said[0]


@pytest.mark.parametrize("name", ["tenancy.kcp.io", "topology.kcp.io"])
def test_what_every_workspace_has_may_be_bound_as_in_kcp(fleet: ApiFleet, name: str) -> None:
    """Types and manifests that were written for kcp bind the two exports in root."""
    fleet.call("POST", "root:shop", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", RULES_SHOP)
    wanted = binding("root")
    wanted["spec"]["reference"]["export"]["name"] = name
    made = fleet.call("POST", "root:shop", f"{APIS}/apibindings", wanted, user="ann")
    assert made.status == 201, made.message
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [])
    kind = {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "WorkspaceType",
        "metadata": {"name": "gold"},
        "spec": {"defaultAPIBindings": [{"path": "root", "export": name}]},
    }
    assert fleet.call("POST", "root:shop", TYPES, kind).status == 201
    assert fleet.make("root:shop:inner", {"type": {"name": "gold", "path": "root:shop"}}).status == 201
    [found] = fleet.call("GET", "root:shop:inner", f"{APIS}/apibindings").json["items"]
    assert found["status"]["phase"] == "Bound"
    assert fleet.call("GET", "root:shop:inner", WORKSPACES).status == 200
    assert fleet.call("DELETE", "root:shop", f"{APIS}/apibindings/widgets").status in (200, 202)
    fleet.settle()
    assert fleet.call("GET", "root:shop", f"{APIS}/apibindings/widgets").status == 404
    assert fleet.call("GET", "root:shop", WORKSPACES).status == 200


def test_the_provider_may_come_in_any_order(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", export())
    put(fleet, "root:shop", binding("root:lab"))
    assert why(fleet, "root:shop", "APIExportValid") == ("False", "InternalError")
    put(fleet, "root:lab", schema())
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])


def test_a_binding_to_what_is_not_there_is_refused(fleet: ApiFleet) -> None:
    fleet.call("POST", "root:shop", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", RULES_SHOP)
    refused = fleet.call("POST", "root:shop", f"{APIS}/apibindings", binding("root:nowhere"), user="ann")
    assert refused.status == 403
    assert "unable to create APIBinding: no permission to bind to export root:nowhere:widgets" in refused.message


RULES_SHOP = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "ann"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
}


def test_a_newer_schema_reaches_who_took_the_api(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    put(fleet, "root:lab", schema("v2.widgets.example.io", size="integer", color="string"))
    change = {"spec": {"latestResourceSchemas": ["v2.widgets.example.io"]}}
    assert fleet.call("PATCH", "root:lab", f"{APIS}/apiexports/widgets", change, kind=MERGE).status == 200
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", ["v2.widgets.example.io"])
    assert fleet.call("POST", "root:shop", WIDGETS, widget(color="red")).json["spec"] == {"color": "red"}


def test_a_type_says_whether_it_can_be_used(fleet: ApiFleet) -> None:
    """Programs wait for that before they make workspaces of it."""
    kind: Any = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "gold"}}
    assert fleet.call("POST", "root:lab", TYPES, kind).status == 201
    fleet.settle()

    def told() -> dict[str, str]:
        found = fleet.call("GET", "root:lab", f"{TYPES}/gold").json["status"]["conditions"]
        assert all(each["lastTransitionTime"] for each in found)
        return {each["type"]: each["status"] for each in found}

    assert told() == {"Ready": "True", "VirtualWorkspaceURLsReady": "True"}
    asked = {"spec": {"authenticationConfigurations": [{"name": "x"}]}}
    assert fleet.call("PATCH", "root:lab", f"{TYPES}/gold", asked, kind=MERGE).status == 200
    fleet.settle()
    assert told() == {"Ready": "True", "Supported": "False", "VirtualWorkspaceURLsReady": "True"}
    nothing: Any = {"spec": {"authenticationConfigurations": None}}
    assert fleet.call("PATCH", "root:lab", f"{TYPES}/gold", nothing, kind=MERGE).status == 200
    fleet.settle()
    assert told() == {"Ready": "True", "VirtualWorkspaceURLsReady": "True"}


def test_a_provider_that_goes_leaves_its_consumers_served(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    for name in ("apiexports/widgets", "apiresourceschemas/v1.widgets.example.io"):
        assert fleet.call("DELETE", "root:lab", f"{APIS}/{name}").status == 200
        assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200, "without a gap"
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    assert why(fleet, "root:shop", "APIExportValid") == ("False", "APIExportNotFound")
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200


def test_a_provider_that_goes_with_its_workspace_is_told_as_one_that_goes_alone(fleet: ApiFleet) -> None:
    assert fleet.make("root:lab:prov", {"type": {"name": "lab", "path": "root"}}).status == 201
    put(fleet, "root:lab:prov", schema(), export())
    put(fleet, "root:shop", binding("root:lab:prov"), slice_of("root:lab:prov"))
    slices = f"{APIS}/apiexportendpointslices"
    assert fleet.call("GET", "root:shop", f"{slices}/s").json["status"]["endpoints"]
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    fleet.unmake("root:lab:prov")
    assert why(fleet, "root:shop", "APIExportValid") == ("False", "APIExportNotFound")
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200
    told = fleet.call("GET", "root:shop", f"{slices}/s").json["status"]
    assert "endpoints" not in told
    assert [c["reason"] for c in told["conditions"] if c["type"] == "APIExportValid"] == ["APIExportNotFound"]


def test_a_resource_that_is_offered_no_more_stays_where_there_are_objects(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    nothing = {"spec": {"latestResourceSchemas": []}}
    assert fleet.call("PATCH", "root:lab", f"{APIS}/apiexports/widgets", nothing, kind=MERGE).status == 200
    fleet.settle()
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200
    assert why(fleet, "root:shop", "BindingUpToDate")[0] == "False"


def test_a_binding_that_goes_takes_its_objects_along(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    assert fleet.call("DELETE", "root:shop", f"{APIS}/apibindings/widgets").status in (200, 202)
    fleet.settle()
    assert fleet.call("GET", "root:shop", WIDGETS).status == 404
    assert "root:shop" not in fleet.listed()
    assert not [key for key in fleet.store.keys(fleet.record("root:shop").cluster) if key.name == "w"]


def test_two_that_want_a_name(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    put(fleet, "root:shop", schema(), export(), binding("root:shop", "own"))
    assert bound(fleet, "root:shop", "widgets")[0] == "Bound"
    assert why(fleet, "root:shop", "BindingUpToDate", "own") == ("False", "NamingConflicts")
    assert fleet.call("DELETE", "root:shop", f"{APIS}/apibindings/widgets").status in (200, 202)
    fleet.settle()
    assert bound(fleet, "root:shop", "own")[0] == "Bound"


@pytest.mark.parametrize("same", [True, False])
def test_who_waits_with_the_same_schema_and_identity_takes_the_objects_over(fleet: ApiFleet, same: bool) -> None:
    """As in kcp: an export takes another's place, and no consumer loses anything."""
    put(fleet, "root:lab", schema(), schema("v2.widgets.example.io"), export())
    put(fleet, "root:shop", binding("root:lab"))
    made = fleet.call("POST", "root:shop", WIDGETS, widget()).json
    offered = "v1.widgets.example.io" if same else "v2.widgets.example.io"
    successor, waiting = export(offered, name="newer"), binding("root:lab", "newer")
    successor["spec"]["identity"] = {"secretRef": {"namespace": "kcp-system", "name": "widgets"}}
    waiting["spec"]["reference"]["export"]["name"] = "newer"
    put(fleet, "root:lab", successor)
    put(fleet, "root:shop", waiting)
    assert why(fleet, "root:shop", "BindingUpToDate", "newer") == ("False", "NamingConflicts")
    assert fleet.call("DELETE", "root:shop", f"{APIS}/apibindings/widgets").status in (200, 202)
    fleet.settle()
    assert fleet.call("GET", "root:shop", f"{APIS}/apibindings/widgets").status == 404
    assert bound(fleet, "root:shop", "newer") == ("Bound", [offered])
    there = fleet.call("GET", "root:shop", WIDGETS).json["items"]
    assert [each["metadata"]["uid"] for each in there] == ([made["metadata"]["uid"]] if same else [])


def test_a_status_that_an_administrator_writes_is_put_right_or_told(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))

    def write(path: str, name: str, status: Any) -> None:
        reply = fleet.call("PATCH", path, f"{APIS}/{name}/status", {"status": status}, kind=MERGE)
        assert reply.status == 200, reply.message
        fleet.settle()

    write("root:shop", "apibindings/widgets", {"phase": "Binding"})
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    write("root:lab", "apiexports/widgets", {"identityHash": "4711"})
    found = fleet.call("GET", "root:lab", f"{APIS}/apiexports/widgets").json["status"]["conditions"]
    assert [each["reason"] for each in found if each["type"] == "IdentityValid"] == ["IdentityVerificationFailed"]


# -- beside git


MANIFEST = """\
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: widgets}
spec: {reference: {export: {path: root:lab, name: widgets}}}
"""


def test_a_manifest_builds_on_nothing_that_only_the_store_has(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    fleet.commit({f"{DECLARED}/binding.yaml": MANIFEST})
    fleet.settle()
    assert why(fleet, "root:declared", "APIExportValid") == ("False", "APIExportNotFound")
    fleet.commit({f"{DECLARED}/widget.yaml": "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: w}\n"})
    assert "no kind" in str(fleet.held()["root:declared"])


def test_a_type_that_only_the_store_has_is_no_manifests(fleet: ApiFleet) -> None:
    kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "own"}, "spec": {}}
    assert fleet.call("POST", "root:lab", TYPES, kind).status == 201
    assert fleet.make("root:lab:one", {"type": {"name": "own", "path": "root:lab"}}).status == 201
    assert fleet.record("root:lab:one").type == "root:lab:own"
    yaml = PLAIN + "spec: {type: {name: own, path: root:lab}}\n"
    fleet.commit({f"{LAB}/two/workspace.yaml": yaml})
    assert "workspace type root:lab:own cannot be resolved" in str(fleet.held()["root:lab:two"])


def test_what_files_declare_goes_before_what_was_made_here(fleet: ApiFleet) -> None:
    """A binding through the API gets no name that a file's has, and leaves it alone."""
    fleet.commit(
        {
            f"{SHOP}/api.yaml": _yaml(schema()) + "---\n" + _yaml(export()),
            f"{LAB}/binding.yaml": MANIFEST.replace("root:lab", "root:shop").replace("widgets}", "filed}", 1),
        }
    )
    assert not fleet.held()
    put(fleet, "root:lab", schema(), export(), binding("root:lab", "own"))
    assert why(fleet, "root:lab", "BindingUpToDate", "own") == ("False", "NamingConflicts")
    assert bound(fleet, "root:lab", "filed")[0] == "Bound"


def test_a_file_may_not_make_another_of_what_was_made_here(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    other = "workspaces/root/other"
    fleet.commit({
        f"{other}/workspace.yaml": PLAIN, f"{other}/a.yaml": _yaml(schema()), f"{other}/b.yaml": _yaml(export()),
        f"{SHOP}/b.yaml": _yaml(binding("root:other")), f"{LAB}/s.yaml": _yaml(schema(size="string")),
    })  # fmt: skip
    held = fleet.held()
    assert "spec.reference" in held["root:shop"][0]
    assert "delete what was made through the API first" in held["root:shop"][0]
    assert any("field is immutable" in error for error in held["root:lab"])
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    fleet.commit({f"{SHOP}/b.yaml": _yaml(binding("root:lab")), f"{LAB}/s.yaml": _yaml(schema())})
    assert fleet.held() == {}, "it says what is there"
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200


def test_a_commit_leaves_what_was_made_here_bound(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    before = fleet.everything()
    fleet.commit({f"{SHOP}/role.yaml": ROLE})
    fleet.recheck(["root:shop"])
    fleet.settle()
    after = fleet.everything()
    assert {k: v for k, v in after.items() if k in before} == before
    assert fleet.listed()["root:shop"] == {("root:lab", "widgets")}
    fleet.commit({f"{LAB}/role.yaml": ROLE})
    fleet.settle()
    assert bound(fleet, "root:shop")[0] == "Bound"


def test_nothing_of_it_is_recorded(fleet: ApiFleet) -> None:
    fleet.settle()
    fleet.settle()
    fleet.publish()
    before = fleet.recorded()
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    fleet.publish()
    after = fleet.recorded()
    assert before is not None and after is not None
    assert after.tree == before.tree
    cluster = fleet.record("root:lab").cluster
    assert fleet.store.count(KEPT_SCHEMAS, cluster) == 0


ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: []
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.io}
spec:
  group: example.io
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


def _yaml(obj: Any) -> str:
    return json.dumps(obj) + "\n"


SECRETS = "/api/v1/namespaces/{}/secrets"


def test_the_identity_key_is_a_secret_of_the_provider(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    offered = fleet.call("GET", "root:lab", f"{APIS}/apiexports/widgets").json
    assert offered["spec"]["identity"]["secretRef"] == {"namespace": "kcp-system", "name": "widgets"}
    secret = fleet.call("GET", "root:lab", f"{SECRETS.format('kcp-system')}/widgets").json
    key = base64.b64decode(secret["data"]["key"])
    assert offered["status"]["identityHash"] == hashlib.sha256(key).hexdigest()


def test_an_export_waits_for_the_secret_that_it_names(fleet: ApiFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    named = export()
    named["spec"]["identity"] = {"secretRef": {"namespace": "default", "name": "mine"}}
    put(fleet, "root:lab", schema(), named)
    put(fleet, "root:shop", binding("root:lab"))
    assert why(fleet, "root:shop", "APIExportValid") == ("False", "MissingIdentityHash")
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "mine"}, "stringData": {"key": "mine"}}
    monkeypatch.setattr(clock, "now", lambda: LATER)
    assert fleet.call("POST", "root:lab", SECRETS.format("default"), secret).status == 201
    fleet.settle()
    offered = fleet.call("GET", "root:lab", f"{APIS}/apiexports/widgets").json
    assert offered["status"]["identityHash"] == hashlib.sha256(b"mine").hexdigest()
    turned = {c["type"] for c in offered["status"]["conditions"] if c["lastTransitionTime"] == LATER}
    assert turned == {"IdentityValid"}
    assert bound(fleet, "root:shop") == ("Bound", ["v1.widgets.example.io"])


def test_an_export_gets_its_endpoint_slice_and_others_name_what_they_may_bind(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    slices = f"{APIS}/apiexportendpointslices"
    assert "endpoints" not in fleet.call("GET", "root:lab", f"{slices}/widgets").json["status"]
    put(fleet, "root:shop", binding("root:lab"))
    [endpoint] = fleet.call("GET", "root:lab", f"{slices}/widgets").json["status"]["endpoints"]
    assert endpoint["url"].endswith(f"/services/apiexport/{fleet.record('root:lab').cluster}/widgets")
    fleet.call("POST", "root:shop", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", RULES_SHOP)
    for name in ("widgets", "none"):
        refused = fleet.call("POST", "root:shop", slices, slice_of("root:lab", name), user="ann")
        assert refused.status == 403
        text = f"unable to create APIExportEndpointSlice: no permission to bind to export root:lab:{name}"
        assert text in refused.message
