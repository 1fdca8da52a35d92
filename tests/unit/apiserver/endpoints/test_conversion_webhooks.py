"""Custom resources in several versions, converted by a webhook: a real HTTPS server beside the API."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.conversionhook import Hook, definition

from apiserver.registry import rest
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.registry.outbound import Outbound
from apiserver.registry.rest_options import Collection, WriteOptions
from apiserver.registry.sinks import StoreSink, Write, Written
from apiserver.registry.webhookconversion import Webhooks

Object = dict[str, Any]

EDGE = "/targets/root:edge"
CRDS = f"{EDGE}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = (f"{EDGE}/apis/z.io/{version}/namespaces/default/ws" for version in ("v1", "v2"))
MERGE = "application/merge-patch+json"


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Hook]:
    made = Hook(tmp_path / "hook")
    yield made
    made.close()


def w(name: str, version: str = "v1", **spec: Any) -> Object:
    return {"apiVersion": f"z.io/{version}", "kind": "W", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def served(api: Any, hook: Hook, run: Any) -> Any:
    """`api` where loopback is a network that webhooks may be called in, with the definition."""
    realm = api.app._realms._targets.realm("root", "edge")
    realm.catalog = Catalog(api.target, target_builtins(), Webhooks(api.target, Outbound(["127.0.0.0/8"])).bind)
    made = run(api.call("POST", CRDS, definition(hook)))
    assert made.status == 201, made.message
    return api


def test_each_version_is_what_the_webhook_makes_of_it(served: Any, run: Any, hook: Hook) -> None:
    assert run(served.call("POST", V1, w("a", size=3))).status == 201
    assert hook.asked == []
    read = run(served.get(f"{V2}/a")).json
    assert (read["apiVersion"], read["spec"]) == ("z.io/v2", {"length": 3})
    made = run(served.call("POST", V2, w("b", "v2", length=5)))
    assert (made.status, made.json["spec"]) == (201, {"length": 5})
    stored = run(served.get(f"{V1}/b")).json
    assert stored["spec"] == {"size": 5}
    assert stored["metadata"]["uid"] == made.json["metadata"]["uid"]
    assert stored["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]


def test_writes_in_the_other_version(served: Any, run: Any) -> None:
    run(served.call("POST", V1, w("a", size=3)))
    patched = run(served.call("PATCH", f"{V2}/a", {"spec": {"length": 4}}, kind=MERGE))
    assert (patched.status, patched.json["spec"], patched.json["metadata"]["generation"]) == (200, {"length": 4}, 2)
    body = {**patched.json, "spec": {"length": 6}}
    assert run(served.call("PUT", f"{V2}/a", body)).json["spec"] == {"length": 6}
    assert run(served.get(f"{V1}/a")).json["spec"] == {"size": 6}
    revision = served.target.revision()
    run(served.call("PATCH", f"{V2}/a", {"spec": {"length": 6}}, kind=MERGE))
    assert served.target.revision() == revision
    assert run(served.get(f"{V2}/a/scale")).json["spec"] == {"replicas": 6}
    applied = run(served.call("PATCH", f"{V2}/c?fieldManager=m", w("c", "v2", length=1),
                              kind="application/apply-patch+yaml"))  # fmt: skip
    assert applied.status == 201
    assert applied.json["metadata"]["managedFields"][0]["apiVersion"] == "z.io/v2"
    assert run(served.call("DELETE", f"{V2}/a")).json["status"] == "Success"


def test_a_list_is_asked_about_at_once_and_remembered(served: Any, run: Any, hook: Hook) -> None:
    for number in range(5):
        run(served.call("POST", V1, w(f"a{number}", size=number)))
    listed = run(served.get(V2)).json
    assert [o["spec"]["length"] for o in listed["items"]] == [0, 1, 2, 3, 4]
    assert hook.asked == [[f"a{n}" for n in range(5)]]
    run(served.call("PATCH", f"{V1}/a3", {"spec": {"size": 9}}, kind=MERGE))
    found = run(served.get(f"{V2}?fieldSelector=spec.length%3D9")).json["items"]
    assert [o["metadata"]["name"] for o in found] == ["a3"]
    assert hook.asked[1:] == [["a3"]]
    table = run(served.get(V2, accept="application/json;as=Table;g=meta.k8s.io;v=v1")).json
    assert len(table["rows"]) == 5
    assert run(served.call("DELETE", V2)).status == 200
    assert len(hook.asked) == 2


def test_a_new_storage_version_is_written_with_the_next_write(served: Any, run: Any, hook: Hook) -> None:
    run(served.call("POST", V1, w("a", size=3)))
    changed = definition(hook, "v2")
    changed["metadata"] = run(served.get(f"{CRDS}/ws.z.io")).json["metadata"]
    reply = run(served.call("PUT", f"{CRDS}/ws.z.io", changed))
    assert reply.json["status"]["storedVersions"] == ["v1", "v2"]
    [record] = served.target.scan("ws.z.io").records
    assert orjson.loads(record.value)["apiVersion"] == "z.io/v1"
    assert run(served.get(f"{V2}/a")).json["spec"] == {"length": 3}
    run(served.call("PATCH", f"{V1}/a", {"metadata": {"labels": {"x": "y"}}}, kind=MERGE))
    [record] = served.target.scan("ws.z.io").records
    assert orjson.loads(record.value)["apiVersion"] == "z.io/v2"
    assert orjson.loads(record.value)["spec"] == {"length": 3}


def test_watches(served: Any, run: Any) -> None:
    async def scenario() -> None:
        await served.call("POST", V1, w("a", size=1))
        watch = served.watch(f"{V2}?watch=1")
        first = await watch.next()
        assert (first["type"], first["object"]["spec"]) == ("ADDED", {"length": 1})
        await served.call("POST", V1, w("b", size=2))
        await served.call("PATCH", f"{V2}/b", {"spec": {"length": 3}}, kind=MERGE)
        await served.call("DELETE", f"{V1}/b")
        events = [await watch.next() for _ in range(3)]
        assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert [e["object"]["spec"]["length"] for e in events] == [2, 3, 3]
        assert {e["object"]["apiVersion"] for e in events} == {"z.io/v2"}
        await watch.leave()
        assert served.app._realms._targets.realm("root", "edge").hub.count == 0

    run(scenario())


def test_a_watch_list_and_its_end(served: Any, run: Any) -> None:
    async def scenario() -> None:
        await served.call("POST", V1, w("a", size=1))
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        watch = served.watch(f"{V2}?{query}")
        assert (await watch.next())["type"] == "ADDED"
        bookmark = await watch.next()
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        served.app._realms._targets.realm("root", "edge").hub.close()
        assert (await watch.next())["type"] == "BOOKMARK"
        assert await watch.next() is None

    run(scenario())


def test_a_watch_ends_when_the_definition_changes(served: Any, run: Any) -> None:
    """Of the version that is stored, which the hub feeds, and of the other, which follows the log itself."""

    async def scenario() -> None:
        await served.call("POST", V1, w("a", size=1))
        watches = [served.watch(f"{path}?watch=1") for path in (V1, V2)]
        for watch in watches:
            assert (await watch.next())["type"] == "ADDED"
        column = {"name": "X", "type": "string", "jsonPath": ".x"}
        patch = [{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [column]}]
        kind = "application/json-patch+json"
        assert (await served.call("PATCH", f"{CRDS}/ws.z.io", patch, kind=kind)).status == 200
        for watch in watches:
            assert await watch.next() is None
            await watch.leave()

    run(scenario())


def test_what_a_failing_webhook_is_to_blame_for(served: Any, run: Any, hook: Hook) -> None:
    run(served.call("POST", V1, w("a", size=1)))

    def fail(answer: Object) -> None:
        answer["response"]["result"] = {"status": "Failure", "message": "no way"}

    hook.spoil = fail
    for reply in (run(served.get(f"{V2}/a")), run(served.get(V2)), run(served.call("DELETE", f"{V2}/a"))):
        assert (reply.status, reply.message) == (500, "conversion webhook for z.io/v1, Kind=W failed: no way")
    made = run(served.call("POST", V2, w("b", "v2", length=1)))
    assert made.message == "conversion webhook for z.io/v2, Kind=W failed: no way"

    async def watched() -> Any:
        watch = served.watch(f"{V2}?watch=1")
        return [await watch.next(), await watch.next()]

    [error, end] = run(watched())
    assert (error["type"], error["object"]["code"], end) == ("ERROR", 500, None)
    assert run(served.get(f"{V1}/a")).status == 200
    hook.spoil = lambda answer: answer["response"].update(convertedObjects=[])
    expected = "conversion webhook for z.io/v1, Kind=W returned 0 objects, expected 1"
    assert run(served.get(f"{V2}/a")).message == expected


def test_a_dead_webhook_harms_its_own_objects_alone(served: Any, run: Any, hook: Hook) -> None:
    async def scenario() -> None:
        await served.call("POST", V1, w("a", size=1))
        hook.dead = threading.Event()
        waiting = [asyncio.ensure_future(served.get(f"{V2}/a")) for _ in range(60)]
        assert {r.status for r in await asyncio.gather(*waiting[36:])} == {429}
        assert (await served.get(f"{EDGE}/api/v1/namespaces/default")).status == 200
        made = {"metadata": {"name": "c"}}
        assert (await served.call("POST", f"{EDGE}/api/v1/namespaces/default/configmaps", made)).status == 201
        assert (await served.call("PATCH", f"{EDGE}/api/v1/namespaces/default/configmaps/c", {"data": {"a": "b"}},
                                  kind=MERGE)).status == 200  # fmt: skip
        hook.dead.set()
        assert {r.status for r in await asyncio.gather(*waiting[:36])} == {200}

    run(scenario())


def test_one_that_cannot_be_reached_is_left_alone_for_a_moment(served: Any, run: Any, hook: Hook) -> None:
    run(served.call("POST", V1, w("a", size=1)))
    hook.close()
    text = f'conversion webhook for z.io/v1, Kind=W failed: Post "https://127.0.0.1:{hook.port}/convert?timeout=30s": '
    for _ in range(2):
        reply = run(served.get(f"{V2}/a"))
        assert (reply.status, reply.message) == (500, f"{text}connection refused")


def test_loopback_is_not_called_unless_the_server_says_so(api: Any, run: Any, hook: Hook) -> None:
    realm = api.app._realms._targets.realm("root", "edge")
    realm.catalog = Catalog(api.target, target_builtins(), Webhooks(api.target, Outbound()).bind)
    assert run(api.call("POST", CRDS, definition(hook))).status == 201
    run(api.call("POST", V1, w("a", size=1)))
    reply = run(api.get(f"{V2}/a"))
    assert "address 127.0.0.1 is not allowed: it is not of the public internet" in reply.message
    assert hook.asked == []


def test_a_service_is_found_by_its_endpoints(served: Any, run: Any, hook: Hook) -> None:
    client = {"service": {"namespace": "default", "name": "hook", "path": "/convert"}}
    changed = definition(hook, **client)
    changed["metadata"] = run(served.get(f"{CRDS}/ws.z.io")).json["metadata"]
    put = run(served.call("PUT", f"{CRDS}/ws.z.io", changed)).json
    assert put["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] == 443
    run(served.call("POST", V1, w("a", size=1)))

    def told() -> str:
        return str(run(served.get(f"{V2}/a")).message)

    where = 'Post "https://hook.default.svc:443/convert?timeout=30s"'
    assert told() == 'conversion webhook for z.io/v1, Kind=W failed: service "hook" not found'
    base = f"{EDGE}/api/v1/namespaces/default"
    ports = [{"name": "tls", "port": 443}]
    run(served.call("POST", f"{base}/services", {"metadata": {"name": "hook"}, "spec": {"ports": ports}}))
    assert told() == 'conversion webhook for z.io/v1, Kind=W failed: no endpoints available for service "hook"'
    addresses = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "tls", "port": hook.port}]}
    endpoints = served.manifest("v1 Endpoint", "hook", "default", "target", subsets=[addresses])
    served.put(endpoints, store=served.target)
    assert run(served.get(f"{V2}/a")).json["spec"] == {"length": 1}, where


def test_git_gets_what_it_can_read_without_the_webhook(served: Any, run: Any) -> None:
    put: list[Write] = []

    class Noted(StoreSink):
        def begin(self, write: Write) -> Callable[[], Written]:
            put.append(write)
            return super().begin(write)

    kinds = served.app._realms._targets.realm("root", "edge").catalog.kinds("target")
    for version, spec in (("v1", {"size": 1}), ("v2", {"length": 1})):
        kind = kinds.by_resource("z.io", version, "ws")
        at = Collection(served.target, kind, kinds, "target", sink=Noted(served.target))
        rest.create(at, "default", w(version, version, **spec), WriteOptions("m"))
    assert [(write.sent["apiVersion"], write.sent["spec"]) for write in put if write.sent] == [
        ("z.io/v1", {"size": 1}), ("z.io/v1", {"size": 1}),
    ]  # fmt: skip


def owned(reply: Any) -> dict[str, tuple[str, list[str]]]:
    """By manager: the version, and the fields of the spec."""
    return {
        entry["manager"]: (entry["apiVersion"], sorted(entry["fieldsV1"]["f:spec"]))
        for entry in reply.json["metadata"]["managedFields"]
        if entry["fieldsV1"]["f:spec"]
    }


def test_fields_are_owned_across_versions(served: Any, run: Any) -> None:
    """As a kube-apiserver 1.36 answers with the same webhook."""

    def apply(manager: str, version: str, query: str = "", **spec: Any) -> Any:
        path = f"{V1 if version == 'v1' else V2}/a?fieldManager={manager}{query}"
        return run(served.call("PATCH", path, w("a", version, **spec), kind="application/apply-patch+yaml"))

    assert owned(apply("one", "v1", size=3)) == {"one": ("z.io/v1", ["f:size"])}
    refused = apply("two", "v2", length=4)
    assert (refused.status, refused.json["details"]["causes"]) == (
        409, [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.size"}],
    )  # fmt: skip
    both = owned(apply("two", "v2", length=3))
    assert both == {"one": ("z.io/v1", ["f:size"]), "two": ("z.io/v2", ["f:length"])}
    moved = apply("one", "v2")
    assert moved.json["spec"] == {"length": 3}
    assert owned(moved) == {"two": ("z.io/v2", ["f:length"])}
    assert owned(apply("one", "v1", "&force=true", size=5)) == {"one": ("z.io/v1", ["f:size"])}
    gone = apply("one", "v2")
    assert gone.json.get("spec", {}) == {}
    apply("one", "v1", size=6)
    changed = run(served.call("PATCH", f"{V2}/a?fieldManager=hand", {"spec": {"length": 7}}, kind=MERGE))
    assert owned(changed) == {"hand": ("z.io/v2", ["f:length"])}


def test_definitions_of_webhooks_are_checked(api: Any, run: Any, hook: Hook) -> None:
    def told(conversion: Object) -> list[str]:
        body = definition(hook)
        body["spec"]["conversion"] = conversion
        reply = run(api.call("POST", f"{CRDS}?dryRun=All", body))
        return [f"{c['field']}: {c['message']}" for c in reply.json["details"]["causes"]]

    def client(**config: Any) -> Object:
        return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}

    path = "spec.conversion.webhookClientConfig"
    assert told({"strategy": "Webhook"}) == [
        f"{path}: Required value: required when strategy is set to Webhook",
        "spec.conversion.conversionReviewVersions: Required value",
    ]
    assert told({"strategy": "Foo"}) == [
        'spec.conversion.strategy: Unsupported value: "Foo": supported values: "None", "Webhook"'
    ]
    assert told({}) == ["spec.conversion.strategy: Required value"]
    assert told(client()) == [f"{path}: Required value: exactly one of url or service is required"]
    assert told(client(url="http://u@x/y?z#q")) == [
        f"{path}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
        "desired format: https://host[/path]",
        f'{path}.url: Invalid value: "u": user information is not permitted in the URL',
        f'{path}.url: Invalid value: "q": fragments are not permitted in the URL',
        f'{path}.url: Invalid value: "z": query parameters are not permitted in the URL',
    ]
    service = {"name": "", "namespace": "", "path": "x//y", "port": 99999}
    assert told(client(service=service)) == [
        f"{path}.service.name: Required value",
        f"{path}.service.namespace: Required value",
        f"{path}.service.port: Invalid value: 99999: port is not valid: must be between 1 and 65535, inclusive",
        f"{path}.service.path: Invalid value: \"x//y\": must start with a '/'",
        f'{path}.service.path: Invalid value: "x//y": segment[0] may not be empty',
        f'{path}.service.path: Invalid value: "x//y": segment[1] may not be empty',
    ]
    reviews = {**client(url="https://x"), "strategy": "Webhook"}
    reviews["webhook"]["conversionReviewVersions"] = ["v9", "v9"]
    assert told(reviews) == [
        'spec.conversion.conversionReviewVersions[1]: Invalid value: "v9": duplicate version',
        'spec.conversion.conversionReviewVersions: Invalid value: ["v9","v9"]: '
        "must include at least one of v1, v1beta1",
    ]
