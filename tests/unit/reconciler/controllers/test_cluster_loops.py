"""What every cluster's namespaces, roles and definitions get, and where: the loops over a real store's log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.following import Following

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.model.storagenames import CRDS as DEFINITIONS
from apiserver.model.tables import Table, row_key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.aggregation import ROLES, aggregated
from reconciler.controllers.clusterparts import Clusters, cluster_loops
from reconciler.controllers.definitions import judged
from reconciler.controllers.served import started_with

SHOP = "shop0"
BUNDLE = "-----BEGIN CERTIFICATE-----"


class World:
    def __init__(self, store: Store) -> None:
        self.store, self.objects = store, Objects(store)
        self._loops = Following(store, lambda feed: cluster_loops(feed, Clusters.alike(lambda c: c == SHOP), BUNDLE))

    def start(self) -> None:
        self._loops.start()

    def stop(self) -> None:
        self._loops.stop()

    def namespace(self, name: str, cluster: str = SHOP, **metadata: Any) -> Key:
        key = Key("namespaces", cluster, "", name)
        self.objects.create(key, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return key

    def role(self, name: str, **content: Any) -> Key:
        key = Key(ROLES, SHOP, "", name)
        metadata = {"labels": content.pop("labels", {})}
        version = "rbac.authorization.k8s.io/v1"
        self.objects.create(key, {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, **content})
        return key

    def until(self, found: Callable[[], Any]) -> Any:
        """The first thing that `found` gives, within ten seconds."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            what = found()
            if what:
                return what
            time.sleep(0.005)
        raise AssertionError("it did not come")


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    made = World(store)
    yield made
    made.stop()


def root_ca(namespace: str) -> Key:
    return Key("configmaps", SHOP, namespace, "kube-root-ca.crt")


def account(namespace: str, cluster: str = SHOP) -> Key:
    return Key("serviceaccounts", cluster, namespace, "default")


def test_namespaces_that_were_there_and_new_ones_get_an_account_and_the_ca(world: World) -> None:
    world.namespace("old")
    world.start()
    world.namespace("new")
    for name in ("old", "new"):
        found = world.until(lambda name=name: world.objects.get(account(name)))
        assert found["metadata"]["annotations"]["treeplane.dev/origin"] == "runtime"
        found = world.until(lambda name=name: world.objects.get(root_ca(name)))
        assert found["data"] == {"ca.crt": BUNDLE}


def test_other_clusters_and_namespaces_that_go_get_nothing(world: World) -> None:
    world.namespace("going", deletionTimestamp="2026-01-01T00:00:00Z")
    world.namespace("elsewhere", "other")
    world.start()
    world.namespace("last")
    world.until(lambda: world.objects.get(account("last")))
    world.until(lambda: world.objects.get(root_ca("last")))
    assert world.objects.get(account("going")) is None
    assert world.objects.get(root_ca("going")) is None
    assert world.objects.get(account("elsewhere", "other")) is None


def test_both_come_back_when_they_are_deleted(world: World) -> None:
    world.namespace("a")
    world.start()
    for key in (account("a"), root_ca("a")):
        first = world.until(lambda key=key: world.objects.get(key))
        world.objects.delete(key)
        again = world.until(lambda key=key: world.objects.get(key))
        assert again["metadata"]["uid"] != first["metadata"]["uid"]


def test_a_changed_ca_is_put_right(world: World) -> None:
    world.namespace("a")
    world.start()
    world.until(lambda: world.objects.get(root_ca("a")))
    world.objects.update(root_ca("a"), lambda obj: {**obj, "data": {"ca.crt": "mine", "more": "x"}})
    world.until(lambda: world.objects.get(root_ca("a"))["data"] == {"ca.crt": BUNDLE})


READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
LIST = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
BY_LABEL = {"clusterRoleSelectors": [{"matchLabels": {"into": "all"}}]}


def test_rules_follow_the_roles_that_are_selected(world: World) -> None:
    whole = world.role("all", aggregationRule=BY_LABEL)
    world.role("a", labels={"into": "all"}, rules=[READ])
    world.start()
    world.until(lambda: world.objects.get(whole).get("rules") == [READ])
    added = world.role("b", labels={"into": "all"}, rules=[READ, LIST])
    world.until(lambda: world.objects.get(whole).get("rules") == [READ, LIST])
    world.objects.delete(added)
    world.until(lambda: world.objects.get(whole).get("rules") == [READ])


def test_aggregation_leaves_out_the_role_itself_and_what_is_not_selected() -> None:
    def role(name: str, **content: Any) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": {"into": "all"}}, **content}

    whole = role("all", aggregationRule=BY_LABEL, rules=[LIST])
    other = {"metadata": {"name": "other"}, "rules": [LIST]}
    assert aggregated(whole, [whole, other, role("a", rules=[READ])]) == [READ]


def definition(plural: str, kind: str, group: str = "example.io") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def established(obj: dict[str, Any] | None) -> bool:
    return conditions.is_true(((obj or {}).get("status") or {}).get("conditions"), "Established")


def test_a_definition_is_established_and_another_of_its_kind_waits_for_it_to_go(world: World) -> None:
    world.start()
    first, second = (Key(DEFINITIONS, SHOP, "", f"{p}.example.io") for p in ("widgets", "gadgets"))
    world.objects.create(first, definition("widgets", "Widget"))
    world.until(lambda: established(world.objects.get(first)))
    world.objects.create(second, definition("gadgets", "Widget"))
    found = world.until(lambda: (world.objects.get(second) or {}).get("status"))
    accepted = conditions.get(found["conditions"], "NamesAccepted")
    assert accepted is not None
    assert '"Widget" is already in use' in accepted["message"]
    assert not established(world.objects.get(second))
    world.objects.delete(first)
    world.until(lambda: established(world.objects.get(second)))


def test_names_are_those_of_one_group() -> None:
    one, other = definition("widgets", "Widget"), definition("widgets", "Widget", "example.com")
    status = judged(other, [one, other], (), "2026-01-01T00:00:00Z")
    assert conditions.is_true(status["conditions"], "Established")


def service(world: World, name: str, **spec: Any) -> Key:
    key = Key("services", SHOP, "a", name)
    made = {"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}], **spec}
    world.objects.create(key, {"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": made})
    return key


def test_a_service_from_git_gets_an_address_and_leaves_it_when_it_goes(world: World) -> None:
    world.start()
    key = service(world, "web", type="NodePort")
    spec = world.until(lambda: world.objects.get(key)["spec"].get("clusterIP") and world.objects.get(key)["spec"])
    address = Key("ipaddresses.networking.k8s.io", SHOP, "", spec["clusterIP"])
    port = row_key(SHOP, str(spec["ports"][0]["nodePort"]))
    assert world.objects.get(address)["spec"]["parentRef"]["name"] == "web"
    assert world.store.get_row(Table.NODE_PORTS, port) is not None
    world.objects.delete(key)
    world.until(lambda: world.store.get(address) is None and world.store.get_row(Table.NODE_PORTS, port) is None)


def test_a_service_that_has_its_address_from_before_holds_it_again(world: World) -> None:
    key = service(world, "web", clusterIP="10.0.0.77", clusterIPs=["10.0.0.77"])
    world.start()
    address = Key("ipaddresses.networking.k8s.io", SHOP, "", "10.0.0.77")
    world.until(lambda: world.objects.get(address) is not None)
    assert world.objects.get(key)["spec"]["clusterIP"] == "10.0.0.77"


def test_an_address_that_somebody_else_made_stays(world: World) -> None:
    mine = Key("ipaddresses.networking.k8s.io", SHOP, "", "10.0.0.50")
    parent = {"group": "example.io", "resource": "gateways", "name": "g"}
    world.objects.create(mine, {"kind": "IPAddress", "metadata": {}, "spec": {"parentRef": parent}})
    gone = Key("ipaddresses.networking.k8s.io", SHOP, "", "10.0.0.51")
    parent = {"resource": "services", "namespace": "a", "name": "gone"}
    world.objects.create(gone, {"kind": "IPAddress", "metadata": {}, "spec": {"parentRef": parent}})
    world.start()
    world.until(lambda: world.objects.get(gone) is None)
    assert world.objects.get(mine) is not None


def test_clusters_are_told_by_the_kinds_they_started_with(fleet: Any) -> None:
    fleet.workspace("root:lab", "lab0", builtins="Kubernetes")
    serves = started_with(fleet.store, "Kubernetes")
    assert [serves(c) for c in ("lab0", "shop0", "nowhere")] == [True, False, False]


SERVICES = "apiservices.apiregistration.k8s.io"


def defined(world: World, group: str, *versions: str, established: bool = True) -> Key:
    key = Key(DEFINITIONS, SHOP, "", f"ws.{group}")
    served = [{"name": v, "served": True, "storage": v == versions[0]} for v in versions]
    spec = {"group": group, "names": {"plural": "ws", "kind": "W"}, "versions": served, "scope": "Namespaced"}
    status = {"conditions": [{"type": "Established", "status": "True" if established else "False"}]}
    metadata = {"annotations": {"treeplane.dev/source-path": "crd.yaml"}}  # judged with its commit
    world.objects.create(key, {"metadata": metadata, "spec": spec, "status": status})
    return key


def services(world: World) -> list[str]:
    return [o["metadata"]["name"] for o in world.objects.list(SERVICES, SHOP)]


def test_groups_of_definitions_have_api_services_as_long_as_they_are_there(world: World) -> None:
    own = {"kind": "APIService", "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}}}
    world.objects.create(Key(SERVICES, SHOP, "", "v1.apps"), own)
    key = defined(world, "z.io", "v1", "v2")
    defined(world, "y.io", "v1", established=False)
    world.start()
    world.until(lambda: services(world) == ["v1.apps", "v1.z.io", "v2.z.io"])
    made = world.objects.get(Key(SERVICES, SHOP, "", "v2.z.io"))
    assert made is not None
    assert made["spec"] == {"group": "z.io", "version": "v2", "groupPriorityMinimum": 1000, "versionPriority": 100}
    assert made["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert conditions.is_true(made["status"]["conditions"], "Available")
    world.objects.delete(Key(SERVICES, SHOP, "", "v1.z.io"))
    world.until(lambda: "v1.z.io" in services(world))
    world.objects.delete(key)
    world.until(lambda: services(world) == ["v1.apps"])
