"""Watches: what is sent, in which order, and how they end."""

import asyncio
from typing import Any

import pytest

from apiserver.endpoints import hub as hubs
from apiserver.endpoints import watcher
from apiserver.model.keys import Key
from apiserver.registry.tree import forgotten, workspace_at
from apiserver.storage.protocol import Delete

WATCH = "/api/v1/configmaps?watch=true"


def cm(api: Any, name: str, label: str = "", **content: Any) -> dict[str, Any]:
    return api.manifest("v1 ConfigMap", name, "default", labels={"l": label}, **content)


def test_what_there_is_then_changes(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&resourceVersion=0")
        assert await watch.seen(3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        added = api.put(cm(api, "x"))
        modified = api.put(cm(api, "x", "1"))
        deleted = api.delete(cm(api, "x"))
        found = [await watch.next() for _ in range(3)]
        assert [e["type"] for e in found] == ["ADDED", "MODIFIED", "DELETED"]
        assert [int(e["object"]["metadata"]["resourceVersion"]) for e in found] == [added, modified, deleted]
        assert found[2]["object"]["metadata"]["labels"] == {"l": "1"}
        assert (found[0]["object"]["kind"], found[0]["object"]["apiVersion"]) == ("ConfigMap", "v1")
        await watch.leave()

    run(scenario())


def test_from_a_revision_in_the_middle_of_a_transaction(api: Any, run: Any) -> None:
    async def scenario() -> None:
        start = api.store.revision()
        api.put(cm(api, "x"), cm(api, "y"), cm(api, "z"))
        watch = api.watch(f"{WATCH}&resourceVersion={start + 1}")
        assert await watch.seen(2) == [("ADDED", "y"), ("ADDED", "z")]
        api.put(cm(api, "y", "1"))
        assert await watch.seen(1) == [("MODIFIED", "y")]
        await watch.leave()

    run(scenario())


def test_a_log_longer_than_one_read_is_caught_up(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.endpoints.watch.CHUNK", 7)
    monkeypatch.setattr(hubs, "CHUNK", 5)

    async def scenario() -> None:
        start = api.store.revision()
        for i in range(30):
            api.put(cm(api, f"n{i:02}"))
        watch = api.watch(f"{WATCH}&resourceVersion={start}")
        assert await watch.seen(30) == [("ADDED", f"n{i:02}") for i in range(30)]
        api.put(*(cm(api, f"m{i:02}") for i in range(12)))
        assert await watch.seen(12) == [("ADDED", f"m{i:02}") for i in range(12)]
        await watch.leave()

    run(scenario())


def test_every_watcher_sees_the_same_order_while_writes_go_on(api: Any, run: Any) -> None:
    async def scenario() -> None:
        start = api.store.revision()
        watches = []
        for i in range(40):
            api.put(cm(api, f"n{i % 7}", str(i)))
            watches.append(api.watch(f"{WATCH}&resourceVersion={start}"))
            await asyncio.sleep(0)
        seen = [[(await w.next())["object"]["metadata"]["resourceVersion"] for _ in range(40)] for w in watches]
        assert all(s == seen[0] for s in seen)
        assert seen[0] == sorted(seen[0], key=int)
        for watch in watches:
            await watch.leave()
        assert api.hub.count == 0

    run(scenario())


def test_entering_and_leaving_a_selector(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&labelSelector=l%3D1&resourceVersion={api.store.revision()}")
        other = api.watch(f"{WATCH}&labelSelector=l%3D2&resourceVersion={api.store.revision()}")
        for label in ("0", "1", "1", "2", "1"):
            left = api.put(cm(api, "x", label, data={"at": label}))
        api.delete(cm(api, "x"))
        found = [await watch.next() for _ in range(5)]
        assert [e["type"] for e in found] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
        assert found[2]["object"]["data"] == {"at": "1"}, "the last state that matched"
        assert int(found[2]["object"]["metadata"]["resourceVersion"]) == left - 1, "the revision that ended it"
        assert await other.seen(2) == [("ADDED", "x"), ("DELETED", "x")]
        await watch.leave()
        await other.leave()

    run(scenario())


def test_by_name_namespace_and_workspace(api: Any, run: Any) -> None:
    async def scenario() -> None:
        at = f"resourceVersion={api.store.revision()}"
        named = api.watch(f"{WATCH}&fieldSelector=metadata.name%3Dx&{at}")
        path = api.watch(f"/api/v1/namespaces/default/configmaps/x?watch=1&{at}")
        space = api.watch(f"/api/v1/namespaces/other/configmaps?watch=1&{at}")
        shop = api.watch(f"/clusters/root:shop{WATCH}&{at}")
        every = api.watch(f"/clusters/*{WATCH}&{at}")
        api.put(
            cm(api, "y"),
            cm(api, "x"),
            api.manifest("v1 ConfigMap", "o", "other"),
            api.manifest("v1 ConfigMap", "q", "default", api.SHOP),
            api.manifest("v1 Secret", "s", "default"),
        )
        assert await named.seen(1) == await path.seen(1) == [("ADDED", "x")]
        assert await space.seen(1) == [("ADDED", "o")]
        assert await shop.seen(1) == [("ADDED", "q")]
        assert [n for _, n in await every.seen(4)] == ["y", "x", "o", "q"]
        for watch in (named, path, space, shop, every):
            await watch.leave()

    run(scenario())


def test_too_old_is_an_error_event(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&resourceVersion=5")
        event = await watch.next()
        assert watch.status == 200
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: 5 (")
        assert await watch.next() is None
        await watch.task

    run(scenario())


def test_the_future_is_504(api: Any, run: Any) -> None:
    assert run(api.get(f"{WATCH}&resourceVersion={api.store.revision() + 50}")).status == 504


def test_initial_events_end_with_a_bookmark(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(
            f"{WATCH}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app%3Da"
        )
        assert await watch.seen(2) == [("ADDED", "a"), ("ADDED", "c")]
        mark = await watch.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["object"]["metadata"]["resourceVersion"] == str(api.store.revision())
        assert (mark["object"]["kind"], mark["object"]["apiVersion"]) == ("ConfigMap", "v1")
        api.put(api.manifest("v1 ConfigMap", "d", "default", labels={"app": "a"}))
        assert await watch.seen(1) == [("ADDED", "d")]
        await watch.leave()

    run(scenario())


def test_initial_events_declined(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
        await asyncio.sleep(0)
        api.put(cm(api, "x"))
        assert await watch.seen(1) == [("ADDED", "x")]
        await watch.leave()

    run(scenario())


@pytest.mark.parametrize("query", ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "continue=x"])
def test_options_that_do_not_fit_are_422(api: Any, run: Any, query: str) -> None:
    assert run(api.get(f"{WATCH}&{query}")).status == 422


def test_the_time_is_up(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&resourceVersion={api.store.revision()}&timeoutSeconds=1&allowWatchBookmarks=true")
        mark = await watch.next()
        assert (mark["type"], mark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(api.store.revision()))
        assert await watch.next() is None
        await watch.task
        assert api.hub.count == 0

    run(scenario())


def test_bookmarks_while_nothing_happens(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "BOOKMARK_SECONDS", 0.01)

    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&resourceVersion={api.store.revision()}&allowWatchBookmarks=true")
        silent = api.watch(f"{WATCH}&resourceVersion={api.store.revision()}")
        assert (await watch.next())["type"] == "BOOKMARK"
        assert silent.events.empty()
        await watch.leave()
        await silent.leave()

    run(scenario())


def test_tables_name_their_columns_once(api: Any, run: Any) -> None:
    async def scenario() -> None:
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        watch = api.watch(WATCH, accept=accept)
        found = [await watch.next() for _ in range(3)]
        assert [bool(e["object"]["columnDefinitions"]) for e in found] == [True, False, False]
        late = api.watch(f"{WATCH}&resourceVersion={api.store.revision()}", accept=accept)
        await asyncio.sleep(0.01)
        api.put(cm(api, "x"))
        for w, head in ((watch, False), (late, True)):
            event = await w.next()
            assert event["object"]["kind"] == "Table"
            assert event["object"]["rows"][0]["cells"][0] == "x"
            assert bool(event["object"]["columnDefinitions"]) == head
        await watch.leave()
        await late.leave()

    run(scenario())


def test_partial_metadata(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(WATCH, accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        event = await watch.next()
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert "data" not in event["object"]
        await watch.leave()

    run(scenario())


def test_a_watcher_that_does_not_read_is_dropped(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "BACKLOG", 10_000)

    async def scenario() -> None:
        start = f"resourceVersion={api.store.revision()}"
        slow, quick = api.watch(f"{WATCH}&{start}"), api.watch(f"{WATCH}&{start}")
        await asyncio.sleep(0.01)
        slow.stalled = asyncio.Event()
        for i in range(50):
            api.put(cm(api, f"n{i}", data={"k": "x" * 1000}))
            await quick.next()
        await asyncio.wait_for(slow.task, 10)
        assert api.hub.count == 1
        await quick.leave()

    run(scenario())


def test_many_events_are_one_write(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(f"{WATCH}&resourceVersion={api.store.revision()}")
        await asyncio.sleep(0.01)
        api.put(*(cm(api, f"n{i}") for i in range(100)))
        await watch.seen(100)
        assert watch.chunks == 1
        await watch.leave()

    run(scenario())


def test_closing_the_server_ends_watches(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch(WATCH)
        await watch.seen(3)
        api.hub.close()
        assert await watch.next() is None
        await watch.task

    run(scenario())


GADGETS = "/clusters/root/apis/z.io/v1/gadgets"


def gadgets(api: Any, **spec: Any) -> Any:
    """A definition as it is stored once it is served."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    return api.manifest(
        "apiextensions.k8s.io/v1 CustomResourceDefinition",
        "gadgets.z.io",
        spec={"group": "z.io", "scope": "Namespaced", "names": names, "versions": versions, **spec},
        status={"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
    )


@pytest.mark.parametrize("change", ["schema", "removed"])
def test_a_changed_definition_ends_watches_after_their_events(api: Any, run: Any, change: str) -> None:
    api.put(gadgets(api))
    gadget = api.manifest("z.io/v1 Gadget", "g", "default")
    api.put(gadget)

    async def scenario() -> None:
        watch, other = api.watch(f"{GADGETS}?watch=1"), api.watch("/clusters/root/api/v1/configmaps?watch=1")
        assert await watch.seen(1) == [("ADDED", "g")]
        await other.seen(3)
        api.put({**gadgets(api), "status": {**gadgets(api)["status"], "storedVersions": ["v1"]}})
        api.put({**gadget, "metadata": {**gadget["metadata"], "labels": {"a": "b"}}})
        assert await watch.seen(1) == [("MODIFIED", "g")]  # a definition's status ends nothing
        api.delete(gadget)
        if change == "removed":
            api.delete(gadgets(api))
        else:
            api.put(gadgets(api, conversion={"strategy": "None"}, preserveUnknownFields=False))
        assert await watch.seen(1) == [("DELETED", "g")]
        assert await watch.next() is None
        api.put(api.manifest("v1 ConfigMap", "late", "default"))
        assert await other.seen(1) == [("ADDED", "late")]
        await watch.leave()
        await other.leave()

    run(scenario())


def test_a_removed_workspace_ends_its_watches(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch("/clusters/root:shop/api/v1/configmaps?watch=1&labelSelector=app")
        others = api.watch("/clusters/*/api/v1/configmaps?watch=1&labelSelector=app")
        assert await watch.seen(1) == [("ADDED", "s")]
        await others.seen(4)
        record = workspace_at(api.store, "root:shop")
        assert record is not None
        api.store.write(Delete(Key("configmaps", api.SHOP, "default", "s")), *forgotten(record)).result(10)
        assert await watch.seen(1) == await others.seen(1) == [("DELETED", "s")]
        assert await watch.next() is None
        await watch.leave()
        await others.leave()

    run(scenario())


def test_a_watch_that_catches_up_while_its_kind_goes(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api.put(gadgets(api))
    begin = api.store.revision()
    api.put(*(api.manifest("v1 ConfigMap", f"m{i}", "default") for i in range(5)))
    monkeypatch.setattr("apiserver.endpoints.watch.CHUNK", 2)

    async def scenario() -> None:
        watch = api.watch(f"{GADGETS}?watch=1&resourceVersion={begin}")
        await asyncio.sleep(0)
        api.delete(gadgets(api))
        assert await watch.next() is None
        await watch.leave()

    run(scenario())


def test_the_old_form_of_a_path(api: Any, run: Any) -> None:
    async def scenario() -> None:
        watch = api.watch("/api/v1/watch/namespaces/default/configmaps?watch=false")
        one = api.watch("/api/v1/watch/namespaces/default/configmaps/a")
        assert await watch.seen(2) == [("ADDED", "a"), ("ADDED", "b")]
        assert await one.seen(1) == [("ADDED", "a")]
        await watch.leave()
        await one.leave()
        assert (await api.call("POST", "/api/v1/watch/namespaces/default/configmaps", cm(api, "new"))).status == 405

    run(scenario())
