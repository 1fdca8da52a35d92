"""The scale subresource: autoscaling/v1 Scale over the paths that a kind names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from apiserver.endpoints.asking import Asking
from apiserver.model.errors import Cause, bad_request, conflict, invalid, no_such_resource
from apiserver.registry import rest
from apiserver.registry.rest_checks import asked_revision
from apiserver.registry.rest_options import Collection, Outcome, WriteOptions
from apiserver.registry.served import Scale, ServedKind
from apiserver.storage.protocol import Record

Object = dict[str, Any]


async def get_scale(asking: Asking) -> None:
    """Raises StatusError 404."""
    record = asking.world.realm.store.get(asking.key())
    if record is not None and not asking.sees(record):
        record = None
    if record is None:
        raise asking.absent()
    obj = await _decoded(asking, record)
    await asking.exchange.answer(200, orjson.dumps(scale_of(asking.kind, obj)))


async def _decoded(asking: Asking, record: Record) -> Object:
    if asking.kind.conversion is None:
        return asking.view.decoded(record.key, record.value, record.revision)
    return await asking.convert(lambda: asking.view.decoded(record.key, record.value, record.revision))


def scale_of(kind: ServedKind, obj: Object) -> Object:
    """The Scale of an object."""
    paths = _paths(kind)
    metadata = {k: v for k, v in obj["metadata"].items()
                if k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")}  # fmt: skip
    status: Object = {"replicas": _read(obj, paths.status_replicas) or 0}
    found = _read(obj, paths.selector) if paths.selector else None
    selector = _selector(found if kind.custom or found else _read(obj, ".spec.selector"))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": _read(obj, paths.spec_replicas) or 0},
        "status": status,
    }


def update(
    at: Collection, namespace: str, name: str, change: Callable[[Object], Object], options: WriteOptions
) -> Outcome:
    """Sets spec.replicas to what `change` makes of the Scale; the Outcome has the new Scale. Raises StatusError."""
    kind = at.kind

    def changed(obj: Object) -> Object:
        wanted = change(scale_of(kind, obj))
        asked = asked_revision(_part(wanted, "metadata"))
        if asked and asked != obj["metadata"]["resourceVersion"]:
            raise conflict(kind.resource, kind.group, name)
        new = copy.deepcopy(obj)
        _write(new, _paths(kind).spec_replicas, _checked(_part(wanted, "spec").get("replicas") or 0, name))
        return new

    outcome = rest.patch(at, namespace, name, changed, options, "scale")
    return replace(outcome, obj=scale_of(kind, outcome.obj))


def apply(at: Collection, namespace: str, name: str, applied: Object, options: WriteOptions) -> Outcome:
    """Server-side apply of a Scale: `options.manager` owns the replicas of the object itself. The Outcome has the new
    Scale. Raises StatusError."""
    kind, metadata = at.kind, _part(applied, "metadata")
    for field, value in (("apiVersion", "autoscaling/v1"), ("kind", "Scale")):
        if applied.get(field) != value:
            raise bad_request(f"the applied object is no Scale of autoscaling/v1: its {field} is not {value}")
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    whole: Object = {"apiVersion": kind.api_version, "kind": kind.kind}
    whole["metadata"] = {k: metadata[k] for k in ("name", "namespace", "resourceVersion") if k in metadata}
    replicas = _part(applied, "spec").get("replicas")
    if replicas is not None:
        _write(whole, _paths(kind).spec_replicas, _checked(replicas, name))
    outcome = rest.apply(at, namespace, name, whole, options, "scale")
    return replace(outcome, obj=scale_of(kind, outcome.obj))


def _checked(replicas: Any, name: str) -> int:
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas is not a number")
    if replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", name, [Cause("FieldValueInvalid", why, "spec.replicas")])
    return replicas


def _part(wanted: Object, name: str) -> Object:
    found = wanted.get(name) or {}
    if not isinstance(found, dict):
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {name} is not an object')
    return found


def _paths(kind: ServedKind) -> Scale:
    if kind.scale is None:
        raise no_such_resource()
    return kind.scale


def _read(obj: Object, path: str) -> Any:
    value: Any = obj
    for part in path.strip(".").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def _write(obj: Object, path: str, replicas: int) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        obj = obj.setdefault(part, {})
    obj[last] = replicas


def _selector(found: Any) -> str:
    """A selector as a string: custom resources keep one, Kubernetes' own a LabelSelector or a map."""
    if not isinstance(found, dict):
        return str(found or "")
    labels = found.get("matchLabels", found if "matchExpressions" not in found else {})
    return ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
