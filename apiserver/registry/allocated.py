"""What of a Service came from its cluster (addresses, families, node ports), taken from it and given back.

Functions of the object alone; who gives them out is allocation.py. Called by the reconciler, which remembers what a
Service was given and no file says.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

EXTERNAL = ("NodePort", "LoadBalancer")
"""Types of Services that have node ports."""
ONE_FAMILY = "SingleStack"
"""The policy of a Service that asks for none."""


def of(service: Object) -> Object:
    """What a Service was given, in a form that `restore` takes; {} for one that was given nothing."""
    spec = service.get("spec") or {}
    out: Object = {}
    if spec.get("clusterIP") not in (None, "", "None"):
        out["clusterIPs"] = list(spec.get("clusterIPs") or [spec["clusterIP"]])
    if spec.get("clusterIP") and spec.get("ipFamilies"):
        out["ipFamilies"] = spec["ipFamilies"]
        policy = spec.get("ipFamilyPolicy")
        out |= {"ipFamilyPolicy": policy} if policy not in (None, ONE_FAMILY) else {}
    ports = {_port_name(p): p["nodePort"] for p in spec.get("ports") or () if p.get("nodePort")}
    if ports:
        out["nodePorts"] = ports
    if spec.get("healthCheckNodePort"):
        out["healthCheckNodePort"] = spec["healthCheckNodePort"]
    return out


def restore(service: Object, given: Object) -> None:
    """Gives a Service, in place, what it had before, where its manifest does not say otherwise."""
    spec = service["spec"]
    addresses = given.get("clusterIPs")
    if addresses and not spec.get("clusterIP") and spec.get("type") != "ExternalName":
        spec["clusterIP"], spec["clusterIPs"] = addresses[0], list(addresses)
    if spec.get("clusterIP") and given.get("ipFamilies"):
        spec.setdefault("ipFamilies", given["ipFamilies"])
        spec.setdefault("ipFamilyPolicy", given.get("ipFamilyPolicy", ONE_FAMILY))
    if spec.get("type") not in EXTERNAL:
        return
    for port in spec.get("ports") or ():
        number = (given.get("nodePorts") or {}).get(_port_name(port))
        if number and not port.get("nodePort"):
            port["nodePort"] = number
    if given.get("healthCheckNodePort") and spec.get("externalTrafficPolicy") == "Local":
        spec.setdefault("healthCheckNodePort", given["healthCheckNodePort"])


def _port_name(port: Object) -> str:
    return f"{port.get('protocol') or 'TCP'}/{port.get('port')}"
