"""Many writes as few commits: who waits for whom, who is refused, and what a crash or a push in between does."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.commitfleet import CommitFleet, a_configmap
from support.loadedfleet import A, configmap

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal
from apiserver.registry import rest
from apiserver.registry.rest_options import WriteOptions
from apiserver.storage.protocol import Op, Put
from reconciler.repository.errors import PushRejected

Object = dict[str, Any]

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


WIDGET = "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: w}\n"


GADGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.io}
spec:
  group: example.io
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.io/v1
kind: Gadget
metadata: {name: g}
operation: sync
"""
"""A kind whose status is no subresource."""


def test_what_waits_together_is_one_commit(idle: CommitFleet) -> None:
    with ThreadPoolExecutor(20) as threads:
        made = [threads.submit(idle.create, "root:a", "configmaps", a_configmap(f"m{i}")) for i in range(20)]
        while idle.store.count(Internal.INTENT) < 20:
            assert not any(f.done() for f in made)
        idle.serve()
        assert all(f.result() == idle.get("root:a", "configmaps", f"m{i}") for i, f in enumerate(made))
    assert idle.log() == ["alice: Write 20 objects in root:a"]


def test_a_server_that_lost_the_fleet_answers_what_waits(idle: CommitFleet) -> None:
    with ThreadPoolExecutor(3) as threads:
        made = [threads.submit(idle.create, "root:a", "configmaps", a_configmap(f"m{i}")) for i in range(3)]
        while idle.store.count(Internal.INTENT) < 3:
            assert not any(f.done() for f in made)
        idle.committer.turn_away("c0ffee/17 holds the fleet")
        for each in made:
            with pytest.raises(StatusError, match="c0ffee/17 holds the fleet") as refused:
                each.result()
            assert refused.value.code == 503
    assert idle.log() == []
    assert not idle.committer.waiting()


def test_each_author_has_a_commit(idle: CommitFleet) -> None:
    with ThreadPoolExecutor(2) as threads:
        ann = threads.submit(idle.create, "root:a", "configmaps", a_configmap("one"), "ann")
        bob = threads.submit(idle.create, "root:b", "configmaps", a_configmap("two"), "bob")
        while idle.store.count(Internal.INTENT) < 2:
            assert not ann.done()
        idle.serve()
        assert {ann.result()["metadata"]["name"], bob.result()["metadata"]["name"]} == {"one", "two"}
    assert sorted(idle.log()) == [
        "ann: Create configmaps default/one in root:a",
        "bob: Create configmaps default/two in root:b",
    ]


def test_writers_of_one_object_come_one_after_the_other(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())

    def count(_: int) -> None:
        def one_more(live: Object) -> Object:
            return {**live, "data": {"n": str(int(live["data"].get("n", 0)) + 1)}}

        rest.patch(fleet.at("root:a", "configmaps"), "default", "made", one_more, WriteOptions("test"))

    with ThreadPoolExecutor(5) as threads:
        list(threads.map(count, range(5)))
    assert fleet.data("root:a", "made") == {"n": "5"}


def test_one_that_cannot_be_committed_is_refused_alone(idle: CommitFleet) -> None:
    # Its name is in a file that this very workspace declares, which no precondition of the store can know.
    idle.commit({f"{A}/_objects/default/configmaps/.treeplaneignore": "bad*\n"})
    with ThreadPoolExecutor(2) as threads:
        bad = threads.submit(idle.create, "root:a", "configmaps", a_configmap("bad"))
        good = threads.submit(idle.create, "root:a", "configmaps", a_configmap("good"))
        while idle.store.count(Internal.INTENT) < 2:
            assert not good.done()
        idle.serve()
        assert good.result()["metadata"]["name"] == "good"
        with pytest.raises(StatusError, match="not read"):
            bad.result()
    assert idle.find("root:a", "configmaps", "bad") is None


def test_one_that_breaks_what_stands_in_another_file_is_refused_alone(idle: CommitFleet) -> None:
    """Neither's own file is at fault, so they are tried apart."""
    idle.commit({f"{A}/crd.yaml": CRD, f"{A}/widget.yaml": WIDGET})
    definition = idle.get("root:a", CRDS, "widgets.example.io")
    first, second = definition["spec"]["versions"]
    unserved = {**definition["spec"], "versions": [{**first, "served": False}, second]}
    with ThreadPoolExecutor(4) as threads:
        bad = threads.submit(idle.change, "root:a", CRDS, "widgets.example.io", spec=unserved)
        good = [threads.submit(idle.create, "root:a", "configmaps", a_configmap(f"good-{i}")) for i in range(3)]
        while idle.store.count(Internal.INTENT) < 4:
            assert not any(f.done() for f in good)
        idle.serve()
        assert [f.result()["metadata"]["name"] for f in good] == ["good-0", "good-1", "good-2"]
        with pytest.raises(StatusError, match=r"widget\.yaml:1: no kind"):
            bad.result()
    assert idle.held() == {}


def test_somebody_who_pushes_in_between_harms_nobody(fleet: CommitFleet) -> None:
    publish, pushed = fleet.committer._branch.desired.publish, threading.Event()

    def late(commit: str, expected: str) -> None:
        if not pushed.is_set():
            pushed.set()
            fleet.repo.commit({f"{A}/app.yaml": configmap(a="theirs")})
        publish(commit, expected)

    fleet.committer._branch.desired.publish = late  # type: ignore[method-assign]
    fleet.create("root:a", "configmaps", a_configmap())
    assert fleet.data("root:a") == {"a": "theirs"}
    assert fleet.data("root:a", "made") == {"a": "b"}
    assert fleet.log() == ["alice: Create configmaps default/made in root:a"]


def test_a_crash_after_the_commit_is_healed_by_loading_it(idle: CommitFleet) -> None:
    propose = idle.loader.propose

    def dying(commit: str, intents: Any) -> Any:
        proposal = propose(commit, intents)

        def take() -> None:
            raise SystemExit

        return dataclasses.replace(proposal, take=take)

    idle.loader.propose = dying  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(idle.create, "root:a", "configmaps", a_configmap())
        while not idle.committer.waiting():
            assert not made.done()
        with pytest.raises(SystemExit):
            idle.committer.serve()
        assert idle.log() == ["alice: Create configmaps default/made in root:a"]
        assert idle.find("root:a", "configmaps", "made") is None
        idle.committer = idle.new_committer()
        idle.load()
        answer = made.result()
    assert answer == idle.get("root:a", "configmaps", "made")
    assert answer["metadata"]["managedFields"][0]["manager"] == "test"
    assert idle.store.count(Internal.INTENT) == 0


def test_a_crash_before_the_commit_leaves_it_to_be_done(idle: CommitFleet) -> None:
    def die(commit: str, expected: str) -> None:
        raise SystemExit

    idle.committer._branch.desired.publish = die  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(idle.create, "root:a", "configmaps", a_configmap())
        while not idle.committer.waiting():
            assert not made.done()
        with pytest.raises(SystemExit):
            idle.committer.serve()
        idle.committer = idle.new_committer()
        idle.serve()
        assert made.result() == idle.get("root:a", "configmaps", "made")
    assert idle.log() == ["alice: Create configmaps default/made in root:a"]


def test_a_source_that_refuses_is_named(fleet: CommitFleet) -> None:
    def refuse(commit: str, expected: str) -> None:
        raise PushRejected("main: protected", "ask for it")

    fleet.committer._branch.desired.publish = refuse  # type: ignore[method-assign]
    with pytest.raises(StatusError, match="main: protected") as raised:
        fleet.create("root:a", "configmaps", a_configmap())
    assert raised.value.code == 503
    assert fleet.find("root:a", "configmaps", "made") is None


def test_without_a_reconciler_a_write_ends_with_a_timeout(idle: CommitFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.admission.committing.WAIT", 0.05)
    with pytest.raises(StatusError) as raised:
        idle.create("root:a", "configmaps", a_configmap())
    assert raised.value.code == 504
    assert idle.store.count(Internal.INTENT) == 0


def test_a_workspace_that_is_held_back_takes_no_writes(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/app.yaml": "kind: ConfigMap\n"})
    with pytest.raises(StatusError, match=r"app\.yaml:1") as raised:
        fleet.create("root:a", "configmaps", a_configmap())
    assert raised.value.code == 503
    fleet.create("root:b", "configmaps", a_configmap())


def test_a_status_that_is_no_subresource_waits_for_the_commit_before_it(idle: CommitFleet) -> None:
    """As Argo CD ends an operation and refreshes a status: two patches of one object at the same time."""
    idle.commit({f"{A}/gadgets.yaml": GADGETS})
    key, writing, tried = idle.key("root:a", "gadgets.example.io", "g"), idle.store.write, threading.Event()

    def trying(*ops: Op) -> Future[list[int]]:
        future = writing(*ops)
        if any(isinstance(op, Put) and op.key == key for op in ops):
            future.add_done_callback(lambda _: tried.set())
        return future

    def end(live: Object) -> Object:
        return {**{k: v for k, v in live.items() if k != "operation"}, "status": {"phase": "Succeeded"}}

    def refresh(live: Object) -> Object:
        return {**live, "status": {**live.get("status", {}), "sync": "Synced"}}

    with ThreadPoolExecutor(2) as threads:
        at = idle.at("root:a", "gadgets.example.io")
        ended = threads.submit(rest.patch, at, "", "g", end, WriteOptions("test"))
        while not idle.committer.waiting():
            assert not ended.done()
        idle.store.write = trying  # type: ignore[method-assign]
        refreshed = threads.submit(rest.patch, at, "", "g", refresh, WriteOptions("test"))
        assert tried.wait(10)
        idle.serve()
        assert ended.result(10).obj["status"] == {"phase": "Succeeded"}
        assert refreshed.result(10).obj["status"] == {"phase": "Succeeded", "sync": "Synced"}
    found = idle.get("root:a", "gadgets.example.io", "g")
    assert "operation" not in found
    assert found["status"] == {"phase": "Succeeded", "sync": "Synced"}


def test_a_status_that_comes_in_between_costs_nobody_his_fields(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    key, writing = fleet.key("root:a", "configmaps", "made"), fleet.store.write

    def late(*ops: Op) -> Future[list[int]]:
        if any(isinstance(op, Put) and op.key == key for op in ops):
            fleet.store.write = writing  # type: ignore[method-assign]
            status = {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {}}
            fleet.update(key, lambda obj: obj["metadata"]["managedFields"].append(status))
        return writing(*ops)

    fleet.store.write = late  # type: ignore[method-assign]
    at = fleet.at("root:a", "configmaps")
    other = WriteOptions("other")
    found = rest.patch(at, "default", "made", lambda live: {**live, "data": {"a": "theirs"}}, other).obj
    assert found["data"] == {"a": "theirs"}
    assert {e["manager"] for e in found["metadata"]["managedFields"]} == {"test", "other", "controller"}
