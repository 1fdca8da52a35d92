"""The scale subresource: autoscaling/v1 Scale over the paths that a kind names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson

from apiserver.endpoints.asking import Asking
from apiserver.model.errors import Cause, bad_request, conflict, invalid, no_such_resource
from apiserver.registry import rest
from apiserver.registry.rest_checks import asked_revision
from apiserver.registry.rest_options import Collection, WriteOptions
from apiserver.registry.served import Scale, ServedKind
from apiserver.storage.protocol import Record

Object = dict[str, Any]


async def get_scale(asking: Asking) -> None:
    """Raises StatusError 404."""
    record = asking.world.realm.store.get(asking.key())
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
) -> Object:
    """Sets spec.replicas to what `change` makes of the Scale; returns the new Scale. Raises StatusError."""
    kind = at.kind

    def changed(obj: Object) -> Object:
        wanted = change(scale_of(kind, obj))
        replicas = _part(wanted, "spec").get("replicas") or 0
        asked = asked_revision(_part(wanted, "metadata"))
        if asked and asked != obj["metadata"]["resourceVersion"]:
            raise conflict(kind.resource, kind.group, name)
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise bad_request("spec.replicas is not a number")
        if replicas < 0:
            why = f"Invalid value: {replicas}: must be greater than or equal to 0"
            raise invalid("Scale", "autoscaling", name, [Cause("FieldValueInvalid", why, "spec.replicas")])
        new = copy.deepcopy(obj)
        _write(new, _paths(kind).spec_replicas, replicas)
        return new

    outcome = rest.patch(at, namespace, name, changed, options, "scale")
    return scale_of(kind, outcome.obj)


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
