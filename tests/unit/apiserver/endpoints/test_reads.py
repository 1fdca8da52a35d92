"""GET of objects and lists."""

from typing import Any

import pytest
import yaml

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def names(reply: Any) -> list[str]:
    return [item["metadata"]["name"] for item in reply.json["items"]]


def test_an_object_is_given_as_stored_with_its_revision(api: Any, run: Any) -> None:
    revision = api.put(api.manifest("v1 ConfigMap", "x", "default", data={"metadata": 'a"metadata":{'}))
    found = run(api.get(f"{CONFIGMAPS}/x")).json
    assert list(found)[:3] == ["kind", "apiVersion", "metadata"]
    assert found["metadata"]["resourceVersion"] == str(revision)
    assert found["data"] == {"metadata": 'a"metadata":{'}
    assert found["metadata"]["annotations"]["kcp.io/cluster"] == "root"


def test_absent_objects_resources_and_groups(api: Any, run: Any) -> None:
    absent = run(api.get(f"{CONFIGMAPS}/nope"))
    assert (absent.status, absent.message) == (404, 'configmaps "nope" not found')
    assert absent.json["details"] == {"name": "nope", "kind": "configmaps"}
    assert run(api.get("/api/v1/nopes")).message == "the server could not find the requested resource"
    for path in ("/apis/nope.io/v1/nopes", "/apis/nope.io", "/nope", "/clusters/root/clusters/root/api"):
        reply = run(api.get(path))
        assert (reply.status, reply.body) == (404, b"404 page not found\n"), path
        assert reply.headers["content-type"].startswith("text/plain")


def test_a_cluster_scoped_kind_has_no_namespace(api: Any, run: Any) -> None:
    assert run(api.get("/api/v1/namespaces/default")).status == 200
    assert run(api.get("/api/v1/configmaps/a")).status == 404
    assert run(api.get("/apis/rbac.authorization.k8s.io/v1/namespaces/default/clusterroles")).status == 404


def test_lists_by_namespace_workspace_and_all(api: Any, run: Any) -> None:
    assert names(run(api.get(CONFIGMAPS))) == ["a", "b"]
    assert names(run(api.get("/api/v1/configmaps"))) == ["a", "b", "c"]
    assert names(run(api.get("/clusters/root/api/v1/configmaps"))) == ["a", "b", "c"]
    assert names(run(api.get(f"/clusters/{api.SHOP}/api/v1/configmaps"))) == ["s"]
    assert names(run(api.get("/clusters/root:shop/api/v1/configmaps"))) == ["s"]
    assert sorted(names(run(api.get("/clusters/*/api/v1/configmaps")))) == ["a", "b", "c", "s"]


def test_items_of_kubernetes_own_lists_have_no_kind(api: Any, run: Any) -> None:
    found = run(api.get(CONFIGMAPS)).json
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert found["metadata"] == {"resourceVersion": str(api.store.revision())}
    assert all("kind" not in item and "apiVersion" not in item for item in found["items"])
    assert all(item["metadata"]["resourceVersion"] for item in found["items"])


def test_items_of_custom_lists_have_their_kind(api: Any, run: Any) -> None:
    api.put(api.manifest("tenancy.kcp.io/v1alpha1 Workspace", "shop", spec={"cluster": api.SHOP}))
    [item] = run(api.get("/apis/tenancy.kcp.io/v1alpha1/workspaces")).json["items"]
    assert (item["kind"], item["apiVersion"]) == ("Workspace", "tenancy.kcp.io/v1alpha1")


def test_a_workspace_shows_the_commit_of_its_record(api: Any, run: Any) -> None:
    api.put(
        api.manifest("tenancy.kcp.io/v1alpha1 Workspace", "shop", spec={"cluster": api.SHOP}),
        api.manifest("tenancy.kcp.io/v1alpha1 Workspace", "other", spec={}),
    )
    found = run(api.get("/apis/tenancy.kcp.io/v1alpha1/workspaces")).json["items"]
    commits = {w["metadata"]["name"]: w["metadata"]["annotations"].get("treeplane.dev/source-commit") for w in found}
    assert commits == {"shop": "c0ffee" * 6 + "c0ff", "other": None}
    one = run(api.get("/apis/tenancy.kcp.io/v1alpha1/workspaces/shop")).json
    assert one["metadata"]["annotations"]["treeplane.dev/source-commit"] == "c0ffee" * 6 + "c0ff"


def test_a_workspace_type_shows_where_its_workspaces_are_seen(api: Any, run: Any) -> None:
    """At this server's address by now, on single reads and lists."""
    types = "/apis/tenancy.kcp.io/v1alpha1/workspacetypes"
    api.put(api.manifest("tenancy.kcp.io/v1alpha1 WorkspaceType", "gold", cluster=api.SHOP))
    api.put_fleet(loaded=True, url="https://fleet.example.org")
    one = run(api.get(f"/clusters/root:shop{types}/gold")).json
    [listed] = run(api.get(f"/clusters/root:shop{types}")).json["items"]
    services = "https://fleet.example.org/services"
    expected = [
        {"url": f"{services}/initializingworkspaces/{api.SHOP}:gold", "type": "initializing"},
        {"url": f"{services}/terminatingworkspaces/{api.SHOP}:gold", "type": "terminating"},
    ]
    assert one["status"]["virtualWorkspaces"] == listed["status"]["virtualWorkspaces"] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=app%3Da", ["a", "c"]),
        ("labelSelector=app+in+(a,b),app!%3Da", ["b"]),
        ("labelSelector=!app", []),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db", ["a", "c"]),
        ("fieldSelector=metadata.namespace%3Dother", ["c"]),
        ("fieldSelector=metadata.namespace%3Dother,metadata.name%3Dc", ["c"]),
        ("fieldSelector=metadata.name%3Da&labelSelector=app%3Db", []),
        ("fieldSelector=metadata.name%3Dnope", []),
    ],
)
def test_selectors(api: Any, run: Any, query: str, expected: list[str]) -> None:
    assert names(run(api.get(f"/api/v1/configmaps?{query}"))) == expected


@pytest.mark.parametrize("query", ["fieldSelector=data.k%3D1", "labelSelector=a%3D%3D%3Db", "fieldSelector=a"])
def test_selectors_that_cannot_be_answered_are_400(api: Any, run: Any, query: str) -> None:
    reply = run(api.get(f"/api/v1/configmaps?{query}"))
    assert (reply.status, reply.json["reason"]) == (400, "BadRequest")


def test_field_selectors_of_a_kind(api: Any, run: Any) -> None:
    api.put(
        api.manifest("v1 Secret", "s1", "default", type="Opaque"),
        api.manifest("v1 Secret", "s2", "default", type="helm.sh/release.v1"),
        api.manifest(
            "v1 Event", "e1", "default", involvedObject={"kind": "Pod", "name": "p"}, source={"component": "k"}
        ),
    )
    assert names(run(api.get("/api/v1/secrets?fieldSelector=type%3Dhelm.sh/release.v1"))) == ["s2"]
    for query in ("involvedObject.name%3Dp,involvedObject.kind%3DPod", "source%3Dk"):
        assert names(run(api.get(f"/api/v1/events?fieldSelector={query}"))) == ["e1"]
    assert names(run(api.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp"))) == ["e1"]


def test_one_event_in_two_groups(api: Any, run: Any) -> None:
    api.put(api.manifest("v1 Event", "e1", "default", involvedObject={"kind": "Pod"}, message="m", count=2))
    found = run(api.get("/apis/events.k8s.io/v1/namespaces/default/events/e1")).json
    assert (found["apiVersion"], found["regarding"], found["note"]) == ("events.k8s.io/v1", {"kind": "Pod"}, "m")
    assert (found["deprecatedCount"], "message" in found) == (2, False)


def put_many(api: Any, count: int = 10) -> list[str]:
    made = [api.manifest("v1 ConfigMap", f"n{i:03}", "many", labels={"odd": str(i % 2)}) for i in range(count)]
    api.put(*made)
    return [m["metadata"]["name"] for m in made]


def pages(api: Any, run: Any, path: str) -> list[Any]:
    found, token = [], ""
    while True:
        found.append(run(api.get(f"{path}&continue={token}" if token else path)))
        token = found[-1].json["metadata"].get("continue", "")
        if not token:
            return found


def test_pages_are_of_one_snapshot_under_writes(api: Any, run: Any) -> None:
    expected = put_many(api)
    path = "/api/v1/namespaces/many/configmaps?limit=3"
    first = run(api.get(path))
    revision = first.json["metadata"]["resourceVersion"]
    assert first.json["metadata"]["remainingItemCount"] == 7
    api.put(api.manifest("v1 ConfigMap", "n000a", "many"), api.manifest("v1 ConfigMap", "n005a", "many"))
    api.delete(api.manifest("v1 ConfigMap", "n007", "many"))
    found, token = names(first), first.json["metadata"]["continue"]
    while token:
        page = run(api.get(f"{path}&continue={token}"))
        assert page.json["metadata"]["resourceVersion"] == revision
        found, token = found + names(page), page.json["metadata"].get("continue", "")
    assert found == expected
    assert "n000a" in names(run(api.get(path)))


def test_pages_of_matches(api: Any, run: Any) -> None:
    put_many(api)
    found = pages(api, run, "/api/v1/configmaps?limit=2&labelSelector=odd%3D1")
    assert [names(p) for p in found] == [["n001", "n003"], ["n005", "n007"], ["n009"]]
    assert all("remainingItemCount" not in p.json["metadata"] for p in found)


def test_pages_across_workspaces(api: Any, run: Any) -> None:
    found = pages(api, run, "/clusters/*/api/v1/configmaps?limit=1")
    assert sorted(n for p in found for n in names(p)) == ["a", "b", "c", "s"]


def test_a_token_that_is_too_old_gives_a_fresh_one(api: Any, run: Any) -> None:
    put_many(api)
    path = "/api/v1/namespaces/many/configmaps?limit=3"
    token = run(api.get(path)).json["metadata"]["continue"]
    put_many(api, 200)
    api.store.compact(1)
    reply = run(api.get(f"{path}&continue={token}"))
    assert (reply.status, reply.json["reason"]) == (410, "Expired")
    fresh = reply.json["metadata"]["continue"]
    assert names(run(api.get(f"{path}&continue={fresh}"))) == ["n003", "n004", "n005"]


def test_revisions_of_a_list(api: Any, run: Any) -> None:
    before = api.store.revision()
    api.put(api.manifest("v1 ConfigMap", "z", "default"))
    assert names(run(api.get(f"{CONFIGMAPS}?resourceVersion=0"))) == ["a", "b", "z"]
    assert names(run(api.get(f"{CONFIGMAPS}?resourceVersion={before}"))) == ["a", "b", "z"]
    exact = run(api.get(f"{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact"))
    assert (names(exact), exact.json["metadata"]["resourceVersion"]) == (["a", "b"], str(before))
    assert names(run(api.get(f"{CONFIGMAPS}?resourceVersion={before}&limit=5"))) == ["a", "b"]
    newer = run(api.get(f"{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=NotOlderThan&limit=5"))
    assert names(newer) == ["a", "b", "z"]


def test_revisions_that_cannot_be_had(api: Any, run: Any) -> None:
    future = api.store.revision() + 100
    for path in (f"{CONFIGMAPS}?resourceVersion={future}", f"{CONFIGMAPS}/a?resourceVersion={future}"):
        reply = run(api.get(path))
        assert (reply.status, reply.json["details"]["retryAfterSeconds"], reply.headers["retry-after"]) == (504, 1, "1")
        assert reply.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    old = run(api.get(f"{CONFIGMAPS}?resourceVersion=5&resourceVersionMatch=Exact"))
    assert (old.status, old.message) == (410, "The resourceVersion for the provided list is too old.")
    assert run(api.get(f"{CONFIGMAPS}?resourceVersion=x")).status == 400
    for query in ("resourceVersionMatch=Exact", "resourceVersion=0&resourceVersionMatch=Exact",
                  "resourceVersion=1&resourceVersionMatch=Sometimes", "sendInitialEvents=true"):  # fmt: skip
        reply = run(api.get(f"{CONFIGMAPS}?{query}"))
        assert (reply.status, reply.json["details"]["kind"]) == (422, "ListOptions"), query


def test_yaml(api: Any, run: Any) -> None:
    reply = run(api.get(f"{CONFIGMAPS}/a", accept="application/yaml"))
    assert reply.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(reply.body)["data"] == {"k": "1"}


def test_partial_metadata(api: Any, run: Any) -> None:
    one = run(api.get(f"{CONFIGMAPS}/a", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")).json
    assert (one["kind"], one["apiVersion"], "data" in one) == ("PartialObjectMetadata", "meta.k8s.io/v1", False)
    many = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = run(api.get(CONFIGMAPS, accept=many)).json
    assert found["kind"] == "PartialObjectMetadataList"
    assert [list(item) for item in found["items"]] == [["metadata"], ["metadata"]]


def test_tables(api: Any, run: Any) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    found = run(api.get(f"{CONFIGMAPS}?limit=1", accept=accept)).json
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [c["name"] for c in found["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert found["metadata"]["remainingItemCount"] == 1
    [row] = found["rows"]
    assert row["cells"][:2] == ["a", 1]
    assert (row["object"]["kind"], "data" in row["object"]) == ("PartialObjectMetadata", False)
    whole = run(api.get(f"{CONFIGMAPS}/a?includeObject=Object", accept=accept)).json["rows"][0]["object"]
    assert whole["data"] == {"k": "1"}
    assert run(api.get(f"{CONFIGMAPS}/a?includeObject=None", accept=accept)).json["rows"][0]["object"] is None
    assert run(api.get(f"{CONFIGMAPS}/a?includeObject=Half", accept=accept)).status == 400


def test_large_answers_are_compressed_where_that_is_accepted(api: Any, run: Any) -> None:
    api.put(api.manifest("v1 ConfigMap", "big", "default", data={"k": "x" * 200_000}))
    plain = run(api.get(f"{CONFIGMAPS}/big"))
    packed = run(api.get(f"{CONFIGMAPS}/big", accept_encoding="gzip"))
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 10
    assert "content-encoding" not in run(api.get(f"{CONFIGMAPS}/a", accept_encoding="gzip")).headers


def test_head(api: Any, run: Any) -> None:
    reply = run(api.call("HEAD", f"{CONFIGMAPS}/a"))
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 10


def test_answers_are_indented_for_people(api: Any, run: Any) -> None:
    path = "/api/v1/namespaces/default/configmaps/a"
    plain = run(api.get(path))
    assert plain.body.count(b"\n") == 1 and plain.body.endswith(b"}\n")
    for headers, query in (({"user_agent": "curl/8.5.0"}, ""), ({}, "?pretty=true"), ({}, "?pretty=1")):
        reply = run(api.get(path + query, **headers))
        assert reply.body.startswith(b'{\n  "kind": "ConfigMap",\n')
        assert reply.json == plain.json
        assert int(reply.headers["content-length"]) == len(reply.body)
    assert run(api.get(f"{path}?pretty=false", user_agent="curl/8.5.0")).body == plain.body
    missing = run(api.get(f"{path}x", user_agent="curl/8.5.0"))
    assert b'"code": 404' in missing.body
