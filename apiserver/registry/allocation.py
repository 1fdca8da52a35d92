"""What a Service gets from its cluster: addresses and node ports, each held by one Service of the cluster at a time.

Called by rest_common before a Service is written, and by the loop that heals what came another way. The answer is
operations that go into the Service's own transaction, so that an address is never given twice and never given without
its Service.
An address is held by an IPAddress object, a node port by a row. Whoever wants one that a Service
held which is gone, or does not claim it any more, takes it over: nothing has to be released for that.

Only where the cluster serves IPAddresses. A workload Service that a workspace binds is allocated for where it runs.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.model.errors import Cause, invalid
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec
from apiserver.registry import servicenetwork as net
from apiserver.registry.allocated import EXTERNAL, ONE_FAMILY
from apiserver.registry.kindtable import KindTable
from apiserver.registry.objects import complete
from apiserver.schema import messages
from apiserver.storage.paging import rows
from apiserver.storage.protocol import ABSENT, NEVER, Delete, DeleteRow, Op, Put, PutRow, Store

SERVICES = "services"
ADDRESSES = "ipaddresses.networking.k8s.io"
CIDRS = "servicecidrs.networking.k8s.io"
_PORTS = "~nodeports"
"""Key(_PORTS, <logical cluster>, "", <port>) is a node port where addresses and ports are named alike; it stands in a
row."""
_TRIES = 64

Object = dict[str, Any]


def allocates(kinds: KindTable, storage: str) -> bool:
    """Whether objects under this store name are allocated for where `kinds` are served: in a cluster, not where
    definitions or bindings bring such kinds."""
    addresses = kinds.preferred("networking.k8s.io", "ipaddresses") if storage == SERVICES else None
    return addresses is not None and addresses.of_cluster


def settle(store: Store, key: Key, old: Object | None, new: Object) -> list[Op]:
    """Gives the Service `new`, in place, the addresses and ports that it lacks. `old`: as it is stored, None if it is
    to be created. Raises StatusError 422 for what cannot be had. The operations fail with Conflict where somebody else
    was faster: then begin again with the object as it was before."""
    wanted = _Allocation(store, key, new)
    wanted.addresses(old)
    wanted.ports()
    if wanted.causes:
        raise invalid("Service", "", key.name, wanted.causes)
    return wanted.ops


def lacks(spec: Object) -> bool:
    """Whether `settle` would give something to a Service with this spec."""
    if not spec or spec.get("type") == "ExternalName":
        return False
    if not (spec.get("clusterIP") and spec.get("ipFamilies") and spec.get("ipFamilyPolicy")):
        return True
    if _checks_health(spec) and not spec.get("healthCheckNodePort"):
        return True
    return _has_node_ports(spec) and any(not port.get("nodePort") for port in spec.get("ports") or ())


def _has_node_ports(spec: Object) -> bool:
    return spec.get("type") in EXTERNAL and spec.get("allocateLoadBalancerNodePorts") is not False


def _checks_health(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def held_by(cluster: str, spec: Object) -> set[Key]:
    """What a Service with this spec holds, or would."""
    ports = {spec.get("healthCheckNodePort"), *(p.get("nodePort") for p in spec.get("ports") or ())}
    addresses = {Key(ADDRESSES, cluster, "", ip) for ip in spec.get("clusterIPs") or () if ip != "None"}
    return addresses | {Key(_PORTS, cluster, "", str(port)) for port in ports if port}


def ports(store: Store) -> Iterator[Key]:
    """All node ports that are held, of every cluster in turn."""
    for row in rows(store, Table.NODE_PORTS):
        cluster, _, port = row.key.partition("\0")
        yield Key(_PORTS, cluster, "", port)


def is_held(store: Store, key: Key) -> bool:
    """Whether an address or port is anybody's."""
    return _found(store, key) is not None


def release(store: Store, key: Key) -> Op | None:
    """What takes back an address or port that nobody claims any more; None where there is nothing to take back. One
    that no Service held is never abandoned."""
    held = _found(store, key)
    if held is None or not _abandoned(store, key, held):
        return None
    return DeleteRow(Table.NODE_PORTS, _row(key), held.value) if key.resource == _PORTS else Delete(key, held.revision)


class _Held(NamedTuple):
    """Says who holds an address or port. `revision`: of an address."""

    value: bytes
    revision: int = 0


def _row(port: Key) -> str:
    return row_key(port.cluster, port.name)


def _found(store: Store, key: Key) -> _Held | None:
    if key.resource == _PORTS:
        value = store.get_row(Table.NODE_PORTS, _row(key))
        return _Held(value) if value is not None else None
    record = store.get(key)
    return _Held(record.value, record.revision) if record is not None else None


def _hold(key: Key, value: bytes, before: _Held | None) -> Op:
    """Takes an address or port, if it is as it was."""
    if key.resource == _PORTS:
        return PutRow(Table.NODE_PORTS, _row(key), value, before.value if before is not None else ABSENT)
    return Put(key, value, before.revision if before is not None else NEVER)


def _abandoned(store: Store, key: Key, held: _Held) -> bool:
    holder = _holder(key, held)
    if holder is None:
        return False
    found = store.get(Key(SERVICES, key.cluster, *holder))
    spec = (orjson.loads(found.value).get("spec") or {}) if found is not None else {}
    return key not in held_by(key.cluster, spec)


def _holder(key: Key, held: _Held) -> tuple[str, str] | None:
    """Namespace and name of the Service; None for an address that was made for something else."""
    found = orjson.loads(held.value)
    if key.resource == _PORTS:
        return found[0], found[1]
    parent = (found.get("spec") or {}).get("parentRef") or {}
    if parent.get("resource") != SERVICES or parent.get("group"):
        return None
    return parent.get("namespace") or "", parent.get("name") or ""


@dataclass(slots=True)
class _Allocation:
    store: Store
    key: Key
    service: Object
    ops: list[Op]
    causes: list[Cause]

    def __init__(self, store: Store, key: Key, service: Object) -> None:
        self.store, self.key, self.service = store, key, service
        self.ops, self.causes = [], []

    # -- addresses -----------------------------------------------------------------------------------------------

    def addresses(self, old: Object | None) -> None:
        spec = self.service["spec"]
        if spec["type"] == "ExternalName":
            return
        if not self._families(spec):
            return
        if spec.get("clusterIP") == "None":
            spec["clusterIPs"] = ["None"]
            return
        asked = spec.get("clusterIP")
        if asked and old is not None and old["spec"].get("clusterIP") == asked:
            return
        found = self._given(asked) if asked else self._any()
        if found:
            spec["clusterIP"], spec["clusterIPs"] = found, [found]

    def _families(self, spec: Object) -> bool:
        """Sets the families and their policy; whether they can be had: there is one only. Of a headless Service without
        a selector somebody else knows the addresses, so it may have both."""
        if spec.get("clusterIP") == "None" and not spec.get("selector"):
            policy = spec.setdefault("ipFamilyPolicy", "RequireDualStack")
            families = spec.setdefault("ipFamilies", ["IPv4"])
            if len(families) == 1 and policy != ONE_FAMILY:
                spec["ipFamilies"] = [*families, "IPv6" if families == ["IPv4"] else "IPv4"]
            return True
        for index, family in enumerate(spec.get("ipFamilies") or ()):
            if family != "IPv4":
                text = "not configured on this cluster"
                self.causes.append(messages.invalid(f"spec.ipFamilies[{index}]", family, text))
        if spec.get("ipFamilyPolicy") == "RequireDualStack":
            text = "this cluster is not configured for dual-stack services"
            self.causes.append(messages.invalid("spec.ipFamilyPolicy", "RequireDualStack", text))
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", ONE_FAMILY)
        return not self.causes

    def _given(self, address: str) -> str:
        """The address that the Service names, if it can have it."""
        wrong = ""
        if not any(ipaddress.ip_address(address) in n for n in self._networks()):
            wrong = "the provided network does not match the current range"
        elif not self._take(self._address_key(address), self._address(address)):
            wrong = "provided IP is already allocated"
        if wrong:
            text = f"failed to allocate IP {address}: {wrong}"
            self.causes.append(messages.invalid("spec.clusterIPs", [address], text))
        return "" if wrong else address

    def _any(self) -> str:
        for network in self._networks():
            offsets = net.usable(network)
            for offset in self._candidates(offsets):
                address = str(network[offset])
                if self.store.get(self._address_key(address)) is None:
                    self.ops.append(Put(self._address_key(address), self._address(address), NEVER))
                    return address
        self.causes.append(Cause("InternalError", "Internal error: failed to allocate a serviceIP: range is full", ""))
        return ""

    @staticmethod
    def _candidates(offsets: range) -> Iterator[int]:
        """Some by chance, so that two at once seldom want the same; then, where the range is nearly full, all."""
        for _ in range(_TRIES):
            yield random.choice(offsets)  # noqa: S311 (no secret)
        yield from offsets

    def _networks(self) -> list[net.Network]:
        """The ranges of IPv4 that the cluster has."""
        found = []
        for record in self.store.scan(CIDRS, self.key.cluster).records:
            cidr = orjson.loads(record.value)
            if not cidr["metadata"].get("deletionTimestamp"):
                found += [net.network(c) for c in (cidr.get("spec") or {}).get("cidrs") or ()]
        return [n for n in found if n is not None and n.version == 4] or [ipaddress.ip_network(net.CIDR)]

    def _address_key(self, address: str) -> Key:
        return Key(ADDRESSES, self.key.cluster, "", address)

    def _address(self, address: str) -> bytes:
        parent = {"resource": SERVICES, "namespace": self.key.namespace, "name": self.key.name}
        labels = {
            "ipaddress.kubernetes.io/ip-family": net.family(address),
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        made = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IPAddress",
            "metadata": {"labels": labels},
            "spec": {"parentRef": parent},
        }
        return codec.encode(complete(self._address_key(address), made, runtime=True))

    # -- ports ----------------------------------------------------------------------------------------------------

    def ports(self) -> None:
        spec = self.service["spec"]
        if _has_node_ports(spec):
            given: dict[int, int] = {}
            for port in spec.get("ports") or ():
                if not port.get("nodePort"):
                    port["nodePort"] = given.get(port["port"]) or self._free_port()
                given[port["port"]] = port["nodePort"]
        mine: set[int] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            if port.get("nodePort") and port["nodePort"] not in mine:
                mine.add(port["nodePort"])
                self._hold_port(f"spec.ports[{index}].nodePort", port["nodePort"])
        if _checks_health(spec):
            spec["healthCheckNodePort"] = spec.get("healthCheckNodePort") or self._free_port()
            self._hold_port("spec.healthCheckNodePort", spec["healthCheckNodePort"])

    def _free_port(self) -> int:
        mine = {op.row for op in self.ops if isinstance(op, PutRow)}
        for port in self._candidates(range(net.FIRST_NODE_PORT, net.LAST_NODE_PORT + 1)):
            key = self._port_key(port)
            if _row(key) not in mine and not is_held(self.store, key):
                return port
        self.causes.append(Cause("InternalError", "Internal error: failed to allocate a nodePort: range is full", ""))
        return net.FIRST_NODE_PORT

    def _hold_port(self, path: str, port: int) -> None:
        if not net.FIRST_NODE_PORT <= port <= net.LAST_NODE_PORT:
            text = f"provided port is not in the valid range. The range of valid ports is {net.NODE_PORTS}"
            self.causes.append(messages.invalid(path, port, text))
        elif not self._take(self._port_key(port), orjson.dumps(self._me())):
            self.causes.append(messages.invalid(path, port, "provided port is already allocated"))

    def _port_key(self, port: int) -> Key:
        return Key(_PORTS, self.key.cluster, "", str(port))

    def _me(self) -> list[str]:
        return [self.key.namespace, self.key.name]

    # -- both -----------------------------------------------------------------------------------------------------

    def _take(self, key: Key, value: bytes) -> bool:
        """Whether the key can be had; then an operation takes it, unless this Service has it already."""
        held = _found(self.store, key)
        if held is not None and _holder(key, held) == tuple(self._me()):
            return True
        if held is not None and not _abandoned(self.store, key, held):
            return False
        self.ops.append(_hold(key, value, held))
        return True
