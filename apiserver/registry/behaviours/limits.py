"""LimitRange, HorizontalPodAutoscaler, PodDisruptionBudget, PriorityClass, volumes and storage classes, Lease."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry.behaviours.base import Behaviour, Object, at_least, fill, one_of
from apiserver.schema import messages


def limit_range_default(obj: Object) -> None:
    for item in (obj.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        for name, value in (item.get("max") or {}).items():
            item.setdefault("default", {}).setdefault(name, value)
        for source in ("default", "min"):
            for name, value in (item.get(source) or {}).items():
                item.setdefault("defaultRequest", {}).setdefault(name, value)


def autoscaler_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics") and obj["apiVersion"] == "autoscaling/v2":
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def autoscaler_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = at_least("spec.minReplicas", spec["minReplicas"], 1)
    if (spec.get("maxReplicas") or 0) < 1:
        causes.append(messages.invalid("spec.maxReplicas", spec.get("maxReplicas") or 0, "must be greater than 0"))
    elif spec["maxReplicas"] < spec["minReplicas"]:
        text = "must be greater than or equal to `minReplicas`"
        causes.append(messages.invalid("spec.maxReplicas", spec["maxReplicas"], text))
    target = spec.get("scaleTargetRef") or {}
    causes += [messages.required(f"spec.scaleTargetRef.{f}") for f in ("kind", "name") if not target.get(f)]
    if "/" not in (target.get("apiVersion") or "") and target.get("kind") != "ReplicationController":
        text = "apiVersion must specify API group"
        causes.append(messages.invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion") or "", text))
    return causes


def budget_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        text = "minAvailable and maxUnavailable cannot be both set"
        return [messages.invalid("spec", spec, text)]
    return []


def priority_class_default(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def claim_default(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def claim_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = []
    if not spec.get("accessModes"):
        causes.append(messages.required("spec.accessModes", "at least 1 access mode is required"))
    modes = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    for mode in spec.get("accessModes") or ():
        causes += one_of("spec.accessModes", mode, modes)
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        causes.append(messages.required("spec.resources[storage]"))
    return causes


def volume_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def storage_class_default(obj: Object) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def driver_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(
        spec,
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        volumeLifecycleModes=["Persistent"],
        requiresRepublish=False,
        seLinuxMount=False,
    )


def lease_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes: list[Cause] = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.append(messages.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return causes + at_least("spec.leaseTransitions", spec.get("leaseTransitions"))


BEHAVIOURS = {
    "csidrivers.storage.k8s.io": Behaviour(driver_default),
    "horizontalpodautoscalers.autoscaling": Behaviour(autoscaler_default, autoscaler_check),
    "leases.coordination.k8s.io": Behaviour(check=lease_check),
    "limitranges": Behaviour(limit_range_default),
    "persistentvolumeclaims": Behaviour(claim_default, claim_check),
    "persistentvolumes": Behaviour(volume_default),
    "poddisruptionbudgets.policy": Behaviour(check=budget_check),
    "priorityclasses.scheduling.k8s.io": Behaviour(priority_class_default),
    "storageclasses.storage.k8s.io": Behaviour(storage_class_default),
}
