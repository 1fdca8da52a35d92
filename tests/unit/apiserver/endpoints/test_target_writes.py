"""Writes to an embedded sync target, which takes them all as a cluster would."""

from typing import Any

import pytest

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
def deployments(api: Any) -> str:
    return f"{api.EDGE}/apis/apps/v1/namespaces/default/deployments"


@pytest.fixture
def configmaps(api: Any) -> str:
    return f"{api.EDGE}/api/v1/namespaces/default/configmaps"


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name}, "spec": spec}


def configmap(name: str = "a", /, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


def test_create_sets_defaults_and_identity(api: Any, run: Any, deployments: str) -> None:
    body = {**deployment(), "status": {"replicas": 9}}
    body["metadata"] = {**body["metadata"], "uid": "mine", "generation": 7, "creationTimestamp": "2000-01-01T00:00:00Z"}
    reply = run(api.call("POST", deployments, body))
    made = reply.json
    assert reply.status == 201
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["strategy"]["type"] == "RollingUpdate"
    assert made["status"] == {}
    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["creationTimestamp"] > "2026"
    assert "annotations" not in made["metadata"]
    assert run(api.get(f"{deployments}/web")).json == made


def test_apply_owns_conflicts_forces_and_removes(api: Any, run: Any, configmaps: str) -> None:
    async def scenario() -> None:
        async def apply(manager: str, body: Any, more: str = "") -> Any:
            return await api.call("PATCH", f"{configmaps}/a?fieldManager={manager}{more}", body, kind=APPLY)

        assert (await apply("one", configmap("a", x="1", y="1"))).status == 201
        again = await apply("one", configmap("a", x="1", y="1"))
        assert (again.status, api.target.revision()) == (200, int(again.json["metadata"]["resourceVersion"]))
        conflict = await apply("two", configmap("a", x="2"))
        assert (conflict.status, conflict.json["details"]["causes"][0]["field"]) == (409, ".data.x")
        assert (await apply("two", configmap("a", x="2"), "&force=true")).json["data"] == {"x": "2", "y": "1"}
        assert (await apply("one", configmap("a"))).json["data"] == {"x": "2"}
        yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '3'}\n"
        assert (await apply("two", yaml)).json["data"] == {"x": "3"}

    run(scenario())


def test_a_namespace_sent_with_what_has_none_does_not_count(api: Any, run: Any) -> None:
    body = {"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", "spec": {},
            "metadata": {"name": "r", "namespace": "default"}}  # fmt: skip
    classes = f"{api.EDGE}/apis/storage.k8s.io/v1/csidrivers"
    applied = run(api.call("PATCH", f"{classes}/r?fieldManager=one", body, kind=APPLY))
    assert (applied.status, applied.json["metadata"].get("namespace")) == (201, None)
    body["metadata"] |= {"name": "s", "namespace": "elsewhere"}
    created = run(api.call("POST", classes, body))
    assert (created.status, created.json["metadata"].get("namespace")) == (201, None)


def test_a_new_object_brings_no_resource_version_but_to_a_dry_run(api: Any, run: Any, configmaps: str) -> None:
    body = configmap("a", x="1")
    body["metadata"]["resourceVersion"] = "5"
    dry = run(api.call("POST", f"{configmaps}?dryRun=All", body))
    assert (dry.status, dry.json["data"]) == (201, {"x": "1"})
    wet = run(api.call("POST", configmaps, body))
    assert (wet.status, wet.message) == (400, "resourceVersion should not be set on objects to be created")
    for nothing in ("v1", "0", ""):
        body["metadata"] |= {"name": f"a{nothing}", "resourceVersion": nothing}
        assert run(api.call("POST", configmaps, body)).status == 201


def test_line_breaks_in_base64_do_not_count(api: Any, run: Any) -> None:
    secrets = f"{api.EDGE}/api/v1/namespaces/default/secrets"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "YWFh\r\nYWE=\n"}}
    made = run(api.call("POST", secrets, body))
    assert (made.status, made.json["data"]) == (201, {"k": "YWFhYWE="})
    body |= {"metadata": {"name": "b"}, "data": {"k": "YW Fh"}}
    assert run(api.call("POST", secrets, body)).status == 400


def test_apply_that_cannot_be_meant(api: Any, run: Any, configmaps: str) -> None:
    for body, status in (
        ({"metadata": {"name": "a"}}, 400),
        (configmap("b"), 400),
        ({**configmap("a"), "metadata": {"managedFields": [{"manager": "x"}]}}, 400),
        ({**configmap("a"), "nope": 1}, 500),
    ):
        reply = run(api.call("PATCH", f"{configmaps}/a?fieldManager=me", body, kind=APPLY))
        assert reply.status == status, body


def test_unchanged_is_no_write(api: Any, run: Any, deployments: str) -> None:
    made = run(api.call("POST", deployments, deployment(), user_agent="me/1")).json
    before = api.target.revision()
    for method, body, kind in (
        ("PUT", made, ""),
        ("PATCH", {"spec": {"replicas": 1}}, MERGE),
        ("PATCH", [{"op": "test", "path": "/spec/replicas", "value": 1}], JSON_PATCH),
    ):
        reply = run(api.call(method, f"{deployments}/web", body, kind=kind, user_agent="me/1"))
        assert (reply.status, reply.json) == (200, made), method
    assert api.target.revision() == before


def test_generation_counts_the_spec_alone(api: Any, run: Any, deployments: str) -> None:
    run(api.call("POST", deployments, deployment()))

    def patch(body: Any, subresource: str = "") -> Any:
        return run(api.call("PATCH", f"{deployments}/web{subresource}", body, kind=MERGE)).json

    assert patch({"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert patch({"status": {"replicas": 3}}, "/status")["metadata"]["generation"] == 1
    changed = patch({"spec": {"replicas": 2}, "status": {"replicas": 7}})
    assert (changed["metadata"]["generation"], changed["status"]) == (2, {"replicas": 3})
    assert patch({"spec": {"replicas": 9}}, "/status")["spec"]["replicas"] == 2


def test_resource_version_zero_means_any(api: Any, run: Any, configmaps: str) -> None:
    wanted: Any = {"metadata": {"name": "a", "resourceVersion": "0"}, "data": {"x": "1"}}
    run(api.call("POST", configmaps, wanted))
    wanted["data"] = {"x": "2"}
    assert run(api.call("PUT", f"{configmaps}/a", wanted)).json["data"] == {"x": "2"}
    wanted["data"] = {"x": "3"}
    assert run(api.call("PATCH", f"{configmaps}/a", wanted, kind=MERGE)).json["data"] == {"x": "3"}
    wanted["metadata"]["resourceVersion"] = "soon"
    wrong = run(api.call("PUT", f"{configmaps}/a", wanted))
    assert (wrong.status, wrong.message) == (400, 'strconv.ParseUint: parsing "soon": invalid syntax')


def test_stale_writes_are_409(api: Any, run: Any, configmaps: str) -> None:
    first = run(api.call("POST", configmaps, configmap("a", x="1"))).json
    assert run(api.call("PUT", f"{configmaps}/a", configmap("a", x="2"))).status == 200
    stale = run(api.call("PUT", f"{configmaps}/a", first))
    assert (stale.status, stale.json["reason"]) == (409, "Conflict")
    assert stale.message.endswith("please apply your changes to the latest version and try again")
    old = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
    assert run(api.call("PATCH", f"{configmaps}/a", old, kind=MERGE)).status == 409
    other = {**configmap("a"), "metadata": {"name": "a", "uid": "other"}}
    assert run(api.call("PUT", f"{configmaps}/a", other)).status == 409


def test_json_patches(api: Any, run: Any, configmaps: str) -> None:
    run(api.call("POST", configmaps, configmap("a", x="1")))
    good = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "add", "path": "/data/y", "value": "2"}]
    assert run(api.call("PATCH", f"{configmaps}/a", good, kind=JSON_PATCH)).json["data"] == {"x": "1", "y": "2"}
    for bad in ([{"op": "test", "path": "/data/x", "value": "7"}], [{"op": "remove", "path": "/data/z"}],
                [{"op": "replace", "path": "", "value": 1}]):  # fmt: skip
        reply = run(api.call("PATCH", f"{configmaps}/a", bad, kind=JSON_PATCH))
        assert (reply.status, reply.json["reason"]) == (422, "Invalid")
    many = [good[0]] * 10_001
    assert run(api.call("PATCH", f"{configmaps}/a", many, kind=JSON_PATCH)).status == 413


def test_strategic_merge(api: Any, run: Any, deployments: str) -> None:
    run(api.call("POST", deployments, deployment()))
    strategic = "application/strategic-merge-patch+json"
    body = {
        "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "new"}, {"name": "d", "image": "x"}]}}}
    }
    made = run(api.call("PATCH", f"{deployments}/web", body, kind=strategic)).json
    assert [(c["name"], c["image"]) for c in made["spec"]["template"]["spec"]["containers"]] == [
        ("c", "new"),
        ("d", "x"),
    ]
    assert made["metadata"]["generation"] == 2
    bad = {"spec": {"template": {"spec": {"containers": [{"image": "new"}]}}}}
    assert run(api.call("PATCH", f"{deployments}/web", bad, kind=strategic)).status == 400
    scaled = run(api.call("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": 3}}, kind=strategic))
    assert scaled.json["spec"] == {"replicas": 3}


def test_custom_resources_have_no_strategic_merge(api: Any, run: Any) -> None:
    run(api.call("POST", f"{api.EDGE}/apis/apiextensions.k8s.io/v1/customresourcedefinitions", gadget_definition()))
    gadgets = f"{api.EDGE}/apis/z.io/v2/namespaces/default/gadgets"
    run(api.call("POST", gadgets, {"kind": "Gadget", "apiVersion": "z.io/v2", "metadata": {"name": "g"}}))
    reply = run(api.call("PATCH", f"{gadgets}/g", {}, kind="application/strategic-merge-patch+json"))
    assert reply.status == 415


def test_patches_that_bring_unknown_fields(api: Any, run: Any, configmaps: str) -> None:
    run(api.call("POST", configmaps, configmap("a")))
    strict = run(api.call("PATCH", f"{configmaps}/a?fieldValidation=Strict", {"nope": 1}, kind=MERGE))
    assert (strict.status, "strict decoding error" in strict.message) == (422, True)
    warned = run(api.call("PATCH", f"{configmaps}/a", {"nope": 1}, kind=MERGE))
    assert (warned.status, warned.headers["warning"]) == (200, '299 - "unknown field \\"nope\\""')


def test_finalizers_hold_an_object(api: Any, run: Any, configmaps: str) -> None:
    body = configmap("a")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    run(api.call("POST", configmaps, body))
    held = run(api.call("DELETE", f"{configmaps}/a")).json
    assert held["metadata"]["deletionTimestamp"]
    before = api.target.revision()
    assert run(api.call("DELETE", f"{configmaps}/a")).json == held
    assert api.target.revision() == before
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    assert run(api.call("PATCH", f"{configmaps}/a", more, kind=MERGE)).status == 422
    freed = run(api.call("PATCH", f"{configmaps}/a", {"metadata": {"finalizers": None}}, kind=MERGE))
    assert freed.status == 200
    assert run(api.get(f"{configmaps}/a")).status == 404


def test_preconditions_of_a_deletion(api: Any, run: Any, configmaps: str) -> None:
    made = run(api.call("POST", configmaps, configmap("a"))).json["metadata"]
    for preconditions in ({"uid": "other"}, {"resourceVersion": "1"}):
        assert run(api.call("DELETE", f"{configmaps}/a", {"preconditions": preconditions})).status == 409
    good = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    reply = run(api.call("DELETE", f"{configmaps}/a", {"preconditions": good, "propagationPolicy": "Background"}))
    assert reply.json["details"] == {"name": "a", "kind": "configmaps", "uid": made["uid"]}
    assert run(api.call("DELETE", f"{configmaps}/a?propagationPolicy=Sideways")).status == 422


def test_a_collection_is_deleted_by_selector(api: Any, run: Any, configmaps: str) -> None:
    for name, label in (("a", "1"), ("b", "2"), ("c", "1")):
        body = configmap(name)
        body["metadata"]["labels"] = {"l": label}
        run(api.call("POST", configmaps, body))
    reply = run(api.call("DELETE", f"{configmaps}?labelSelector=l%3D1"))
    assert (reply.status, reply.json["kind"]) == (200, "ConfigMapList")
    assert [i["metadata"]["name"] for i in reply.json["items"]] == ["a", "c"]
    assert [i["metadata"]["name"] for i in run(api.get(configmaps)).json["items"]] == ["b"]


def test_scale(api: Any, run: Any, deployments: str) -> None:
    run(api.call("POST", deployments, deployment(replicas=2)))
    scale = run(api.get(f"{deployments}/web/scale")).json
    assert (scale["kind"], scale["spec"], scale["status"]["replicas"]) == ("Scale", {"replicas": 2}, 0)
    assert scale["status"]["selector"] == "app=web"
    put = run(api.call("PUT", f"{deployments}/web/scale", {**scale, "spec": {"replicas": 3}}))
    assert (put.status, put.json["spec"]) == (200, {"replicas": 3})
    assert run(api.call("PUT", f"{deployments}/web/scale", scale)).status == 409
    patched = run(api.call("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": 5}}, kind=MERGE))
    assert patched.json["spec"] == {"replicas": 5}
    assert run(api.get(f"{deployments}/web")).json["spec"]["replicas"] == 5
    bad = run(api.call("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": -1}}, kind=MERGE))
    assert bad.status == 422


def test_what_a_template_is_warned_of_is_said_when_the_spec_changes(api: Any, run: Any, deployments: str) -> None:
    body = deployment()
    body["spec"]["template"]["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "linux"}
    said = "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14"
    assert said in run(api.call("POST", deployments, body)).headers["warning"]
    scaled = run(api.call("PATCH", f"{deployments}/web/scale", {"spec": {"replicas": 5}}, kind=MERGE))
    assert said in scaled.headers["warning"]
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert "warning" not in run(api.call("PATCH", f"{deployments}/web", labels, kind=MERGE)).headers


def test_apply_of_a_scale_owns_the_replicas(api: Any, run: Any, deployments: str) -> None:
    async def scenario() -> None:
        async def apply(manager: str, replicas: int, more: str = "", **other: Any) -> Any:
            body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}, **other}
            path = f"{deployments}/web/scale?fieldManager={manager}{more}"
            return await api.call("PATCH", path, body, kind=APPLY)

        await api.call("POST", f"{deployments}?fieldManager=maker", deployment(replicas=2))
        refused = await apply("one", 3)
        assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (409, ".spec.replicas")
        scaled = await apply("one", 3, "&force=true")
        assert (scaled.status, scaled.json["kind"], scaled.json["spec"]) == (200, "Scale", {"replicas": 3})
        found = (await api.get(f"{deployments}/web")).json
        [entry] = [m for m in found["metadata"]["managedFields"] if m["manager"] == "one"]
        assert (entry["operation"], entry["subresource"], entry["apiVersion"]) == ("Apply", "scale", "apps/v1")
        assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
        assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (3, 2)
        assert (await apply("one", -1)).status == 422
        assert (await apply("one", 3, kind="Deployment")).status == 400

    run(scenario())


def test_a_namespace_is_terminating_until_it_is_finalized(api: Any, run: Any) -> None:
    spaces = f"{api.EDGE}/api/v1/namespaces"
    made = run(api.call("POST", spaces, {"metadata": {"name": "n"}})).json
    assert (made["status"], made["spec"]) == ({"phase": "Active"}, {"finalizers": ["kubernetes"]})
    run(api.call("POST", f"{spaces}/n/configmaps", configmap("a")))
    patched = run(api.call("PATCH", f"{spaces}/n", {"spec": {"finalizers": []}}, kind=MERGE)).json
    assert patched["spec"] == {"finalizers": ["kubernetes"]}
    assert run(api.call("PATCH", f"{spaces}/n/finalize", {}, kind=MERGE)).status == 405
    ending = run(api.call("DELETE", f"{spaces}/n")).json
    assert ending["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in ending["metadata"]
    assert run(api.call("DELETE", f"{spaces}/n")).json == ending
    refused = run(api.call("POST", f"{spaces}/n/configmaps", configmap("late")))
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert refused.json["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace n is being terminated",
            "field": "metadata.namespace",
        }
    ]
    assert run(api.call("PUT", f"{spaces}/n/finalize", {**ending, "spec": {}})).status == 200
    assert run(api.get(f"{spaces}/n")).status == 404


def test_first_namespaces_stay(api: Any, run: Any) -> None:
    reply = run(api.call("DELETE", f"{api.EDGE}/api/v1/namespaces/default"))
    assert (reply.status, reply.message) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
        ({"orphanDependents": False}, None),
        ({"propagationPolicy": "Background"}, None),
        ({}, None),
    ],
)
def test_propagation_leaves_a_finalizer(api: Any, run: Any, deployments: str, options: Any, finalizers: Any) -> None:
    run(api.call("POST", deployments, deployment()))
    reply = run(api.call("DELETE", f"{deployments}/web", options))
    assert reply.status == 200
    if finalizers is None:
        assert reply.json["kind"] == "Status"
        return
    metadata = reply.json["metadata"]
    assert (metadata["finalizers"], metadata["generation"]) == (finalizers, 2)
    assert metadata["deletionGracePeriodSeconds"] == 0
    again = run(api.call("DELETE", f"{deployments}/web", {}))
    assert again.json["metadata"] == metadata
    assert run(api.call("DELETE", f"{deployments}/web?propagationPolicy=Background")).json["kind"] == "Status"
    assert run(api.get(f"{deployments}/web")).status == 404


def test_delete_options_that_cannot_be_meant(api: Any, run: Any, configmaps: str) -> None:
    run(api.call("POST", configmaps, configmap("a")))
    both = run(api.call("DELETE", f"{configmaps}/a", {"propagationPolicy": "Orphan", "orphanDependents": True}))
    assert (both.status, "cannot be both set" in both.message) == (422, True)
    for wrong in ({"gracePeriodSeconds": "1"}, {"preconditions": [1]}, {"orphanDependents": "yes"}):
        assert run(api.call("DELETE", f"{configmaps}/a", wrong)).status == 400
    assert run(api.call("DELETE", f"{configmaps}/a?gracePeriodSeconds=x")).status == 400
    dry = run(api.call("DELETE", f"{configmaps}/a?dryRun=All&propagationPolicy=Foreground"))
    assert dry.json["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" not in run(api.get(f"{configmaps}/a")).json["metadata"]


def test_pods_have_time_to_end(api: Any, run: Any) -> None:
    pods = f"{api.EDGE}/api/v1/namespaces/default/pods"

    def pod(name: str, **spec: Any) -> Any:
        body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
        return run(api.call("POST", pods, body))

    def delete(name: str, **options: Any) -> Any:
        return run(api.call("DELETE", f"{pods}/{name}", options))

    pod("unplaced")
    assert delete("unplaced").json["kind"] == "Pod"
    assert run(api.get(f"{pods}/unplaced")).status == 404
    pod("placed", nodeName="n")
    ending = delete("placed").json["metadata"]
    assert ending["deletionGracePeriodSeconds"] == 30
    assert delete("placed", gracePeriodSeconds=60).json["metadata"] == ending
    sooner = delete("placed", gracePeriodSeconds=5).json["metadata"]
    assert (sooner["deletionGracePeriodSeconds"], sooner["deletionTimestamp"] < ending["deletionTimestamp"]) == (
        5,
        True,
    )
    delete("placed", gracePeriodSeconds=0)
    assert run(api.get(f"{pods}/placed")).status == 404


def test_jobs_leave_their_pods_unless_told(api: Any, run: Any) -> None:
    jobs = f"{api.EDGE}/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    run(api.call("POST", jobs, {"metadata": {"name": "j"}, "spec": {"template": template}}))
    reply = run(api.call("DELETE", f"{jobs}/j"))
    assert reply.json["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in reply.headers["warning"]


def test_put_creates_only_where_kubernetes_does(api: Any, run: Any, configmaps: str) -> None:
    assert run(api.call("PUT", f"{configmaps}/new", configmap("new"))).status == 404
    roles = f"{api.EDGE}/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert run(api.call("PUT", f"{roles}/r", {"metadata": {"name": "r"}, "rules": []})).status == 201


def test_immutable_things(api: Any, run: Any, configmaps: str) -> None:
    run(api.call("POST", configmaps, {**configmap("a", x="1"), "immutable": True}))
    reply = run(api.call("PATCH", f"{configmaps}/a", {"data": {"x": "2"}}, kind=MERGE))
    assert (reply.status, "immutable" in reply.message) == (422, True)


def test_custom_resources(api: Any, run: Any) -> None:
    crd = {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gadgets.z.io", "annotations": {"kcp.io/cluster": "target"}},
        "spec": {
            "group": "z.io",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
                        }
                    },
                }
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }
    api.put(crd, store=api.target)
    gadgets = f"{api.EDGE}/apis/z.io/v1/namespaces/default/gadgets"
    gadget = {"kind": "Gadget", "apiVersion": "z.io/v1", "metadata": {"name": "g"}, "spec": {"size": 1, "nope": 2}}
    made = run(api.call("POST", gadgets, gadget))
    assert (made.status, made.json["spec"], made.json["metadata"]["generation"]) == (201, {"size": 1}, 1)
    assert made.headers["warning"] == '299 - "unknown field \\"spec.nope\\""'
    nameless = run(api.call("POST", gadgets, {"metadata": {"name": "h"}}))
    assert (nameless.status, "Object 'Kind' is missing" in nameless.message) == (400, True)
    bad = run(api.call("PATCH", f"{gadgets}/g", {"spec": {"size": "big"}}, kind=MERGE))
    assert bad.status == 422
    assert bad.message.startswith('Gadget.z.io "g" is invalid: spec.size: Invalid value: "string"')
    blind = run(api.call("PUT", f"{gadgets}/g", {**gadget, "spec": {"size": 2}}))
    assert blind.status == 422


def gadget_definition() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "gadgets.z.io"},
        "spec": {
            "group": "z.io",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}},
                {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                 "selectableFields": [{"jsonPath": ".spec.size"}]},
            ],
        },
    }  # fmt: skip


def test_a_definition_is_served_once_it_is_answered(api: Any, run: Any) -> None:
    definitions = f"{api.EDGE}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    gadgets = f"{api.EDGE}/apis/z.io/v1/namespaces/default/gadgets"
    assert run(api.get(gadgets)).status == 404
    made = run(api.call("POST", definitions, gadget_definition()))
    assert made.status == 201
    assert {c["type"]: c["status"] for c in made.json["status"]["conditions"]}["Established"] == "True"
    for name, size in (("g", 1), ("h", 2)):
        body = {"kind": "Gadget", "apiVersion": "z.io/v1", "metadata": {"name": name}, "spec": {"size": size}}
        assert run(api.call("POST", gadgets, body)).json["apiVersion"] == "z.io/v1"
    newer = gadgets.replace("/v1/", "/v2/")
    assert run(api.get(f"{newer}/g")).json["apiVersion"] == "z.io/v2"
    assert [i["apiVersion"] for i in run(api.get(gadgets)).json["items"]] == ["z.io/v1", "z.io/v1"]
    picked = run(api.get(f"{newer}?fieldSelector=spec.size%3D2")).json["items"]
    assert [i["metadata"]["name"] for i in picked] == ["h"]
    assert run(api.get(f"{gadgets}?fieldSelector=spec.size%3D2")).status == 400


def test_a_definition_that_is_deleted_waits_for_its_instances(api: Any, run: Any) -> None:
    definitions = f"{api.EDGE}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    gadgets = f"{api.EDGE}/apis/z.io/v1/namespaces/default/gadgets"
    run(api.call("POST", definitions, gadget_definition()))
    body = {"kind": "Gadget", "apiVersion": "z.io/v1", "metadata": {"name": "g"}}
    run(api.call("POST", gadgets, body))
    ending = run(api.call("DELETE", f"{definitions}/gadgets.z.io")).json
    assert ending["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    told = {c["type"]: c["reason"] for c in ending["status"]["conditions"] if c["status"] == "True"}
    assert told["Terminating"] == "InstanceDeletionPending"
    assert len(run(api.get(gadgets)).json["items"]) == 1
    late = run(api.call("POST", gadgets, {**body, "metadata": {"name": "late"}}))
    why = "create not allowed while custom resource definition is terminating"
    assert (late.status, late.message) == (403, f'gadgets.z.io "late" is forbidden: {why}')
