"""Ingress, IngressClass, NetworkPolicy."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, immutable, one_of, port_number
from apiserver.schema import messages

_PROTOCOLS = ("SCTP", "TCP", "UDP")


def ingress_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    if not spec.get("rules") and not spec.get("defaultBackend"):
        text = "either `defaultBackend` or `rules` must be specified"
        causes.append(messages.invalid("spec", None, text))
    if spec.get("defaultBackend"):
        causes += _backend("spec.defaultBackend", spec["defaultBackend"])
    for index, rule in enumerate(spec.get("rules") or ()):
        host, path = rule.get("host") or "", f"spec.rules[{index}]"
        if host:
            plain = host.removeprefix("*.")
            causes += [messages.invalid(f"{path}.host", host, m) for m in names.dns_subdomain(plain)]
        http = rule.get("http")
        if http is not None and not http.get("paths"):
            causes.append(messages.required(f"{path}.http.paths"))
        for at, entry in enumerate((http or {}).get("paths") or ()):
            causes += _ingress_path(f"{path}.http.paths[{at}]", entry)
    return causes


def _ingress_path(path: str, entry: Object) -> list[Cause]:
    kind, value = entry.get("pathType"), entry.get("path") or ""
    causes = []
    if not kind:
        causes.append(messages.required(f"{path}.pathType", "pathType must be specified"))
    causes += one_of(f"{path}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    if kind in ("Exact", "Prefix") and not value.startswith("/"):
        causes.append(messages.invalid(f"{path}.path", value, "must be an absolute path"))
    return causes + _backend(f"{path}.backend", entry.get("backend") or {})


def _backend(path: str, backend: Object) -> list[Cause]:
    service = backend.get("service")
    if service is None:
        return []
    causes = [] if service.get("name") else [messages.required(f"{path}.service.name")]
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        causes.append(messages.required(path, "port name or number is required"))
    return causes


def network_policy_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def network_policy_check(obj: Object) -> list[Cause]:
    causes = []
    for direction in ("ingress", "egress"):
        for index, rule in enumerate(obj["spec"].get(direction) or ()):
            for at, port in enumerate(rule.get("ports") or ()):
                causes += _policy_port(f"spec.{direction}[{index}].ports[{at}]", port)
    return causes


def _policy_port(path: str, port: Object) -> list[Cause]:
    first, last = port.get("port"), port.get("endPort")
    causes = one_of(f"{path}.protocol", port["protocol"], _PROTOCOLS) + port_number(f"{path}.port", first)
    if last is None:
        return causes
    if isinstance(first, int):
        if last < first:
            text = "must be greater than or equal to `port`"
            causes.append(messages.invalid(f"{path}.endPort", first, text))  # the port, as kube-apiserver shows it
    else:
        text = f"may not be specified when `port` is {'not specified' if first is None else 'non-numeric'}"
        causes.append(messages.invalid(f"{path}.endPort", last, text))
    return causes


def ingress_class_default(obj: Object) -> None:
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def ingress_class_update(old: Object, new: Object) -> list[Cause]:
    before, after = ((o.get("spec") or {}).get("controller") for o in (old, new))
    return immutable("spec.controller", before, after)


INGRESS_CLASS = Behaviour(ingress_class_default, check_update=ingress_class_update)
INGRESS = Behaviour(check=ingress_check)
NETWORK_POLICY = Behaviour(network_policy_default, network_policy_check)
