"""Writes of a Pod's subresources ephemeralcontainers and resize: of the Pod that a client sends, the part that each of
them is for counts; the rest stays as it is.

Called by rest_replace in place of strategy.prepare_update.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry import strategy
from apiserver.registry.behaviours import ephemeral
from apiserver.registry.behaviours.qos import qos_class
from apiserver.registry.generation import spec_changed
from apiserver.registry.served import ServedKind
from apiserver.schema import messages
from apiserver.schema.defaults import copy_json

Object = dict[str, Any]

_LISTS = ("containers", "initContainers")
_RESIZED = ("resources", "resizePolicy")
_MUTABLE = frozenset({"cpu", "memory"})
_MIRROR = "kubernetes.io/config.mirror"
_ONLY = "only cpu and memory resources are mutable"


def prepare_ephemeral(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`new` becomes `old` with the ephemeral containers that it brings."""
    sent = (_spec(new)).get("ephemeralContainers")
    made = copy_json(old)
    made["spec"].pop("ephemeralContainers", None)
    if sent:
        made["spec"]["ephemeralContainers"] = sent
    _become(new, made)
    return _finished(kind, old, new) or _static(old, "static pods do not support ephemeral containers") or (
        ephemeral.check_change(old["spec"], new["spec"])
    )  # fmt: skip


def prepare_resize(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`new` becomes `old` with the resources that its containers have."""
    spec = _spec(new)
    for field in _LISTS:
        causes = _same_containers(field, old["spec"].get(field) or [], spec.get(field))
        if causes:
            return causes
    made = copy_json(old)
    if "resources" in spec:
        made["spec"]["resources"] = spec["resources"]
    for field in _LISTS:
        for container, sent in zip(made["spec"].get(field) or (), spec.get(field) or (), strict=True):
            for part in _RESIZED:
                container.pop(part, None)
                if part in sent:
                    container[part] = sent[part]
    _become(new, made)
    return _finished(kind, old, new) or _static(old, "static pods cannot be resized") or _resized(old, new)


def _same_containers(field: str, before: list[Object], sent: Any) -> list[Cause]:
    after = [c for c in sent or () if isinstance(c, dict)] if isinstance(sent or [], list) else []
    if len(before) != len(after):
        return [messages.forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")]
    return [
        messages.forbidden(f"spec.{field}[{i}].name", f"{field} may not be renamed or reordered on resize")
        for i, (one, other) in enumerate(zip(before, after, strict=True))
        if one["name"] != other.get("name")
    ]


def _resized(old: Object, new: Object) -> list[Cause]:
    before, after = old["spec"], new["spec"]
    causes: list[Cause] = []
    if qos_class(before) != qos_class(after):
        text = "Pod QOS Class may not change as a result of resizing"
        causes.append(messages.invalid("spec", (old.get("status") or {}).get("qosClass", ""), text))
    if not _resizable(old):
        causes.append(messages.forbidden("spec", "Pod running on node without support for resize"))
    for field in reversed(_LISTS):
        for index, container in enumerate(before.get(field) or ()):
            causes += _removed(f"spec.{field}[{index}].resources", container, after[field][index])
    for field in _LISTS:
        pairs = zip(before.get(field) or (), after.get(field) or (), strict=True)
        causes += [messages.forbidden("spec", _ONLY) for one, other in pairs if _fixed(one) != _fixed(other)]
    return causes


def _resizable(pod: Object) -> bool:
    """A node that can do it tells of the resources of what runs; where nothing runs, it is taken to be able."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = [s for s in statuses if (s.get("state") or {}).get("running") is not None]
    return not running or running[0].get("resources") is not None


def _removed(path: str, before: Object, after: Object) -> list[Cause]:
    causes = []
    for part in ("requests", "limits"):
        was, now = ((c.get("resources") or {}).get(part) or {} for c in (before, after))
        if was.keys() - now.keys():
            causes.append(messages.forbidden(f"{path}.{part}", f"resource {part} cannot be removed"))
    return causes


def _fixed(container: Object) -> Object:
    """What of a container's resources stays."""
    resources = container.get("resources") or {}
    kept = {
        part: {k: v for k, v in (resources.get(part) or {}).items() if k not in _MUTABLE}
        for part in ("requests", "limits")
    }
    return {**kept, "claims": resources.get("claims"), "policy": container.get("resizePolicy")}


def _spec(obj: Object) -> Object:
    found = obj.get("spec")
    return found if isinstance(found, dict) else {}


def _become(new: Object, made: Object) -> None:
    """What was asked of the revision and of ownership is the write path's to look at."""
    metadata = new.get("metadata") if isinstance(new.get("metadata"), dict) else {}
    for field in ("resourceVersion", "managedFields"):
        made["metadata"].pop(field, None)
        if field in (metadata or {}):
            made["metadata"][field] = (metadata or {})[field]
    new.clear()
    new.update(made)


def _finished(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    causes = strategy.prepare(kind, new, old)
    if not causes and kind.generation and spec_changed(old, new):
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1
    return causes


def _static(old: Object, why: str) -> list[Cause]:
    return [messages.forbidden("", why)] if _MIRROR in (old["metadata"].get("annotations") or {}) else []
