"""What an initializer sees and may do through its view, and who is it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.lifecycles import INITIALIZER, PHASE, TERMINATOR, Lifecycle, with_labels

CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def view(lifecycle: Lifecycle, cluster: str = "*", name: str = "root:gold") -> str:
    return f"/services/{lifecycle.view}/{name}/clusters/{cluster}"


def waits(api: Any, lifecycle: Lifecycle, *names: str, cluster: str = "", name: str = "shop", **more: Any) -> None:
    """A workspace waits for these programs."""
    cluster = cluster or api.SHOP
    told = {"type": "WorkspaceInitialized", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"phase": lifecycle.phase, lifecycle.field: [*names], "conditions": [told], **more}
    labels = with_labels({}, status)
    api.put(
        api.manifest(
            "core.kcp.io/v1alpha1 LogicalCluster", "cluster", "", cluster, labels=labels, spec={}, status=status
        ),
        api.manifest("tenancy.kcp.io/v1alpha1 Workspace", name, labels=labels, spec={}, status=status),
    )


def kind(api: Any, **spec: Any) -> None:
    api.put(api.manifest("tenancy.kcp.io/v1alpha1 WorkspaceType", "gold", spec=spec))


def may(api: Any, lifecycle: Lifecycle, user: str = "ann", name: str = "gold") -> None:
    rule = {"verbs": [lifecycle.verb], "apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"]}
    api.allow(user, {**rule, "resourceNames": [name]})


@pytest.fixture(params=[INITIALIZER, TERMINATOR], ids=lambda each: each.word)
def lifecycle(request: Any) -> Lifecycle:
    return request.param


@pytest.fixture
def gold(api: Any, lifecycle: Lifecycle) -> Any:
    """root:shop waits for root:gold and another, another workspace for the other alone; ann may act as root:gold."""
    kind(api, **{lifecycle.word: True})
    api.put_workspace("root:other", "othercluster0000")
    waits(api, lifecycle, "root:gold", "root:silver")
    waits(api, lifecycle, "root:silver", cluster="othercluster0000", name="other")
    may(api, lifecycle)
    return api


def seen(reply: Any) -> list[str]:
    assert reply.status == 200, reply.body
    return [item["metadata"]["annotations"]["kcp.io/cluster"] for item in reply.json["items"]]


def patch(api: Any, lifecycle: Lifecycle, left: Any, cluster: str = "", user: str = "ann", **more: Any) -> Any:
    body = {"status": {lifecycle.field: left, **more}}
    path = f"{view(lifecycle, cluster or api.SHOP)}{CLUSTERS}/cluster/status"
    return api.call("PATCH", path, body, kind=MERGE, user=user)


# -- across workspaces


def test_it_sees_who_waits_for_it_and_nobody_else(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at = view(lifecycle)
    assert seen(run(gold.get(f"{at}{CLUSTERS}", authorization="Bearer ann"))) == [gold.SHOP]
    labelled = f"?labelSelector={PHASE}%3DReady"
    assert seen(run(gold.get(f"{at}{CLUSTERS}{labelled}", authorization="Bearer ann"))) == []
    silver = view(lifecycle, name="root:silver")
    assert sorted(seen(run(gold.get(f"{silver}{CLUSTERS}")))) == sorted([gold.SHOP, "othercluster0000"])
    for path in (f"{at}{MAPS}", f"{at}/api/v1", f"{at}/openapi/v3", f"{at}/apis/apps/v1", f"{at}/version", f"{at}/"):
        assert run(gold.get(path, authorization="Bearer ann")).status == 404, path


def test_its_discovery_is_the_older_one_of_one_kind(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at, aggregated = view(lifecycle), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = run(gold.get(f"{at}/api", authorization="Bearer ann", accept=aggregated)).json
    assert (found["kind"], found["versions"]) == ("APIVersions", ["v1"])
    groups = run(gold.get(f"{at}/apis", authorization="Bearer ann", accept=aggregated)).json
    assert [group["name"] for group in groups["groups"]] == ["core.kcp.io"]
    found = run(gold.get(f"{at}/apis/core.kcp.io/v1alpha1", authorization="Bearer ann")).json["resources"]
    assert {each["name"]: sorted(each["verbs"]) for each in found} == {
        "logicalclusters": ["get", "list", "watch"],
        "logicalclusters/status": ["get", "patch", "update"],
    }


def test_a_watch_tells_who_begins_to_wait_and_who_is_done(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    async def scenario() -> list[tuple[str, str]]:
        watch = gold.watch(f"{view(lifecycle)}{CLUSTERS}?watch=1", authorization="Bearer ann")
        found = [await watch.next()]
        waits(gold, lifecycle, "root:gold", "root:silver", cluster="othercluster0000", name="other")
        found.append(await watch.next())
        assert (await patch(gold, lifecycle, ["root:silver"])).status == 200
        found.append(await watch.next())
        await watch.leave()
        return [(each["type"], each["object"]["metadata"]["annotations"]["kcp.io/cluster"]) for each in found]

    expected = [("ADDED", gold.SHOP), ("ADDED", "othercluster0000"), ("DELETED", gold.SHOP)]
    assert run(scenario()) == expected


def test_it_costs_what_waits_for_it(gold: Any, run: Any, lifecycle: Lifecycle, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = {"phase": "Ready", lifecycle.field: []}
    for number in range(50):
        cluster = f"ready{number:011}"
        gold.put(gold.manifest("core.kcp.io/v1alpha1 LogicalCluster", "cluster", "", cluster, spec={}, status=ready))
    scan, rows = gold.store.scan, []

    def counted(*args: Any, **options: Any) -> Any:
        page = scan(*args, **options)
        if args[0] == LOGICAL_CLUSTERS:
            rows.extend(page.records)
        return page

    monkeypatch.setattr(gold.store, "scan", counted)
    listed = run(gold.get(f"{view(lifecycle)}{CLUSTERS}?limit=1", authorization="Bearer ann"))
    assert (seen(listed), len(rows)) == ([gold.SHOP], 1)
    assert "continue" not in listed.json["metadata"]


def test_who_begins_to_wait_while_it_looks_is_not_missed(
    gold: Any, run: Any, lifecycle: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which ones to read is known a moment before they are read."""
    scan = gold.store.scan

    def late(*args: Any, **options: Any) -> Any:
        if args[0] == LOGICAL_CLUSTERS:
            monkeypatch.setattr(gold.store, "scan", scan)
            waits(gold, lifecycle, "root:gold", cluster="aothercluster000", name="other")
        return scan(*args, **options)

    async def scenario() -> list[str]:
        watch = gold.watch(f"{view(lifecycle)}{CLUSTERS}?watch=1", authorization="Bearer ann")
        found = [await watch.next(), await watch.next()]
        await watch.leave()
        return [each["object"]["metadata"]["annotations"]["kcp.io/cluster"] for each in found]

    monkeypatch.setattr(gold.store, "scan", late)
    assert run(scenario()) == [gold.SHOP, "aothercluster000"]


@pytest.mark.parametrize("name", ["root:gold", "root:nope", "nope:gold", "gold", "root:silver"])
def test_who_may_not_act_as_it_learns_nothing(gold: Any, run: Any, lifecycle: Lifecycle, name: str) -> None:
    texts = set()
    for cluster in ("*", gold.SHOP, "othercluster0000", "nosuchcluster000"):
        for path in (CLUSTERS, MAPS, "/apis"):
            reply = run(gold.get(f"{view(lifecycle, cluster, name)}{path}", authorization="Bearer bob"))
            assert reply.status == 403
            texts.add(reply.message)
    [text] = texts
    assert f'cannot {lifecycle.verb} resource "workspacetypes"' in text
    assert run(patch(gold, lifecycle, [], user="bob")).status == 403


def test_the_verb_of_the_other_lifecycle_is_not_enough(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    [other] = {INITIALIZER, TERMINATOR} - {lifecycle}
    assert run(gold.get(f"{view(other)}{CLUSTERS}", authorization="Bearer ann")).status == 403


def test_who_is_to_wait_for_it_one_day_is_not_seen_yet(api: Any, run: Any) -> None:
    kind(api, terminator=True)
    waits(api, TERMINATOR, "root:gold", phase="Ready")
    at, inside = view(TERMINATOR), view(TERMINATOR, api.SHOP)
    assert seen(run(api.get(f"{at}{CLUSTERS}"))) == []
    assert run(api.get(f"{inside}{CLUSTERS}/cluster")).status == 404
    assert run(api.get(f"{inside}{MAPS}")).status == 403
    assert run(patch(api, TERMINATOR, [], user="")).status == 404

    async def scenario() -> list[str]:
        watch = api.watch(f"{at}{CLUSTERS}?watch=1")
        waits(api, TERMINATOR, "root:gold")
        found = [await watch.next()]
        await watch.leave()
        return [each["type"] for each in found]

    assert run(scenario()) == ["ADDED"]


# -- being done


def test_it_takes_its_own_name_away(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    reply = run(patch(gold, lifecycle, ["root:silver"]))
    assert reply.status == 200, reply.body
    assert reply.json["status"][lifecycle.field] == ["root:silver"]
    workspace = run(gold.get("/apis/tenancy.kcp.io/v1alpha1/workspaces/shop")).json
    for obj in (reply.json, workspace):
        assert obj["status"][lifecycle.field] == ["root:silver"]
        assert obj["status"]["phase"] == lifecycle.phase
        assert set(obj["metadata"]["labels"]) == {PHASE, lifecycle.label("root:silver")[0]}
    # From then on the workspace is closed to it, as one that is not there: its LogicalCluster is none that it sees.
    gone = run(patch(gold, lifecycle, []))
    assert (gone.status, gone.message) == (404, 'logicalclusters.core.kcp.io "cluster" not found')
    for cluster in (gold.SHOP, "nosuchcluster000"):
        at = view(lifecycle, cluster)
        reply = run(gold.get(f"{at}{CLUSTERS}/cluster", authorization="Bearer ann"))
        assert (reply.status, reply.body) == (404, gone.body)
        for path in (CLUSTERS, MAPS, "/apis"):
            reply = run(gold.get(f"{at}{path}", authorization="Bearer ann"))
            assert (reply.status, reply.message) == (403, f'{lifecycle.word} "root:gold" cannot access this workspace')


def test_with_the_last_initializer_it_is_ready(api: Any, run: Any) -> None:
    kind(api, initializer=True)
    waits(api, INITIALIZER, "root:gold")
    assert run(patch(api, INITIALIZER, None, user="")).status == 200  # as Go's clients send what is empty
    for path in (f"/clusters/{api.SHOP}{CLUSTERS}/cluster", "/apis/tenancy.kcp.io/v1alpha1/workspaces/shop"):
        obj = run(api.get(path)).json
        assert (obj["status"]["phase"], obj["status"]["initializers"]) == ("Ready", [])
        assert obj["metadata"]["labels"] == {PHASE: "Ready"}
        [told] = obj["status"]["conditions"]
        assert (told["status"], told["reason"]) == ("True", "Initialized")
        assert told["lastTransitionTime"] != "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "left", [[], ["root:gold"], ["root:gold", "root:silver", "root:more"], ["root:silver", "root:gold"], ["x"]]
)
def test_no_other_change_is_taken(gold: Any, run: Any, lifecycle: Lifecycle, left: list[str]) -> None:
    before = gold.store.revision()
    reply = run(patch(gold, lifecycle, left))
    assert reply.status == 422
    assert f'only removing the "root:gold" {lifecycle.word} is supported' in reply.message
    assert reply.json["details"]["causes"][0]["field"] == f"status.{lifecycle.field}"
    assert run(patch(gold, lifecycle, ["root:silver"], phase="Ready")).status == 422
    assert gold.store.revision() == before
    assert run(patch(gold, lifecycle, ["root:gold", "root:silver"])).status == 200
    assert gold.store.revision() == before, "it says nothing new"


@pytest.mark.parametrize("status", ["gold", ["gold"], None, 1])
def test_what_is_no_status_is_refused(gold: Any, run: Any, lifecycle: Lifecycle, status: Any) -> None:
    path = f"{view(lifecycle, gold.SHOP)}{CLUSTERS}/cluster/status"
    body: list[Any] = [{"op": "replace", "path": "/status", "value": status}]
    assert run(gold.call("PATCH", path, body, kind="application/json-patch+json", user="ann")).status == 422
    body[0] = {"op": "replace", "path": f"/status/{lifecycle.field}", "value": {"root:gold": 1}}
    assert run(gold.call("PATCH", path, body, kind="application/json-patch+json", user="ann")).status == 422


def test_a_dry_run_changes_nothing(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    before = gold.store.revision()
    body = {"status": {lifecycle.field: ["root:silver"]}}
    for at, user in ((view(lifecycle, gold.SHOP), "ann"), (f"/clusters/{gold.SHOP}", "")):
        reply = run(gold.call("PATCH", f"{at}{CLUSTERS}/cluster/status?dryRun=All", body, kind=MERGE, user=user))
        assert (reply.status, reply.json["status"][lifecycle.field]) == (200, ["root:silver"])
    assert gold.store.revision() == before


def test_an_administrator_goes_on_without_a_program(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at = f"/clusters/{gold.SHOP}{CLUSTERS}/cluster/status"
    body = run(gold.get(at.removesuffix("/status"))).json
    body["status"][lifecycle.field] = ["root:gold"]
    assert run(gold.call("PUT", at, body)).status == 200
    workspace = run(gold.get("/apis/tenancy.kcp.io/v1alpha1/workspaces/shop")).json
    assert workspace["status"][lifecycle.field] == ["root:gold"]
    assert run(gold.call("PUT", at, body)).status == 409, "it was read before that"
    assert run(gold.call("PATCH", at, {"status": {lifecycle.field: None}}, kind=MERGE)).status == 200
    assert run(gold.get("/apis/tenancy.kcp.io/v1alpha1/workspaces/shop")).json["status"][lifecycle.field] == []


def test_and_says_nothing_else_of_the_status(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at, before = f"/clusters/{gold.SHOP}{CLUSTERS}/cluster/status", gold.store.revision()
    for status, code, text in (
        ({lifecycle.field: ["root:gold", "root:silver", "root:more"]}, 422, f"status.{lifecycle.field} must not grow"),
        ({lifecycle.field: [], "phase": "Ready"}, 403, "its status is computed by the server"),
        ({"conditions": []}, 403, "its status is computed by the server"),
    ):
        reply = run(gold.call("PATCH", at, {"status": status}, kind=MERGE))
        assert (reply.status, text in reply.message) == (code, True), reply.message
    assert gold.store.revision() == before


def test_a_terminator_has_its_turn_at_the_end(api: Any, run: Any) -> None:
    """While the workspace does not go, there is nothing to go on with."""
    waits(api, TERMINATOR, "root:gold", phase="Ready")
    at = f"/clusters/{api.SHOP}{CLUSTERS}/cluster/status"
    assert run(api.call("PATCH", at, {"status": {"terminators": []}}, kind=MERGE)).status == 403


def test_who_rules_a_workspace_alone_does_not(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    """A tenant would be done with what their type demands."""
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    gold.allow("bob", rule, cluster=gold.SHOP)
    at, body = f"/clusters/{gold.SHOP}{CLUSTERS}/cluster/status", {"status": {lifecycle.field: []}}
    reply = run(gold.call("PATCH", at, body, kind=MERGE, user="bob"))
    assert (reply.status, "its status is computed by the server" in reply.message) == (403, True)


def test_only_the_status_is_written(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at = f"{view(lifecycle, gold.SHOP)}{CLUSTERS}"
    body = run(gold.get(f"{at}/cluster", authorization="Bearer ann")).json
    for method, path in (
        ("PUT", "/cluster"),
        ("PATCH", "/cluster"),
        ("DELETE", "/cluster"),
        ("POST", ""),
        ("DELETE", ""),
    ):
        assert run(gold.call(method, f"{at}{path}", body, kind="application/json", user="ann")).status == 405, method
    assert run(patch(gold, lifecycle, ["root:silver"], cluster="*")).status == 405
    stale = {**body, "metadata": {**body["metadata"], "resourceVersion": "1"}}
    assert run(gold.call("PUT", f"{at}/cluster/status", stale, user="ann")).status == 409
    body["status"][lifecycle.field].remove("root:gold")
    assert run(gold.call("PUT", f"{at}/cluster/status", body, user="ann")).status == 200


# -- what is in it


def test_it_reads_and_writes_content_as_the_owner(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    at = view(lifecycle, gold.SHOP)
    gold.put_fleet(loaded=True, writes="Store")
    found = run(gold.get(f"{at}{MAPS}", authorization="Bearer ann")).json["items"]
    assert [item["metadata"]["name"] for item in found] == ["s"]
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
    assert run(gold.call("POST", f"{at}{MAPS}", made, user="ann")).status == 201
    assert run(gold.get(f"/clusters/root:shop{MAPS}/made")).status == 200
    assert run(gold.get(f"/clusters/root:shop{MAPS}", authorization="Bearer ann")).status == 403, "in its own name"
    other = view(lifecycle, "othercluster0000")
    assert run(gold.get(f"{other}{MAPS}", authorization="Bearer ann")).status == 403
    assert run(gold.get(f"{at}/apis", authorization="Bearer ann")).status == 200


def test_or_as_its_type_permits(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    rule = {"verbs": ["get", "list", "create"], "apiGroups": [""], "resources": ["configmaps"]}
    rbac = {"verbs": ["*"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"]}
    kind(gold, **{lifecycle.permissions: [rule, rbac]})
    gold.put_fleet(loaded=True, writes="Store")
    at = view(lifecycle, gold.SHOP)
    assert run(gold.get(f"{at}{MAPS}", authorization="Bearer ann")).status == 200
    denied = run(gold.call("DELETE", f"{at}{MAPS}/s", user="ann"))
    assert denied.status == 403
    assert f'{lifecycle.word} "root:gold" denied by {lifecycle.permissions}' in denied.message
    # It grants nobody what it has not.
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"}}
    role["rules"] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    path = f"{at}/apis/rbac.authorization.k8s.io/v1/clusterroles"
    rbac["verbs"] = ["create", "get"]
    kind(gold, **{lifecycle.permissions: [rule, rbac]})
    assert run(gold.call("POST", path, role, user="ann")).status == 403
    assert run(patch(gold, lifecycle, ["root:silver"])).status == 200, "that it is done it may say in any case"


def test_of_a_type_that_is_gone_nobody_knows_the_permissions(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    gold.delete(gold.manifest("tenancy.kcp.io/v1alpha1 WorkspaceType", "gold"))
    assert run(gold.get(f"{view(lifecycle, gold.SHOP)}{MAPS}", authorization="Bearer ann")).status == 403
    assert run(patch(gold, lifecycle, ["root:silver"])).status == 200


def test_a_watch_of_content_ends_when_it_is_done(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    async def scenario() -> tuple[Any, Any, Any]:
        watch = gold.watch(f"{view(lifecycle, gold.SHOP)}{MAPS}?watch=1", authorization="Bearer ann")
        others = gold.watch(f"/clusters/root:shop{MAPS}?watch=1")
        first = await watch.next()
        await others.next()
        assert (await patch(gold, lifecycle, ["root:silver"])).status == 200
        ended = await watch.next()
        gold.put(gold.manifest("v1 ConfigMap", "late", "default", gold.SHOP))
        late = await others.next()
        await asyncio.gather(watch.leave(), others.leave())
        return first, ended, late

    first, ended, late = run(scenario())
    assert first["object"]["metadata"]["name"] == "s"
    assert ended is None
    assert late["object"]["metadata"]["name"] == "late", "watches of others go on"


def test_watches_end_when_one_may_not_act_as_it_any_more(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    async def scenario() -> None:
        paths = (f"{view(lifecycle)}{CLUSTERS}", f"{view(lifecycle, gold.SHOP)}{CLUSTERS}")
        watches = [gold.watch(f"{path}?watch=1", authorization="Bearer ann") for path in paths]
        content = gold.watch(f"{view(lifecycle, gold.SHOP)}{MAPS}?watch=1", authorization="Bearer ann")
        for watch in (*watches, content):
            await watch.seen(1)
        may(gold, lifecycle, name="other")
        gold.put(gold.manifest("v1 ConfigMap", "late", "default", gold.SHOP))
        for watch in (*watches, content):
            ended = await watch.next()
            assert (ended["type"], ended["object"]["code"]) == ("ERROR", 410)
            assert await watch.next() is None

    run(scenario())


def test_nobody_is_impersonated_in_the_workspace(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    """Whom ann may impersonate is asked where the type is, and she may nobody."""
    headers = {"authorization": "Bearer ann", "impersonate_user": "root", "impersonate_group": "system:masters"}
    for path in (MAPS, CLUSTERS):
        assert run(gold.get(f"{view(lifecycle, gold.SHOP)}{path}", **headers)).status == 403
    assert (
        run(gold.get(f"{view(lifecycle, gold.SHOP)}{MAPS}", authorization="Bearer ann", impersonate_user="x")).status
        == 403
    )


def test_another_server_that_holds_the_fleet_writes(gold: Any, run: Any, lifecycle: Lifecycle) -> None:
    gold.put_fleet(loaded=True, holder="them/1")
    assert run(patch(gold, lifecycle, ["root:silver"])).status == 503
