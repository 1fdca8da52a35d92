"""The schemas that a workspace has bound, for whoever may see its APIBindings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.model.keys import Key

DB, C = "dbcluster0000000", "ccluster00000000"
VIEW = "/services/apiresourceschema/root:shop"
SCHEMAS = "/apis/apis.kcp.io/v1alpha1/apiresourceschemas"
BOUND = "v1.widgets.example.io"

Object = dict[str, Any]


def schema(api: Any, name: str, cluster: str) -> Object:
    spec = {"group": "example.io", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"}, "versions": []}
    made: Object = api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", name, "", cluster, spec=spec)
    return made


def bind(api: Any, cluster: str, *names: str) -> None:
    bound = [{"group": "example.io", "resource": "widgets", "schema": {"name": n, "UID": f"uid-{n}"}} for n in names]
    status = {"phase": "Bound", "apiExportClusterName": DB, "boundResources": bound}
    spec = {"reference": {"export": {"path": "root:db", "name": "widgets"}}}
    api.put(api.manifest("apis.kcp.io/v1alpha2 APIBinding", "widgets", "", cluster, spec=spec, status=status))


@pytest.fixture
def shop(api: Any) -> Any:
    for path, cluster in (("root:db", DB), ("root:c", C)):
        api.put_workspace(path, cluster, served=True)
    api.put(schema(api, BOUND, DB), schema(api, "v2.widgets.example.io", DB), schema(api, BOUND, C))
    bind(api, api.SHOP, BOUND)
    rule = {"apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["get", "list", "watch"]}
    api.allow("ann", rule, cluster=api.SHOP)
    api.allow("bob", cluster=api.SHOP)
    return api


def test_what_is_bound_is_shown_and_nothing_else_of_its_provider(shop: Any, run: Any) -> None:
    by_name = f"/services/apiresourceschema/{shop.SHOP}"
    consumer = (f"{VIEW}/clusters/root:shop", f"{by_name}/clusters/{shop.SHOP}")  # as kcp's programs ask
    for path in (VIEW, by_name, f"{VIEW}/clusters/*", f"{VIEW}/clusters/{DB}", *consumer):
        found = run(shop.get(f"{path}{SCHEMAS}", authorization="Bearer ann")).json["items"]
        assert [(i["metadata"]["name"], i["metadata"]["annotations"]["kcp.io/cluster"]) for i in found] == [(BOUND, DB)]
    for path in (VIEW, f"{VIEW}/clusters/root:db", *consumer):
        assert run(shop.get(f"{path}{SCHEMAS}/{BOUND}", authorization="Bearer ann")).status == 200
        assert run(shop.get(f"{path}{SCHEMAS}/v2.widgets.example.io", authorization="Bearer ann")).status == 404
    for provider in (C, "nowhere000000000"):
        found = run(shop.get(f"{VIEW}/clusters/{provider}{SCHEMAS}", authorization="Bearer ann")).json["items"]
        assert found == []


def test_it_is_for_whoever_sees_the_bindings(shop: Any, run: Any) -> None:
    texts = set()
    for consumer in ("root:shop", "root:none", C):
        refused = run(shop.get(f"/services/apiresourceschema/{consumer}{SCHEMAS}", authorization="Bearer bob"))
        texts.add(refused.status)
    assert texts == {403}


def test_it_is_read_only_and_has_its_own_discovery(shop: Any, run: Any) -> None:
    [resource] = run(shop.get(f"{VIEW}/apis/apis.kcp.io/v1alpha1", authorization="Bearer ann")).json["resources"]
    assert (resource["name"], resource["verbs"]) == ("apiresourceschemas", ["get", "list", "watch"])
    assert run(shop.get(f"{VIEW}/api/v1/configmaps")).status == 404
    for path in (VIEW, f"{VIEW}/clusters/{DB}"):
        assert run(shop.call("DELETE", f"{path}{SCHEMAS}/{BOUND}")).status == 405
    assert shop.store.get(Key("apiresourceschemas.apis.kcp.io", DB, "", BOUND)) is not None


def test_a_watch_ends_when_something_else_is_bound(shop: Any, run: Any) -> None:
    async def follow() -> None:
        watch = shop.watch(f"{VIEW}{SCHEMAS}?watch=1", authorization="Bearer ann")
        assert await watch.seen(1) == [("ADDED", BOUND)]
        while not shop.hub.count:
            await asyncio.sleep(0)
        bind(shop, shop.SHOP, BOUND, "v2.widgets.example.io")
        event = await watch.next()
        assert event["object"]["code"] == 410
        await watch.leave()

    run(follow())


def test_another_schema_of_the_same_name_is_none_of_the_consumers(shop: Any, run: Any) -> None:
    another = schema(shop, BOUND, DB)
    another["metadata"]["uid"] = "another"
    shop.put(another)
    assert run(shop.get(f"{VIEW}{SCHEMAS}", authorization="Bearer ann")).json["items"] == []
    assert run(shop.get(f"{VIEW}/clusters/{DB}{SCHEMAS}/{BOUND}", authorization="Bearer ann")).status == 404
