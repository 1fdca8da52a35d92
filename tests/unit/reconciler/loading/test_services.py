"""A Service that a commit brings, or changes, is what the same write through the API would make of it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.following import Following
from support.loadedfleet import A, B, LoadedFleet

from apiserver.model.errors import StatusError
from apiserver.registry import rest
from apiserver.registry.rest_options import Collection, WriteOptions
from reconciler.controllers.clusterparts import Clusters, cluster_loops

Object = dict[str, Any]

COMPAT = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: kube-compat, path: root}}\n"
PORTS = {"ports": [{"port": 80}]}
NAMED = {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "protocol": "UDP"}]}
SELECTOR = {"selector": {"app": "web"}}
FORMS: dict[str, Object] = {
    "plain": {**PORTS, **SELECTOR},
    "without-selector": PORTS,
    "headless": {**PORTS, **SELECTOR, "clusterIP": "None"},
    "headless-without-selector": {**PORTS, "clusterIP": "None"},
    "headless-without-ports": {**SELECTOR, "clusterIP": "None"},
    "prefers-dual": {**PORTS, **SELECTOR, "ipFamilyPolicy": "PreferDualStack"},
    "headless-single": {**PORTS, "clusterIP": "None", "ipFamilyPolicy": "SingleStack"},
    "headless-prefers-dual": {**PORTS, **SELECTOR, "clusterIP": "None", "ipFamilyPolicy": "PreferDualStack"},
    "family": {**PORTS, **SELECTOR, "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"},
    "external-name": {"type": "ExternalName", "externalName": "example.com"},
    "node-port": {**NAMED, **SELECTOR, "type": "NodePort"},
    "balanced": {**NAMED, **SELECTOR, "type": "LoadBalancer"},
    "balanced-locally": {**PORTS, **SELECTOR, "type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    "balanced-without-ports": {**PORTS, **SELECTOR, "type": "LoadBalancer", "allocateLoadBalancerNodePorts": False},
    "sticky": {**PORTS, **SELECTOR, "sessionAffinity": "ClientIP"},
}


def manifest(name: str, spec: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": json.loads(json.dumps(spec))}


@pytest.fixture
def fleet(empty: LoadedFleet) -> LoadedFleet:
    """root:a gets its Services by commits, root:b through the API."""
    empty.begin({f"{directory}/workspace.yaml": COMPAT for directory in (A, B)})
    return empty


@pytest.fixture
def loops(fleet: LoadedFleet) -> Iterator[Following]:
    made = Following(fleet.store, lambda feed: cluster_loops(feed, Clusters.of_workspaces(feed.store), ""))
    made.start()
    yield made
    made.stop()


def through_the_api(fleet: LoadedFleet, name: str, spec: Object, before: Object | None = None) -> None:
    """Creates it; or changes what was said `before`, as kubectl apply does."""
    cluster = fleet.record("root:b").cluster
    kinds = fleet.loader._catalog.kinds(cluster)
    kind = kinds.of_storage("services")
    assert kind is not None
    at, options = Collection(fleet.store, kind, kinds, cluster), WriteOptions("test")
    if before is None:
        rest.create(at, "default", manifest(name, spec), options)
        return

    def change(live: Object) -> Object:
        kept = {k: v for k, v in live["spec"].items() if k not in before}
        return {**live, "spec": kept | manifest(name, spec)["spec"]}

    rest.patch(at, "default", name, change, options)


def shape(fleet: LoadedFleet, path: str, name: str) -> Object:
    """A Service's spec, with marks in place of what was chosen by chance."""
    spec = fleet.get(path, "services", name)["spec"]
    if spec.get("clusterIP") not in (None, "None"):
        assert spec["clusterIPs"] == [spec["clusterIP"]]
        spec |= {"clusterIP": "given", "clusterIPs": ["given"]}
    for port in spec.get("ports") or ():
        port |= {"nodePort": "given"} if "nodePort" in port else {}
    return {**spec, **({"healthCheckNodePort": "given"} if "healthCheckNodePort" in spec else {})}


def test_a_new_service_is_the_same_both_ways(fleet: LoadedFleet, loops: Following, eventually: Any) -> None:
    for name, spec in FORMS.items():
        through_the_api(fleet, name, spec)
    fleet.commit({f"{A}/{name}.json": json.dumps(manifest(name, spec)) for name, spec in FORMS.items()})
    assert fleet.held() == {}
    for name in FORMS:
        eventually(lambda name=name: alike(fleet, name), 10, name)


def test_a_changed_service_is_the_same_both_ways(fleet: LoadedFleet, loops: Following, eventually: Any) -> None:
    """From each form to each other, as far as the API takes that."""
    pairs = {f"{one}-{other}"[:63].rstrip("-"): (one, other) for one, other in itertools.permutations(FORMS, 2)}
    done = {}
    for name, (one, other) in pairs.items():
        through_the_api(fleet, name, FORMS[one])
        try:
            through_the_api(fleet, name, FORMS[other], FORMS[one])
            done[name] = one, other
        except StatusError as error:
            assert error.code == 422
    assert len(done) > len(pairs) / 2
    for step in (0, 1):
        files = {f"{A}/{name}.json": json.dumps(manifest(name, FORMS[way[step]])) for name, way in done.items()}
        fleet.commit(files)
        assert fleet.held() == {}
        eventually(lambda: all(settled(shape(fleet, "root:a", name)) for name in done), 30)
    for name in done:
        eventually(lambda name=name: alike(fleet, name), 10, name)


def alike(fleet: LoadedFleet, name: str) -> bool:
    assert shape(fleet, "root:a", name) == shape(fleet, "root:b", name)
    return True


def settled(spec: Object) -> bool:
    return spec["type"] == "ExternalName" or bool(spec.get("clusterIP"))


def test_what_it_was_given_stays_when_a_commit_says_something_else(
    fleet: LoadedFleet, loops: Following, eventually: Any
) -> None:
    fleet.commit({f"{A}/s.json": json.dumps(manifest("s", FORMS["node-port"]))})
    eventually(lambda: "nodePort" in fleet.get("root:a", "services", "s")["spec"]["ports"][0])
    before = fleet.get("root:a", "services", "s")["spec"]
    fleet.commit({f"{A}/s.json": json.dumps(manifest("s", {**FORMS["node-port"], "selector": {"app": "other"}}))})
    assert fleet.get("root:a", "services", "s")["spec"] == {**before, "selector": {"app": "other"}}
    fleet.recheck(["root:a"])
    assert [change for change in fleet.changes() if change.key.resource == "services"] == []
