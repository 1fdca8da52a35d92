"""ReplicaSets: as many pods as wanted."""

from __future__ import annotations

from typing import Any

from apiserver.storage.protocol import Op
from reconciler.standin import pods
from reconciler.standin.world import StandInWorld, counts, with_status

REPLICA_SETS = "replicasets.apps"

Object = dict[str, Any]


def reconcile(world: StandInWorld, obj: Object) -> None:
    """Pods and status in one transaction: nobody sees the one without the other."""
    spec, metadata = obj["spec"], obj["metadata"]
    if metadata.get("deletionTimestamp"):
        return
    wanted = int(spec.get("replicas", 1))
    mine = [p for p in world.children(obj, pods.PODS) if not pods.finished(p)]
    ops: list[Op] = pods.surplus(mine, wanted)
    for _ in range(wanted - len(mine)):
        ops.append(pods.start(obj, spec["template"], f"{metadata['name']}-{pods.random_suffix()}"))
    ready = min(wanted, sum(map(pods.is_ready, mine)) + max(0, wanted - len(mine)))
    status = {
        "replicas": wanted,
        **counts(fullyLabeledReplicas=wanted, readyReplicas=ready, availableReplicas=ready),
        "observedGeneration": int(metadata.get("generation", 1)),
    }
    world.write(ops + with_status(REPLICA_SETS, obj, status))
