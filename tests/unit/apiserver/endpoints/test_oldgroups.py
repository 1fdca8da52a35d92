"""kcp's groups by their older names: the same objects, the same rights, said as they are asked for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from support.shipped import SCHEDULING, bound

from apiserver.model.keys import Key

BOX = "boxcluster000000"
OLD, NEW = "scheduling.kcp.dev/v1alpha1", "scheduling.kcp.io/v1alpha1"
PLACEMENTS = f"/clusters/root:box/apis/{OLD}/placements"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@pytest.fixture
def box(api: Any) -> Any:
    """A workspace that takes writes, and has the kinds of scheduling."""
    api.put_workspace("root:box", BOX, directory="workspaces/root/box", writes="Store")
    api.put(*bound(BOX, SCHEDULING))
    return api


def placement(version: str = OLD, **more: Any) -> Any:
    resource = {"group": "workload.kcp.dev", "version": "v1alpha1", "resource": "synctargets"}
    spec = {"locationSelectors": [{}], "namespaceSelector": {}, "locationResource": resource}
    return {"apiVersion": version, "kind": "Placement", "metadata": {"name": "p"}, "spec": spec, **more}


def stored(api: Any, resource: str = "placements.scheduling.kcp.io") -> Any:
    record = api.store.get(Key(resource, BOX, "", "p"))
    assert record is not None
    return orjson.loads(record.value)


def test_what_is_created_has_the_newer_name_and_is_answered_in_the_older(box: Any, run: Any) -> None:
    reply = run(box.call("POST", f"{PLACEMENTS}?fieldValidation=Strict", placement()))
    assert (reply.status, reply.json["apiVersion"]) == (201, OLD)
    obj = stored(box)
    assert obj["apiVersion"] == NEW
    assert {entry["apiVersion"] for entry in obj["metadata"]["managedFields"]} == {NEW}
    assert obj["spec"]["locationResource"]["group"] == "workload.kcp.io"
    for path, version in ((PLACEMENTS, OLD), (PLACEMENTS.replace(OLD, NEW), NEW)):
        assert run(box.get(f"{path}/p")).json["apiVersion"] == version
        found = run(box.get(path)).json
        assert (found["apiVersion"], found["items"][0]["apiVersion"]) == (version, version)


def test_it_is_changed_under_either_name(box: Any, run: Any) -> None:
    run(box.call("POST", PLACEMENTS.replace(OLD, NEW), placement(NEW)))
    labelled = {"apiVersion": OLD, "metadata": {"labels": {"a": "b"}}}
    reply = run(box.call("PATCH", f"{PLACEMENTS}/p", labelled, kind=MERGE))
    assert (reply.status, reply.json["apiVersion"], stored(box)["metadata"]["labels"]) == (200, OLD, {"a": "b"})
    put = run(box.get(f"{PLACEMENTS}/p")).json
    put["metadata"]["labels"] = {"a": "c"}
    assert run(box.call("PUT", f"{PLACEMENTS}/p", put)).status == 200
    applied = placement(metadata={"name": "p", "labels": {"x": "y"}})
    reply = run(box.call("PATCH", f"{PLACEMENTS}/p?fieldManager=m&force=true", applied, kind=APPLY))
    assert (reply.status, reply.json["apiVersion"]) == (200, OLD)
    assert (stored(box)["apiVersion"], stored(box)["metadata"]["labels"]) == (NEW, {"a": "c", "x": "y"})
    # The same again, under the other name, is no change: one manager owns it.
    before = box.store.revision()
    again = {**applied, "apiVersion": NEW}
    reply = run(box.call("PATCH", f"{PLACEMENTS.replace(OLD, NEW)}/p?fieldManager=m", again, kind=APPLY))
    assert (reply.status, box.store.revision()) == (200, before)
    assert run(box.call("DELETE", f"{PLACEMENTS}/p")).status == 200


def test_a_body_says_what_its_path_says(box: Any, run: Any) -> None:
    assert run(box.call("POST", PLACEMENTS, placement(NEW))).status == 400


def test_what_is_wrong_with_it_is_found(box: Any, run: Any) -> None:
    wrong = placement(spec={"locationResource": {"version": "v2", "group": "apps", "resource": "pods"}})
    reply = run(box.call("POST", PLACEMENTS, wrong))
    fields = {cause["field"].rpartition(".")[2] for cause in reply.json["details"]["causes"]}
    assert (reply.status, fields) == (422, {"version", "group", "resource"})


def test_a_locations_group_has_a_newer_name(box: Any, run: Any) -> None:
    resource = {"group": "workload.kcp.dev", "version": "v1alpha1", "resource": "synctargets"}
    location = {"apiVersion": OLD, "kind": "Location", "metadata": {"name": "p"}, "spec": {"resource": resource}}
    reply = run(box.call("POST", PLACEMENTS.replace("placements", "locations"), location))
    assert (reply.status, reply.json["spec"]["resource"]["group"]) == (201, "workload.kcp.io")


def test_rights_are_those_of_the_newer_name(box: Any, run: Any) -> None:
    def may(group: str, user: str) -> int:
        rule = {"verbs": ["list"], "apiGroups": [group], "resources": ["placements"]}
        box.allow(user, rule, cluster=BOX)
        status: int = run(box.call("GET", PLACEMENTS, user=user)).status
        return status

    assert may("scheduling.kcp.io", "ann") == 200
    assert may("scheduling.kcp.dev", "bob") == 403


def test_a_watch_under_the_older_name_says_it(box: Any, run: Any) -> None:
    async def watched() -> list[str]:
        await box.call("POST", PLACEMENTS, placement())
        watch = box.watch(f"{PLACEMENTS}?watch=1")
        events = [await watch.next()]
        # It goes on after what was there.
        await box.call("PATCH", f"{PLACEMENTS}/p", {"metadata": {"labels": {"a": "b"}}}, kind=MERGE)
        events.append(await watch.next())
        await watch.leave()
        return [said for event in events for said in (event["type"], event["object"]["apiVersion"])]

    assert run(watched()) == ["ADDED", OLD, "MODIFIED", OLD]


def test_discovery_has_them_to_be_found_and_nothing_else(box: Any, run: Any) -> None:
    found = run(box.get("/clusters/root:box/apis", accept=AGGREGATED)).json["items"]
    groups = [item["metadata"]["name"] for item in found]
    assert groups.index("scheduling.kcp.io") < groups.index("scheduling.kcp.dev")
    old = next(item for item in found if item["metadata"]["name"] == "scheduling.kcp.dev")
    assert {r["resource"]: r["verbs"] for r in old["versions"][0]["resources"]} == {"locations": [], "placements": []}
    # Clients of the older discovery look kinds up by name alone: for them there is one of each.
    legacy = run(box.get("/clusters/root:box/apis")).json["groups"]
    assert not [group["name"] for group in legacy if group["name"].endswith(".kcp.dev")]
    assert run(box.get(f"/clusters/root:box/apis/{OLD}")).json["resources"][0]["verbs"] == []
    assert run(box.get("/clusters/root:box/apis/scheduling.kcp.dev")).json["name"] == "scheduling.kcp.dev"
    assert run(box.get(f"{box.EDGE}/apis/{OLD}")).status == 404, "a target serves none of them"
    of_target = run(box.get(f"{box.EDGE}/apis", accept=AGGREGATED)).json["items"]
    assert not [item for item in of_target if "kcp" in item["metadata"]["name"]]
    assert run(box.get("/clusters/root:box/apis/nothing.kcp.dev/v1alpha1")).status == 404


def test_their_documents_let_kubectl_leave_validation_to_the_server(box: Any, run: Any) -> None:
    root = run(box.get("/clusters/root:box/openapi/v3")).json["paths"]
    document = run(box.get("/clusters/root:box" + root[f"apis/{OLD}"]["serverRelativeURL"])).json
    operation = document["paths"][f"/apis/{OLD}/placements/{{name}}"]["patch"]
    assert "fieldValidation" in {p["name"] for p in operation["parameters"]}
    assert operation["x-kubernetes-group-version-kind"]["group"] == "scheduling.kcp.dev"


def test_a_definition_of_such_a_group_is_itself(box: Any, run: Any) -> None:
    names = {"plural": "toys", "kind": "Toy"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "scheduling.kcp.dev", "scope": "Cluster", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "toys.scheduling.kcp.dev"}, "spec": spec}  # fmt: skip
    definitions = "/clusters/root:box/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert run(box.call("POST", definitions, crd)).status == 201
    assert run(box.get(PLACEMENTS)).status == 404
    assert run(box.get(PLACEMENTS.replace("placements", "toys"))).status == 200
