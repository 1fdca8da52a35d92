"""Pods: making them of templates, and running them, which here is saying that they run."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import orjson

from apiserver.model import clock, conditions
from apiserver.storage.protocol import Op
from reconciler.standin.world import StandInWorld, creation, owned, removal, replacement, with_status

PODS = "pods"
NODE = "stand-in"
NODE_IP = "10.0.0.1"

Object = dict[str, Any]

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def template_hash(template: Object) -> str:
    """Ten letters that name a pod template; the same template has the same ones always."""
    number = int.from_bytes(hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()[:8], "big")
    letters = []
    for _ in range(10):
        number, letter = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[letter])
    return "".join(letters)


def random_suffix() -> str:
    return "".join(random.choices(_ALPHABET, k=5))  # noqa: S311 (a name, no secret)


def pod_of(owner: Object, template: Object, name: str, labels: dict[str, str] | None = None) -> Object:
    """A pod of a workload's template: it runs from the start."""
    meta = template.get("metadata") or {}
    metadata = owned(owner, name, {**(meta.get("labels") or {}), **(labels or {})}, meta.get("annotations"))
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {**template["spec"], "nodeName": NODE}}
    return {**pod, "status": running(pod, clock.now())}


def start(owner: Object, template: Object, name: str, labels: dict[str, str] | None = None) -> Op:
    return creation(PODS, pod_of(owner, template, name, labels))


def is_ready(pod: Object) -> bool:
    return conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready")


def finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def surplus(pods: list[Object], wanted: int) -> list[Op]:
    """Takes away the pods above `wanted`: those that are not ready first, then the newest."""
    order = sorted(pods, key=lambda p: (is_ready(p), _age(p)), reverse=True)
    return [removal(PODS, pod) for pod in order[wanted:]]


def _age(pod: Object) -> tuple[int, str]:
    """Greater for older ones."""
    return -int(pod["metadata"]["resourceVersion"]), str(pod["metadata"]["name"])


def reconcile(world: StandInWorld, pod: Object) -> None:
    """A new pod runs at once; one of a Job has then done its work; one that is to go goes."""
    phase = (pod.get("status") or {}).get("phase")
    if pod["metadata"].get("deletionTimestamp"):
        if not pod["metadata"].get("finalizers"):
            world.write([removal(PODS, pod)])
    elif phase in (None, "", "Pending"):
        placed = {**pod, "spec": {**pod["spec"], "nodeName": pod["spec"].get("nodeName") or NODE}}
        world.write([replacement(PODS, {**placed, "status": running(placed, clock.now())})])
    elif phase == "Running" and _of_job(pod):
        world.write(with_status(PODS, pod, succeeded(pod, clock.now())))


def _of_job(pod: Object) -> bool:
    return any(r["kind"] == "Job" and r.get("controller") for r in pod["metadata"].get("ownerReferences") or ())


def running(pod: Object, at: str) -> Object:
    """The status of a pod whose containers all run and are ready."""
    address = _address(pod)
    status: Object = {
        "phase": "Running",
        "conditions": [_condition(kind, "", at) for kind in _CONDITIONS],
        "hostIP": NODE_IP,
        "hostIPs": [{"ip": NODE_IP}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": at,
        "qosClass": _quality(pod["spec"]),
    }
    if pod["spec"].get("initContainers"):
        ended = _ended(at, at)
        status["initContainerStatuses"] = [_container(c, ended, True) for c in pod["spec"]["initContainers"]]
    state = {"running": {"startedAt": at}}
    status["containerStatuses"] = [_container(c, state, True) for c in pod["spec"].get("containers") or ()]
    return status


def succeeded(pod: Object, at: str) -> Object:
    """The status of a pod whose containers ended well."""
    status = dict(pod["status"])
    status["phase"] = "Succeeded"
    not_ready = ("Ready", "ContainersReady", "PodReadyToStartContainers")
    status["conditions"] = [
        _condition(kind, "PodCompleted" if kind != "PodScheduled" else "", at, kind not in not_ready)
        for kind in _CONDITIONS
    ]
    state = _ended(status.get("startTime", at), at)
    status["containerStatuses"] = [_container(c, state, False) for c in pod["spec"].get("containers") or ()]
    return status


def _condition(kind: str, reason: str, at: str, holds: bool = True) -> Object:
    out = {"type": kind, "status": "True" if holds else "False", "lastProbeTime": None, "lastTransitionTime": at}
    return {**out, "reason": reason} if reason and kind != "PodReadyToStartContainers" else out


def _ended(began: str, at: str) -> Object:
    return {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": at}}


def _container(container: Object, state: Object, ready: bool) -> Object:
    return {
        "name": container["name"],
        "state": state,
        "lastState": {},
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "image": container.get("image", ""),
        "imageID": "",
    }


def _address(pod: Object) -> str:
    meta = pod["metadata"]
    digest = hashlib.sha256(f"{meta.get('namespace')}/{meta['name']}".encode()).digest()
    return f"10.{digest[0] % 250 + 1}.{digest[1]}.{digest[2] % 254 + 1}"


def _quality(spec: Object) -> str:
    asked = [c.get("resources") or {} for c in spec.get("containers") or ()]
    if not any(r.get("requests") or r.get("limits") for r in asked):
        return "BestEffort"
    for resources in asked:
        limits = resources.get("limits") or {}
        if not {"cpu", "memory"} <= limits.keys() or {**limits, **(resources.get("requests") or {})} != limits:
            return "Burstable"
    return "Guaranteed"
