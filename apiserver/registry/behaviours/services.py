"""Service: what it has by default, what it keeps when it is updated, and what it may be. Addresses and node ports are
given by allocation.py."""

from __future__ import annotations

import ipaddress

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, fill, one_of, port_number
from apiserver.schema import messages

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_EXTERNAL = ("LoadBalancer", "NodePort")


def service_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "ClientIP":
        affinity = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        affinity.setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")
        if not port.get("nodePort"):
            port.pop("nodePort", None)
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in _EXTERNAL:
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] != "ExternalName":
        fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def service_carry(old: Object, new: Object) -> None:
    """What was allocated stays without being named again, and goes with the type that it belonged to."""
    before, after = old["spec"], new["spec"]
    _settle_cluster_ips(before, after)
    _drop(before, after)
    _keep(before, after)


def _settle_cluster_ips(before: Object, after: Object) -> None:
    """A client that knows clusterIP alone changes clusterIPs with it."""
    if after.get("clusterIPs") == before.get("clusterIPs") and after.get("clusterIP") != before.get("clusterIP"):
        after.pop("clusterIPs", None)
        if after.get("clusterIP"):
            after["clusterIPs"] = [after["clusterIP"]]
    if not after.get("clusterIP"):
        after.pop("clusterIP", None)


def _drop(before: Object, after: Object) -> None:
    """Fields that the new type has no use for and that are as they were."""
    gone: list[str] = []
    if before.get("type") != "ExternalName" and after["type"] == "ExternalName":
        gone += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    if before.get("type") in _EXTERNAL and after["type"] not in _EXTERNAL:
        gone.append("externalTrafficPolicy")
    if before.get("type") == "LoadBalancer" and after["type"] != "LoadBalancer":
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    if _needs_health_port(before) and not _needs_health_port(after):
        gone.append("healthCheckNodePort")
    for field in gone:
        if after.get(field) == before.get(field):
            after.pop(field, None)
    if _needs_node_ports(before) and not _needs_node_ports(after) and _node_ports(before) == _node_ports(after):
        for port in after.get("ports") or ():
            port.pop("nodePort", None)


def _keep(before: Object, after: Object) -> None:
    """What was allocated and is not mentioned."""
    if "ExternalName" not in (before.get("type"), after["type"]) and not after.get("clusterIP"):
        for field in ("clusterIP", "clusterIPs"):
            if before.get(field):
                after[field] = before[field]
    if _needs_node_ports(before) and _needs_node_ports(after):
        named = {p.get("name", ""): p.get("nodePort") for p in before.get("ports") or ()}
        used = set(_node_ports(after))
        for port in after.get("ports") or ():
            held = named.get(port.get("name", ""))
            if not port.get("nodePort") and held and held not in used:
                port["nodePort"] = held
    if _needs_health_port(before) and _needs_health_port(after) and not after.get("healthCheckNodePort"):
        after["healthCheckNodePort"] = before.get("healthCheckNodePort") or 0


def _needs_node_ports(spec: Object) -> bool:
    if spec.get("type") == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts") is not False
    return spec.get("type") == "NodePort"


def _needs_health_port(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _node_ports(spec: Object) -> list[int]:
    return [p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")]


def service_check(obj: Object) -> list[Cause]:
    """Addresses are looked at first: with wrong ones nothing else is."""
    spec = obj["spec"]
    return _cluster_ips(spec) or _rest(spec)


def _rest(spec: Object) -> list[Cause]:
    causes = one_of("spec.type", spec["type"], _TYPES)
    causes += one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    ports = spec.get("ports") or []
    if not ports and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        causes.append(messages.required("spec.ports"))
    if spec["type"] == "ExternalName":
        name = spec.get("externalName") or ""
        causes += [messages.invalid("spec.externalName", name, m) for m in names.dns_subdomain(name.rstrip("."))]
    seen: set[str] = set()
    used: set[tuple[object, object]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        causes += _service_port(path, port, len(ports) > 1, seen)
        if port.get("nodePort") and spec["type"] == "ClusterIP":
            text = "may not be used when `type` is 'ClusterIP'"
            causes.append(messages.forbidden(f"{path}.nodePort", text))
        key = (port.get("port"), port["protocol"])
        if key in used:
            causes.append(messages.duplicate(path, {k: v for k, v in port.items() if k in ("port", "protocol")}))
        used.add(key)
    if spec.get("clusterIP") == "None" and spec["type"] in _EXTERNAL:
        text = f"may not be set to 'None' for {spec['type']} services"
        causes.append(messages.invalid("spec.clusterIPs[0]", "None", text))
    return causes + _outside(spec) + _affinity(spec)


def _service_port(path: str, port: Object, named: bool, seen: set[str]) -> list[Cause]:
    name = port.get("name") or ""
    causes = []
    if named and not name:
        causes.append(messages.required(f"{path}.name"))
    elif name:
        causes += [messages.invalid(f"{path}.name", name, m) for m in names.dns_label(name)]
        if name in seen:
            causes.append(messages.duplicate(f"{path}.name", name))
        seen.add(name)
    causes += port_number(f"{path}.port", port.get("port") or 0)
    causes += one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    return causes + port_number(f"{path}.targetPort", port.get("targetPort"))


def _cluster_ips(spec: Object) -> list[Cause]:
    given, found = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if not found:
        return []
    if spec["type"] == "ExternalName":
        return [messages.forbidden("spec.clusterIPs", "may not be set for ExternalName services")]
    if not given:
        return [messages.invalid("spec.clusterIPs", found, "must be empty when `clusterIP` is not specified")]
    if found[0] != given:
        return [messages.invalid("spec.clusterIPs", found, "first value must match `clusterIP`")]
    if given == "None":
        return []
    return [messages.invalid(f"spec.clusterIPs[{i}]", ip, m) for i, ip in enumerate(found) for m in _address(ip)]


def _address(text: str) -> list[str]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def _outside(spec: Object) -> list[Cause]:
    causes = []
    policy, reached = spec.get("externalTrafficPolicy"), spec["type"] in _EXTERNAL or spec.get("externalIPs")
    if policy and not reached:
        text = "may only be set for externally-accessible services"
        causes.append(messages.invalid("spec.externalTrafficPolicy", policy, text))
    elif policy:
        causes += one_of("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    if spec.get("healthCheckNodePort") and not _needs_health_port(spec):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        causes.append(messages.invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], text))
    for index, ip in enumerate(spec.get("externalIPs") or ()):
        causes += [messages.invalid(f"spec.externalIPs[{index}]", ip, m) for m in _address(ip)]
    return causes


def _affinity(spec: Object) -> list[Cause]:
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if spec["sessionAffinity"] != "ClientIP":
        if spec.get("sessionAffinityConfig") is None:
            return []
        return [messages.forbidden("spec.sessionAffinityConfig", "must not be set when session affinity is None")]
    if isinstance(seconds, int) and not 0 < seconds <= 86400:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        return [messages.invalid(path, seconds, "must be greater than 0 and less than 86400")]
    return []


def service_update(old: Object, new: Object) -> list[Cause]:
    before, after = old["spec"], new["spec"]
    if "ExternalName" in (before.get("type"), after["type"]):
        return []
    was, now = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if was and now[:1] != was[:1]:
        return [messages.invalid("spec.clusterIPs[0]", now, "may not change once set")]
    return []


SERVICE = Behaviour(service_default, service_check, service_update, service_carry)
