"""Writes through the API as commits: what git gets, what the store holds, who is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model import marks
from apiserver.model.errors import StatusError
from apiserver.model.identity import object_uid
from apiserver.model.keys import Internal
from apiserver.registry import rest, tree
from apiserver.registry.rest_options import WriteOptions
from apiserver.storage.protocol import Op, Put
from reconciler.controllers.disposal import delete_all, replaced, write
from reconciler.controllers.protection import Protection
from reconciler.repository.errors import PushRejected

Object = dict[str, Any]
MADE = f"{A}/_objects/default/configmaps/made.yaml"


KUBERNETES = {
    "workspaces/root/type.yaml": (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: k}\n"
        "spec: {builtins: Kubernetes, writes: Commit}\n"
    ),
    "workspaces/root/k/workspace.yaml": (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: k, path: root}}\n"
    ),
}
"""The workspace root:k with all of Kubernetes' kinds."""


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


def a_configmap(name: str = "made", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "b"}}


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[CommitFleet]:
    """root, root:a and root:b with the ConfigMap `app` each; nobody serves."""
    made = CommitFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_COMMIT})
    yield made
    made.close()


@pytest.fixture
def fleet(idle: CommitFleet) -> CommitFleet:
    """The same, and served."""
    idle.serve()
    return idle


# -- what git gets, and what the store holds


def test_a_new_object_is_a_file_as_it_was_sent_in_a_commit_of_its_author(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap(), user="alice@example.com")
    assert fleet.tree()[MADE] == (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\n  namespace: default\ndata:\n  a: b\n"
    )
    assert fleet.log() == ["alice@example.com: Create configmaps default/made in root:a"]
    assert "<alice@example.com>" in fleet.mirror.repository.commit(fleet.repo.head).author


def test_answer_stored_object_and_watch_event_are_one(fleet: CommitFleet) -> None:
    before = fleet.store.revision()
    answer = fleet.create("root:a", "configmaps", a_configmap())
    stored = fleet.get("root:a", "configmaps", "made")
    assert answer == stored
    assert [c.key.name for c in fleet.store.changes(before) if c.key.resource == "configmaps"] == ["made"]
    origin = fleet.repo.head
    assert stored["metadata"]["uid"] == object_uid(
        fleet.fleet().fleet, "root:a", "configmaps", "default", "made", origin
    )
    assert stored["metadata"]["annotations"]["treeplane.dev/source-commit"] == origin
    assert stored["metadata"]["annotations"]["treeplane.dev/source-path"] == MADE
    assert "treeplane.dev/origin" not in stored["metadata"]["annotations"]
    assert stored["metadata"]["managedFields"][0]["manager"] == "test"


def test_a_write_changes_nothing_but_what_it_says(fleet: CommitFleet) -> None:
    """An operator writes into an annotation what it saw; were its own commit part of that, it would never end."""
    first = fleet.create("root:a", "configmaps", a_configmap())
    second = fleet.change("root:a", "configmaps", "made", data={"a": "c"})
    own = {"resourceVersion", "managedFields"}
    was, found = ({k: v for k, v in obj["metadata"].items() if k not in own} for obj in (first, second))
    assert found == was
    fleet.commit({MADE: configmap("made", a="pushed")})
    annotations = fleet.get("root:a", "configmaps", "made")["metadata"]["annotations"]
    assert annotations[marks.SOURCE_COMMIT] == fleet.repo.head


def test_the_echo_of_an_own_commit_writes_nothing(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    fleet.load()
    assert fleet.changes() == []
    fleet.recheck(["root:a"])
    assert fleet.changes() == []


def test_a_lost_store_comes_back_with_the_same_objects(fleet: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    fleet.change("root:a", "configmaps", "made", data={"a": "c"})
    fleet.publish()
    second = another(fleet)
    second.load(second.recorded())
    was, found = fleet.get("root:a", "configmaps", "made"), second.get("root:a", "configmaps", "made")
    for obj in (was, found):
        obj["metadata"].pop("resourceVersion")
    assert found == was


def test_an_object_that_a_file_declares_is_changed_in_that_file(fleet: CommitFleet) -> None:
    text = f"# ours\n{configmap('one')}  # keep this\n---\n{configmap('two')}"
    fleet.commit({f"{A}/both.yaml": text})
    fleet.change("root:a", "configmaps", "two", data={"a": "changed"})
    changed = f"# ours\n{configmap('one')}  # keep this\n---\n{configmap('two', a='changed')}"
    assert fleet.tree()[f"{A}/both.yaml"] == changed
    assert fleet.data("root:a", "two") == {"a": "changed"}
    assert fleet.log() == ["alice: Update configmaps default/two in root:a"]


def test_an_object_that_goes_leaves_git_and_its_file_with_its_last_object(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/both.yaml": f"{configmap('one')}---\n{configmap('two')}"})
    fleet.remove("root:a", "configmaps", "one")
    assert "one" not in fleet.tree()[f"{A}/both.yaml"]
    fleet.remove("root:a", "configmaps", "two")
    assert f"{A}/both.yaml" not in fleet.tree()
    assert fleet.find("root:a", "configmaps", "one") is None
    assert fleet.find("root:a", "configmaps", "two") is None


def test_made_anew_it_is_another_one(fleet: CommitFleet) -> None:
    first = fleet.create("root:a", "configmaps", a_configmap())
    fleet.remove("root:a", "configmaps", "made")
    second = fleet.create("root:a", "configmaps", a_configmap())
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_what_is_computed_gets_a_file_when_it_is_changed(fleet: CommitFleet) -> None:
    default = fleet.get("root:a", "namespaces", "default", "")
    fleet.change("root:a", "namespaces", "default", metadata={**default["metadata"], "labels": {"a": "b"}})
    assert "a: b" in fleet.tree()[f"{A}/_objects/_cluster/namespaces/default.yaml"]
    assert fleet.get("root:a", "namespaces", "default", "")["metadata"]["uid"] == default["metadata"]["uid"]


# -- many at once


def test_what_waits_together_is_one_commit(idle: CommitFleet) -> None:
    with ThreadPoolExecutor(20) as threads:
        made = [threads.submit(idle.create, "root:a", "configmaps", a_configmap(f"m{i}")) for i in range(20)]
        while idle.store.count(Internal.INTENT) < 20:
            assert not any(f.done() for f in made)
        idle.serve()
        assert all(f.result() == idle.get("root:a", "configmaps", f"m{i}") for i, f in enumerate(made))
    assert idle.log() == ["alice: Write 20 objects in root:a"]


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


# -- crashes and other writers


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

        return type(proposal)(proposal.held, take)

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


# -- what does not pass through git


def test_runtime_objects_are_stored_and_not_committed(fleet: CommitFleet) -> None:
    head = fleet.repo.head
    owned = a_configmap("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "u", "controller": True}
    ]
    fleet.create("root:a", "configmaps", owned)
    fleet.create("root:a", "configmaps", a_configmap("account"), user="system:serviceaccount:default:x")
    fleet.create("root:a", "leases.coordination.k8s.io", _lease())
    assert fleet.repo.head == head
    for name in ("owned", "account"):
        annotations = fleet.get("root:a", "configmaps", name)["metadata"]["annotations"]
        assert annotations["treeplane.dev/origin"] == "runtime"
    fleet.change("root:a", "configmaps", "owned", data={"x": "y"})
    fleet.remove("root:a", "configmaps", "owned")
    assert fleet.repo.head == head


def _lease() -> Object:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}


def test_a_status_and_a_change_of_nothing_are_no_commits(fleet: CommitFleet) -> None:
    fleet.create("root:a", "namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    head = fleet.repo.head
    fleet.change("root:a", "namespaces", "n", sub="status", status={"phase": "Active", "conditions": []})
    fleet.change("root:a", "configmaps", "app")
    assert fleet.repo.head == head


def test_a_secret_is_kept_in_keys_and_not_in_git(fleet: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    head = fleet.repo.head
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw"}, "stringData": {"p": "w"}}
    answer = fleet.create("root:a", "secrets", secret)
    file = fleet.keys / "secrets" / "root:a" / "default.pw.yaml"
    assert "p: dw==" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert answer == fleet.get("root:a", "secrets", "pw")
    assert fleet.secrets.changed() == set()
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    fleet.publish()
    second = another(fleet, keys=fleet.keys)
    second.load(second.recorded())
    assert second.get("root:a", "secrets", "pw")["metadata"]["uid"] == answer["metadata"]["uid"]
    fleet.change("root:a", "secrets", "pw", data={"p": "eA=="})
    assert "p: eA==" in file.read_text()
    fleet.remove("root:a", "secrets", "pw")
    assert not file.exists()
    assert fleet.repo.head == head
    assert fleet.find("root:a", "secrets", "pw") is None


def test_what_loops_delete_leaves_git_by_a_commit(fleet: CommitFleet) -> None:
    fleet.create("root:a", "configmaps", a_configmap())
    at = fleet.at("root:a", "configmaps")
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    assert record is not None
    gone = threading.Event()
    fleet.store.subscribe(lambda: gone.set() if fleet.store.get(record.key) is None else None)
    assert delete_all(fleet.store, at.kind, [record]) == 1
    assert gone.wait(10)
    assert MADE not in fleet.tree()
    assert fleet.log()[-1] == "treeplane: Delete configmaps default/made in root:a"


def test_a_summary_does_not_grow_with_what_is_written(fleet: CommitFleet) -> None:
    first = fleet.repo.head
    made = fleet.create("root:a", "configmaps", a_configmap())
    commit = made["metadata"]["annotations"]["treeplane.dev/source-commit"]
    assert tree.summary(fleet.store, fleet.record("root:a").cluster) == {"origin": first, "commit": commit}


def test_what_the_server_does_not_know_is_not_written_into_git(fleet: CommitFleet) -> None:
    sent = a_configmap()
    fleet.create("root:a", "configmaps", {**sent, "nope": 1, "metadata": {**sent["metadata"], "nope": 2}})
    assert "nope" not in fleet.tree()[MADE]


def test_what_a_loop_changes_is_a_commit(fleet: CommitFleet) -> None:
    sent = a_configmap()
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": "u"}
    fleet.create("root:a", "configmaps", {**sent, "metadata": {**sent["metadata"], "ownerReferences": [owner]}})
    assert "uid: u" in fleet.tree()[MADE]
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    assert record is not None
    freed = threading.Event()
    fleet.store.subscribe(lambda: freed.set() if b'"ownerReferences":' not in _value(fleet) else None)
    write(fleet.store, replaced(record, without_owners(orjson.loads(record.value)))).result()
    assert freed.wait(10)
    assert "ownerReferences" not in fleet.tree()[MADE]


def _value(fleet: CommitFleet) -> bytes:
    record = fleet.store.get(fleet.key("root:a", "configmaps", "made"))
    return record.value if record is not None else b""


def without_owners(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}}


def test_a_service_keeps_what_it_was_given_when_the_store_is_lost(
    idle: CommitFleet, another: Callable[..., LoadedFleet]
) -> None:
    idle.commit(KUBERNETES)
    idle.serve()
    spec = {"type": "NodePort", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "name": "dns"}]}
    spec["ports"][0]["name"] = "web"  # type: ignore[index]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    made = idle.create("root:k", "services", service)
    assert made["spec"]["clusterIP"]
    file = idle.tree()["workspaces/root/k/_objects/default/services/s.yaml"]
    assert "clusterIP" not in file
    assert "nodePort" not in file
    idle.publish()
    second = another(idle)
    second.load(second.recorded())
    assert second.get("root:k", "services", "s")["spec"] == made["spec"]


def test_a_crowded_directory_is_spread(idle: CommitFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.loading.edits.CROWDED", 2)
    idle.serve()
    for name in "abcd":
        idle.create("root:a", "configmaps", a_configmap(name))
    made = {p.removeprefix(f"{A}/_objects/default/configmaps/") for p in idle.tree() if "_objects" in p}
    assert {"a.yaml", "b.yaml"} < made
    assert {p.rpartition("/")[2] for p in made} == {"a.yaml", "b.yaml", "c.yaml", "d.yaml"}
    assert sum("_/" in p.removeprefix(f"{A}/_objects/") for p in made) == 2
    idle.change("root:a", "configmaps", "d", data={"x": "y"})
    idle.remove("root:a", "configmaps", "d")
    assert idle.find("root:a", "configmaps", "d") is None


def test_a_claim_that_is_used_no_more_leaves_git(idle: CommitFleet) -> None:
    idle.commit(KUBERNETES)
    idle.serve()
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    idle.create("root:k", "persistentvolumeclaims", claim)
    file = "workspaces/root/k/_objects/default/persistentvolumeclaims/c.yaml"
    assert file in idle.tree()
    assert not idle.remove("root:k", "persistentvolumeclaims", "c").removed
    key = idle.key("root:k", "persistentvolumeclaims", "c")
    gone = threading.Event()
    idle.store.subscribe(lambda: gone.set() if idle.store.get(key) is None else None)
    Protection(idle.store, lambda _: True).handle(key)
    assert gone.wait(10)
    assert file not in idle.tree()


def test_a_status_that_is_no_subresource_waits_for_the_commit_before_it(idle: CommitFleet) -> None:
    """As Argo CD ends an operation and refreshes a status: two patches of one object at the same time."""
    idle.commit({f"{A}/gadgets.yaml": GADGETS})
    key, writing, tried = idle.key("root:a", "gadgets.example.io", "g"), idle.store.write, threading.Event()

    def trying(*ops: Op, log: bool = True) -> Future[list[int]]:
        future = writing(*ops, log=log)
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

    def late(*ops: Op, log: bool = True) -> Future[list[int]]:
        if any(isinstance(op, Put) and op.key == key for op in ops):
            fleet.store.write = writing  # type: ignore[method-assign]
            status = {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {}}
            fleet.update(key, lambda obj: obj["metadata"]["managedFields"].append(status))
        return writing(*ops, log=log)

    fleet.store.write = late  # type: ignore[method-assign]
    at = fleet.at("root:a", "configmaps")
    other = WriteOptions("other")
    found = rest.patch(at, "default", "made", lambda live: {**live, "data": {"a": "theirs"}}, other).obj
    assert found["data"] == {"a": "theirs"}
    assert {e["manager"] for e in found["metadata"]["managedFields"]} == {"test", "other", "controller"}
