from __future__ import annotations

import copy
from typing import Any

from apiserver.schema.managed import decode, encode
from apiserver.schema.ownership import ApplyOptions, apply, record_update
from apiserver.schema.structural import Schema

Json = dict[str, Any]
T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"


def gadget_of(**spec: Any) -> Json:
    return {"apiVersion": "z.io/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def written(old: Json | None, new: Json, schema: Schema, manager: str, now: str = T1, subresource: str = "") -> Json:
    new = copy.deepcopy(new)
    record_update(old, new, schema, manager, "z.io/v1", now, subresource)
    return new


def changed(old: Json, **spec: Any) -> Json:
    return {**copy.deepcopy(old), "spec": {**old["spec"], **spec}}


def owners(obj: Json) -> dict[str, Any]:
    return {e["manager"] + ":" + e["operation"]: e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def test_create_owns_everything(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1, labels={"a": "b"}), gadget, "curl")
    assert owners(made) == {"curl:Update": {"f:spec": {".": {}, "f:size": {}, "f:labels": {".": {}, "f:a": {}}}}}


def test_create_of_a_built_in_kind_does_not_own_its_structs(deployment: Schema) -> None:
    made: Json = {"metadata": {"name": "d", "labels": {"a": "b"}}, "spec": {"replicas": 1}, "status": {}}
    record_update(None, made, deployment, "curl", "apps/v1", T1)
    assert owners(made) == {
        "curl:Update": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:replicas": {}}}
    }


def test_create_does_not_own_a_list_that_go_always_prints(deployment: Schema) -> None:
    container = {"name": "a", "env": [{"name": "E", "value": "1"}]}
    made: Json = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [container]}}}}
    record_update(None, made, deployment, "curl", "apps/v1", T1)
    env = {".": {}, 'k:{"name":"E"}': {".": {}, "f:name": {}, "f:value": {}}}
    owned = {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:env": env}}
    assert owners(made)["curl:Update"]["f:spec"]["f:template"]["f:spec"] == {"f:containers": owned}


def test_no_change_changes_nothing(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1), gadget, "curl", T1)
    assert written(made, made, gadget, "other", T2) == made


def test_an_update_takes_what_it_changes(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, note="n"), gadget, ApplyOptions("a", False, "z.io/v1", T1))
    after = written(made, changed(made, size=2), gadget, "b", T2)
    assert owners(after) == {"a:Apply": {"f:spec": {"f:note": {}}}, "b:Update": {"f:spec": {"f:size": {}}}}
    assert [e["time"] for e in after["metadata"]["managedFields"]] == [T1, T2]


def test_what_is_removed_is_owned_by_nobody(gadget: Schema) -> None:
    made = apply(None, gadget_of(size=1, note="n"), gadget, ApplyOptions("a", False, "z.io/v1", T1))
    new = copy.deepcopy(made)
    del new["spec"]["note"]
    after = written(made, new, gadget, "b", T2)
    assert owners(after) == {"a:Apply": {"f:spec": {"f:size": {}}}}


def test_entries_of_one_manager_grow(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1), gadget, "curl", T1)
    after = written(made, changed(made, note="n"), gadget, "curl", T2)
    assert owners(after)["curl:Update"] == {"f:spec": {".": {}, "f:size": {}, "f:note": {}}}
    assert after["metadata"]["managedFields"][0]["time"] == T2


def test_managed_fields_may_be_reset_and_set(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1), gadget, "curl")
    for nothing in ([], [{}]):
        new = changed(made, size=2)
        new["metadata"]["managedFields"] = nothing
        assert "managedFields" not in written(made, new, gadget, "x")["metadata"]
    renamed = copy.deepcopy(made)
    renamed["metadata"]["managedFields"][0]["manager"] = "kubectl"
    assert list(owners(written(made, renamed, gadget, "x"))) == ["kubectl:Update"]


def test_a_client_that_drops_managed_fields_loses_none(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1), gadget, "curl")
    new = copy.deepcopy(made)
    del new["metadata"]["managedFields"]
    assert written(made, new, gadget, "x") == made


def test_status_is_an_entry_of_its_own(gadget: Schema) -> None:
    made = written(None, gadget_of(size=1), gadget, "c", T1)
    new = {**copy.deepcopy(made), "status": {"phase": "Ready"}}
    after = written(made, new, gadget, "c", T2, "status")
    assert [e.get("subresource") for e in after["metadata"]["managedFields"]] == [None, "status"]
    assert after["metadata"]["managedFields"][1]["fieldsV1"] == {"f:status": {".": {}, "f:phase": {}}}


def test_old_updates_are_put_together(gadget: Schema) -> None:
    obj = written(None, gadget_of(free={}), gadget, "m00", "2026-01-01T00:00:00Z")
    for index in range(1, 15):
        new = copy.deepcopy(obj)
        new["spec"]["free"][f"k{index:02}"] = index
        obj = written(obj, new, gadget, f"m{index:02}", f"2026-01-01T00:00:{index:02}Z")
    names = [e["manager"] for e in obj["metadata"]["managedFields"]]
    assert len(names) == 10
    assert names[0] == "ancient-changes"
    assert names[1:] == [f"m{i:02}" for i in range(6, 15)]
    assert "f:k03" in owners(obj)["ancient-changes:Update"]["f:spec"]["f:free"]


def test_entries_are_sorted_as_kubernetes_sorts_them() -> None:
    def entry(manager: str, operation: str, time: str, **more: str) -> Json:
        fields = {"fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}
        return {"manager": manager, "operation": operation, "apiVersion": "v1", "time": time, **fields, **more}

    entries = [
        entry("b", "Update", T1, subresource="status"),
        entry("b", "Update", T1),
        entry("a", "Update", T2),
        entry("z", "Apply", T2),
        entry("c", "Update", T1),
    ]
    found = [(e["manager"], e.get("subresource")) for e in encode(decode(entries))]
    assert found == [("z", None), ("b", None), ("b", "status"), ("c", None), ("a", None)]
