"""Binding a Pod to a node, as schedulers do: once, and in a way that no field manager owns."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.errors import Cause, StatusError, bad_request, conflict, invalid, not_found
from apiserver.model.keys import Key
from apiserver.registry import codec, strategy
from apiserver.registry.rest_options import Collection
from apiserver.schema import messages
from apiserver.storage.protocol import Conflict, Put

Object = dict[str, Any]

_ATTEMPTS = 20
_RESOURCE = "pods/binding"


def bind(pods: Collection, namespace: str, name: str, binding: Object, *, dry_run: bool) -> None:
    """Sets the Pod's nodeName to the binding's target, its condition PodScheduled, and adds the binding's annotations
    and labels, as far as they are anybody's to say. Raises StatusError 400, 403, 404, 409 for a Pod that is placed,
    gated or going, and 422."""
    metadata = binding.get("metadata") or {}
    if not isinstance(metadata, dict) or metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    _check(name, binding)
    key = Key(pods.kind.storage, pods.cluster, namespace, name)
    for _ in range(_ATTEMPTS):
        record = pods.store.get(key)
        if record is None:
            raise not_found("pods", "", name)
        pod = codec.decode(record.value, record.revision)
        pods.admit("patch", name, pod)
        _check_meant(name, metadata, pod)
        bound = _bound(pod, binding)
        pods.vet(bound, pod)
        if dry_run:
            return
        try:
            pods.store.write(Put(key, codec.encode(bound), record.revision, record.stamp)).result()
        except Conflict:
            continue
        return
    raise conflict("pods", "", name)


def _check(name: str, binding: Object) -> None:
    target = binding.get("target")
    target = target if isinstance(target, dict) else {}
    causes: list[Cause] = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(messages.unsupported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not isinstance(target.get("name"), str) or not target["name"]:
        causes.append(messages.required("target.name"))
    if causes:
        raise invalid("Binding", "", name, causes)


def _check_meant(name: str, metadata: Object, pod: Object) -> None:
    for what, field in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        asked, found = metadata.get(field), pod["metadata"].get(field)
        if asked and asked != found:
            why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
            raise conflict("pods", "", name, why)


def _bound(pod: Object, binding: Object) -> Object:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    name = metadata["name"]
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    made = dict(metadata)
    for field in ("annotations", "labels"):
        brought = binding["metadata"].get(field)
        if isinstance(brought, dict) and brought:
            made[field] = {**(metadata.get(field) or {}), **{str(k): str(v) for k, v in brought.items()}}
    if made.get("annotations"):
        strategy.keep_marks(pod, {"metadata": made})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": clock.now()}
    status = {k: v for k, v in status.items() if k != "nominatedNodeName"}
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    before = conditions.get(status.get("conditions"), "PodScheduled")
    if before is not None and before.get("status") == "True":
        scheduled["lastTransitionTime"] = before.get("lastTransitionTime") or scheduled["lastTransitionTime"]
    status["conditions"] = [*others, scheduled]
    return {**pod, "metadata": made, "spec": {**spec, "nodeName": binding["target"]["name"]}, "status": status}


def _refused(name: str, why: str) -> StatusError:
    return conflict(_RESOURCE, "", name, why)
