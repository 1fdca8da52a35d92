"""Deployments: a ReplicaSet for each pod template, the newest with the pods; status and conditions like Kubernetes'.

A rollout is simpler than the real one: the new ReplicaSet gets all its pods at once, and the old ones go when those are
available (`Recreate`: before them). `maxSurge` and `maxUnavailable` change nothing that anyone could measure here.
"""

from __future__ import annotations

from typing import Any

from apiserver.model import clock, conditions
from apiserver.storage.protocol import Op
from reconciler.standin.pods import template_hash
from reconciler.standin.replicasets import REPLICA_SETS
from reconciler.standin.world import StandInWorld, counts, creation, owned, removal, replacement, with_status

DEPLOYMENTS = "deployments.apps"
REVISION = "deployment.kubernetes.io/revision"
HASH = "pod-template-hash"

Object = dict[str, Any]


def reconcile(world: StandInWorld, obj: Object) -> None:
    if obj["metadata"].get("deletionTimestamp"):
        return
    sets = world.children(obj, REPLICA_SETS)
    name = template_hash(obj["spec"]["template"])
    new = next((s for s in sets if s["metadata"]["labels"].get(HASH) == name), None)
    old = [s for s in sets if s is not new]
    ops = _roll(obj, name, new, old)
    if not ops:
        ops = _report(obj, new, old) + _expire(obj, old)
    world.write(ops)


def _roll(obj: Object, name: str, new: Object | None, old: list[Object]) -> list[Op]:
    """The next step towards all pods being of the newest template; nothing if there is none to take now."""
    spec = obj["spec"]
    wanted = int(spec.get("replicas", 1))
    standing = [s for s in old if int(s["spec"].get("replicas", 1))]
    if spec.get("paused"):
        return _scaled([new] if new else sorted(standing, key=_oldest_first)[-1:], wanted)
    if (spec.get("strategy") or {}).get("type") == "Recreate" and (standing or _pods_of(old)):
        return _scaled(standing, 0)
    latest = _revision(old)
    if new is None:
        return [_replica_set(obj, name, wanted, latest + 1)]
    if _revision([new]) <= latest:  # an older template again: it counts as the newest
        return _scaled([_with_revision(new, latest + 1)], wanted, always=True)
    ops = _scaled([new], wanted)
    if not ops and _available(new) >= wanted:
        ops = _scaled(standing, 0)
    return ops


def _replica_set(obj: Object, name: str, replicas: int, revision: int) -> Op:
    spec = obj["spec"]
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: name}
    selector = spec.get("selector") or {}
    return creation(
        REPLICA_SETS,
        {
            "kind": "ReplicaSet",
            "apiVersion": "apps/v1",
            "metadata": owned(obj, f"{obj['metadata']['name']}-{name}", labels, {REVISION: str(revision)}),
            "spec": {
                "replicas": replicas,
                "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: name}},
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        },
    )


def _scaled(sets: list[Object], replicas: int, *, always: bool = False) -> list[Op]:
    ops: list[Op] = []
    for obj in sets:
        if int(obj["spec"].get("replicas", 1)) != replicas:
            generation = int(obj["metadata"].get("generation", 1)) + 1
            obj = {**obj, "metadata": {**obj["metadata"], "generation": generation}}
            ops.append(replacement(REPLICA_SETS, {**obj, "spec": {**obj["spec"], "replicas": replicas}}))
        elif always:
            ops.append(replacement(REPLICA_SETS, obj))
    return ops


def _with_revision(obj: Object, revision: int) -> Object:
    annotations = {**(obj["metadata"].get("annotations") or {}), REVISION: str(revision)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _revision(sets: list[Object]) -> int:
    """The greatest; 0 without any."""
    found = [(s["metadata"].get("annotations") or {}).get(REVISION, "0") for s in sets]
    return max((int(r) for r in found if r.isdigit()), default=0)


def _pods_of(sets: list[Object]) -> int:
    return sum(int((s.get("status") or {}).get("replicas", 0)) for s in sets)


def _available(obj: Object) -> int:
    return int((obj.get("status") or {}).get("availableReplicas", 0))


def _expire(obj: Object, old: list[Object]) -> list[Op]:
    """Old ReplicaSets beyond the history limit."""
    empty = sorted((s for s in old if not int(s["spec"].get("replicas", 1)) and not _pods_of([s])), key=_oldest_first)
    keep = int(obj["spec"].get("revisionHistoryLimit", 10))
    return [removal(REPLICA_SETS, s) for s in empty[: max(0, len(empty) - keep)]]


def _oldest_first(obj: Object) -> tuple[int, str]:
    return _revision([obj]), obj["metadata"]["name"]


# -- what is told


def _report(obj: Object, new: Object | None, old: list[Object]) -> list[Op]:
    status = _status(obj, new, old)
    annotations = obj["metadata"].get("annotations") or {}
    revision = str(_revision([new])) if new else annotations.get(REVISION, "")
    if revision and annotations.get(REVISION) != revision:
        return with_status(DEPLOYMENTS, {**_with_revision(obj, int(revision)), "status": None}, status)
    return with_status(DEPLOYMENTS, obj, status)


def _status(obj: Object, new: Object | None, old: list[Object]) -> Object:
    wanted = int(obj["spec"].get("replicas", 1))
    sets = [*([new] if new else []), *old]
    total, available = _pods_of(sets), sum(map(_available, sets))
    updated = _pods_of([new]) if new else 0
    ready = sum(int((s.get("status") or {}).get("readyReplicas", 0)) for s in sets)
    enough = available >= wanted
    complete = enough and updated == wanted == total
    before = (obj.get("status") or {}).get("conditions") or []
    told = [_availability(enough)]
    if not obj["spec"].get("paused"):
        told.append(_progress(new, complete))
    at = clock.now()
    return {
        "observedGeneration": int(obj["metadata"].get("generation", 1)),
        **counts(
            replicas=total,
            updatedReplicas=updated,
            readyReplicas=ready,
            availableReplicas=available,
            unavailableReplicas=max(0, max(wanted, total) - available),
        ),
        "conditions": _merged(before, told, at),
    }


def _availability(enough: bool) -> Object:
    if enough:
        return _told("Available", True, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _told("Available", False, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


def _progress(new: Object | None, complete: bool) -> Object:
    name = new["metadata"]["name"] if new else ""
    if complete:
        message = f'ReplicaSet "{name}" has successfully progressed.'
        return _told("Progressing", True, "NewReplicaSetAvailable", message)
    return _told("Progressing", True, "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')


def _told(kind: str, holds: bool, reason: str, message: str) -> Object:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def _merged(before: list[Object], told: list[Object], at: str) -> list[Object]:
    """Times move only with what they are times of."""
    out = []
    for new in told:
        old = conditions.get(before, new["type"])
        same = old is not None and all(old.get(f) == new[f] for f in ("status", "reason", "message"))
        if old is not None and same:
            out.append(old)
            continue
        turned = at if old is None or old.get("status") != new["status"] else old.get("lastTransitionTime", at)
        out.append({**new, "lastUpdateTime": at, "lastTransitionTime": turned})
    kinds = {c["type"] for c in told}
    return out + [c for c in before if c["type"] not in kinds]
