"""Treeplane's and kcp's own kinds, beyond their schemas."""

from __future__ import annotations

from dataclasses import replace

from apiserver.model import paths
from apiserver.model.errors import Cause
from apiserver.model.marks import CLUSTER_FINALIZER, OWNER, WORKSPACE_FINALIZER
from apiserver.registry.behaviours.base import Behaviour, Object, selector
from apiserver.registry.metadata import check_labels
from apiserver.registry.oldgroups import NEWER
from apiserver.schema import messages

_SYNC_TARGETS = {"group": ("", "workload.kcp.io"), "version": ("v1alpha1",), "resource": ("synctargets",)}
"""What a Placement's locations may consist of."""


def workspace_update(old: Object, new: Object) -> list[Cause]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    causes = []
    if before.get("type") and before.get("type") != after.get("type"):
        causes.append(messages.invalid("spec.type", after.get("type"), "spec.type is immutable"))
    if before.get("mount") != after.get("mount"):
        causes.append(messages.invalid("spec.mount", after.get("mount"), "mount is immutable"))
    if before.get("cluster") and not after.get("cluster"):
        causes.append(messages.invalid("spec.cluster", "", "spec.cluster cannot be unset"))
    elif before.get("cluster", "") != after.get("cluster", ""):
        text = "spec.cluster can only be changed by system privileged users"
        causes.append(messages.invalid("spec.cluster", after["cluster"], text))
    return causes


def workspace_check(obj: Object) -> list[Cause]:
    location = (obj.get("spec") or {}).get("location") or {}
    return selector("spec.location.selector", location.get("selector"))


def workspace_identified(new: Object) -> None:
    """It begins where nothing has been done for it."""
    new.setdefault("status", {}).setdefault("phase", "Scheduling")


def cluster_update(old: Object, new: Object) -> list[Cause]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return [messages.invalid(f"spec.{name}", after.get(name), f"spec.{name} is immutable") for name in changed]


def cluster_carry(old: Object, new: Object) -> None:
    """As of a Workspace, while there is something in the workspace."""
    _hold(old["metadata"], new["metadata"], CLUSTER_FINALIZER)


def workspace_carry(old: Object, new: Object) -> None:
    """What the server says of a Workspace, and what holds it while there is something in the workspace, is no
    client's to change."""
    was, now = old["metadata"], new["metadata"]
    _hold(was, now, WORKSPACE_FINALIZER)
    _keep(was.get("annotations") or {}, now, "annotations", OWNER)
    _keep(old.get("spec") or {}, new, "spec", "URL")


def _hold(old: Object, new: Object, finalizer: str) -> None:
    kept = new.get("finalizers") or []
    if finalizer in (old.get("finalizers") or ()) and finalizer not in kept:
        new["finalizers"] = [*kept, finalizer]


def _keep(old: Object, holder: Object, field: str, name: str) -> None:
    """Has what `holder` says under `field` say of `name` what `old` does."""
    now = holder.get(field) or {}
    if now.get(name) != old.get(name):
        said = {k: v for k, v in now.items() if k != name}
        holder[field] = said | ({name: old[name]} if name in old else {})


def type_check(obj: Object) -> list[Cause]:
    """What its workspaces could not have is not taken here, where somebody can do something about it."""
    field, labels = "spec.additionalWorkspaceLabels", (obj.get("spec") or {}).get("additionalWorkspaceLabels") or {}
    causes = [replace(cause, field=field) for cause in check_labels(labels)]
    return causes + [messages.forbidden(field, f"{key} is a reserved label") for key in labels if _is_reserved(key)]


def _is_reserved(label: str) -> bool:
    """Whether a label of a Workspace is the server's to set."""
    return label == "tenancy.kcp.io/phase" or f".{label.partition('/')[0]}".endswith(".internal.kcp.io")


def sync_target_check(obj: Object) -> list[Cause]:
    connection = (obj.get("spec") or {}).get("connection")
    if connection is not None and len(connection) != 1:
        text = "exactly one of embedded and kubeconfigSecretRef must be given"
        return [messages.invalid("spec.connection", connection, text)]
    return []


def location_default(obj: Object) -> None:
    _rename(obj["spec"]["resource"])


def placement_default(obj: Object) -> None:
    _rename(obj["spec"]["locationResource"])


def _rename(resource: Object) -> None:
    """Manifests of kcp's first years call the group of sync targets otherwise."""
    if resource.get("group"):
        resource["group"] = NEWER.get(resource["group"], resource["group"])


def location_check(obj: Object) -> list[Cause]:
    return selector("spec.instanceSelector", obj["spec"].get("instanceSelector"))


def partition_check(obj: Object) -> list[Cause]:
    return selector("spec.selector", (obj.get("spec") or {}).get("selector"))


def partition_set_check(obj: Object) -> list[Cause]:
    return selector("spec.shardSelector", obj["spec"].get("shardSelector"))


def placement_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = selector("spec.namespaceSelector", spec.get("namespaceSelector"))
    for index, found in enumerate(spec.get("locationSelectors") or ()):
        causes += selector(f"spec.locationSelectors[{index}]", found)
    for field, known in _SYNC_TARGETS.items():
        found = spec["locationResource"].get(field) or ""
        if found not in known:
            causes.append(messages.unsupported(f"spec.locationResource.{field}", found, [k for k in known if k]))
    return causes + _path("spec.locationWorkspace", spec.get("locationWorkspace"))


def _path(field: str, value: str | None) -> list[Cause]:
    if not value or paths.is_path(value):
        return []
    return [messages.invalid(field, value, "must be a workspace path such as root:team-a:web")]


LOCATION = Behaviour(location_default, location_check)
PARTITION = Behaviour(check=partition_check)
PARTITION_SET = Behaviour(check=partition_set_check)
PLACEMENT = Behaviour(placement_default, placement_check)
SYNC_TARGET = Behaviour(check=sync_target_check)
LOGICAL_CLUSTER = Behaviour(check_update=cluster_update, carry=cluster_carry)
WORKSPACE = Behaviour(
    check=workspace_check, check_update=workspace_update, carry=workspace_carry, identified=workspace_identified
)
WORKSPACE_TYPE = Behaviour(check=type_check)
