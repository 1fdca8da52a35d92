"""Pods and what contains a pod template's spec: the largest part of what Kubernetes fills in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.model import clock
from apiserver.model.conditions import condition
from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours import ephemeral, hostnames, podupdates, podwarnings
from apiserver.registry.behaviours.base import Behaviour, Object, fill, not_found, one_of, port_number
from apiserver.registry.behaviours.qos import qos_class
from apiserver.schema import messages

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MODE = 0o644
_GATED = "Scheduling is blocked due to non-empty scheduling gates"


def spec_default(spec: Object) -> None:
    """Of a pod's spec, in a template or a Pod."""
    fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=30,
        schedulerName="default-scheduler",
        securityContext={},
    )
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes") or ():
        _volume_default(volume)
    for _, container in containers(spec):
        _container_default(container)


def containers(spec: Object) -> Iterator[tuple[str, Object]]:
    """Each with its place in the spec (`containers[0]`)."""
    for field in _CONTAINERS:
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{field}[{index}]", container


def _container_default(container: Object) -> None:
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    fill(container, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File", resources={})
    for port in container.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
    for entry in container.get("env") or ():
        reference = (entry.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _handler_default(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _handler_default(handler)


def _pull_policy(image: str) -> str:
    _, at, _ = image.partition("@")
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if not at and tag in ("", "latest") else "IfNotPresent"


def _handler_default(handler: Object) -> None:
    get = handler.get("httpGet")
    if get is not None:
        get["path"] = get.get("path") or "/"
        get["scheme"] = get.get("scheme") or "HTTP"
    if handler.get("grpc") is not None:
        handler["grpc"].setdefault("service", "")


def _volume_default(volume: Object) -> None:
    if not [k for k, v in volume.items() if k != "name" and v is not None]:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            volume[source].setdefault("defaultMode", _MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    _downward_default(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        _downward_default(source.get("downwardAPI"))
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _downward_default(source: Object | None) -> None:
    for item in (source or {}).get("items") or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def spec_check(path: str, spec: Object, claims: Iterable[str] = ()) -> list[Cause]:
    """Errors of a pod's spec at `path` (`spec.template.spec`). `claims`: volumes that it has without naming them."""
    causes = [] if spec.get("containers") else [messages.required(f"{path}.containers")]
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        causes += _unique_name(f"{path}.volumes[{index}].name", volume.get("name") or "", volumes)
    volumes.update(claims)
    seen: set[str] = set()
    for field, container in containers(spec):
        causes += _unique_name(f"{path}.{field}.name", container.get("name") or "", seen)
        causes += _container_check(f"{path}.{field}", container, volumes)
    causes += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    policies = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    causes += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), policies)
    causes += hostnames.check(path, spec)
    causes += ephemeral.check(f"{path}.ephemeralContainers", spec)
    account = spec.get("serviceAccountName")
    if account:
        causes += [messages.invalid(f"{path}.serviceAccountName", account, m) for m in names.dns_subdomain(account)]
    return causes


def _unique_name(path: str, name: str, seen: set[str]) -> list[Cause]:
    if not name:
        return [messages.required(path)]
    causes = [messages.invalid(path, name, m) for m in names.dns_label(name)]
    if name in seen:
        causes.append(messages.duplicate(path, name))
    seen.add(name)
    return causes


def _container_check(path: str, container: Object, volumes: set[str]) -> list[Cause]:
    causes: list[Cause] = []
    image = container.get("image") or ""
    if not image:
        causes.append(messages.required(f"{path}.image"))
    elif image != image.strip():
        causes.append(messages.invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    causes += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never"))
    for index, port in enumerate(container.get("ports") or ()):
        at = f"{path}.ports[{index}]"
        if not port.get("containerPort"):
            causes.append(messages.required(f"{at}.containerPort"))
        causes += port_number(f"{at}.containerPort", port.get("containerPort") or 1)
        causes += one_of(f"{at}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
    for index, entry in enumerate(container.get("env") or ()):
        if not entry.get("name"):
            causes.append(messages.required(f"{path}.env[{index}].name"))
        elif entry.get("value") and entry.get("valueFrom"):
            text = "may not be specified when `value` is not empty"
            causes.append(messages.invalid(f"{path}.env[{index}].valueFrom", "", text))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        causes += _mount_check(f"{path}.volumeMounts[{index}]", mount, volumes)
    return causes


def _mount_check(path: str, mount: Object, volumes: set[str]) -> list[Cause]:
    name = mount.get("name") or ""
    causes = []
    if not name:
        causes.append(messages.required(f"{path}.name"))
    elif name not in volumes:
        causes.append(not_found(f"{path}.name", name))
    if not mount.get("mountPath"):
        causes.append(messages.required(f"{path}.mountPath"))
    return causes


def pod_default(obj: Object) -> None:
    spec: Object = obj["spec"] if isinstance(obj.get("spec"), dict) else obj.setdefault("spec", {})
    for _, container in containers(spec):
        resources: dict[str, Any] = container.setdefault("resources", {})
        for name, limit in (resources.get("limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, limit)
        if spec.get("hostNetwork"):  # of a Pod alone, not of what a template says
            for port in container.get("ports") or ():
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")
    spec_default(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1  # as Kubernetes converts Pods
    fill(spec, enableServiceLinks=True)
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def pod_check(obj: Object) -> list[Cause]:
    return spec_check("spec", obj["spec"])


def pod_check_new(obj: Object) -> list[Cause]:
    if obj["spec"].get("ephemeralContainers"):
        return [messages.forbidden("spec.ephemeralContainers", "cannot be set on create")]
    return []


def pod_identified(obj: Object) -> None:
    """Its class of service is settled for good when it is made; while it is gated nobody schedules it."""
    status = obj.setdefault("status", {})
    status["qosClass"] = qos_class(obj["spec"])
    if obj["spec"].get("schedulingGates"):
        gated = condition("PodScheduled", False, "SchedulingGated", _GATED, at=clock.now())
        status["conditions"] = [*(status.get("conditions") or ()), gated]


def template_default(template: Object) -> None:
    spec_default(template.setdefault("spec", {}))


POD = Behaviour(
    pod_default,
    pod_check,
    podupdates.check,
    podupdates.carry,
    pod_identified,
    pod_check_new,
    podupdates.carry_status,
    podupdates.check_status,
    podwarnings.of_pod,
)
POD_TEMPLATE = Behaviour(
    lambda obj: template_default(obj.setdefault("template", {})), warnings=podwarnings.of_template("template")
)
