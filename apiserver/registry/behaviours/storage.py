"""PersistentVolume, PersistentVolumeClaim, and the kinds of storage.k8s.io."""

from __future__ import annotations

from apiserver.model import clock
from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object, fill, immutable, one_of
from apiserver.registry.quantities import parse
from apiserver.schema import messages

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


def claim_default(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def claim_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = []
    if not spec.get("accessModes"):
        causes.append(messages.required("spec.accessModes", "at least 1 access mode is required"))
    for mode in spec.get("accessModes") or ():
        causes += one_of("spec.accessModes", mode, _MODES)
    if not ((spec.get("resources") or {}).get("requests") or {}).get("storage"):
        causes.append(messages.required("spec.resources[storage]"))
    return causes


def volume_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if spec.get("hostPath") is not None:
        spec["hostPath"].setdefault("type", "")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def volume_identified(obj: Object) -> None:
    obj.setdefault("status", {})["lastPhaseTransitionTime"] = clock.now()


def volume_check(obj: Object) -> list[Cause]:
    spec, causes = obj["spec"], []
    if not spec.get("accessModes"):
        causes.append(messages.required("spec.accessModes"))
    for mode in spec.get("accessModes") or ():
        causes += one_of("spec.accessModes", mode, _MODES)
    capacity = spec.get("capacity")
    if not capacity:
        causes.append(messages.required("spec.capacity"))
    if not capacity or set(capacity) != {"storage"}:
        causes.append(messages.unsupported("spec.capacity", capacity, ["storage"]))
    if not any(v is not None for f, v in spec.items() if f not in _NOT_SOURCES):
        causes.append(messages.required("spec", "must specify a volume type"))
    policies = ("Delete", "Recycle", "Retain")
    return causes + one_of("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], policies)


def class_default(obj: Object) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def class_check(obj: Object) -> list[Cause]:
    causes = [] if obj.get("provisioner") else [messages.required("provisioner")]
    causes += one_of("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
    return causes + one_of("volumeBindingMode", obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))


def class_update(old: Object, new: Object) -> list[Cause]:
    causes = []
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        causes += immutable(field, old.get(field), new.get(field))
    return causes


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


def driver_check(obj: Object) -> list[Cause]:
    spec, causes = obj["spec"], []
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    causes += one_of("spec.fsGroupPolicy", spec["fsGroupPolicy"], policies)
    for mode in spec["volumeLifecycleModes"]:
        causes += one_of("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    return causes


def driver_update(old: Object, new: Object) -> list[Cause]:
    before, after = old["spec"], new["spec"]
    causes = immutable("spec.attachedRequired", before.get("attachRequired"), after["attachRequired"])
    path = "spec.volumeLifecycleModes"
    return causes + immutable(path, before.get("volumeLifecycleModes"), after["volumeLifecycleModes"])


def claim_update(old: Object, new: Object) -> list[Cause]:
    """A bound claim may grow; nothing else of it changes."""
    open_fields = ("volumeAttributesClassName", "volumeName") if _is_bound(old) else ("volumeName",)
    before, after = ({k: v for k, v in o["spec"].items() if k not in open_fields} for o in (old, new))
    if _is_bound(old):
        before, after = ({**s, "resources": _without_requests(s.get("resources") or {})} for s in (before, after))
    was, now = (o["spec"].get("volumeName") for o in (old, new))
    if before == after and was in (None, "", now):
        return []
    text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return [messages.forbidden("spec", text)]


def _is_bound(claim: Object) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound"


def _without_requests(resources: Object) -> Object:
    return {k: v for k, v in resources.items() if k != "requests"}


def volume_update(old: Object, new: Object) -> list[Cause]:
    before, after = ({k: v for k, v in o["spec"].items() if k not in _NOT_SOURCES} for o in (old, new))
    causes = immutable("volumeMode", old["spec"].get("volumeMode"), new["spec"].get("volumeMode"))
    if before != after:
        text = "spec.persistentvolumesource is immutable after creation"
        causes.append(messages.forbidden("spec.persistentvolumesource", text))
    return causes


def node_update(old: Object, new: Object) -> list[Cause]:
    """Of a CSINode: a driver may come or go, not change."""
    now = {d.get("name"): d for d in (new.get("spec") or {}).get("drivers") or ()}
    causes = []
    for driver in (old.get("spec") or {}).get("drivers") or ():
        after = now.get(driver.get("name"), driver)
        if {**after, "allocatable": None} != {**driver, "allocatable": None}:
            causes += immutable("spec.drivers", driver, after)
    return causes


def node_check(obj: Object) -> list[Cause]:
    """Of a CSINode."""
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        path, name = f"spec.drivers[{index}]", driver.get("name") or ""
        if not name:
            causes.append(messages.required(f"{path}.name"))
        elif name in seen:
            causes.append(messages.duplicate(f"{path}.name", name))
        seen.add(name)
        if not driver.get("nodeID"):
            causes.append(messages.required(f"{path}.nodeID"))
    return causes


def capacity_check(obj: Object) -> list[Cause]:
    name = obj.get("storageClassName") or ""
    causes = [messages.invalid("storageClassName", name, m) for m in names.dns_subdomain(name)]
    for field in ("capacity", "maximumVolumeSize"):
        value = obj.get(field)
        if value is not None and parse(value) < 0:
            causes.append(messages.invalid(field, str(value), "must be greater than or equal to 0"))
    return causes


def capacity_update(old: Object, new: Object) -> list[Cause]:
    return [c for f in ("nodeTopology", "storageClassName") for c in immutable(f, old.get(f), new.get(f))]


def attachment_check(obj: Object) -> list[Cause]:
    spec = obj.get("spec") or {}
    causes = [messages.required(f"spec.{f}") for f in ("attacher", "nodeName") if not spec.get(f)]
    source = spec.get("source") or {}
    if bool(source.get("persistentVolumeName")) == bool(source.get("inlineVolumeSpec")):
        text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        causes.append(messages.required("spec.source", text))
    return causes


def attachment_update(old: Object, new: Object) -> list[Cause]:
    return immutable("spec", old.get("spec"), new.get("spec"))


def attributes_check(obj: Object) -> list[Cause]:
    causes = [] if obj.get("driverName") else [messages.required("driverName")]
    if not obj.get("parameters"):
        causes.append(messages.required("parameters", "must contain at least one key/value pair"))
    return causes


def attributes_update(old: Object, new: Object) -> list[Cause]:
    causes = []
    for field in ("driverName", "parameters"):
        if old.get(field) != new.get(field):
            causes.append(messages.forbidden(field, f"updates to {field} are forbidden."))
    return causes


CSI_DRIVER = Behaviour(driver_default, driver_check, driver_update)
CSI_NODE = Behaviour(check=node_check, check_update=node_update)
CSI_STORAGE_CAPACITY = Behaviour(check=capacity_check, check_update=capacity_update)
PERSISTENT_VOLUME_CLAIM = Behaviour(claim_default, claim_check, claim_update)
PERSISTENT_VOLUME = Behaviour(volume_default, volume_check, volume_update, identified=volume_identified)
STORAGE_CLASS = Behaviour(class_default, class_check, class_update)
VOLUME_ATTACHMENT = Behaviour(check=attachment_check, check_update=attachment_update)
VOLUME_ATTRIBUTES_CLASS = Behaviour(check=attributes_check, check_update=attributes_update)
