"""Whatever is bound, granted, revoked and written, in whatever order: a provider's client that lists and watches has at
each moment what it may see, and nothing else, in no event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Delete, Put

DB = "dbcluster0000000"
CLUSTERS = ("aclust0000000000", "bclust0000000000", "cclust0000000000")
VIEW = f"/services/apiexport/{DB}/widgets/clusters/*"
V2 = "apis.kcp.io/v1alpha2"
STORAGES = {"/api/v1/configmaps": "configmaps", "/apis/example.io/v1/widgets": "widgets.example.io:hash"}
SELECTORS: dict[str, Any] = {"all": {"matchAll": True}, "picked": {"matchLabels": {"for": "db"}}}
LABELS: tuple[dict[str, str], ...] = ({}, {"for": "db"}, {"for": "others"})

Object = dict[str, Any]
Seen = dict[tuple[str, str], str]
"""Cluster and name to the object's version of itself."""


class Spoken(NamedTuple):
    """What was put where: by cluster and name the labels and a count."""

    labels: dict[str, str]
    count: int


class World:
    """The store, and what is so by the rules, found out in another way."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.claimed = True
        self.bound: dict[str, str] = {}
        self.objects: dict[str, dict[tuple[str, str], Spoken]] = {path: {} for path in STORAGES}
        self.count = 0
        api.put_workspace("root:db", DB, served=True)
        for cluster in CLUSTERS:
            api.put_workspace(f"root:{cluster[0]}", cluster, served=True)
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}
        spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
        api.put(api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", "", DB, spec=spec))
        self.export()

    def may_see(self, path: str) -> Seen:
        found = {}
        for (cluster, name), spoken in self.objects[path].items():
            how = self.bound.get(cluster)
            if path.startswith("/apis"):
                allowed = how is not None
            else:
                allowed = self.claimed and (how == "all" or (how == "picked" and spoken.labels.get("for") == "db"))
            if allowed:
                found[cluster, name] = str(spoken.count)
        return found

    def export(self) -> None:
        resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}
        asked = [{"group": "", "resource": "configmaps", "verbs": ["*"]}] if self.claimed else []
        spec = {"resources": [resource], "permissionClaims": asked}
        self.api.put(
            self.api.manifest(f"{V2} APIExport", "widgets", "", DB, spec=spec, status={"identityHash": "hash"})
        )

    def claim(self, _cluster: str, number: int) -> None:
        self.claimed = number % 2 == 0
        self.export()

    def bind(self, cluster: str, number: int) -> None:
        how = ("none", "all", "picked", "rejected")[number % 4]
        claim = {"group": "", "resource": "configmaps", "identityHash": "", "verbs": ["*"],
                 "selector": SELECTORS.get(how, SELECTORS["all"]),
                 "state": "Rejected" if how == "rejected" else "Accepted"}  # fmt: skip
        schema = {"name": "v1.widgets.example.io", "UID": "uid-v1.widgets.example.io", "identityHash": "hash"}
        bound = [{"group": "example.io", "resource": "widgets", "schema": schema}]
        status = {"phase": "Bound", "apiExportClusterName": DB, "boundResources": bound}
        spec = {"reference": {"export": {"path": "root:db", "name": "widgets"}}}
        spec["permissionClaims"] = [] if how == "none" else [claim]  # type: ignore[assignment]
        self.api.put(self.api.manifest(f"{V2} APIBinding", "widgets", "", cluster, spec=spec, status=status))
        self.bound[cluster] = how

    def unbind(self, cluster: str, _number: int) -> None:
        if self.bound.pop(cluster, None) is not None:
            self.api.store.write(Delete(Key("apibindings.apis.kcp.io", cluster, "", "widgets"))).result(10)

    def write(self, cluster: str, number: int) -> None:
        path = list(STORAGES)[number % 2]
        self.count += 1
        spoken = Spoken(LABELS[number % 3], self.count)
        kind = "v1 ConfigMap" if path.startswith("/api/") else "example.io/v1 Widget"
        name = f"o{number % 5}"
        made = self.api.manifest(kind, name, "default", cluster, labels=dict(spoken.labels))
        made["metadata"]["annotations"]["count"] = str(self.count)
        self.api.store.write(Put(Key(STORAGES[path], cluster, "default", name), codec.encode(made))).result(10)
        self.objects[path][cluster, name] = spoken

    def remove(self, cluster: str, number: int) -> None:
        path, name = list(STORAGES)[number % 2], f"o{number % 5}"
        if self.objects[path].pop((cluster, name), None) is not None:
            self.api.store.write(Delete(Key(STORAGES[path], cluster, "default", name))).result(10)


EVENTS: dict[str, Callable[[World, str, int], None]] = {
    name: getattr(World, name) for name in ("claim", "bind", "unbind", "write", "remove")
}


class Client:
    """As an informer: lists, watches from there, and lists anew when it is told to."""

    def __init__(self, world: World, path: str) -> None:
        self.world, self.path = world, path
        self.found: Seen = {}
        self.revision = ""
        self.watch: Any = None

    async def follow(self, before: Seen) -> None:
        """Until it has what there is to see; whatever it is told was to be seen before the last change, or is now."""
        now = self.world.may_see(self.path)
        allowed = {*before.items(), *now.items()}
        while self.watch is None or self.found != now:
            if self.watch is None:
                await self._list()
                assert self.found.items() <= allowed
            else:
                await self._next(allowed)

    async def _list(self) -> None:
        reply = await self.world.api.get(f"{VIEW}{self.path}")
        if reply.status == 404 and not self.world.claimed:
            self.found = {}
            self.watch = _Never()
            return
        assert reply.status == 200, reply.body
        self.found = {_key(item): _count(item) for item in reply.json["items"]}
        self.revision = reply.json["metadata"]["resourceVersion"]
        self.watch = self.world.api.watch(f"{VIEW}{self.path}?watch=1&resourceVersion={self.revision}")
        while not self.watch.status:
            await asyncio.sleep(0)

    async def _next(self, allowed: set[tuple[tuple[str, str], str]]) -> None:
        event = await self.watch.next()
        if event is None or event["type"] == "ERROR":
            await self.leave()
            return
        obj = event["object"]
        self.revision = obj["metadata"]["resourceVersion"]
        assert (_key(obj), _count(obj)) in allowed or event["type"] == "DELETED"
        if event["type"] == "DELETED":
            self.found.pop(_key(obj), None)
        else:
            self.found[_key(obj)] = _count(obj)

    async def leave(self) -> None:
        if self.watch is not None:
            await self.watch.leave()
        self.watch = None


class _Never:
    """The watch of what is not claimed."""

    async def next(self) -> None:
        return None

    async def leave(self) -> None:
        return None


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["annotations"]["kcp.io/cluster"], obj["metadata"]["name"]


def _count(obj: Object) -> str:
    return str(obj["metadata"]["annotations"]["count"])


STEPS = st.lists(
    st.tuples(st.sampled_from(list(EVENTS)), st.sampled_from(CLUSTERS), st.integers(0, 11)), min_size=1, max_size=14
)
A, B, C = CLUSTERS


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(steps=[("bind", A, 1), ("write", A, 0), ("bind", A, 3), ("write", A, 2), ("bind", A, 2), ("write", A, 4)])
@example(steps=[("write", A, 1), ("bind", A, 1), ("unbind", A, 0), ("write", A, 3), ("bind", A, 0)])
@example(steps=[("bind", B, 1), ("write", B, 0), ("claim", B, 1), ("write", B, 2), ("claim", B, 0)])
def test_a_provider_never_sees_more_than_it_may_and_misses_nothing(
    api_at: Callable[[], Any], steps: list[tuple[str, str, int]]
) -> None:
    with closing(api_at()) as api:
        world = World(api)

        async def story() -> None:
            clients = [Client(world, path) for path in STORAGES]
            for client in clients:
                await client.follow({})
            for event, cluster, number in steps:
                before = {path: world.may_see(path) for path in STORAGES}
                EVENTS[event](world, cluster, number)
                for client in clients:
                    await client.follow(before[client.path])
            for client in clients:
                await client.leave()

        asyncio.run(asyncio.wait_for(story(), 60))
