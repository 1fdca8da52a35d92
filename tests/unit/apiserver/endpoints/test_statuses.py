"""/status and /reconcile: who may ask, what is told, and who hears the bell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from apiserver import bell
from apiserver.registry import looks, tree
from apiserver.registry.looks import Looked
from apiserver.registry.tree import FleetRecord, WorkspaceRecord

READS = {"verbs": ["get"], "nonResourceURLs": ["/status"]}
RINGS = {"verbs": ["get", "post"], "nonResourceURLs": ["/reconcile"]}
SHOP = "shopcluster00000"
REPOSITORY = {"repository": "https://git.example.org/shop.git", "branch": "main"}


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Queue[bytes]]:
    rings: Queue[bytes] = Queue()
    stop = bell.listen(tmp_path, bell.LOOK, rings.put)
    yield rings
    stop()


def hold(api: Any, path: str, cluster: str, error: str, **said: Any) -> None:
    record = WorkspaceRecord(path, cluster, path.rpartition(":")[0], errors=[error], **said)
    api.store.write(tree.put_workspace(record), *tree.listed(record, None)).result(10)


def told(reply: Any) -> list[tuple[str, str]]:
    assert reply.status == 200, reply.body
    return [(each["kind"], each["where"]) for each in reply.json["wrong"]]


def test_who_may_get_the_url_in_root_sees_the_whole_fleet(api: Any, run: Any) -> None:
    hold(api, "root:shop", SHOP, "workspaces/root/shop/a.yaml:3: bad")
    api.store.write(tree.put_troubles({"RemoteAway": "away"})).result(10)
    api.allow("ann", READS)
    for user in ("", "ann"):
        for path in ("/status", "/clusters/root/status"):
            reply = run(api.get(path, user=user))
            assert told(reply) == [("remote", "the fleet"), ("held", "root:shop")]
            assert reply.json["notLookedAt"] == []


def test_who_may_only_enter_root_is_told_nothing(api: Any, run: Any) -> None:
    hold(api, "root:shop", SHOP, "secret words")
    api.allow("ann")
    api.allow("cem", READS, cluster=SHOP)
    for user in ("ann", "bob", "cem"):
        reply = run(api.get("/clusters/root/status", user=user))
        assert reply.status == 403
        assert b"secret words" not in reply.body
        assert b"root:shop" not in reply.body


def test_a_tenant_sees_what_is_wrong_in_his_workspace_and_nothing_else(api: Any, run: Any) -> None:
    hold(api, "root:shop", SHOP, "workspaces/root/shop/a.yaml:3: bad")
    hold(api, "root:broken", "broken0000000000", "secret words")
    api.store.write(tree.put_troubles({"RemoteAway": "secret words"})).result(10)
    api.allow("cem", READS, cluster=SHOP)
    for world in ("root:shop", SHOP):
        reply = run(api.get(f"/clusters/{world}/status", user="cem"))
        assert told(reply) == [("held", "root:shop")]
        assert b"secret words" not in reply.body
        assert b"broken" not in reply.body
        assert reply.json["notLookedAt"] != []
    assert run(api.get("/clusters/root:broken/status", user="cem")).status == 403


def test_elsewhere_there_is_no_such_url(api: Any, run: Any) -> None:
    for path in ("status", "reconcile"):
        assert run(api.get(f"/clusters/*/{path}")).status == 404
        assert run(api.get(f"{api.EDGE}/{path}")).status == 404
        assert run(api.get(f"/clusters/root:none/{path}")).status == 404
        assert run(api.get(f"/clusters/root:none/{path}", user="bob")).status == 403
    assert run(api.call("POST", "/clusters/root/status")).status == 405
    assert run(api.call("DELETE", "/clusters/root/reconcile")).status == 405


def test_the_bell_is_rung_by_who_may_and_by_nobody_else(api: Any, run: Any, heard: Queue[bytes]) -> None:
    """`get` tells what was found, `post` rings: one right is not the other."""
    api.allow("ann", RINGS)
    api.allow("bob", {**RINGS, "verbs": ["get"]})
    api.allow("cem", RINGS, cluster=SHOP)
    for user in ("bob", "cem", "eve"):
        assert run(api.call("POST", "/clusters/root/reconcile", user=user)).status == 403
    assert run(api.get("/clusters/root/reconcile", user="bob")).json == {"looked": None, "arriving": [], "held": 0}
    assert run(api.get("/clusters/root/reconcile", user="eve")).status == 403
    with pytest.raises(Empty):
        heard.get_nowait()
    reply = run(api.call("POST", "/clusters/root/reconcile", user="ann"))
    assert (reply.status, reply.json.keys()) == (202, {"asked"})
    assert heard.get(timeout=10) == b""


def test_a_tenant_rings_for_his_own_source(api: Any, run: Any, heard: Queue[bytes]) -> None:
    api.allow("cem", RINGS, cluster=SHOP)
    reply = run(api.call("POST", "/clusters/root:shop/reconcile", user="cem"))
    assert (reply.status, "`treeplane reconcile-now`" in reply.message) == (400, True), "it has none"
    hold(api, "root:shop", SHOP, "a:1: b", follows=REPOSITORY)
    assert run(api.call("POST", f"/clusters/{SHOP}/reconcile", user="cem")).status == 202
    assert heard.get(timeout=10) == b"root:shop"
    assert run(api.call("POST", "/clusters/root:broken/reconcile", user="cem")).status == 403


def test_what_was_found_is_told_to_who_asked_for_it(api: Any, run: Any) -> None:
    hold(api, "root:shop", SHOP, "a:1: b", follows=REPOSITORY)
    fleet, source = Looked(1.0, "1" * 40, "2" * 40, "why"), Looked(2.0, "3" * 40, "", "secret words")
    api.store.write(looks.put_looked(fleet), looks.put_looked(source, SHOP)).result(10)
    found = run(api.get("/clusters/root/reconcile")).json
    assert (found["looked"]["head"], found["held"]) == ("1" * 40, 1)
    api.allow("cem", RINGS, cluster=SHOP)
    assert run(api.get("/clusters/root:shop/reconcile", user="cem")).json["looked"]["head"] == "3" * 40


def test_who_only_shows_what_another_server_records_looks_at_nobodys_source(api: Any, run: Any) -> None:
    hold(api, "root:shop", SHOP, "a:1: b", follows=REPOSITORY)
    api.store.write(tree.put_fleet(FleetRecord(loaded=True, holder="other/1"))).result(10)
    assert run(api.call("POST", "/clusters/root:shop/reconcile")).status == 503
    assert run(api.call("POST", "/clusters/root/reconcile")).status == 202


def test_to_ring_costs_nothing_where_nobody_listens(api: Any, run: Any) -> None:
    assert run(api.call("POST", "/clusters/root/reconcile")).status == 202


def test_roles_that_ship_give_the_one_right_and_the_other(api: Any, run: Any) -> None:
    """Whoever a binding names; the roles stand nowhere."""
    for user, role in (("ann", "system:treeplane:status-reader"), ("bob", "system:treeplane:look-requester")):
        api.allow(user)
        binding = api.manifest(
            "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
            f"{user}-more",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            subjects=[{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        )
        api.put(binding)
    codes = [
        (run(api.get("/status", user=user)).status, run(api.call("POST", "/reconcile", user=user)).status)
        for user in ("ann", "bob")
    ]
    assert codes == [(200, 403), (403, 202)]
