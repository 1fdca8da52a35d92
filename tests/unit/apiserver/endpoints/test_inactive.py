"""A workspace that is marked inactive: open watches end, and what is looked at costs one look into the store."""

from __future__ import annotations

from typing import Any

WATCH = "/clusters/root:shop/api/v1/configmaps?watch=true"
CLUSTERS = "/clusters/root:shop/apis/core.kcp.io/v1alpha1/logicalclusters?watch=true"
SERVED = "/clusters/root:shop/api/v1/namespaces/default/configmaps/s"


def cluster(api: Any, inactive: str = "") -> Any:
    annotations = {"core.kcp.io/inactive": inactive} if inactive else {}
    made = api.manifest("core.kcp.io/v1alpha1 LogicalCluster", "cluster", "", api.SHOP, annotations=annotations)
    return {**made, "spec": {}, "status": {"phase": "Ready"}}


def test_the_mark_ends_open_watches(api: Any, run: Any) -> None:
    async def scenario() -> None:
        api.put(cluster(api))
        watch, other = api.watch(WATCH), api.watch("/clusters/root/api/v1/configmaps?watch=true")
        marks, everywhere = api.watch(CLUSTERS), api.watch("/clusters/*/api/v1/configmaps?watch=true")
        assert await watch.seen(1) == [("ADDED", "s")]
        assert await marks.seen(1) == [("ADDED", "cluster")]
        await other.seen(3)
        await everywhere.seen(4)
        api.put(cluster(api, "false"))
        assert await marks.seen(1) == [("MODIFIED", "cluster")]
        api.put(cluster(api, "true"))
        assert await watch.next() is None
        assert await marks.seen(1) == [("MODIFIED", "cluster")]
        api.put(api.manifest("v1 ConfigMap", "late", "default"))
        assert await other.seen(1) == [("ADDED", "late")]
        assert await everywhere.next() is None
        for each in (other, marks):
            await each.leave()

    run(scenario())


def test_watches_across_workspaces_end_with_it_as_kcps_do(api: Any, run: Any) -> None:
    """Those of what says so go on, and who comes again goes on where they were: lists across workspaces show an
    inactive one as any."""

    async def scenario() -> None:
        api.put(cluster(api))
        everywhere = "/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters?watch=true"
        marks, ended = api.watch(everywhere), api.watch("/clusters/*/api/v1/configmaps?watch=true")
        await marks.seen(1)
        await ended.seen(4)
        at = api.put(cluster(api, "true"))
        assert await ended.next() is None
        assert await marks.seen(1) == [("MODIFIED", "cluster")]
        again = api.watch(f"/clusters/*/api/v1/configmaps?watch=true&resourceVersion={at}")
        api.put(api.manifest("v1 ConfigMap", "late", "default", api.SHOP))
        assert await again.seen(1) == [("ADDED", "late")]
        api.put({**cluster(api, "true"), "spec": {"directlyDeletable": True}})
        api.put(cluster(api, "false"))
        api.put(api.manifest("v1 ConfigMap", "later", "default"))
        assert await again.seen(1) == [("ADDED", "later")], "nothing else of it ends any"
        for each in (again, marks):
            await each.leave()

    run(scenario())
    names = [item["metadata"]["name"] for item in run(api.get("/clusters/*/api/v1/configmaps")).json["items"]]
    assert "late" in names


def test_a_watch_that_begins_meanwhile_ends_too(api: Any, run: Any) -> None:
    async def scenario() -> None:
        api.put(cluster(api, "true"))
        watch = api.watch(WATCH)
        assert (await watch.next())["message"] == "logical cluster is marked inactive"
        await watch.leave()

    run(scenario())


def test_it_is_forbidden_in_kcps_words(api: Any, run: Any) -> None:
    assert run(api.get(SERVED)).status == 200
    api.put(cluster(api, "true"))
    found = run(api.get(SERVED))
    assert (found.status, found.json["reason"], found.message) == (
        403,
        "Forbidden",
        "logical cluster is marked inactive",
    )
    assert run(api.get("/clusters/root/api/v1/namespaces/default/configmaps/a")).status == 200


def test_a_custom_resource_of_that_name_marks_nothing(api: Any, run: Any) -> None:
    """The mark is the LogicalCluster's, whatever else says so."""
    annotations = {"core.kcp.io/inactive": "true"}
    api.put(api.manifest("v1 ConfigMap", "cluster", "default", api.SHOP, annotations=annotations))
    assert run(api.get(SERVED)).status == 200
