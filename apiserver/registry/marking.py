"""What a deletion makes of an object: nothing is left of it, or it is marked and waits. Pure functions on objects.

Called by deletion.py, and by the controller of definitions for their condition. The propagation policy becomes a
finalizer; pods get time to end; namespaces, definitions, bindings and logical clusters wait for what came with them.
"""

from __future__ import annotations

from datetime import timedelta

from apiserver.model import clock
from apiserver.model.marks import BINDING_FINALIZER, CLUSTER_FINALIZER, DEFINITION_FINALIZER
from apiserver.model.storagenames import BINDINGS, CRDS, LOGICAL_CLUSTERS
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import Dependents
from apiserver.registry.rest_checks import finished
from apiserver.registry.rest_options import (
    BACKGROUND,
    FOREGROUND,
    FOREGROUND_FINALIZER,
    ORPHAN,
    ORPHAN_FINALIZER,
    DeleteOptions,
    Object,
)
from apiserver.registry.served import ServedKind

_NO_DEPENDENTS = having(lambda kind: kind.dependents is Dependents.NONE)
"""Kinds whose deletion takes no propagation policy."""
_ORPHANING = having(lambda kind: kind.dependents is Dependents.ORPHANED)
"""Kinds whose dependents stay unless the request says otherwise."""


def decided(kind: ServedKind, live: Object, options: DeleteOptions) -> Object | None:
    """The object as it is while it waits to go (`live` itself if nothing changes), or None: it goes at once."""
    if not live["metadata"].get("deletionTimestamp"):
        if is_namespace(kind):
            return _terminating_namespace(kind, live, options)
        if kind.qualified == CRDS:
            return _terminating_definition(live)
        if kind.storage == LOGICAL_CLUSTERS:
            return _terminating(live, CLUSTER_FINALIZER)
        if kind.storage == BINDINGS and (live.get("status") or {}).get("boundResources"):
            return _terminating(live, BINDING_FINALIZER)
    elif is_namespace(kind) and (live.get("spec") or {}).get("finalizers"):
        return live
    if kind.qualified == "pods":
        graceful = _graceful(live, options)
        if graceful is live:
            return live
        if graceful is not None:
            marked = _with_finalizers(kind, graceful, options)
            return None if finished(marked) else marked
    marked = _with_finalizers(kind, live, options)
    if not marked["metadata"].get("finalizers"):
        return None
    return _marked(kind, marked)


def is_namespace(kind: ServedKind) -> bool:
    return kind.resource == "namespaces" and not kind.group


# -- finalizers


def _with_finalizers(kind: ServedKind, live: Object, options: DeleteOptions) -> Object:
    """With the finalizer that the propagation policy asks for, and without the other one."""
    if kind.qualified in _NO_DEPENDENTS:
        return live
    found = list(live["metadata"].get("finalizers") or ())
    policy = options.policy or _standing_policy(kind, found)
    kept = [f for f in found if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    added = {ORPHAN: [ORPHAN_FINALIZER], FOREGROUND: [FOREGROUND_FINALIZER]}.get(policy, [])
    if set(found) == {*kept, *added}:
        return live
    metadata = {k: v for k, v in live["metadata"].items() if k != "finalizers"}
    if kept or added:
        metadata["finalizers"] = kept + added
    return {**live, "metadata": metadata}


def _standing_policy(kind: ServedKind, finalizers: list[str]) -> str:
    """Of a request that names none: what an earlier one left as a finalizer, else the kind's."""
    for finalizer in finalizers:
        if finalizer == ORPHAN_FINALIZER:
            return ORPHAN
        if finalizer == FOREGROUND_FINALIZER:
            return FOREGROUND
    return ORPHAN if kind.qualified in _ORPHANING else BACKGROUND


def _marked(kind: ServedKind, live: Object) -> Object:
    """As it is while its finalizers are waited for. Setting deletionTimestamp counts for the generation."""
    metadata = dict(live["metadata"])
    now = clock.now()
    if not metadata.get("deletionTimestamp"):
        _count(kind, metadata)
    if not metadata.get("deletionTimestamp") or metadata["deletionTimestamp"] > now:
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0
    return {**live, "metadata": metadata}


def _count(kind: ServedKind, metadata: Object) -> None:
    if kind.generation:
        metadata["generation"] = int(metadata.get("generation") or 0) + 1


def _terminating_namespace(kind: ServedKind, live: Object, options: DeleteOptions) -> Object:
    """It takes its content along; who sees to that is the controller behind spec.finalizers."""
    marked = _with_finalizers(kind, live, options)
    metadata = {**marked["metadata"], "deletionTimestamp": clock.now()}
    return {**marked, "metadata": metadata, "status": {**(live.get("status") or {}), "phase": "Terminating"}}


def _terminating(live: Object, finalizer: str) -> Object:
    """As it is while a controller takes away what came with it."""
    metadata = dict(live["metadata"])
    metadata["deletionTimestamp"] = clock.now()
    finalizers = list(metadata.get("finalizers") or ())
    metadata["finalizers"] = finalizers if finalizer in finalizers else [*finalizers, finalizer]
    return {**live, "metadata": metadata}


def _terminating_definition(live: Object) -> Object:
    told = terminating(
        True,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    return with_terminating(_terminating(live, DEFINITION_FINALIZER), told)


def terminating(holds: bool, reason: str, message: str) -> Object:
    """The condition Terminating of a CustomResourceDefinition."""
    at = clock.now()
    status = "True" if holds else "False"
    return {"type": "Terminating", "status": status, "lastTransitionTime": at, "reason": reason, "message": message}


def with_terminating(definition: Object, told: Object) -> Object:
    """The definition with that condition, in its place among the others."""
    status = definition.get("status") or {}
    found = list(status.get("conditions") or ())
    at = next((i for i, c in enumerate(found) if c.get("type") == told["type"]), None)
    if at is None:
        found.append(told)
    else:
        if found[at].get("status") == told["status"]:
            told = {**told, "lastTransitionTime": found[at].get("lastTransitionTime", told["lastTransitionTime"])}
        found[at] = told
    return {**definition, "status": {**status, "conditions": found}}


# -- grace periods, which pods alone have


def _graceful(pod: Object, options: DeleteOptions) -> Object | None:
    """The pod with its deletion time and grace period; `pod` itself where an earlier request stands; None where its
    time is over already."""
    metadata = pod["metadata"]
    asked = None if options.grace is None else (options.grace if options.grace >= 0 else 1)
    if metadata.get("deletionTimestamp"):
        standing = metadata.get("deletionGracePeriodSeconds")
        if not standing:
            return None
        if asked is None or asked >= standing:
            return pod
        return _shortened(pod, standing, asked)
    period = asked if asked is not None else int((pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)
    phase = (pod.get("status") or {}).get("phase")
    if not (pod.get("spec") or {}).get("nodeName") or phase in ("Failed", "Succeeded"):
        period = 0
    due = clock.rfc3339(clock.parse(clock.now()) + timedelta(seconds=period))
    made = {**metadata, "deletionTimestamp": due, "deletionGracePeriodSeconds": max(0, period)}
    made["generation"] = int(metadata.get("generation") or 0) + 1
    return {**pod, "metadata": made}


def _shortened(pod: Object, standing: int, asked: int) -> Object:
    metadata = pod["metadata"]
    due = clock.parse(metadata["deletionTimestamp"]) + timedelta(seconds=asked - standing)
    now = clock.parse(clock.now())
    if due < now:
        due, asked = now, min(asked, 1)
    made = {**metadata, "deletionTimestamp": clock.rfc3339(due), "deletionGracePeriodSeconds": asked}
    return {**pod, "metadata": made}
