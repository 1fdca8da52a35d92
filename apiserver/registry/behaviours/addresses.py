"""Endpoints, EndpointSlice, IPAddress, ServiceCIDR, Node, RuntimeClass: kinds that are about addresses and machines."""

from __future__ import annotations

import ipaddress

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, fill, immutable, one_of, port_number
from apiserver.schema import messages

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_BAD_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ONE_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def endpoints_default(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def endpoints_check(obj: Object) -> list[Cause]:
    causes: list[Cause] = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            text = "must specify `addresses` or `notReadyAddresses`"
            causes.append(messages.required(path, text))
        for field in ("addresses", "notReadyAddresses"):
            for at, found in enumerate(subset.get(field) or ()):
                causes += _endpoint(f"{path}.{field}[{at}].ip", found.get("ip") or "")
        ports = subset.get("ports") or ()
        for at, port in enumerate(ports):
            causes += _endpoint_port(f"{path}.ports[{at}]", port, len(ports) > 1)
    return causes


def _endpoint(path: str, text: str) -> list[Cause]:
    found = address(text)
    if found is None:
        return [messages.invalid(path, text, _BAD_ADDRESS)]
    for wrong, why in (
        (found.is_unspecified, f"may not be unspecified ({text})"),
        (found.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (found.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (found.is_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ):
        if wrong:
            return [messages.invalid(path, text, why)]
    return []


def _endpoint_port(path: str, port: Object, named: bool) -> list[Cause]:
    name, causes = port.get("name") or "", []
    if named and not name:
        causes.append(messages.required(f"{path}.name"))
    elif name:
        causes += [messages.invalid(f"{path}.name", name, m) for m in names.dns_label(name)]
    causes += port_number(f"{path}.port", port.get("port") or 0)
    return causes + one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS)


def slice_default(obj: Object) -> None:
    for port in obj.get("ports") or ():
        fill(port, name="", protocol="TCP")


def slice_check(obj: Object) -> list[Cause]:
    """Of an EndpointSlice."""
    kind = obj.get("addressType") or ""
    if not kind:
        return [messages.required("addressType")]
    causes = one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        path, found = f"endpoints[{index}].addresses", endpoint.get("addresses") or ()
        if not found:
            causes.append(messages.required(path, "must contain at least 1 address"))
        if len(found) > 100:
            causes.append(messages.too_many(path, len(found), 100))
        for at, text in enumerate(found):
            causes += _slice_address(f"{path}[{at}]", kind, text)
    seen: set[str] = set()
    for index, port in enumerate(obj.get("ports") or ()):
        path = f"ports[{index}]"
        if port["name"]:
            causes += [messages.invalid(f"{path}.name", port["name"], m) for m in names.dns_label(port["name"])]
        if port["name"] in seen:
            causes.append(messages.duplicate(f"{path}.name", port["name"]))
        seen.add(port["name"])
        causes += one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    return causes


def _slice_address(path: str, kind: str, text: str) -> list[Cause]:
    if kind == "FQDN":
        return [messages.invalid(path, text, m) for m in names.dns_subdomain(text)]
    if kind not in ("IPv4", "IPv6"):
        return []
    found = address(text)
    if found is not None and kind != f"IPv{found.version}":
        return [messages.invalid(path, text, f"must be an {kind} address")]
    return _endpoint(path, text)


def slice_update(old: Object, new: Object) -> list[Cause]:
    return immutable("addressType", old.get("addressType"), new.get("addressType"))


def ip_address_check(obj: Object) -> list[Cause]:
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        return [messages.required("spec.parentRef")]
    return [messages.required(f"spec.parentRef.{f}") for f in ("resource", "name") if not parent.get(f)]


def ip_address_update(old: Object, new: Object) -> list[Cause]:
    return immutable("spec.parentRef", old["spec"].get("parentRef"), new["spec"].get("parentRef"))


def range_check(obj: Object) -> list[Cause]:
    """Of a ServiceCIDR."""
    found = (obj.get("spec") or {}).get("cidrs") or []
    if not found:
        return [messages.required("spec.cidrs", "at least one CIDR required")]
    causes: list[Cause] = []
    networks = [_network(f"spec.cidrs[{i}]", text, causes) for i, text in enumerate(found)]
    versions = [n.version for n in networks if n is not None]
    if len(found) > 2 or len(versions) != len(set(versions)):
        causes.append(messages.invalid("spec.cidrs", found, _ONE_EACH))
    return causes


def _network(path: str, text: str, causes: list[Cause]) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        found = ipaddress.ip_network(text, strict=False)
    except ValueError:
        causes.append(messages.invalid(path, text, _BAD_RANGE))
        return None
    if "/" not in text:
        causes.append(messages.invalid(path, text, _BAD_RANGE))
    elif text.partition("/")[0] != str(found.network_address):
        causes.append(messages.invalid(path, text, "must not have bits set beyond the prefix length"))
    return found


def range_update(old: Object, new: Object) -> list[Cause]:
    before, after = (o["spec"].get("cidrs") or [] for o in (old, new))
    if len(after) < len(before):
        return immutable("spec.cidrs", before, after)
    pairs = enumerate(zip(before, after, strict=False))
    return [c for at, (was, now) in pairs for c in immutable(f"spec.cidrs[{at}]", was, now)]


def node_default(obj: Object) -> None:
    """A Node is not ready before its kubelet says so, and until then nothing is put there."""
    spec = obj.setdefault("spec", {})
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])


def node_check(obj: Object) -> list[Cause]:
    spec, causes = obj["spec"], []
    effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"]
    for index, taint in enumerate(spec.get("taints") or ()):
        path = f"metadata.taints[{index}]"  # as kube-apiserver names it
        causes += [messages.invalid(f"{path}.key", taint.get("key", ""), m) for m in _label_key(taint.get("key") or "")]
        if not taint.get("effect"):
            causes.append(messages.required(f"{path}.effect"))
        elif taint["effect"] not in effects:
            causes.append(messages.unsupported(f"{path}.effect", taint["effect"], list(effects)))
    for index, text in enumerate(spec.get("podCIDRs") or ()):
        _network(f"spec.podCIDRs[{index}]", text, causes)
    return causes


def _label_key(key: str) -> list[str]:
    return names.qualified_name(key)


def node_update(old: Object, new: Object) -> list[Cause]:
    causes = []
    for field in ("podCIDRs", "providerID"):
        before, after = (o.get("spec", {}).get(field) for o in (old, new))
        if before and before != after:
            shown = "podCIDR" if field == "podCIDRs" else field
            text = f'node updates may not change {shown} except from "" to valid'
            causes.append(messages.forbidden(f"spec.{field}", text))
    return causes


def runtime_class_check(obj: Object) -> list[Cause]:
    handler = obj.get("handler") or ""
    return [messages.invalid("handler", handler, m) for m in names.dns_label(handler)]


def runtime_class_update(old: Object, new: Object) -> list[Cause]:
    return immutable("handler", old.get("handler"), new.get("handler"))


ENDPOINTS = Behaviour(endpoints_default, endpoints_check)
ENDPOINT_SLICE = Behaviour(slice_default, slice_check, slice_update)
IP_ADDRESS = Behaviour(check=ip_address_check, check_update=ip_address_update)
NODE = Behaviour(node_default, node_check, node_update)
RUNTIME_CLASS = Behaviour(check=runtime_class_check, check_update=runtime_class_update)
SERVICE_CIDR = Behaviour(check=range_check, check_update=range_update)
