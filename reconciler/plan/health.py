"""Whether a workload is healthy where it runs: what a move waits for before the old copies go.

Pure. Reads the live object of a sync target. Kinds without a notion of health are healthy once they exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model import conditions
from apiserver.model.kinds import GroupResource
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import Health

Object = dict[str, Any]


def healthy(kind: GroupResource, live: Object) -> bool:
    """False also while the target's controllers have not yet seen the newest spec."""
    entry = ENTRIES.get(str(kind))
    check = _CHECKS.get(entry.health) if entry is not None else None
    return check is None or check(live.get("spec") or {}, live.get("status") or {}, live["metadata"])


def _seen(status: Object, metadata: Object) -> bool:
    return int(status.get("observedGeneration", 0)) >= int(metadata.get("generation", 0))


def _deployment(spec: Object, status: Object, metadata: Object) -> bool:
    wanted = int(spec.get("replicas", 1))
    return (
        _seen(status, metadata)
        and int(status.get("updatedReplicas", 0)) >= wanted
        and int(status.get("availableReplicas", 0)) >= wanted
    )


def _stateful_set(spec: Object, status: Object, metadata: Object) -> bool:
    return _seen(status, metadata) and int(status.get("readyReplicas", 0)) >= int(spec.get("replicas", 1))


def _replica_set(spec: Object, status: Object, metadata: Object) -> bool:
    return _seen(status, metadata) and int(status.get("availableReplicas", 0)) >= int(spec.get("replicas", 1))


def _daemon_set(_: Object, status: Object, metadata: Object) -> bool:
    wanted = int(status.get("desiredNumberScheduled", 0))
    return _seen(status, metadata) and int(status.get("numberAvailable", 0)) >= wanted


def _job(spec: Object, status: Object, _: Object) -> bool:
    """Complete, or as far as it can be: a suspended one, or one whose pods run."""
    if spec.get("suspend") or conditions.is_true(status.get("conditions"), "Complete"):
        return True
    return int(status.get("ready", status.get("active", 0)) or 0) > 0


def _pod(_: Object, status: Object, __: Object) -> bool:
    return status.get("phase") == "Succeeded" or conditions.is_true(status.get("conditions"), "Ready")


_CHECKS: dict[Health, Callable[[Object, Object, Object], bool]] = {
    Health.DEPLOYMENT: _deployment,
    Health.STATEFUL_SET: _stateful_set,
    Health.REPLICA_SET: _replica_set,
    Health.DAEMON_SET: _daemon_set,
    Health.JOB: _job,
    Health.POD: _pod,
}
