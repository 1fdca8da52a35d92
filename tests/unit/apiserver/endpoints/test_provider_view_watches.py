"""Watches of an export's provider over its consumers: what they tell, what ends them, and what is seen of others'
claims (support/providerfleet says who the consumers are)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from support.providerfleet import (
    CONFIGMAPS,
    CONTENT,
    DB,
    PICKED,
    RBAC,
    SHAPE,
    V2,
    VIEW,
    WIDGETS,
    B,
    C,
    ProviderFleet,
    accepted,
    claim,
)

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.permissionclaims import label_key
from apiserver.registry.tree import workspace_at
from apiserver.storage.protocol import Put


@pytest.fixture
def fleet(api: Any, run: Any) -> ProviderFleet:
    return ProviderFleet(api, run)


async def _gone(watch: Any) -> Any:
    event = await watch.next()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410), event
    assert await watch.next() is None
    await watch.leave()


def test_one_watch_follows_all_consumers(fleet: ProviderFleet) -> None:
    fleet.widget("first", B)

    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        assert await watch.seen(1) == [("ADDED", "first")]
        fleet.widget("second", fleet.shop)
        fleet.widget("unseen", C)
        fleet.widget("first", B, size=2)
        assert await watch.seen(2) == [("ADDED", "second"), ("MODIFIED", "first")]
        fleet.bind(C, name="w0")  # it has an object that nobody was told of
        await _gone(watch)

    fleet.run(follow())


def test_a_consumer_that_comes_cuts_nobodys_watch(fleet: ProviderFleet) -> None:
    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        await watch_open(fleet, watch)
        fleet.bind(C)
        fleet.widget("later", C)
        assert await watch.seen(1) == [("ADDED", "later")]
        await watch.leave()

    fleet.run(follow())


async def watch_open(fleet: ProviderFleet, watch: Any) -> None:
    """Until the hub feeds it."""
    while not fleet.api.hub.count:
        await asyncio.sleep(0)


def test_a_revoked_claim_is_gone_at_once(fleet: ProviderFleet) -> None:
    fleet.put("v1 ConfigMap", "seen", fleet.shop)

    async def follow() -> None:
        for path in (f"{VIEW}/*{CONFIGMAPS}", f"{VIEW}/{fleet.shop}{CONFIGMAPS}"):
            fleet.bind(fleet.shop, accepted("configmaps"))
            watch = fleet.api.watch(f"{path}?watch=1", authorization="Bearer pat")
            assert await watch.seen(1) == [("ADDED", "seen")]
            fleet.bind(fleet.shop, accepted("configmaps", state="Rejected"))
            secret = fleet.put("v1 ConfigMap", "secret", fleet.shop)
            await _gone(watch)
            fleet.api.delete(secret)

    fleet.run(follow())
    assert fleet.get(f"{VIEW}/{fleet.shop}{CONFIGMAPS}").status == 403


@pytest.mark.parametrize("how", ["unbound", "narrowed", "unclaimed"])
def test_whatever_takes_a_claim_away_ends_the_watch(fleet: ProviderFleet, how: str) -> None:
    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1", authorization="Bearer pat")
        await watch_open(fleet, watch)
        if how == "unbound":
            fleet.api.delete(fleet.bind(fleet.shop, accepted("configmaps")))
        elif how == "narrowed":
            fleet.bind(fleet.shop, accepted("configmaps", selector=PICKED))
        else:
            fleet.export(claim("secrets"))
        fleet.put("v1 ConfigMap", "late", fleet.shop)
        await _gone(watch)

    fleet.run(follow())


@pytest.mark.parametrize("how", ["binding", "role", "inactive"])
def test_a_provider_that_may_look_no_more_sees_nothing_more(fleet: ProviderFleet, how: str) -> None:
    fleet.grant(DB, "other", CONTENT)

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{WIDGETS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        stays = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer other")
        fleet.widget("first", B)
        for watch in (*watches, stays):
            assert await watch.seen(1) == [("ADDED", "first")]
        fleet.grant(B, "pat", [])  # in a consumer's workspace it says nothing of the view
        fleet.widget("second", B)
        for watch in (*watches, stays):
            assert await watch.seen(1) == [("ADDED", "second")]
        if how == "binding":
            fleet.api.delete(fleet.api.manifest(f"{RBAC} ClusterRoleBinding", "pat", "", DB))
        elif how == "role":
            fleet.put(f"{RBAC} ClusterRole", "pat", DB, namespace="", rules=CONTENT[1:])
        else:
            inactive(fleet, DB)
        fleet.widget("late", B)
        for watch in watches:
            await _gone(watch)
        if how == "inactive":
            await _gone(stays)
        else:
            assert await stays.seen(1) == [("ADDED", "late")]
            await stays.leave()

    fleet.run(follow())


OTHER, OTHERS = "othercluster0000", "0ther1d"
GEARS = "/apis/gear.io/v1/gears"


def claim_gears(fleet: ProviderFleet) -> None:
    """The export claims what another provider offers, and a consumer of both grants it."""
    api, names = fleet.api, {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    api.put_workspace("root:other", OTHER, writes="Store", served=True)
    spec = {"group": "gear.io", "scope": "Namespaced", "names": names}
    spec["versions"] = [{"name": "v1", "served": True, "storage": True, "schema": SHAPE}]
    api.put(api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.gears.gear.io", "", OTHER, spec=spec))
    offer_gears(fleet)
    wanted = {"group": "gear.io", "identityHash": OTHERS}
    fleet.export(claim("gears", **wanted))
    fleet.bind(B, accepted("gears", **wanted))
    schema = {"name": "v1.gears.gear.io", "UID": "uid-v1.gears.gear.io", "identityHash": OTHERS}
    bound = {"group": "gear.io", "resource": "gears", "schema": schema, "storageVersions": ["v1"]}
    status = {"phase": "Bound", "apiExportClusterName": OTHER, "boundResources": [bound]}
    spec = {"reference": {"export": {"path": "root:other", "name": "gears"}}}
    api.put(api.manifest(f"{V2} APIBinding", "gears", "", B, spec=spec, status=status))


def offer_gears(fleet: ProviderFleet, **more: Any) -> None:
    offered = {"name": "gears", "group": "gear.io", "schema": "v1.gears.gear.io", "storage": {"crd": {}}}
    spec = {"resources": [offered], **more}
    fleet.api.put(fleet.api.manifest(f"{V2} APIExport", "gears", "", OTHER, spec=spec, status={"identityHash": OTHERS}))


def gear(fleet: ProviderFleet, name: str) -> None:
    made = fleet.api.manifest("gear.io/v1 Gear", name, "default", B, spec={"size": 1})
    fleet.api.store.write(Put(Key(f"gears.gear.io:{OTHERS}", B, "default", name), codec.encode(made))).result(10)


def test_what_another_provider_offers_is_claimed_by_its_identity_and_seen_as_far_as_its_policy_lets(
    fleet: ProviderFleet,
) -> None:
    claim_gears(fleet)
    gear(fleet, "first")
    assert fleet.names(f"{VIEW}/*{GEARS}") == [(B, "first")]
    assert fleet.get(f"{VIEW}/{B}{GEARS}").status == 200
    assert fleet.get(f"{VIEW}/{fleet.shop}{GEARS}").status in (403, 404)

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{GEARS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        for watch in watches:
            assert await watch.seen(1) == [("ADDED", "first")]
        offer_gears(fleet, maximalPermissionPolicy={"local": {}})
        gear(fleet, "late")
        for watch in watches:
            await _gone(watch)

    fleet.run(follow())
    assert fleet.get(f"{VIEW}/*{GEARS}").status == 403


def test_groups_that_are_required_above_the_provider_end_its_watches(fleet: ProviderFleet) -> None:
    root = workspace_at(fleet.api.store, "root")
    assert root is not None

    async def follow() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{WIDGETS}?watch=1", authorization="Bearer pat")
        fleet.widget("first", B)
        assert await watch.seen(1) == [("ADDED", "first")]
        said = {"authorization.kcp.io/required-groups": "nobodys"}
        fleet.put(
            "core.kcp.io/v1alpha1 LogicalCluster", "cluster", root.cluster, namespace="", annotations=said, spec={}
        )
        fleet.widget("late", B)
        await _gone(watch)

    fleet.run(follow())


def inactive(fleet: ProviderFleet, cluster: str, mark: str = "true") -> None:
    annotations = {"core.kcp.io/inactive": mark}
    fleet.put("core.kcp.io/v1alpha1 LogicalCluster", "cluster", cluster, namespace="", annotations=annotations, spec={})


def test_an_inactive_consumer_answers_its_provider_nothing_and_ends_watches(fleet: ProviderFleet) -> None:
    fleet.widget("first", B)
    inactive(fleet, B, "false")

    async def follow() -> None:
        watches = [fleet.api.watch(f"{VIEW}/{at}{WIDGETS}?watch=1", authorization="Bearer pat") for at in ("*", B)]
        for watch in watches:
            assert await watch.seen(1) == [("ADDED", "first")]
        inactive(fleet, B)
        for watch in watches:
            assert await watch.next() is None

    fleet.run(follow())
    found = fleet.get(f"{VIEW}/{B}{WIDGETS}")
    assert (found.status, found.message) == (403, "logical cluster is marked inactive")
    assert fleet.names(f"{VIEW}/*{WIDGETS}") == [(B, "first")]


def test_nor_does_an_inactive_provider_look_on(fleet: ProviderFleet) -> None:
    fleet.widget("first", B)
    inactive(fleet, DB)
    for at in ("*", B):
        found = fleet.get(f"{VIEW}/{at}{WIDGETS}")
        assert (found.status, found.message) == (403, "logical cluster is marked inactive")


def test_a_watch_that_comes_again_is_told_what_changed_meanwhile(fleet: ProviderFleet) -> None:
    """From the revision that it saw last: or it would keep what was revoked, or miss what was granted since."""
    fleet.put("v1 ConfigMap", "hers", B)
    seen = fleet.api.store.revision()
    fleet.put("v1 ConfigMap", "new", fleet.shop)

    async def resumed() -> Any:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1&resourceVersion={seen}", authorization="Bearer pat")
        event = await watch.next()
        await watch.leave()
        return event

    assert fleet.run(resumed())["object"]["metadata"]["name"] == "new"
    fleet.bind(B, accepted("configmaps"))
    assert fleet.run(resumed())["object"]["metadata"].get("name") in ("new", None)

    async def again() -> None:
        watch = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1&resourceVersion={seen}", authorization="Bearer pat")
        events = []
        while (event := await watch.next()) is not None:
            events.append(event)
        await watch.leave()
        assert events[-1]["object"].get("code") == 410

    fleet.run(again())


def test_other_watches_see_what_they_saw(fleet: ProviderFleet) -> None:
    """Two views and a workspace's own watch of one object share no bytes."""

    async def follow() -> Any:
        view = fleet.api.watch(f"{VIEW}/*{CONFIGMAPS}?watch=1", authorization="Bearer pat")
        own = fleet.api.watch(f"/clusters/root:shop{CONFIGMAPS}?watch=1")
        everywhere = fleet.api.watch(f"/clusters/*{CONFIGMAPS}?watch=1&fieldSelector=metadata.name=one")
        while fleet.api.hub.count < 3:
            await asyncio.sleep(0)
        fleet.put("v1 ConfigMap", "one", fleet.shop)
        found = [await watch.next() for watch in (view, own, everywhere)]
        for watch in (view, own, everywhere):
            await watch.leave()
        return [orjson.dumps(event["object"]) for event in found]

    view, own, everywhere = fleet.run(follow())
    mark = label_key(DB, "widgets").encode()
    assert [mark in each for each in (view, own, everywhere)] == [True, False, False]
