"""Many workspaces that are deleted with one request: they go in a few transactions, and each as if it were alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import LAB_TYPE, LAB_YAML, WORKSPACES, ApiFleet

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.protocol import Change, DeleteAll, Op, Put
from reconciler.controllers import workspaces

LAB = "workspaces/root/lab"
LAB_PATH = "root:lab"
MANY = 130
MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
MERGE = "application/merge-patch+json"


class Killed(BaseException):
    """The process is no more: nobody catches that."""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiFleet]:
    monkeypatch.setattr(workspaces, "_TOGETHER", 512)  # so that a few workspaces take more than one transaction
    made = ApiFleet(tmp_path / "fleet")
    made.begin({"workspaces/root/type.yaml": LAB_TYPE, f"{LAB}/workspace.yaml": LAB_YAML})
    made.settle()
    yield made
    made.close()


def make(fleet: ApiFleet, number: int) -> dict[str, str]:
    """Paths and logical clusters."""
    for each in range(number):
        body = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": f"w{each}"}}
        assert fleet.call("POST", LAB_PATH, WORKSPACES, body).status == 201
    fleet.settle()
    found = {record.path: record.cluster for record in fleet.records() if record.path.startswith(f"{LAB_PATH}:")}
    assert len(found) == number
    return found


def delete_all(fleet: ApiFleet) -> None:
    assert fleet.call("DELETE", LAB_PATH, WORKSPACES).status == 200


def role(name: str, **metadata: Any) -> Any:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return {**kind, "metadata": {"name": name, **metadata}}


def nothing_of(fleet: ApiFleet, clusters: dict[str, str]) -> None:
    for path, cluster in clusters.items():
        assert not fleet.store.keys(cluster), path
    kept = set(Table) - {Table.CHECKPOINTS, Table.ROLES}
    rows = [row.key for table in kept for row in fleet.store.scan_rows(table)]
    assert not [row for row in rows if any(each in row for pair in clusters.items() for each in pair)]


def endings(fleet: ApiFleet) -> list[Sequence[Op]]:
    """The transactions from here on that take workspaces away."""
    found: list[Sequence[Op]] = []
    write = fleet.store.write

    def noted(*ops: Op) -> Future[list[int]]:
        found.extend([ops] if any(isinstance(op, DeleteAll) for op in ops) else [])
        return write(*ops)

    fleet.store.write = noted  # type: ignore[method-assign]
    return found


def test_a_few_transactions_take_them_away(fleet: ApiFleet) -> None:
    clusters = make(fleet, MANY)
    found = endings(fleet)
    delete_all(fleet)
    fleet.settle()
    taken = [[op.cluster for op in ops if isinstance(op, DeleteAll)] for ops in found]
    assert len(taken) <= 4
    assert sorted(cluster for ops in taken for cluster in ops) == sorted(clusters.values())
    nothing_of(fleet, clusters)


def test_one_with_much_in_it_goes_by_itself(fleet: ApiFleet) -> None:
    """However many go at once, no transaction keeps others waiting for longer than the largest of them has to."""
    clusters = make(fleet, 6)
    large = clusters[f"{LAB_PATH}:w3"]
    fleet.store.write(*(Put(Key("configmaps", large, "default", f"m{n}"), b"{}") for n in range(600))).result()
    found = endings(fleet)
    delete_all(fleet)
    fleet.settle()
    taken = [[op.cluster for op in ops if isinstance(op, DeleteAll)] for ops in found]
    assert [large] in taken
    assert len(taken) == 3
    nothing_of(fleet, clusters)


def test_watchers_hear_of_all_that_was_there(fleet: ApiFleet) -> None:
    clusters = make(fleet, 70)
    before = {key: fleet.store.get(key) for cluster in clusters.values() for key in fleet.store.keys(cluster)}
    delete_all(fleet)
    since = fleet.store.revision()
    fleet.settle()
    gone: list[Change] = [change for change in fleet.store.changes(since) if change.value is None]
    told = {change.key: (change.previous, change.previous_revision) for change in gone if change.key in before}
    assert told == {key: (record.value, record.revision) for key, record in before.items() if record is not None}
    workspaces = Counter(change.key.name for change in gone if change.key.resource == "workspaces.tenancy.kcp.io")
    assert workspaces == Counter(path.rpartition(":")[2] for path in clusters)


def test_somebody_who_writes_into_one_holds_up_no_other(fleet: ApiFleet) -> None:
    clusters = make(fleet, 5)
    delete_all(fleet)
    write, replies = fleet.store.write, list[int]()

    def late(*ops: Op) -> Future[list[int]]:
        if any(isinstance(op, DeleteAll) for op in ops) and not replies:
            replies.append(fleet.call("POST", f"{LAB_PATH}:w3", ROLES, role("late")).status)
        return write(*ops)

    fleet.store.write = late  # type: ignore[method-assign]
    fleet.settle()
    assert replies == [201]
    nothing_of(fleet, clusters)


def test_a_finalizer_that_is_set_meanwhile_is_waited_for_in_that_one(fleet: ApiFleet) -> None:
    clusters = make(fleet, 5)
    assert fleet.call("POST", f"{LAB_PATH}:w3", ROLES, role("held")).status == 201
    fleet.settle()
    delete_all(fleet)
    write, replies = fleet.store.write, list[int]()

    def late(*ops: Op) -> Future[list[int]]:
        if any(isinstance(op, DeleteAll) for op in ops) and not replies:
            held = {"metadata": {"finalizers": ["a.io/b"]}}
            replies.append(fleet.call("PATCH", f"{LAB_PATH}:w3", f"{ROLES}/held", held, kind=MERGE).status)
        return write(*ops)

    fleet.store.write = late  # type: ignore[method-assign]
    fleet.settle()
    assert replies == [200]
    waits = clusters.pop(f"{LAB_PATH}:w3")
    nothing_of(fleet, clusters)
    record = tree.workspace_of(fleet.store, waits)
    assert record is not None
    assert record.leaves
    kept = fleet.store.get(Key("clusterroles.rbac.authorization.k8s.io", waits, "", "held"))
    assert kept is not None
    nothing = {"metadata": {"finalizers": None}}
    assert fleet.call("PATCH", f"{LAB_PATH}:w3", f"{ROLES}/held", nothing, kind=MERGE).status == 200
    fleet.settle()
    nothing_of(fleet, {f"{LAB_PATH}:w3": waits})


@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_process_that_is_killed_between_two_of_them_leaves_the_rest_to_the_next(
    fleet: ApiFleet, written: int
) -> None:
    clusters = make(fleet, MANY)
    delete_all(fleet)
    write, done = fleet.store.write, list[Sequence[Op]]()

    def until_then(*ops: Op) -> Future[list[int]]:
        if not any(isinstance(op, DeleteAll) for op in ops):
            return write(*ops)
        if len(done) == written:
            raise Killed
        done.append(ops)
        answer = write(*ops)
        answer.result()
        return answer

    fleet.store.write = until_then  # type: ignore[method-assign]
    with pytest.raises(Killed):
        fleet.settle()
    fleet.store.write = write  # type: ignore[method-assign]
    left = [path for path in clusters if tree.workspace_at(fleet.store, path) is not None]
    assert len(left) == MANY - sum(isinstance(op, DeleteAll) for ops in done for op in ops)
    fleet.restart(killed=True)
    fleet.settle()
    nothing_of(fleet, clusters)
