"""Addresses and node ports of Services: given once, in the Service's own transaction, and free again when it goes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import codec, deletion, rest
from apiserver.registry.kinds import kubernetes_builtins, workspace_builtins
from apiserver.registry.rest_options import Collection, DeleteOptions, WriteOptions
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store

Object = dict[str, Any]
ONCE = WriteOptions("test")


class Services:
    def __init__(self, store: Store) -> None:
        kinds = kubernetes_builtins()
        kind = kinds.preferred("", "services")
        assert kind is not None
        self.store = store
        self.at = Collection(store, kind, kinds, "lab")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        store.write(Put(Key("namespaces", "lab", "", "default"), codec.encode(namespace))).result()

    def create(self, name: str, options: WriteOptions = ONCE, **spec: Any) -> Object:
        obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
        spec = {"ports": [{"port": 80}], **spec}
        return rest.create(self.at, "default", {**obj, "spec": spec}, options).obj["spec"]

    def patch(self, name: str, **spec: Any) -> Object:
        def change(live: Object) -> Object:
            live["spec"].update(spec)
            live["spec"] = {k: v for k, v in live["spec"].items() if v is not None}
            return live

        return rest.patch(self.at, "default", name, change, ONCE).obj["spec"]

    def delete(self, name: str) -> None:
        deletion.delete(self.at, "default", name, DeleteOptions())

    def why(self, name: str = "refused", **spec: Any) -> list[tuple[str, str]]:
        with pytest.raises(StatusError) as refused:
            self.create(name, **spec)
        assert refused.value.code == 422
        return [(c["field"], c["message"]) for c in refused.value.details["causes"]]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    store = open_store(tmp_path / "store", sync=False)
    yield Services(store)
    store.close()


def test_an_address_comes_with_an_object_that_holds_it(services: Services) -> None:
    spec = services.create("a")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["ipFamilies"] == ["IPv4"]
    record = services.store.get(Key("ipaddresses.networking.k8s.io", "lab", "", spec["clusterIP"]))
    assert record is not None
    held = codec.decode(record.value, record.revision)
    assert held["spec"]["parentRef"] == {"resource": "services", "namespace": "default", "name": "a"}


def test_addresses_of_ones_choice(services: Services) -> None:
    assert services.create("a", clusterIP="10.0.0.7")["clusterIP"] == "10.0.0.7"
    text = 'Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated'
    assert services.why(clusterIP="10.0.0.7") == [("spec.clusterIPs", text)]
    why = "failed to allocate IP 1.2.3.4: the provided network does not match the current range"
    assert services.why(clusterIP="1.2.3.4") == [("spec.clusterIPs", f'Invalid value: ["1.2.3.4"]: {why}')]
    services.delete("a")
    assert services.create("b", clusterIP="10.0.0.7")["clusterIP"] == "10.0.0.7"


def test_node_ports(services: Services) -> None:
    spec = services.create("a", type="NodePort")
    port = spec["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    assert spec["externalTrafficPolicy"] == "Cluster"
    wanted = [{"port": 80, "nodePort": port}]
    path = "spec.ports[0].nodePort"
    assert services.why(type="NodePort", ports=wanted) == [
        (path, f"Invalid value: {port}: provided port is already allocated")
    ]
    text = "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
    assert services.why(type="NodePort", ports=[{"port": 80, "nodePort": 80}]) == [(path, text)]
    services.delete("a")
    assert services.create("b", type="NodePort", ports=wanted)["ports"][0]["nodePort"] == port


def test_two_protocols_of_one_port_share_a_node_port(services: Services) -> None:
    both = [{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}]
    first, second = services.create("dns", type="NodePort", ports=both)["ports"]
    assert first["nodePort"] == second["nodePort"]


def test_headless_and_external_services_get_nothing(services: Services) -> None:
    assert services.create("a", clusterIP="None")["ipFamilyPolicy"] == "RequireDualStack"
    spec = services.create("b", clusterIP="None", selector={"a": "b"})
    assert (spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["None"], ["IPv4"], "SingleStack")
    assert services.create("c", type="ExternalName", externalName="x.io", ports=[]).keys() == {
        "type", "externalName", "sessionAffinity"}  # fmt: skip


def test_a_load_balancer_with_local_traffic_has_a_health_port(services: Services) -> None:
    spec = services.create("a", type="LoadBalancer", externalTrafficPolicy="Local")
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]
    spec = services.create("b", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    assert "nodePort" not in spec["ports"][0]


def test_an_update_keeps_what_was_allocated_and_drops_it_with_the_type(services: Services) -> None:
    made = services.create("a", type="NodePort")
    port = made["ports"][0]["nodePort"]
    spec = services.patch("a", clusterIP="", ports=[{"port": 81}])
    assert (spec["clusterIP"], spec["ports"][0]["nodePort"]) == (made["clusterIP"], port)
    spec = services.patch("a", type="ClusterIP")
    assert "nodePort" not in spec["ports"][0]
    assert "externalTrafficPolicy" not in spec
    spec = services.patch("a", type="ExternalName", externalName="z.io")
    assert spec.keys() == {"type", "externalName", "sessionAffinity", "ports"}
    assert services.patch("a", type="ClusterIP", externalName=None)["clusterIP"]


def test_an_address_is_not_changed(services: Services) -> None:
    services.create("a")
    with pytest.raises(StatusError, match="may not change once set"):
        services.patch("a", clusterIP="10.0.0.99")


def test_what_a_cluster_of_one_family_cannot_give(services: Services) -> None:
    assert services.why(ipFamilies=["IPv6"]) == [
        ("spec.ipFamilies[0]", 'Invalid value: "IPv6": not configured on this cluster')
    ]
    text = 'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services'
    assert services.why(ipFamilyPolicy="RequireDualStack") == [("spec.ipFamilyPolicy", text)]


def test_a_dry_run_holds_nothing(services: Services) -> None:
    before = services.store.revision()
    spec = services.create("a", WriteOptions("test", dry_run=True), type="NodePort")
    assert spec["clusterIP"]
    assert spec["ports"][0]["nodePort"]
    assert services.store.revision() == before


def test_many_at_once_get_each_their_own(services: Services) -> None:
    """A range of fourteen addresses, and as many Services as it holds."""
    cidr = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "small"}}
    key = Key("servicecidrs.networking.k8s.io", "lab", "", "small")
    services.store.write(Put(key, codec.encode({**cidr, "spec": {"cidrs": ["10.9.0.0/28"]}}))).result()
    given: list[str] = []

    def some(first: int) -> None:
        given.extend(services.create(f"s{n}")["clusterIP"] for n in range(first, first + 7))

    threads = [threading.Thread(target=some, args=(n * 7,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == sorted(f"10.9.0.{n}" for n in range(1, 15))


def test_a_cluster_without_addresses_allocates_nothing(services: Services) -> None:
    services.at = Collection(services.store, services.at.kind, workspace_builtins(), "lab")
    assert "clusterIP" not in services.create("a", type="NodePort")
