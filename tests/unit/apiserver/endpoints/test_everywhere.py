"""Custom resources across workspaces: each is what its own workspace makes of it, and which kind is meant is clear."""

from __future__ import annotations

from typing import Any

import pytest
from support.shipped import SCHEDULING, bound

from apiserver.registry.kinds import SHIPPED_IDENTITY

ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}
CRD = "apiextensions.k8s.io/v1 CustomResourceDefinition"
ALL = "/clusters/*/apis/example.io"
ONE, TWO = "onecluster000000", "twocluster000000"


def definition(api: Any, cluster: str, *versions: str, webhook: bool = False, **spec: Any) -> Any:
    """Of Widgets, kept in the first version. `spec`: the schema of spec."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    listed = [
        {"name": v, "served": True, "storage": v == versions[0], "schema": {"openAPIV3Schema": schema}}
        for v in versions
    ]
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    hook = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                                               "clientConfig": {"url": "https://127.0.0.1:1/"}}}  # fmt: skip
    content = {"group": "example.io", "names": names, "scope": "Cluster", "versions": listed}
    content |= {"conversion": hook} if webhook else {}
    return api.manifest(CRD, "widgets.example.io", "", cluster, spec=content, status=ESTABLISHED)


def widget(api: Any, cluster: str, version: str, name: str = "w", **spec: Any) -> Any:
    return api.manifest(f"example.io/{version} Widget", name, "", cluster, spec=spec)


@pytest.fixture
def two(api: Any) -> Any:
    """root:one keeps v1, root:two keeps v1alpha1."""
    api.put_workspace("root:one", ONE)
    api.put_workspace("root:two", TWO)
    return api


def shown(api: Any, run: Any, version: str, **headers: str) -> list[tuple[str, str, Any]]:
    found = run(api.get(f"{ALL}/{version}/widgets", **headers)).json["items"]
    return [(o["metadata"]["annotations"]["kcp.io/cluster"], o["apiVersion"], o.get("spec")) for o in found]


def test_what_a_workspace_does_not_serve_so_is_not_called_so(two: Any, run: Any) -> None:
    two.put(definition(two, ONE, "v1"), definition(two, TWO, "v1alpha1"))
    two.put(widget(two, ONE, "v1"), widget(two, TWO, "v1alpha1"))
    assert shown(two, run, "v1") == [(ONE, "example.io/v1", {})]
    assert shown(two, run, "v1alpha1") == [(TWO, "example.io/v1alpha1", {})]


def test_other_versions_are_converted_as_their_workspace_does(two: Any, run: Any) -> None:
    """Its defaults, not those of whoever defines the kind first."""
    colour = {"type": "string", "default": "red"}
    two.put(definition(two, ONE, "v1"), definition(two, TWO, "v1alpha1", "v1", colour=colour))
    two.put(widget(two, ONE, "v1"), widget(two, TWO, "v1alpha1"))
    expected = [(ONE, "example.io/v1", {}), (TWO, "example.io/v1", {"colour": "red"})]
    assert shown(two, run, "v1") == expected
    for cluster, version, spec in expected:
        own = run(two.get(f"/clusters/{cluster}/apis/{version}/widgets/w")).json
        assert (own["apiVersion"], own["spec"]) == (version, spec)


def test_what_only_a_webhook_converts_is_left_out(two: Any, run: Any) -> None:
    """A dead one would be everybody's otherwise."""
    two.put(definition(two, ONE, "v1"), definition(two, TWO, "v1alpha1", "v1", webhook=True))
    two.put(widget(two, ONE, "v1"), widget(two, TWO, "v1alpha1"), widget(two, TWO, "v1", "already"))
    assert shown(two, run, "v1") == [(ONE, "example.io/v1", {}), (TWO, "example.io/v1", {})]


def test_a_limit_counts_what_is_there(two: Any, run: Any) -> None:
    two.put(definition(two, ONE, "v1alpha1"), definition(two, TWO, "v1"))
    two.put(*(widget(two, ONE, "v1alpha1", f"a{n}") for n in range(5)))
    two.put(*(widget(two, TWO, "v1", f"b{n}") for n in range(3)))
    first = run(two.get(f"{ALL}/v1/widgets?limit=2")).json
    assert [o["metadata"]["name"] for o in first["items"]] == ["b0", "b1"]
    rest = run(two.get(f"{ALL}/v1/widgets?limit=2&continue={first['metadata']['continue']}")).json
    assert ([o["metadata"]["name"] for o in rest["items"]], rest["metadata"].get("continue")) == (["b2"], None)


def test_a_watch_shows_the_same(two: Any, run: Any) -> None:
    two.put(definition(two, ONE, "v1"), definition(two, TWO, "v1alpha1"))
    two.put(widget(two, TWO, "v1alpha1", "before"), widget(two, ONE, "v1", "first"))

    async def watched() -> list[Any]:
        watch = two.watch(f"{ALL}/v1/widgets?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                          "&allowWatchBookmarks=true")  # fmt: skip
        found = await watch.seen(2)
        two.put(widget(two, TWO, "v1alpha1", "after"))
        two.put(widget(two, ONE, "v1", "second"))
        found += await watch.seen(1)
        await watch.leave()
        return found

    assert run(watched()) == [("ADDED", "first"), ("BOOKMARK", ""), ("ADDED", "second")]


def export(api: Any, cluster: str, identity: str) -> list[Any]:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}
    spec = {"group": "example.io", "names": names, "scope": "Cluster", "versions": [version]}
    offered = {"resources": [{"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}]}
    return [
        api.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", "v1.widgets.example.io", "", cluster, spec=spec),
        api.manifest("apis.kcp.io/v1alpha2 APIExport", "widgets", "", cluster, spec=offered,
                     status={"identityHash": identity}),
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["", "?watch=1"])
def test_a_name_with_two_identities_means_neither(two: Any, run: Any, query: str) -> None:
    two.put(*export(two, ONE, "firsthash"), *export(two, TWO, "secondhash"))
    reply = run(two.get(f"{ALL}/v1/widgets{query}"))
    assert (reply.status, "served under 2 identities" in reply.message) == (400, True)
    assert f"{ALL}/v1/widgets:firsthash, {ALL}/v1/widgets:secondhash" in reply.message
    for identity in ("firsthash", "secondhash"):
        assert run(two.get(f"{ALL}/v1/widgets:{identity}")).status == 200
    assert run(two.get(f"{ALL}/v1/widgets:thirdhash")).status == 404


def test_definitions_have_no_identity_and_are_named_so(two: Any, run: Any) -> None:
    two.put(*export(two, ONE, "firsthash"))
    assert run(two.get(f"{ALL}/v1/widgets")).status == 200, "it has but one"
    two.put(definition(two, TWO, "v1"), widget(two, TWO, "v1"))
    assert run(two.get(f"{ALL}/v1/widgets")).status == 400
    assert len(run(two.get(f"{ALL}/v1/widgets:")).json["items"]) == 1
    assert run(two.get(f"{ALL}/v1/widgets:firsthash")).json["items"] == []


def test_kubernetes_own_kinds_of_clusters_are_an_identity_once_there_are_objects(two: Any, run: Any) -> None:
    """Every workspace of type kube-compat has Deployments of its own, and the export `kubernetes` offers others."""
    names = {"plural": "deployments", "singular": "deployment", "kind": "Deployment", "listKind": "DeploymentList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}
    spec = {"group": "apps", "names": names, "scope": "Namespaced", "versions": [version]}
    schema = "v1.deployments.apps"
    two.put(
        two.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", schema, "", ONE, spec=spec),
        two.manifest("apis.kcp.io/v1alpha2 APIExport", "kubernetes", "", ONE,
                     spec={"resources": [{"name": "deployments", "group": "apps", "schema": schema}]},
                     status={"identityHash": "hash"}),
    )  # fmt: skip
    path = "/clusters/*/apis/apps/v1/deployments"
    assert run(two.get(path)).status == 200
    two.put(two.manifest("apps/v1 Deployment", "d", "default", TWO, spec={}))
    assert run(two.get(path)).status == 400
    assert len(run(two.get(f"{path}:")).json["items"]) == 1
    assert run(two.get(f"{path}:hash")).json["items"] == []
    # What every workspace has is one thing.
    assert run(two.get("/clusters/*/api/v1/configmaps")).status == 200


def test_what_ships_is_one_kind_whoever_exports_another_of_its_name(two: Any, run: Any) -> None:
    two.put(*bound(ONE, SCHEDULING))
    two.put(two.manifest("scheduling.kcp.io/v1alpha1 Placement", "ours", "", ONE, spec={}))
    names = {"plural": "placements", "singular": "placement", "kind": "Placement", "listKind": "PlacementList"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"type": "object"}}
    spec = {"group": SCHEDULING, "names": names, "scope": "Cluster", "versions": [version]}
    schema = f"theirs.placements.{SCHEDULING}"
    offered = {"name": "placements", "group": SCHEDULING, "schema": schema}
    two.put(
        two.manifest("apis.kcp.io/v1alpha1 APIResourceSchema", schema, "", TWO, spec=spec),
        two.manifest("apis.kcp.io/v1alpha2 APIExport", "mine", "", TWO, spec={"resources": [offered]},
                     status={"identityHash": "theirs"}),
    )  # fmt: skip
    path = f"/clusters/*/apis/{SCHEDULING}/v1alpha1/placements"
    for asked in (path, f"{path}:", f"{path}:{SHIPPED_IDENTITY}", path.replace(".io/", ".dev/")):
        assert [o["metadata"]["name"] for o in run(two.get(asked)).json["items"]] == ["ours"], asked
    assert run(two.get(f"{path}:theirs")).json["items"] == []
