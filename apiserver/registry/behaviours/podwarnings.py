"""What kube-apiserver says of Pods and their templates without refusing them. Called by pods and workloads.

The texts are its own (1.36). Not said: addresses with leading zeros, AppArmor's annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from apiserver.registry import names, quantities
from apiserver.registry.behaviours import schedulingwarnings, virtualpaths
from apiserver.registry.behaviours.base import Object

Warnings = Callable[[Object | None, Object], list[str]]

_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def of_pod(old: Object | None, new: Object) -> list[str]:
    """Nothing is said of changes: people seldom make them."""
    if old is not None:
        return []
    return [*_name(new, "the Pod's hostname"), *_said("spec", "metadata", new)]


def of_template(*path: str, named: bool = False) -> Warnings:
    """Of kinds whose `spec` holds a pod template at `path`, when they are new and when their spec changes. `named`:
    their Pods are named after them."""

    def said(old: Object | None, new: Object) -> list[str]:
        template: Object = new
        for part in path:
            template = template.get(part) or {}
        at = ".".join(path)
        found = _name(new, "Pod names and hostnames") if named and old is None else []
        if old is None or old.get("spec") != new.get("spec"):
            found += _said(f"{at}.spec", f"{at}.metadata", template)
        return found

    return said


def _name(obj: Object, use: str) -> list[str]:
    wrong = names.dns_label(obj["metadata"].get("name") or "")
    why = "which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: this is used in {use}, {why}: [{' '.join(wrong)}]"] if wrong else []


def _said(at: str, metadata: str, pod: Object) -> list[str]:
    spec, annotations = pod.get("spec") or {}, (pod.get("metadata") or {}).get("annotations") or {}
    containers = list(_containers(at, spec))
    return [
        *schedulingwarnings.of_nodes(at, spec),
        *(f"{metadata}.annotations[{k}]: {why}" for k, why in _ANNOTATIONS.items() if k in annotations),
        *_volumes(at, spec),
        *virtualpaths.warnings(spec.get("volumes") or ()),
        *_repeated(f"{at}.hostAliases", spec.get("hostAliases"), "ip"),
        *_repeated(f"{at}.imagePullSecrets", spec.get("imagePullSecrets"), "name"),
        *_nameless(f"{at}.imagePullSecrets", spec.get("imagePullSecrets")),
        *_fractions(f"{at}.overhead", spec.get("overhead")),
        *_pod_seccomp(f"{metadata}.annotations", spec, annotations),
        *(w for c in containers for w in _container(c, f"{metadata}.annotations", annotations)),
        *_ports(containers),
        *_port_names(containers),
        *_grace(at, spec),
        *schedulingwarnings.of_other_pods(f"{at}.affinity", spec.get("affinity") or {}),
    ]


class _Container(NamedTuple):
    at: str
    obj: Object


def _containers(at: str, spec: Object) -> Iterator[_Container]:
    for field in _CONTAINERS:
        for index, container in enumerate(spec.get(field) or ()):
            yield _Container(f"{at}.{field}[{index}]", container)


def _volumes(at: str, spec: Object) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for plugin, why in _VOLUMES.items():
            if volume.get(plugin) is not None:
                yield f"{at}.volumes[{index}].{plugin.replace('storageos', 'storageOS')}: {why}"


def _repeated(at: str, items: Iterable[Object] | None, field: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items or ()):
        value = item.get(field) or ""
        if value in seen:
            yield f'{at}[{index}].{field}: duplicate {field} "{value}"'
        seen.add(value)


def _nameless(at: str, items: Iterable[Object] | None) -> Iterator[str]:
    for index, item in enumerate(items or ()):
        if not item.get("name"):
            yield f'{at}[{index}].name: invalid empty name ""'


def _fractions(at: str, amounts: Any) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        value = (amounts or {}).get(name)
        if value is not None and quantities.parse(value) % 1:
            yield f'{at}[{name}]: fractional byte value "{value}" is invalid, must be an integer'


def _pod_seccomp(at: str, spec: Object, annotations: Object) -> Iterator[str]:
    if _SECCOMP_POD in annotations and (spec.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{at}[{_SECCOMP_POD}]: {_SECCOMP}"


def _container(container: _Container, at: str, annotations: Object) -> Iterator[str]:
    obj = container.obj
    seccomp = f"{_SECCOMP_CONTAINER}{obj.get('name')}"
    if seccomp in annotations and (obj.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{at}[{seccomp}]: {_SECCOMP}"
    resources = obj.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            only = {k: v for k, v in (resources.get(field) or {}).items() if k == name}
            yield from _fractions(f"{container.at}.resources.{field}", only)
    seen = set()
    for index, entry in enumerate(obj.get("env") or ()):
        name, value = entry.get("name") or "", entry.get("value") or ""
        itself = f"$({name})"
        hides = entry.get("valueFrom") is not None or value == itself or itself not in value
        if name in seen and hides:
            why = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{container.at}.env[{index}]: {why}"
        seen.add(name)


def _ports(containers: list[_Container]) -> Iterator[str]:
    """A port is compared with those of all containers before it."""
    known: dict[tuple[Any, Any], list[tuple[str, str, int]]] = {}
    for container in containers:
        for index, port in enumerate(container.obj.get("ports") or ()):
            at, ip, host = f"{container.at}.ports[{index}]", port.get("hostIP") or "", port.get("hostPort") or 0
            number, protocol = port.get("containerPort"), port.get("protocol")
            if ip and not host:
                name = port.get("name") or ""
                said = f"Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{ip}"
                yield f"{at}: hostIP set without hostPort: {{{said}}}"
            others = known.setdefault((number, protocol), [])
            for there, other_ip, other_host in others:
                how = _clash((ip, host), (other_ip, other_host))
                if how:
                    yield f"{at}: {how} port definition with {there}"
            others.append((at, ip, host))


def _clash(one: tuple[str, int], other: tuple[str, int]) -> str:
    """What two uses (host's address and port) of one port of a Pod are to each other, "" for nothing."""
    if one == other:
        return "duplicate"
    if not one[1] or not other[1]:
        return "overlapping"
    return "dangerously ambiguous" if one[1] == other[1] and bool(one[0]) != bool(other[0]) else ""


def _port_names(containers: list[_Container]) -> Iterator[str]:
    known: dict[str, str] = {}
    for container in containers:
        for index, port in enumerate(container.obj.get("ports") or ()):
            name, at = port.get("name"), f"{container.at}.ports[{index}]"
            if name in known:
                why = f"services and probes that select ports by name will use {known[name]}"
                yield f'{at}: duplicate port name "{name}" with {known[name]}, {why}'
            elif name:
                known[name] = at


def _grace(at: str, spec: Object) -> Iterator[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}.terminationGracePeriodSeconds: {why}"
