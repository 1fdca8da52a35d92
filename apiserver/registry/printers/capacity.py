"""Autoscalers, budgets, priorities, nodes, volumes and storage."""

from __future__ import annotations

from typing import Any

from apiserver.registry import autoscalers
from apiserver.registry.printers.base import AGE, CREATED, NAME, Object, Printer, age, at, columns, joined, name
from apiserver.registry.served import Column

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(found: list[str] | None) -> str:
    return ",".join(_MODES.get(m, m) for m in found or ())


def _metric(spec: Object, current: Object) -> str:
    kind = spec.get("type", "")
    source = spec.get(kind[:1].lower() + kind[1:]) or {}
    now = (current.get(kind[:1].lower() + kind[1:]) or {}).get("current") or {}
    target = source.get("target") or {}
    label = f"{source['name']}: " if kind in ("Resource", "ContainerResource") and source.get("name") else ""
    if target.get("averageUtilization") is not None:
        used = now.get("averageUtilization")
        return f"{label}{'<unknown>' if used is None else f'{used}%'}/{target['averageUtilization']}%"
    wanted = target.get("averageValue") or target.get("value")
    used = now.get("averageValue") or now.get("value")
    suffix = " (avg)" if target.get("averageValue") and kind in ("External", "Object") else ""
    return f"{label}{used or '<unknown>'}/{wanted}{suffix}"


def _autoscaler(obj: Object) -> list[Any]:
    if obj.get("apiVersion") == "autoscaling/v1":
        obj = autoscalers.to_v2(obj)
    target = at(obj, "spec", "scaleTargetRef", default={})
    metrics, current = at(obj, "spec", "metrics", default=[]), at(obj, "status", "currentMetrics", default=[])
    shown = [_metric(m, current[i] if i < len(current) else {}) for i, m in enumerate(metrics)]
    text = ", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "")
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        text or "<none>",
        str(at(obj, "spec", "minReplicas", default="<unset>")),
        at(obj, "spec", "maxReplicas", default=0),
        at(obj, "status", "currentReplicas", default=0),
        age(obj),
    ]


def _budget(obj: Object) -> list[Any]:
    least, most = at(obj, "spec", "minAvailable", default="N/A"), at(obj, "spec", "maxUnavailable", default="N/A")
    return [name(obj), str(least), str(most), at(obj, "status", "disruptionsAllowed", default=0), age(obj)]


def _claim(obj: Object) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        name(obj),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", ""),
        spec.get("volumeName", ""),
        at(status, "capacity", "storage", default=""),
        _modes(status.get("accessModes")),
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef") or {}
    return [
        name(obj),
        at(spec, "capacity", "storage", default=""),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if obj["metadata"].get("deletionTimestamp") else at(obj, "status", "phase", default=""),
        f"{claim.get('namespace', '')}/{claim['name']}" if claim.get("name") else "",
        spec.get("storageClassName") or "",
        spec.get("volumeAttributesClassName") or "<unset>",
        at(obj, "status", "reason", default=""),
        age(obj),
        spec.get("volumeMode") or "<unset>",
    ]


def _node(obj: Object) -> list[Any]:
    ready = {c.get("type"): c.get("status") for c in at(obj, "status", "conditions", default=[])}.get("Ready")
    words = [{"True": "Ready", "False": "NotReady"}.get(ready or "", "Unknown")]
    if at(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = [k.removeprefix(prefix) for k in sorted(obj["metadata"].get("labels") or {}) if k.startswith(prefix)]
    info = at(obj, "status", "nodeInfo", default={})
    addresses = {a.get("type"): a.get("address") for a in at(obj, "status", "addresses", default=[])}
    return [
        name(obj),
        ",".join(words),
        joined(roles),
        age(obj),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _storage_class(obj: Object) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = " (default)" if annotations.get("storageclass.kubernetes.io/is-default-class") == "true" else ""
    return [
        name(obj) + default,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj),
    ]


def _driver(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name(obj),
        bool(spec.get("attachRequired", True)),
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        joined([t.get("audience", "") for t in spec.get("tokenRequests") or ()], none="<unset>"),
        bool(spec.get("requiresRepublish")),
        joined(spec.get("volumeLifecycleModes")),
        age(obj),
    ]


def _attachment(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        name(obj),
        spec.get("attacher", ""),
        at(spec, "source", "persistentVolumeName", default=""),
        spec.get("nodeName", ""),
        bool(at(obj, "status", "attached")),
        age(obj),
    ]


CSI_DRIVER = Printer(
    columns(
        NAME,
        "AttachRequired:boolean",
        "PodInfoOnMount:boolean",
        "StorageCapacity:boolean",
        "TokenRequests",
        "RequiresRepublish:boolean",
        "Modes",
        AGE,
    ),
    _driver,
)
CSI_NODE = Printer(
    columns(NAME, "Drivers:integer", AGE), lambda o: [name(o), len(at(o, "spec", "drivers", default=[])), age(o)]
)
CSI_STORAGE_CAPACITY = Printer(columns(NAME, CREATED), lambda o: [name(o), o["metadata"].get("creationTimestamp")])
VOLUME_ATTACHMENT = Printer(
    columns(NAME, Column("Attacher", format="name"), "PV", "Node", "Attached:boolean", AGE), _attachment
)
VOLUME_ATTRIBUTES_CLASS = Printer(
    columns(NAME, "DriverName", AGE), lambda o: [name(o), o.get("driverName", ""), age(o)]
)
HORIZONTAL_POD_AUTOSCALER = Printer(
    columns(NAME, "Reference", "Targets", "MinPods", "MaxPods", "Replicas", AGE), _autoscaler
)
NODE = Printer(
    columns(
        NAME,
        "Status",
        "Roles",
        AGE,
        "Version",
        "*Internal-IP",
        "*External-IP",
        "*OS-Image",
        "*Kernel-Version",
        "*Container-Runtime",
    ),
    _node,
)
PERSISTENT_VOLUME_CLAIM = Printer(
    columns(
        NAME,
        "Status",
        "Volume",
        "Capacity",
        "Access Modes",
        "StorageClass",
        "VolumeAttributesClass",
        AGE,
        "*VolumeMode",
    ),
    _claim,
)
PERSISTENT_VOLUME = Printer(
    columns(
        NAME,
        "Capacity",
        "Access Modes",
        "Reclaim Policy",
        "Status",
        "Claim",
        "StorageClass",
        "VolumeAttributesClass",
        "Reason",
        AGE,
        "*VolumeMode",
    ),
    _volume,
)
POD_DISRUPTION_BUDGET = Printer(
    columns(NAME, "Min Available", "Max Unavailable", "Allowed Disruptions:integer", AGE), _budget
)
PRIORITY_CLASS = Printer(
    columns(NAME, "Value:integer", "Global-Default:boolean", AGE, "PreemptionPolicy"),
    lambda o: [
        name(o),
        o.get("value", 0),
        bool(o.get("globalDefault")),
        age(o),
        o.get("preemptionPolicy", "PreemptLowerPriority"),
    ],
)
RUNTIME_CLASS = Printer(columns(NAME, "Handler", AGE), lambda o: [name(o), o.get("handler", ""), age(o)])
STORAGE_CLASS = Printer(
    columns(NAME, "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", AGE),
    _storage_class,
)
