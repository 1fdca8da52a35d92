"""Writes to a workspace, whose objects git declares: what is stored, what is refused and with which words."""

from typing import Any

import pytest
from support.shipped import WORKLOAD, bound

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"


def configmap(name: str = "new", **metadata: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def event(**fields: Any) -> dict[str, Any]:
    involved = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
    return {"metadata": {"generateName": "e-"}, "involvedObject": involved, "reason": "R", "type": "Normal", **fields}


def test_a_new_object_is_refused_with_the_directory(api: Any, run: Any) -> None:
    before = api.store.revision()
    reply = run(api.call("POST", CONFIGMAPS, configmap()))
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")
    assert "add a manifest to workspaces/root, commit and push" in reply.message
    assert reply.json["details"] == {"name": "new", "kind": "configmaps"}
    assert api.store.revision() == before


@pytest.mark.parametrize(
    ("method", "kind", "body"),
    [
        ("PUT", "", {**configmap("b"), "data": {"k": "9"}}),
        ("PATCH", MERGE, {"data": {"k": "9"}}),
        ("PATCH", "application/json-patch+json", [{"op": "remove", "path": "/data"}]),
        ("PATCH", "application/apply-patch+yaml", configmap("b")),
        ("DELETE", "", b""),
    ],
)
def test_a_declared_object_is_refused_with_its_file(api: Any, run: Any, method: str, kind: str, body: Any) -> None:
    query = "?fieldManager=me" if "apply" in kind else ""
    reply = run(api.call(method, f"{CONFIGMAPS}/b{query}", body, kind=kind))
    assert reply.status == 403
    assert "edit workspaces/root/b.yaml, commit and push" in reply.message


def test_whoever_may_not_write_learns_of_no_file(api: Any, run: Any) -> None:
    api.allow("ann", {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]})
    for method, path in (("DELETE", f"{CONFIGMAPS}/b"), ("POST", CONFIGMAPS)):
        reply = run(api.call(method, path, configmap(), user="ann"))
        assert reply.status == 403
        assert 'User "ann" cannot' in reply.message
        assert "workspaces/" not in reply.message


def test_absent_objects_are_404(api: Any, run: Any) -> None:
    assert run(api.call("DELETE", f"{CONFIGMAPS}/nope")).status == 404
    assert run(api.call("PATCH", f"{CONFIGMAPS}/nope", {}, kind=MERGE)).status == 404
    assert run(api.call("PUT", f"{CONFIGMAPS}/nope", configmap("nope"))).status == 404


def test_events_are_stored(api: Any, run: Any) -> None:
    reply = run(api.call("POST", EVENTS, event(), user_agent="kopf/1.45 (linux)"))
    assert reply.status == 201
    made = reply.json
    name = made["metadata"]["name"]
    assert name.startswith("e-")
    assert len(name) == 7
    assert made["metadata"]["annotations"] == {"kcp.io/cluster": "root", "treeplane.dev/origin": "runtime"}
    assert made["metadata"]["managedFields"][0]["manager"] == "kopf"
    assert run(api.get(f"{EVENTS}/{name}")).json == made
    gone = run(api.call("DELETE", f"{EVENTS}/{name}")).json
    assert (gone["status"], gone["details"]["uid"]) == ("Success", made["metadata"]["uid"])


def test_an_event_written_in_the_newer_group(api: Any, run: Any) -> None:
    body = {"metadata": {"name": "e1"}, "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
            "note": "hello", "reason": "R", "type": "Normal", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "me.io/c", "reportingInstance": "c-1"}  # fmt: skip
    reply = run(api.call("POST", "/apis/events.k8s.io/v1/namespaces/default/events", body))
    assert reply.status == 201, reply.body
    core = run(api.get(f"{EVENTS}/e1")).json
    assert (core["apiVersion"], core["message"], core["involvedObject"]["name"]) == ("v1", "hello", "a")


def test_leases_take_optimistic_concurrency(api: Any, run: Any) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "one"}}
    first = run(api.call("POST", LEASES, lease)).json
    assert run(api.call("POST", LEASES, lease)).json["reason"] == "AlreadyExists"
    one = {**first, "spec": {"holderIdentity": "two"}}
    assert run(api.call("PUT", f"{LEASES}/l", one)).status == 200
    lost = run(api.call("PUT", f"{LEASES}/l", one))
    assert (lost.status, lost.json["reason"]) == (409, "Conflict")
    del one["metadata"]["resourceVersion"]
    unconditional = run(api.call("PUT", f"{LEASES}/l", one))
    assert unconditional.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in unconditional.message


def test_a_namespace_has_to_exist(api: Any, run: Any) -> None:
    reply = run(api.call("POST", "/api/v1/namespaces/nope/events", event()))
    assert (reply.status, reply.message) == (404, 'namespaces "nope" not found')
    api.put(
        {**api.manifest("v1 Namespace", "going"), "status": {"phase": "Terminating"}}
        | {
            "metadata": {
                **api.manifest("v1 Namespace", "going")["metadata"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            }
        }
    )
    ending = {**event(), "involvedObject": {"namespace": "going"}}
    reply = run(api.call("POST", "/api/v1/namespaces/going/events", ending))
    assert reply.status == 403
    assert reply.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"


def test_statuses_are_stored(api: Any, run: Any) -> None:
    api.put(*bound("root", WORKLOAD))
    api.put(api.manifest("workload.kcp.io/v1alpha1 SyncTarget", "east", spec={"unschedulable": True}))
    path = "/apis/workload.kcp.io/v1alpha1/synctargets/east"
    body = {"status": {"virtualWorkspaces": []}, "spec": {"unschedulable": False}, "metadata": {"labels": {"x": "y"}}}
    reply = run(api.call("PATCH", f"{path}/status", body, kind=MERGE))
    assert reply.status == 200, reply.body
    assert (reply.json["status"], reply.json["spec"]["unschedulable"]) == ({"virtualWorkspaces": []}, True)
    assert "labels" not in reply.json["metadata"]
    assert run(api.call("PATCH", path, {"spec": {"unschedulable": False}}, kind=MERGE)).status == 403


def test_dry_runs_are_processed_and_forgotten(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    before = api.store.revision()
    made = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", configmap()))
    assert (made.status, made.json["data"]) == (201, {"k": "v"})
    assert made.json["metadata"]["uid"]
    assert "resourceVersion" not in made.json["metadata"]
    assert run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", configmap("a"))).json["reason"] == "AlreadyExists"
    patched = run(api.call("PATCH", f"{CONFIGMAPS}/a?dryRun=All", {"data": {"k": "9"}}, kind=MERGE))
    assert (patched.status, patched.json["data"]) == (200, {"k": "9"})
    assert run(api.call("DELETE", f"{CONFIGMAPS}/a", {"dryRun": ["All"]})).json["status"] == "Success"
    bad = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", configmap("A_b")))
    assert (bad.status, bad.json["reason"], bad.json["details"]["kind"]) == (422, "Invalid", "ConfigMap")
    assert api.store.revision() == before


def test_options_that_do_not_exist(api: Any, run: Any) -> None:
    reply = run(api.call("POST", f"{CONFIGMAPS}?dryRun=foo", configmap()))
    assert (reply.status, reply.json["details"]["kind"]) == (422, "CreateOptions")
    assert "dryRun: Unsupported value" in reply.message
    apply = run(api.call("PATCH", f"{CONFIGMAPS}/a", configmap("a"), kind="application/apply-patch+yaml"))
    assert "fieldManager: Required value: is required for apply patch" in apply.message
    force = run(api.call("PATCH", f"{CONFIGMAPS}/a?force=true", {}, kind=MERGE))
    assert "force: Forbidden: may not be specified for non-apply patch" in force.message


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore", ""])
def test_unknown_and_double_fields(api: Any, run: Any, validation: str) -> None:
    api.put_fleet(loaded=True, writes="Store")
    body = b'{"metadata":{"name":"x"},"dat":1,"data":{"a":"1","a":"2"}}'
    reply = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All&fieldValidation={validation}", body))
    if validation == "Strict":
        assert reply.status == 400
        assert "strict decoding error" in reply.message
        assert 'duplicate field "data.a"' in reply.message
        return
    assert reply.status == 201
    assert "dat" not in reply.json
    assert ("warning" in reply.headers) == (validation != "Ignore")


def test_bodies_that_do_not_fit_the_path(api: Any, run: Any) -> None:
    for body, text in (
        (configmap(namespace="other"), "the namespace of the provided object does not match"),
        ({**configmap(), "kind": "Secret"}, "cannot be handled as a ConfigMap"),
        ({**configmap(), "apiVersion": "v2"}, "cannot be handled as a ConfigMap"),
        (b"{", "unrecognized"),
        (b"[]", "unrecognized"),
        ({**configmap(), "metadata": []}, "metadata is not an object"),
    ):
        reply = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", body))
        assert reply.status == 400, body
        assert text in reply.message
    reply = run(api.call("PUT", f"{CONFIGMAPS}/a?dryRun=All", configmap("b")))
    assert "the name of the object (b) does not match the name on the URL (a)" in reply.message


def test_media_types(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    assert run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", configmap(), kind="text/html")).status == 415
    assert run(api.call("PATCH", f"{CONFIGMAPS}/a", {}, kind="application/json")).status == 415
    yaml = b"metadata: {name: yaml}\ndata: {when: 2026-01-01, k: v}\n"
    made = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", yaml, kind="application/yaml"))
    assert made.json["data"] == {"when": "2026-01-01", "k": "v"}
    bomb = b"a: &a [1]\nb: [*a, *a]\nmetadata: {name: y}\n"
    assert run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", bomb, kind="application/yaml")).status == 400
    assert run(api.call("POST", CONFIGMAPS, b"x" * (3 * 1024 * 1024 + 1))).status == 413


def test_other_ways_of_writing_are_named(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Suggest")
    reply = run(api.call("POST", CONFIGMAPS, configmap()))
    assert (reply.status, reply.json["reason"]) == (501, "NotImplemented")


def test_a_written_object_as_a_table(api: Any, run: Any) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    reply = run(api.call("POST", EVENTS, event(), accept=accept))
    assert (reply.status, reply.json["kind"]) == (201, "Table")


def test_wrong_types_are_told_in_the_words_of_kubernetes(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    body = {"metadata": {"name": "new"}, "data": {"a": True}}
    reply = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All", body))
    why = "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string"
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")
    assert reply.message == f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'
    put = run(api.call("PUT", f"{CONFIGMAPS}/a?dryRun=All", {**body, "metadata": {"name": "a"}}))
    assert (put.status, put.message) == (400, reply.message)
    patch = run(api.call("PATCH", f"{CONFIGMAPS}/a?dryRun=All", {"data": {"a": True}}, kind=MERGE))
    assert patch.status == 422
    assert patch.message.startswith(' "" is invalid: patch: Invalid value: "{\\"')
    assert patch.message.endswith(why)
    strategic = run(api.call("PATCH", f"{CONFIGMAPS}/a?dryRun=All", {"data": {"a": 1}}, kind=STRATEGIC))
    shown = 'patch: Invalid value: "map[data:map[a:1]]": cannot convert int64 to string'
    assert (strategic.status, strategic.message) == (422, f' "" is invalid: {shown}')


def test_methods_that_a_path_has_not(api: Any, run: Any) -> None:
    for method, path in (
        ("PUT", CONFIGMAPS),
        ("PATCH", CONFIGMAPS),
        ("POST", f"{CONFIGMAPS}/b"),
        ("POST", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/configmaps"),
    ):
        reply = run(api.call(method, path, configmap("b")))
        assert (reply.status, reply.json["reason"]) == (405, "MethodNotAllowed"), (method, path)


def test_strict_names_unknown_and_duplicate_fields_at_once(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    body = b'{"metadata":{"name":"new"},"dat":{},"data":{"x":"1","x":"2"}}'
    reply = run(api.call("POST", f"{CONFIGMAPS}?dryRun=All&fieldValidation=Strict", body))
    assert reply.status == 400
    assert reply.message.endswith('strict decoding error: unknown field "dat", duplicate field "data.x"')


APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.mark.parametrize(
    ("media", "body", "said"),
    [
        (MERGE, b'{"data":{"k":"1","k":"2"}}', 'duplicate field "data.k"'),
        (STRATEGIC, b'{"data":{"k":"1","k":"2"},"dat":{}}', 'duplicate field "data.k", unknown field "dat"'),
        (
            "application/json-patch+json",
            b'[{"op":"add","path":"/data/k","value":"1","value":"2","why":"?"}]',
            'json patch duplicate field "[0].value", json patch unknown field "[0].why"',
        ),
    ],
)
def test_fields_that_stand_twice_in_a_patch(api: Any, run: Any, media: str, body: bytes, said: str) -> None:
    api.put_fleet(loaded=True, writes="Store")
    path = f"{CONFIGMAPS}/a?dryRun=All&fieldValidation="
    strict = run(api.call("PATCH", f"{path}Strict", body, kind=media))
    assert strict.status == 422
    assert strict.message.endswith(f"strict decoding error: {said}")
    warned = run(api.call("PATCH", f"{path}Warn", body, kind=media))
    assert warned.status == 200
    assert " field " in warned.headers["warning"]
    assert "warning" not in run(api.call("PATCH", f"{path}Ignore", body, kind=media)).headers


def test_keys_that_stand_twice_in_an_apply_patch(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    path = f"{CONFIGMAPS}/a?dryRun=All&fieldManager=me&force=true&fieldValidation="
    body = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  k: a\n  k: b\n"
    why = 'error converting YAML to JSON: yaml: unmarshal errors:\n  line 5: key "k" already set in map'
    strict = run(api.call("PATCH", f"{path}Strict", body, kind=APPLY))
    assert (strict.status, strict.message) == (400, f"error strict decoding YAML: {why}")
    as_json = run(api.call("PATCH", f"{path}Strict", b'{"data":{"k":"a","k":"a"}}', kind=APPLY))
    assert as_json.message == f"error strict decoding YAML: {why.replace('line 5', 'line 1')}"
    warned = run(api.call("PATCH", f"{path}Warn", body, kind=APPLY))
    assert (warned.status, warned.json["data"]["k"]) == (200, "b")
    assert warned.headers["warning"] == '299 - "line 5: key \\"k\\" already set in map"'


def test_an_apply_patch_that_is_nearly_json_is_yaml(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "y",},}'
    path = f"{CONFIGMAPS}/a?dryRun=All&fieldManager=me&fieldValidation=Strict"
    reply = run(api.call("PATCH", path, body, kind=APPLY))
    assert (reply.status, reply.json["data"]["x"]) == (200, "y")


def test_keys_that_stand_twice_in_a_yaml_body(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    body = b"metadata: {name: new}\ndata:\n  k: a\n  k: b\n"
    path = f"{CONFIGMAPS}?dryRun=All&fieldValidation=Strict"
    reply = run(api.call("POST", path, body, kind="application/yaml"))
    assert reply.status == 400
    assert reply.message.endswith('decoding error: yaml: unmarshal errors:\n  line 4: key "k" already set in map')


def test_a_status_that_the_server_computes_is_not_a_clients(api: Any, run: Any) -> None:
    path = "/apis/tenancy.kcp.io/v1alpha1/workspaces/shop/status"
    reply = run(api.call("PATCH", path, {"status": {"phase": "Unavailable"}}, kind=MERGE))
    assert (reply.status, reply.json["reason"]) == (403, "Forbidden")
    assert "its status is computed by the server" in reply.message
