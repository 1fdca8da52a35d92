"""Jobs: their pods run once and succeed; then the Job is complete, and goes if it has a time to live."""

from __future__ import annotations

from typing import Any

from apiserver.model import clock, conditions
from apiserver.storage.protocol import Op
from reconciler.standin import pods
from reconciler.standin.world import StandInWorld, counts, key_of, removal, with_status

JOBS = "jobs.batch"
REACHED = "Reached expected number of succeeded pods"

Object = dict[str, Any]


def reconcile(world: StandInWorld, obj: Object) -> None:
    if obj["metadata"].get("deletionTimestamp"):
        return
    if conditions.is_true((obj.get("status") or {}).get("conditions"), "Complete"):
        _expire(world, obj)
        return
    spec = obj["spec"]
    if spec.get("suspend"):
        return
    parallel = int(spec.get("parallelism", 1))
    completions = int(spec.get("completions") or parallel)
    mine = world.children(obj, pods.PODS)
    succeeded = sum(1 for p in mine if p["status"].get("phase") == "Succeeded")
    active = [p for p in mine if not pods.finished(p)]
    missing = min(parallel, completions - succeeded) - len(active)
    ops: list[Op] = [_start(obj, len(mine) + number) for number in range(missing)]
    status = _status(obj, len(active) + max(0, missing), succeeded, completions)
    world.write(ops + with_status(JOBS, obj, status))


def _start(obj: Object, index: int) -> Op:
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    if obj["spec"].get("completionMode") == "Indexed":
        labels["batch.kubernetes.io/job-completion-index"] = str(index)
        name = f"{name}-{index}"
    return pods.start(obj, obj["spec"]["template"], f"{name}-{pods.random_suffix()}", labels)


def _status(obj: Object, active: int, succeeded: int, completions: int) -> Object:
    at = clock.now()
    before = obj.get("status") or {}
    status: Object = {"startTime": before.get("startTime", at), "uncountedTerminatedPods": {}, "terminating": 0}
    if succeeded < completions:
        return {**status, **counts(active=active, succeeded=succeeded), "ready": active}
    done = {"status": "True", "lastProbeTime": at, "lastTransitionTime": at, "message": REACHED}
    done["reason"] = "CompletionsReached"
    return {
        **status,
        "succeeded": succeeded,
        "ready": 0,
        "completionTime": at,
        "conditions": [{"type": "SuccessCriteriaMet", **done}, {"type": "Complete", **done}],
    }


def _expire(world: StandInWorld, obj: Object) -> None:
    """ttlSecondsAfterFinished."""
    seconds = obj["spec"].get("ttlSecondsAfterFinished")
    ended = obj["status"].get("completionTime")
    if seconds is None or not ended:
        return
    left = clock.parse(ended).timestamp() + int(seconds) - clock.parse(clock.micro_now()).timestamp()
    if left > 0:
        world.later(key_of(JOBS, obj), left)
    elif not obj["metadata"].get("finalizers"):
        world.write([removal(JOBS, obj)])
