"""Pods and what makes them."""

from __future__ import annotations

from typing import Any

from apiserver.registry.printers.base import (
    AGE,
    NAME,
    Object,
    Printer,
    age,
    at,
    between,
    columns,
    joined,
    name,
    selector,
    since,
)

_RUN = ("*Containers", "*Images", "*Selector")


def _containers(obj: Object, *path: str) -> list[Object]:
    found: list[Object] = at(obj, *path, "containers", default=[])
    return found


def _run(obj: Object) -> list[Any]:
    containers = _containers(obj, "spec", "template", "spec")
    images = joined([c.get("image", "") for c in containers])
    return [joined([c.get("name", "") for c in containers]), images, selector(at(obj, "spec", "selector"))]


def _count(obj: Object, field: str) -> int:
    found: int = at(obj, "status", field, default=0)
    return found


def _deployment(obj: Object) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{at(obj, 'spec', 'replicas', default=0)}"
    return [name(obj), ready, _count(obj, "updatedReplicas"), _count(obj, "availableReplicas"), age(obj), *_run(obj)]


def _replica_set(obj: Object) -> list[Any]:
    wanted = at(obj, "spec", "replicas", default=0)
    return [name(obj), wanted, _count(obj, "replicas"), _count(obj, "readyReplicas"), age(obj), *_run(obj)]


def _stateful_set(obj: Object) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{at(obj, 'spec', 'replicas', default=0)}"
    return [name(obj), ready, age(obj), *_run(obj)[:2]]


def _daemon_set(obj: Object) -> list[Any]:
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    counts = [_count(obj, f) for f in (*fields, "numberAvailable")]
    nodes = at(obj, "spec", "template", "spec", "nodeSelector", default={})
    shown = ",".join(f"{k}={v}" for k, v in sorted(nodes.items())) or "<none>"
    return [name(obj), *counts, shown, age(obj), *_run(obj)]


def _job_status(obj: Object) -> str:
    for condition in at(obj, "status", "conditions", default=[]):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed", "Suspended"):
            found: str = condition["type"]
            return found
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Running"


def _job(obj: Object) -> list[Any]:
    succeeded, wanted = _count(obj, "succeeded"), at(obj, "spec", "completions")
    parallel = at(obj, "spec", "parallelism", default=0)
    if wanted is not None:
        done = f"{succeeded}/{wanted}"
    else:
        done = f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"
    started, ended = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    took = ""
    if started and ended:
        took = between(started, ended)
    elif started:
        took = since(started)
    return [name(obj), _job_status(obj), done, took, age(obj), *_run(obj)]


def _cron_job(obj: Object) -> list[Any]:
    spec = obj.get("spec") or {}
    last = at(obj, "status", "lastScheduleTime")
    containers = _containers(obj, "spec", "jobTemplate", "spec", "template", "spec")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        "True" if spec.get("suspend") else "False",
        len(at(obj, "status", "active", default=[])),
        since(last) if last else "<none>",
        age(obj),
        joined([c.get("name", "") for c in containers]),
        joined([c.get("image", "") for c in containers]),
        selector(at(spec, "jobTemplate", "spec", "selector")),
    ]


def _container_state(status: Object) -> str:
    """Why a container does not run; "" if it does."""
    state = status.get("state") or {}
    ended = state.get("terminated")
    if ended is not None:
        told = f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
        return str(ended.get("reason") or told)
    return str(at(state, "waiting", "reason", default=""))


def _init_state(obj: Object) -> str:
    """`Init:1/2`, `Init:Error`, … while a pod is being initialised, else ""."""
    statuses = at(obj, "status", "initContainerStatuses", default=[])
    for index, status in enumerate(statuses):
        if at(status, "state", "terminated", "exitCode") == 0 or status.get("started"):
            continue
        reason = _container_state(status)
        waits = reason in ("", "PodInitializing")
        return f"Init:{index}/{len(_inits(obj))}" if waits else f"Init:{reason}"
    return ""


def _inits(obj: Object) -> list[Object]:
    found: list[Object] = at(obj, "spec", "initContainers", default=[])
    return found


def _pod_status(obj: Object, statuses: list[Object]) -> str:
    """The most telling word: of the deletion, of the containers, else the phase."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Unknown" if at(obj, "status", "reason") == "NodeLost" else "Terminating"
    phase = str(at(obj, "status", "reason") or at(obj, "status", "phase", default="Unknown"))
    reasons = [_container_state(s) for s in statuses]
    found = _init_state(obj) or next((r for r in reasons if r), phase)
    if found == "Completed" and any(at(s, "state", "running") is not None and s.get("ready") for s in statuses):
        return "Running"
    return found


def _restarts(statuses: list[Object]) -> str:
    """The number, with the time of the last one: `3 (5m ago)`."""
    count = sum(s.get("restartCount", 0) for s in statuses)
    ended = [at(s, "lastState", "terminated", "finishedAt") for s in statuses]
    last = max((e for e in ended if e), default=None)
    return f"{count} ({since(last)} ago)" if count and last else str(count)


def _pod(obj: Object) -> list[Any]:
    statuses = at(obj, "status", "containerStatuses", default=[])
    ready = f"{sum(bool(s.get('ready')) for s in statuses)}/{len(_containers(obj, 'spec'))}"
    gates = at(obj, "spec", "readinessGates", default=[])
    true = {c.get("type") for c in at(obj, "status", "conditions", default=[]) if c.get("status") == "True"}
    passed = sum(g.get("conditionType") in true for g in gates)
    return [
        name(obj),
        ready,
        _pod_status(obj, statuses),
        _restarts(statuses),
        age(obj),
        at(obj, "status", "podIP") or "<none>",
        at(obj, "spec", "nodeName") or "<none>",
        at(obj, "status", "nominatedNodeName") or "<none>",
        f"{passed}/{len(gates)}" if gates else "<none>",
    ]


CONTROLLER_REVISION = Printer(
    columns(NAME, "Controller", "Revision", AGE),
    lambda o: [
        name(o),
        next((f"{r['kind'].lower()}/{r['name']}" for r in o["metadata"].get("ownerReferences") or ()), "<none>"),
        o.get("revision", 0),
        age(o),
    ],
)
CRON_JOB = Printer(
    columns(NAME, "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", AGE, *_RUN),
    _cron_job,
)
DAEMON_SET = Printer(
    columns(
        NAME,
        "Desired:integer",
        "Current:integer",
        "Ready:integer",
        "Up-to-date:integer",
        "Available:integer",
        "Node Selector",
        AGE,
        *_RUN,
    ),
    _daemon_set,
)
DEPLOYMENT = Printer(columns(NAME, "Ready", "Up-to-date", "Available", AGE, *_RUN), _deployment)
JOB = Printer(columns(NAME, "Status", "Completions", "Duration", AGE, *_RUN), _job)
POD = Printer(
    columns(NAME, "Ready", "Status", "Restarts", AGE, "*IP", "*Node", "*Nominated Node", "*Readiness Gates"), _pod
)
POD_TEMPLATE = Printer(
    columns(NAME, "Containers", "Images", "Pod Labels"),
    lambda o: [
        name(o),
        joined([c.get("name", "") for c in _containers(o, "template", "spec")]),
        joined([c.get("image", "") for c in _containers(o, "template", "spec")]),
        selector(at(o, "template", "metadata", "labels", default={})),
    ],
)
REPLICA_SET = Printer(columns(NAME, "Desired:integer", "Current:integer", "Ready:integer", AGE, *_RUN), _replica_set)
STATEFUL_SET = Printer(columns(NAME, "Ready", AGE, "*Containers", "*Images"), _stateful_set)
