"""What whoever writes is answered where writes are proposals. What puts them on branches is made up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.model.keys import Internal, Key
from apiserver.registry.intents import Intent, proposed, proposing

LAB = "labcluster000000"
BASE = "/clusters/root:lab"
MAPS = f"{BASE}/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = f"{BASE}/apis/apps/v1/namespaces/default/deployments"
PODS = f"{BASE}/api/v1/namespaces/default/pods"
TEXT = "proposed on branch treeplane/proposals/admin/root-lab; open a pull request: https://forge.example.org/x"


class Lab:
    """Everything that is proposed is kept in `asked`, and answered with `TEXT`."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.asked: list[Intent] = []
        self._end, self._bell = threading.Event(), threading.Event()
        self._stop = api.store.subscribe(self._bell.set)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.is_set():
            self._bell.wait()
            self._bell.clear()
            for intent in proposing(self.api.store):
                self.asked.append(intent)
                self.api.store.write(*intent.answered(proposed(TEXT))).result(10)

    def close(self) -> None:
        self._end.set()
        self._bell.set()
        self._thread.join(10)
        self._stop()

    @property
    def done(self) -> list[tuple[str, str, str]]:
        return [(i.author, i.verb, i.key.name) for i in self.asked]


@pytest.fixture
def lab(api: Any) -> Iterator[Lab]:
    api.put_fleet(loaded=True, writes="Propose")
    api.put_workspace("root:lab", LAB, builtins="Kubernetes", directory="workspaces/root/lab")
    origin = {"treeplane.dev/source-path": "workspaces/root/lab/a.yaml"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    api.put(
        api.manifest("v1 Namespace", "default", cluster=LAB),
        api.manifest("v1 ConfigMap", "declared", "default", LAB, data={"k": "1"}, annotations=origin),
        api.manifest("v1 ConfigMap", "other", "default", LAB, data={"k": "1"}, annotations=origin),
        api.manifest("apps/v1 Deployment", "web", "default", LAB, spec=spec, annotations=origin),
        api.manifest("v1 Pod", "runs", "default", LAB, spec=template["spec"], status={"phase": "Pending"}),
    )
    made = Lab(api)
    yield made
    made.close()


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "b"}}


def warned(reply: Any) -> bool:
    return f'"{TEXT}"' in reply.headers.get("warning", "")


MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "code", "verb"),
    [
        ("POST", MAPS, config_map("new"), "", 201, "create"),
        ("PUT", f"{MAPS}/declared", config_map("declared"), "", 200, "update"),
        ("PATCH", f"{MAPS}/declared", {"data": {"k": "2"}}, MERGE, 200, "update"),
        ("PATCH", f"{MAPS}/declared?fieldManager=m&force=true", config_map("declared"), APPLY, 200, "update"),
        ("PATCH", f"{MAPS}/new?fieldManager=m", config_map("new"), APPLY, 201, "create"),
        ("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 3}}, MERGE, 200, "update"),
    ],
)
def test_a_write_is_answered_as_a_dry_run_with_a_warning(
    lab: Lab, run: Any, method: str, path: str, body: Any, kind: str, code: int, verb: str
) -> None:
    api, before = lab.api, lab.api.store.revision()
    joint = "&" if "?" in path else "?"
    dry = run(api.call(method, f"{path}{joint}dryRun=All", body, kind=kind))
    assert (dry.status, lab.asked, warned(dry)) == (code, [], False)
    assert api.store.revision() == before
    reply = run(api.call(method, path, body, kind=kind))
    assert reply.status == code
    assert warned(reply)
    assert [each[:2] for each in lab.done] == [("admin", verb)]

    def said(found: Any) -> Any:
        own = ("uid", "creationTimestamp", "managedFields")
        return {**found, "metadata": {k: v for k, v in found["metadata"].items() if k not in own}}

    assert said(reply.json) == said(dry.json)
    assert [c.key.resource for c in api.store.changes(before) if c.key.resource[0] != "~"] == []


@pytest.mark.parametrize("path", [f"{MAPS}/declared", f"{DEPLOYMENTS}/web"])
def test_a_deletion_is_answered_with_403_and_where(lab: Lab, run: Any, path: str) -> None:
    assert run(lab.api.call("DELETE", f"{path}?dryRun=All")).status == 200
    for policy in ("Background", "Foreground", "Orphan"):
        refused = run(lab.api.call("DELETE", f"{path}?propagationPolicy={policy}"))
        assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
        assert refused.message.endswith(f" is forbidden: {TEXT}")
        assert "deletionTimestamp" not in run(lab.api.get(path)).json["metadata"]
    assert [verb for _, verb, _ in lab.done] == ["delete"] * 3


def test_all_of_a_collection_are_proposed_and_one_is_told(lab: Lab, run: Any) -> None:
    refused = run(lab.api.call("DELETE", MAPS))
    assert (refused.status, refused.message.partition(": ")[2]) == (403, TEXT)
    assert sorted(lab.done) == [("admin", "delete", "declared"), ("admin", "delete", "other")]
    assert len(run(lab.api.get(MAPS)).json["items"]) == 2


def test_a_write_that_changes_nothing_proposes_nothing(lab: Lab, run: Any) -> None:
    reply = run(lab.api.call("PATCH", f"{MAPS}/declared", {"data": {"k": "1"}}, kind=MERGE))
    assert (reply.status, warned(reply), lab.asked) == (200, False, [])


def test_runtime_state_is_written(lab: Lab, run: Any) -> None:
    """Statuses, Pods and what becomes of them, Events."""
    api = lab.api
    status = run(api.call("PATCH", f"{DEPLOYMENTS}/web/status", {"status": {"replicas": 1}}, kind=MERGE))
    assert (status.status, status.json["status"]["replicas"]) == (200, 1)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "runs", "namespace": "default"}}
    assert run(api.call("POST", f"{PODS}/runs/eviction", eviction)).status == 201
    assert run(api.get(f"{PODS}/runs")).status == 404
    owned = config_map("owned")
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    assert run(api.call("POST", MAPS, owned)).status == 201
    assert run(api.call("DELETE", f"{MAPS}/owned")).status == 200
    assert lab.asked == []


def test_who_may_not_write_proposes_nothing(lab: Lab, run: Any) -> None:
    lab.api.allow("ann", {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}, cluster=LAB)
    for method, path in (("POST", MAPS), ("DELETE", f"{MAPS}/declared")):
        refused = run(lab.api.call(method, path, config_map("new") if method == "POST" else b"", user="ann"))
        assert refused.status == 403
        assert "treeplane/" not in refused.message
    assert lab.asked == []


def test_the_author_is_who_asks(lab: Lab, run: Any) -> None:
    lab.api.allow("ann", {"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]}, cluster=LAB)
    assert run(lab.api.call("POST", MAPS, config_map("new"), user="ann")).status == 201
    assert lab.done == [("ann", "create", "new")]


def test_users_do_not_wait_for_each_other(lab: Lab, run: Any) -> None:
    """Of an object each has a proposal of his own, also while another's waits."""
    api = lab.api
    key = Key("configmaps", LAB, "default", "declared")
    record = api.store.get(key)
    places = {Intent(key, user, b"{}", record.revision, proposes=True).place for user in ("ann", "bob")}
    assert len(places) == 2
    assert {place.resource for place in places} == {Internal.PROPOSED}


def test_a_workspace_that_is_held_takes_none(lab: Lab, run: Any) -> None:
    lab.api.put_workspace("root:lab", LAB, directory="workspaces/root/lab", errors=["a.yaml:1: bad"])
    refused = run(lab.api.call("POST", MAPS, config_map("new")))
    assert (refused.status, lab.asked) == (503, [])


def test_a_server_that_only_shows_takes_none(lab: Lab, run: Any) -> None:
    lab.api.put_fleet(loaded=True, writes="Propose", holder="another")
    refused = run(lab.api.call("POST", MAPS, config_map("new")))
    assert (refused.status, lab.asked) == (503, [])


def test_a_type_says_it_for_its_workspaces(lab: Lab, run: Any) -> None:
    lab.api.put_fleet(loaded=True, writes="ReadOnly")
    assert run(lab.api.call("POST", MAPS, config_map("new"))).status == 403
    lab.api.put_workspace("root:lab", LAB, writes="Propose", directory="workspaces/root/lab")
    assert warned(run(lab.api.call("POST", MAPS, config_map("new"))))
