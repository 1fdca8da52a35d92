"""Services, endpoints, ingresses, policies."""

from __future__ import annotations

from typing import Any

from apiserver.registry.printers.base import AGE, NAME, Object, Printer, age, at, columns, joined, name, selector


def _service_ports(obj: Object) -> str:
    shown = []
    for port in at(obj, "spec", "ports", default=[]):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return joined(shown)


def _addresses(obj: Object) -> list[str]:
    found = at(obj, "status", "loadBalancer", "ingress", default=[])
    return [i.get("ip") or i.get("hostname") or "" for i in found]


def _external(obj: Object) -> str:
    spec = obj.get("spec") or {}
    outside = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "LoadBalancer":
            return joined([*_addresses(obj), *outside], none="<pending>")
        case "ExternalName":
            return spec.get("externalName") or "<none>"
        case _:
            return joined(outside)


def _service(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    address = spec.get("clusterIP") or "<none>"
    kind = spec.get("type", "")
    return [
        name(obj),
        kind,
        address,
        _external(obj),
        _service_ports(obj),
        age(obj),
        selector(spec.get("selector") or {}),
    ]


def _ingress(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    rules = spec.get("rules") or []
    hosts = [r.get("host") for r in rules if r.get("host")]
    if rules and len(hosts) < len(rules):
        hosts = hosts or ["*"]
    ports = "80, 443" if spec.get("tls") else "80"
    found = spec.get("ingressClassName") or "<none>"
    return [name(obj), found, joined(hosts, none="*", most=3), ",".join(_addresses(obj)), ports, age(obj)]


def _endpoints(obj: Object) -> list[Any]:
    shown = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or ()
        for port in subset.get("ports") or ()
        for address in subset.get("addresses") or ()
    ]
    return [name(obj), joined(shown, most=3), age(obj)]


def _slice(obj: Object) -> list[Any]:
    ports = [str(p.get("port")) for p in obj.get("ports") or ()]
    addresses = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]
    return [
        name(obj),
        obj.get("addressType", ""),
        joined(ports, none="<unset>", most=3),
        joined(addresses, none="<unset>", most=3),
        age(obj),
    ]


def _parameters(found: Object | None) -> str:
    if not found:
        return "<none>"
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def _parent(found: Object) -> str:
    parts = (found.get(f) for f in ("group", "resource", "namespace", "name"))
    return "/".join(p for p in parts if p)


ENDPOINTS = Printer(columns(NAME, "Endpoints", AGE), _endpoints)
ENDPOINT_SLICE = Printer(columns(NAME, "AddressType", "Ports", "Endpoints", AGE), _slice)
INGRESS_CLASS = Printer(
    columns(NAME, "Controller", "Parameters", AGE),
    lambda o: [
        name(o),
        at(o, "spec", "controller", default=""),
        _parameters(at(o, "spec", "parameters")),
        age(o),
    ],
)
INGRESS = Printer(columns(NAME, "Class", "Hosts", "Address", "Ports", AGE), _ingress)
IP_ADDRESS = Printer(columns(NAME, "ParentRef"), lambda o: [name(o), _parent(at(o, "spec", "parentRef", default={}))])
NETWORK_POLICY = Printer(
    columns(NAME, "Pod-Selector", AGE),
    lambda o: [name(o), selector(at(o, "spec", "podSelector", default={})), age(o)],
)
SERVICE_CIDR = Printer(
    columns(NAME, "CIDRs", AGE), lambda o: [name(o), ",".join(at(o, "spec", "cidrs", default=[])), age(o)]
)
SERVICE = Printer(columns(NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", AGE, "*Selector"), _service)
