"""StatefulSets and DaemonSets: pods of which each has its place, replaced when the template changes."""

from __future__ import annotations

from typing import Any

from apiserver.storage.protocol import Op
from reconciler.standin import pods
from reconciler.standin.world import StandInWorld, counts, removal, with_status

STATEFUL_SETS = "statefulsets.apps"
DAEMON_SETS = "daemonsets.apps"
HASH = "controller-revision-hash"

Object = dict[str, Any]


def reconcile_stateful_set(world: StandInWorld, obj: Object) -> None:
    metadata, spec = obj["metadata"], obj["spec"]
    if metadata.get("deletionTimestamp"):
        return
    first = int((spec.get("ordinals") or {}).get("start", 0))
    wanted = int(spec.get("replicas", 1))
    revision = f"{metadata['name']}-{pods.template_hash(spec['template'])}"
    places = {f"{metadata['name']}-{number}": number for number in range(first, first + wanted)}
    ops = _fill(world, obj, {name: _place(name, number) for name, number in places.items()}, revision)
    status = {
        "observedGeneration": int(metadata.get("generation", 1)),
        "replicas": wanted,
        **counts(readyReplicas=wanted, currentReplicas=wanted, updatedReplicas=wanted),
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "availableReplicas": wanted,
    }
    world.write(ops + with_status(STATEFUL_SETS, obj, status))


def _place(name: str, number: int) -> dict[str, str]:
    return {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}


def reconcile_daemon_set(world: StandInWorld, obj: Object) -> None:
    """There is one node, and it takes every pod."""
    metadata = obj["metadata"]
    if metadata.get("deletionTimestamp"):
        return
    generation = int(metadata.get("generation", 1))
    revision = pods.template_hash(obj["spec"]["template"])
    standing = world.children(obj, pods.PODS)
    name = standing[0]["metadata"]["name"] if standing else f"{metadata['name']}-{pods.random_suffix()}"
    ops = _fill(world, obj, {name: {}}, revision)
    status = {
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 1,
        "numberReady": 1,
        "observedGeneration": generation,
        "updatedNumberScheduled": 1,
        "numberAvailable": 1,
    }
    world.write(ops + with_status(DAEMON_SETS, obj, status))


def _fill(world: StandInWorld, obj: Object, places: dict[str, dict[str, str]], revision: str) -> list[Op]:
    """One pod of this revision at each place (name → labels), and none elsewhere."""
    ops: list[Op] = []
    standing = set()
    for pod in world.children(obj, pods.PODS):
        name = pod["metadata"]["name"]
        current = (pod["metadata"].get("labels") or {}).get(HASH) == revision and not pods.finished(pod)
        if name in places and current:
            standing.add(name)
        else:
            ops.append(removal(pods.PODS, pod))
    for name, labels in places.items():
        if name not in standing:
            ops.append(pods.start(obj, obj["spec"]["template"], name, {**labels, HASH: revision}))
    return ops
