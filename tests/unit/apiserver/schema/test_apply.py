from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.model.errors import StatusError
from apiserver.schema.ownership import ApplyOptions, apply, record_update
from apiserver.schema.structural import Schema

T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"
Json = dict[str, Any]


def gadget_of(**spec: Any) -> Json:
    return {"apiVersion": "z.io/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def by(manager: str, now: str = T1, *, force: bool = False, subresource: str = "") -> ApplyOptions:
    return ApplyOptions(manager, force, "z.io/v1", now, subresource, () if subresource else ("status",))


def owners(obj: Json) -> dict[str, Any]:
    return {e["manager"] + ":" + e["operation"]: e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def deploy(*containers: Json, **spec: Any) -> Json:
    body: Json = {"selector": {"matchLabels": {"app": "a"}}, "template": {"spec": {"containers": list(containers)}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {**body, **spec}}


def containers_of(obj: Json) -> list[Json]:
    found: list[Json] = obj["spec"]["template"]["spec"]["containers"]
    return found


# --- one manager ------------------------------------------------------------------------------------------------------


def test_create_records_what_was_sent_and_nothing_else(gadget: Schema) -> None:
    manifest = gadget_of(size=1, tags=["x"], parts=[{"name": "a", "count": 1}])
    manifest["metadata"]["labels"] = {"app": "g"}
    made = apply(None, manifest, gadget, by("me"))
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "z.io/v1",
            "time": T1,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:parts": {'k:{"kind":"plain","name":"a"}': {".": {}, "f:count": {}, "f:name": {}}},
                    "f:size": {},
                    "f:tags": {'v:"x"': {}},
                },
            },
        }
    ]


def test_apply_twice_is_once(gadget: Schema) -> None:
    manifest = gadget_of(size=1, parts=[{"name": "a"}])
    made = apply(None, manifest, gadget, by("me", T1))
    gadget.default(made)
    assert apply(made, manifest, gadget, by("me", T2)) == made


def test_what_is_dropped_disappears(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, mode="a", tags=["x", "y"], labels={"k": "v"}), gadget, by("me"))
    again = apply(made, gadget_of(size=1, tags=["y"]), gadget, by("me", T2))
    assert again["spec"] == {"size": 1, "tags": ["y"]}
    assert again["metadata"]["managedFields"][0]["time"] == T2


def test_what_the_server_set_stays(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, note="n"), gadget, by("me"))
    gadget.default(made)
    made["metadata"].update(uid="u", creationTimestamp=T1, labels={"by": "server"})
    again = apply(made, gadget_of(size=1), gadget, by("me", T2))
    assert again["spec"] == {"size": 1, "mode": "a", "nested": {"depth": 3}}
    assert again["metadata"]["uid"] == "u"
    assert again["metadata"]["labels"] == {"by": "server"}


def test_atomic_values_are_owned_whole(gadget: Schema) -> None:
    made = apply(None, gadget_of(atoms=["a", "b"], selector={"a": "1", "b": "2"}), gadget, by("me"))
    assert owners(made)["me:Apply"]["f:spec"] == {"f:atoms": {}, "f:selector": {}}
    again = apply(made, gadget_of(atoms=["c"], selector={"a": "1"}), gadget, by("me"))
    assert again["spec"] == {"atoms": ["c"], "selector": {"a": "1"}}


def test_undescribed_data_maps_are_granular_lists_atomic(gadget: Schema) -> None:
    made = apply(None, gadget_of(free={"a": {"b": 1}, "l": [{"c": 1}]}), gadget, by("me"))
    assert owners(made)["me:Apply"]["f:spec"] == {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}}
    again = apply(made, gadget_of(free={"a": {"d": 2}}), gadget, by("me"))
    assert again["spec"]["free"] == {"a": {"d": 2}}


def test_identity_is_never_owned(gadget: Schema) -> None:
    manifest = gadget_of(size=1)
    manifest["metadata"].update(namespace="n", uid="u", resourceVersion="5", generation=3)
    made = apply(None, manifest, gadget, by("me"))
    assert "f:metadata" not in owners(made)["me:Apply"]


def test_managed_fields_in_the_manifest_are_refused(gadget: Schema) -> None:
    manifest = gadget_of(size=1)
    manifest["metadata"]["managedFields"] = []
    with pytest.raises(StatusError, match=r"metadata\.managedFields must be nil") as error:
        apply(None, manifest, gadget, by("me"))
    assert error.value.code == 400


def test_undeclared_fields_are_refused(gadget: Schema) -> None:
    manifest = gadget_of(x=1)
    manifest["metadata"]["namespace"] = "n"
    with pytest.raises(StatusError) as error:
        apply(None, manifest, gadget, by("me"))
    assert error.value.code == 500
    expected = "failed to create typed patch object (n/g; z.io/v1, Kind=Gadget): .spec.x: field not declared in schema"
    assert error.value.message == expected


def test_repeated_and_nameless_items_are_refused(gadget: Schema) -> None:
    with pytest.raises(StatusError, match=r'\.spec\.parts: duplicate entries for key \[kind="plain",name="a"\]'):
        apply(None, gadget_of(parts=[{"name": "a"}, {"name": "a", "kind": "plain"}]), gadget, by("me"))
    with pytest.raises(StatusError, match="explicit null"):
        apply(None, gadget_of(tags=[None]), gadget, by("me"))


# --- several managers -------------------------------------------------------------------------------------------------


def test_a_changed_value_of_another_is_a_conflict(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1), gadget, by("a"))
    with pytest.raises(StatusError) as error:
        apply(made, gadget_of(size=2), gadget, by("b"))
    assert error.value.code == 409
    assert error.value.reason == "Conflict"
    assert error.value.message == 'Apply failed with 1 conflict: conflict with "a": .spec.size'
    assert error.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "a"', "field": ".spec.size"}
    ]


def test_conflicts_with_updates_name_the_version(configmap: Schema) -> None:
    made: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "1"}}
    record_update(None, made, configmap, "curl", "v1", T1)
    options = ApplyOptions("me", False, "v1", T2)
    with pytest.raises(StatusError) as one:
        apply(made, {"metadata": {"name": "c"}, "data": {"a": "2"}}, configmap, options)
    assert one.value.message == 'Apply failed with 1 conflict: conflict with "curl" using v1: .data.a'
    with pytest.raises(StatusError) as two:
        apply(made, {"metadata": {"name": "c"}, "data": {"a": "2", "b": "2"}}, configmap, options)
    assert two.value.message == 'Apply failed with 2 conflicts: conflicts with "curl" using v1:\n- .data.a\n- .data.b'


def test_the_same_value_is_shared(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, note="n"), gadget, by("a"))
    shared = apply(made, gadget_of(size=1), gadget, by("b", T2))
    assert shared["spec"] == {"size": 1, "note": "n"}
    assert owners(shared)["b:Apply"] == {"f:spec": {"f:size": {}}}
    dropped = apply(shared, gadget_of(note="n"), gadget, by("a", T3))
    assert dropped["spec"] == {"size": 1, "note": "n"}


def test_force_moves_ownership(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, note="n"), gadget, by("a"))
    forced = apply(made, gadget_of(size=2), gadget, by("b", T2, force=True))
    assert forced["spec"]["size"] == 2
    assert owners(forced) == {"a:Apply": {"f:spec": {"f:note": {}}}, "b:Apply": {"f:spec": {"f:size": {}}}}


def test_items_of_several_managers_live_side_by_side(gadget: Schema) -> None:
    first = apply(None, gadget_of(parts=[{"name": "a"}], tags=["x"]), gadget, by("a"))
    both = apply(first, gadget_of(parts=[{"name": "b"}], tags=["y"]), gadget, by("b"))
    assert [p["name"] for p in both["spec"]["parts"]] == ["a", "b"]
    gone = apply(both, gadget_of(), gadget, by("a"))
    assert gone["spec"] == {"parts": [{"name": "b"}], "tags": ["y"]}


def test_an_item_stays_while_another_owns_a_field_in_it(gadget: Schema) -> None:
    first = apply(None, gadget_of(parts=[{"name": "a", "count": 1}]), gadget, by("a"))
    both = apply(first, gadget_of(parts=[{"name": "a", "kind": "plain"}]), gadget, by("b"))
    rest = apply(both, gadget_of(), gadget, by("a"))
    assert rest["spec"]["parts"] == [{"name": "a", "kind": "plain"}]


def test_unmanaged_objects_get_an_owner_first(gadget: Schema) -> None:
    live = gadget_of(size=1, note="n")
    live["metadata"]["uid"] = "u"
    with pytest.raises(StatusError, match="before-first-apply"):
        apply(live, gadget_of(size=2), gadget, by("me"))
    made = apply(live, gadget_of(size=1), gadget, by("me"))
    assert owners(made) == {
        "before-first-apply:Update": {"f:spec": {".": {}, "f:note": {}, "f:size": {}}},
        "me:Apply": {"f:spec": {"f:size": {}}},
    }


def test_applied_order_wins_and_the_rest_keeps_its_place(gadget: Schema) -> None:
    first = apply(None, gadget_of(tags=["a", "b", "c", "x"]), gadget, by("a"))
    both = apply(first, gadget_of(tags=["c", "a", "d"]), gadget, by("b"))
    assert both["spec"]["tags"] == ["b", "c", "x", "a", "d"]


# --- subresources -----------------------------------------------------------------------------------------------------


def test_status_is_not_applied_at_the_main_endpoint(gadget: Schema) -> None:
    manifest = gadget_of(size=1)
    manifest["status"] = {"phase": "Fake"}
    made = apply(None, manifest, gadget, by("me"))
    assert "status" not in made
    assert "f:status" not in owners(made)["me:Apply"]


def test_only_status_is_applied_at_status(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1), gadget, by("me"))
    manifest = {**gadget_of(size=5), "status": {"phase": "Ready"}}
    after = apply(made, manifest, gadget, by("me", T2, subresource="status"))
    assert after["spec"] == {"size": 1}
    assert after["status"] == {"phase": "Ready"}
    entry = after["metadata"]["managedFields"][1]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:phase": {}}})


# --- built-in kinds ---------------------------------------------------------------------------------------------------


def test_list_types_of_a_deployment(deployment: Schema) -> None:
    manifest = deploy(
        {
            "name": "web",
            "image": "i",
            "args": ["a"],
            "env": [{"name": "A", "value": "1"}],
            "ports": [{"containerPort": 80}],
        },
        replicas=2,
    )
    manifest["metadata"].update(
        finalizers=["x.io/f"], ownerReferences=[{"uid": "u1", "kind": "K", "name": "n", "apiVersion": "v1"}]
    )
    made = apply(None, manifest, deployment, ApplyOptions("me", False, "apps/v1", T1))
    assert owners(made)["me:Apply"] == {
        "f:metadata": {"f:finalizers": {'v:"x.io/f"': {}}, "f:ownerReferences": {'k:{"uid":"u1"}': {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {
                ".": {},
                "f:args": {},
                "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                "f:image": {},
                "f:name": {},
                "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }}}},
        },
    }  # fmt: skip


def test_a_defaulted_key_is_the_same_item(deployment: Schema) -> None:
    manifest = deploy({"name": "web", "ports": [{"containerPort": 80}]})
    options = ApplyOptions("me", False, "apps/v1", T1)
    made = apply(None, manifest, deployment, options)
    deployment.default(made)
    assert containers_of(made)[0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert apply(made, manifest, deployment, ApplyOptions("me", False, "apps/v1", T2)) == made


def test_replicas_may_belong_to_an_autoscaler(deployment: Schema) -> None:
    made = apply(None, deploy({"name": "web"}), deployment, ApplyOptions("me", False, "apps/v1", T1))
    scaled = copy.deepcopy(made)
    scaled["spec"]["replicas"] = 5
    record_update(made, scaled, deployment, "hpa", "apps/v1", T2, "scale")
    again = apply(scaled, deploy({"name": "web"}), deployment, ApplyOptions("me", False, "apps/v1", T3))
    assert again == scaled
    with pytest.raises(StatusError, match='conflict with "hpa" with subresource "scale" using apps/v1'):
        apply(scaled, deploy({"name": "web"}, replicas=1), deployment, ApplyOptions("me", False, "apps/v1", T3))


def test_conditions_are_keyed_by_type(deployment: Schema) -> None:
    def status(kind: str) -> Json:
        return {**deploy(), "status": {"conditions": [{"type": kind, "status": "True"}]}}

    made = apply(None, deploy(), deployment, ApplyOptions("me", False, "apps/v1", T1))
    one = apply(made, status("A"), deployment, ApplyOptions("x", False, "apps/v1", T2, "status"))
    two = apply(one, status("B"), deployment, ApplyOptions("y", False, "apps/v1", T3, "status"))
    assert [c["type"] for c in two["status"]["conditions"]] == ["A", "B"]
