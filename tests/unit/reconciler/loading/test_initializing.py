"""A program initializes workspaces through its view: pushed ones, ones made through the API, and after losses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.apifleet import WORKSPACES, ApiFleet
from support.loadedfleet import configmap
from support.recoveries import assert_same

from apiserver.registry.lifecycles import PHASE

ROOT = "workspaces/root"
CLUSTERS = "/apis/core.kcp.io/v1alpha1/logicalclusters"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
TYPES = ("gold", "silver")


def kind(name: str, **spec: Any) -> str:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": name}}
    return json.dumps({**said, "spec": {"initializer": True} | spec})


def of(name: str) -> str:
    said = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": {"type": {"name": name}}}
    return json.dumps(said)


def begin(made: ApiFleet) -> ApiFleet:
    extends = {"extend": {"with": [{"name": "gold"}]}, "writes": "Store"}
    made.begin({f"{ROOT}/gold.json": kind("gold", writes="Store"), f"{ROOT}/silver.json": kind("silver", **extends)})
    return made


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    made = begin(ApiFleet(tmp_path / "fleet"))
    yield made
    made.close()


def through(fleet: ApiFleet, name: str, method: str, rest: str, body: Any = b"", cluster: str = "*") -> Any:
    """As the program of a type."""
    program = f"{fleet.record('root').cluster}:{name}"
    path = f"/services/initializingworkspaces/{program}/clusters/{cluster}{rest}"
    return fleet.ask(method, path, body, kind=MERGE if method == "PATCH" else "application/json")


def waiting(fleet: ApiFleet, name: str) -> list[str]:
    """Logical clusters that wait for it."""
    found = through(fleet, name, "GET", CLUSTERS).json["items"]
    return sorted(item["metadata"]["annotations"]["kcp.io/cluster"] for item in found)


def write(fleet: ApiFleet, name: str) -> None:
    """It writes something into each workspace that waits for it."""
    for cluster in waiting(fleet, name):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"by-{name}"}}
        assert through(fleet, name, "POST", MAPS, body, cluster).status == 201


def finish(fleet: ApiFleet, name: str) -> None:
    """It says of all of them that it is done."""
    for cluster in waiting(fleet, name):
        obj = through(fleet, name, "GET", f"{CLUSTERS}/cluster", cluster=cluster).json
        left = [each for each in obj["status"]["initializers"] if not each.endswith(f":{name}")]
        said = {"status": {"initializers": left}}
        assert through(fleet, name, "PATCH", f"{CLUSTERS}/cluster/status", said, cluster).status == 200


def phase(fleet: ApiFleet, path: str) -> str:
    inside = fleet.get(path, "logicalclusters.core.kcp.io", "cluster", "")
    for obj in (inside, fleet.workspace(path)):
        assert obj["metadata"]["labels"][PHASE] == obj["status"]["phase"]
    assert inside["status"]["phase"] == fleet.workspace(path)["status"]["phase"]
    return str(inside["status"]["phase"])


def test_a_pushed_workspace_is_initialized(fleet: ApiFleet, tmp_path: Path) -> None:
    fleet.commit({f"{ROOT}/x/workspace.yaml": of("silver"), f"{ROOT}/x/app.yaml": configmap()})
    cluster = fleet.record("root:x").cluster
    assert waiting(fleet, "gold") == waiting(fleet, "silver") == [cluster]
    assert fleet.call("GET", "root:x", f"{MAPS}/app").status == 200, "what git declares is served meanwhile"
    write(fleet, "gold")
    finish(fleet, "gold")
    assert (waiting(fleet, "gold"), waiting(fleet, "silver")) == ([], [cluster])
    assert phase(fleet, "root:x") == "Initializing"
    finish(fleet, "silver")
    assert phase(fleet, "root:x") == "Ready"
    assert fleet.call("GET", "root:x", f"{MAPS}/by-gold").status == 200
    fleet.publish()
    new = ApiFleet(tmp_path / "new", repo=fleet.repo, keys=fleet.keys)
    try:
        new.load(new.recorded())
        assert waiting(new, "gold") == waiting(new, "silver") == []
        assert phase(new, "root:x") == "Ready"
    finally:
        new.close()


def test_so_is_one_that_is_made_through_the_api(fleet: ApiFleet) -> None:
    fleet.commit({f"{ROOT}/lab/workspace.yaml": of("gold")})
    finish(fleet, "gold")
    assert fleet.make("root:lab:web", {"type": {"name": "silver", "path": "root"}}).status == 201
    assert phase(fleet, "root:lab:web") == "Initializing"
    cluster = fleet.record("root:lab:web").cluster
    assert waiting(fleet, "gold") == waiting(fleet, "silver") == [cluster]
    write(fleet, "silver")
    finish(fleet, "silver")
    finish(fleet, "gold")
    fleet.settle()
    assert phase(fleet, "root:lab:web") == "Ready"
    assert fleet.call("GET", "root:lab:web", f"{MAPS}/by-silver").status == 200


def test_and_terminated(fleet: ApiFleet, tmp_path: Path) -> None:
    """A pushed one and one that was made through the API: the program reads what is there, and the workspace goes when
    it is done."""
    fleet.commit({f"{ROOT}/batch.json": kind("batch", initializer=False, terminator=True, writes="Store")})
    fleet.commit({f"{ROOT}/x/workspace.yaml": of("batch"), f"{ROOT}/x/app.yaml": configmap()})
    fleet.commit({f"{ROOT}/lab/workspace.yaml": of("gold")})
    assert fleet.make("root:lab:web", {"type": {"name": "batch", "path": "root"}}).status == 201
    fleet.delete({f"{ROOT}/x": None})
    assert fleet.call("DELETE", "root:lab", f"{WORKSPACES}/web").status == 200
    fleet.settle()
    clusters = {path: fleet.record(path).cluster for path in ("root:x", "root:lab:web")}
    view = f"/services/terminatingworkspaces/{fleet.record('root').cluster}:batch/clusters"
    found = fleet.ask("GET", f"{view}/*{CLUSTERS}").json["items"]
    assert sorted(item["metadata"]["annotations"]["kcp.io/cluster"] for item in found) == sorted(clusters.values())
    assert fleet.ask("GET", f"{view}/{clusters['root:x']}{MAPS}/app").status == 200
    for path, cluster in clusters.items():
        assert phase(fleet, path) == "Terminating"
        done: dict[str, Any] = {"status": {"terminators": None}}
        status = f"{view}/{cluster}{CLUSTERS}/cluster/status"
        assert fleet.ask("PATCH", status, done, kind=MERGE).status == 200
        fleet.settle()
        assert fleet.ask("GET", f"{view}/{cluster}{MAPS}").status == 403
    assert {record.path for record in fleet.records()}.isdisjoint(clusters)
    assert fleet.ask("GET", f"{view}/*{CLUSTERS}").json["items"] == []


EVENTS = ("come", "gold", "silver", "change", "break", "mend", "type", "publish", "lose", "restart")


class _Story:
    """A fleet of which servers are lost; `done`: who is Ready by what the status branch knows."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fleets = folder, [begin(ApiFleet(folder / "first"))]
        self.fleet.publish()
        self.done: set[str] = set()

    @property
    def fleet(self) -> ApiFleet:
        return self.fleets[-1]

    def happen(self, name: str, number: int) -> None:
        place = f"{ROOT}/w{number % 3}"
        match name:
            case "come":
                self.fleet.commit({f"{place}/workspace.yaml": of(TYPES[number % 2])})
            case "gold" | "silver":
                finish(self.fleet, name)
            case "change" if self.is_there(number):
                self.fleet.commit({f"{place}/app.yaml": configmap(n=str(number))})
            case "break" if self.is_there(number):
                self.fleet.commit({f"{place}/bad.yaml": "kind: ["})
            case "mend" if self.is_there(number):
                self.fleet.commit({f"{place}/bad.yaml": None})
            case "type":
                self.fleet.commit({f"{ROOT}/gold.json": kind("gold", writes="Store", initializer=bool(number % 2))})
            case "publish":
                self.fleet.publish()
                self.done = self.ready()
            case "lose":
                self.lose()
            case "restart":
                self.fleet.loader = self.fleet.new_loader()
                self.fleet.load()

    def lose(self) -> None:
        """Another server begins with what the status branch says: nobody who was done by that begins again."""
        self.fleets.append(ApiFleet(self.folder / str(len(self.fleets)), repo=self.fleet.repo, keys=self.fleet.keys))
        self.fleet.load(self.fleet.recorded())
        assert self.done <= self.ready()
        self.fleet.publish()
        self.done = self.ready()

    def is_there(self, number: int) -> bool:
        return f"{ROOT}/w{number % 3}/workspace.yaml" in self.fleet.repo.files(self.fleet.repo.head)

    def ready(self) -> set[str]:
        served = (record.path for record in self.fleet.records() if record.served and record.path.startswith("root:w"))
        return {path for path in served if phase(self.fleet, path) == "Ready"}

    def close(self) -> None:
        for each in self.fleets:
            each.close()


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 5)), min_size=3, max_size=12))
def test_nothing_that_happens_makes_a_workspace_wait_again(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]
) -> None:
    """Of no server that follows the branch and of none that recovers; and a recovery serves what was served."""
    story = _Story(tmp_path_factory.mktemp("story"))
    try:
        ready: set[str] = set()
        for name, number in history:
            story.happen(name, number)
            assert name == "lose" or ready <= story.ready()
            ready = story.ready()
        before = story.fleet
        before.publish()
        story.done = story.ready()
        story.lose()
        assert_same(story.fleet, before)
    finally:
        story.close()
