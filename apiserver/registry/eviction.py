"""Evicting a Pod: a deletion that PodDisruptionBudgets may put off.

As kube-apiserver does it: a Pod that has ended or does not run yet goes whatever budgets say; one that runs needs a
disruption that its budget still allows, which is counted there before the Pod goes. How much is allowed is for a
controller to work out; until it has seen the budget nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from apiserver.model import clock, conditions, selectors
from apiserver.model.errors import StatusError, forbidden, not_found
from apiserver.model.keys import Key
from apiserver.registry import codec, deletion, rest
from apiserver.registry.rest_options import Collection, DeleteOptions, WriteOptions
from apiserver.storage.protocol import Conflict, Put

Object = dict[str, Any]

BUDGETS = "poddisruptionbudgets"
_ATTEMPTS = 20
_MOST_DISRUPTED = 2000
_MANAGER = "kube-apiserver"
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_TARGET, _ALLOWED = "DisruptionTarget", "DisruptionAllowed"


def evict(pods: Collection, budgets: Collection | None, namespace: str, name: str, options: DeleteOptions) -> None:
    """`budgets`: the cluster's PodDisruptionBudgets, None where there is no such kind. Raises StatusError: 429 with a
    cause DisruptionBudget while the budget does not allow it, and what deleting raises."""
    for _ in range(_ATTEMPTS):
        pod = _read(pods, namespace, name)
        pods.admit("delete", name, pod)
        if not _is_free(pod):
            break
        try:
            _end(pods, pod, options if options.revision or _has_ended(pod) else _at(options, pod))
        except StatusError as error:
            if error.reason != "Conflict" or options.revision:
                raise
            continue
        return
    budget = _budget_of(budgets, pod)
    if budget is None:
        _end(pods, pod, options)
        return
    if not conditions.is_true((pod.get("status") or {}).get("conditions"), "Ready") and _spares_unready(budget):
        _end_unready(pods, pod, options, budget)
        return
    assert budgets is not None
    _count(budgets, budget, name, dry_run=options.dry_run)
    _end(pods, pod, options)


def _read(pods: Collection, namespace: str, name: str) -> Object:
    found = pods.store.get(Key(pods.kind.storage, pods.cluster, namespace, name))
    if found is None:
        raise not_found("pods", "", name)
    return codec.decode(found.value, found.revision)


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _has_ended(pod: Object) -> bool:
    return _phase(pod) in ("Succeeded", "Failed") or bool(pod["metadata"].get("deletionTimestamp"))


def _is_free(pod: Object) -> bool:
    """Whether it may go without a look at budgets: it serves nobody."""
    return _has_ended(pod) or _phase(pod) == "Pending"


def _at(options: DeleteOptions, pod: Object) -> DeleteOptions:
    """Only as long as the Pod is what it was looked at as."""
    return replace(options, revision=pod["metadata"]["resourceVersion"])


def _budget_of(budgets: Collection | None, pod: Object) -> Object | None:
    found = list(_matching(budgets, pod)) if budgets is not None else []
    if len(found) > 1:
        raise StatusError(500, "", _SEVERAL)  # the code and the missing reason are Kubernetes'
    return found[0] if found else None


def _matching(budgets: Collection, pod: Object) -> Iterator[Object]:
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels")
    for record in budgets.store.scan(budgets.kind.storage, budgets.cluster, namespace).records:
        budget = codec.decode(record.value, record.revision)
        if selectors.from_object((budget.get("spec") or {}).get("selector")).matches(labels):
            yield budget


def _spares_unready(budget: Object) -> bool:
    """Whether a Pod that is not ready may go without being counted."""
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = int(status.get("desiredHealthy") or 0)
    return int(status.get("currentHealthy") or 0) >= desired > 0


def _end_unready(pods: Collection, pod: Object, options: DeleteOptions, budget: Object) -> None:
    try:
        _end(pods, pod, _at(options, pod))
    except StatusError as error:
        if error.reason != "Conflict" or options.revision:
            raise
        raise _unprocessed(budget) from None


def _count(budgets: Collection, budget: Object, name: str, *, dry_run: bool) -> None:
    """One disruption less is allowed, that of the Pod of this name."""

    def counted(live: Object) -> Object:
        _check_allowed(live)
        status = dict(live.get("status") or {})
        status["disruptionsAllowed"] = int(status["disruptionsAllowed"]) - 1
        if status["disruptionsAllowed"] == 0:
            status["conditions"] = _none_allowed(status)
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), name: clock.now()}
        return {**live, "status": status}

    if dry_run:
        _check_allowed(budget)
        return
    metadata = budget["metadata"]
    rest.patch(budgets, metadata["namespace"], metadata["name"], counted, WriteOptions(_MANAGER), "status")


def _check_allowed(budget: Object) -> None:
    """Raises StatusError 403, 429."""
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    if int(status.get("observedGeneration") or 0) < int(metadata.get("generation") or 0):
        raise _unprocessed(budget)
    allowed = int(status.get("disruptionsAllowed") or 0)
    if allowed < 0:
        raise forbidden("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("poddisruptionbudget", "policy", name, why)
    if allowed == 0:
        raise _too_many(_why_not(name, status))


def _why_not(name: str, status: Object) -> str:
    told = conditions.get(status.get("conditions"), _ALLOWED) or {}
    message = told.get("message") if told.get("status") == "False" else ""
    healthy, desired = int(status.get("currentHealthy") or 0), int(status.get("desiredHealthy") or 0)
    if message and told.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    text = f"The disruption budget {name} does not allow evicting pods currently"
    return f"{text} ({told.get('reason', '')}): {message}" if message else text


def _none_allowed(status: Object) -> list[Object]:
    generation = int(status.get("observedGeneration") or 0)
    told = conditions.condition(_ALLOWED, False, "InsufficientPods", at=clock.now(), generation=generation)
    return conditions.merged(status.get("conditions"), [told])


def _unprocessed(budget: Object) -> StatusError:
    name = budget["metadata"]["name"]
    return _too_many(f"The disruption budget {name} is still being processed by the server.", retry_after=10)


def _too_many(why: str, retry_after: int | None = None) -> StatusError:
    cause = {"reason": "DisruptionBudget", "message": why}
    return StatusError(429, "TooManyRequests", _VIOLATES, {"causes": [cause]}, retry_after)


def _end(pods: Collection, pod: Object, options: DeleteOptions) -> None:
    """Says why on the Pod, and deletes it. Raises StatusError 404, 409."""
    metadata = pod["metadata"]
    if not options.dry_run:
        options = _told(pods, metadata["namespace"], metadata["name"], options)
    deletion.delete(pods, metadata["namespace"], metadata["name"], options)


def _told(pods: Collection, namespace: str, name: str, options: DeleteOptions) -> DeleteOptions:
    """Sets the condition DisruptionTarget; what has to hold of the revision holds of the new one then."""
    for _ in range(_ATTEMPTS):
        pod = _read(pods, namespace, name)
        deletion.check_preconditions(pods.kind, pod, options)
        status = dict(pod.get("status") or {})
        told = {"type": _TARGET, "status": "True", "lastProbeTime": None, "lastTransitionTime": clock.now(),
                "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}  # fmt: skip
        others = [c for c in status.get("conditions") or () if c.get("type") != _TARGET]
        before = conditions.get(status.get("conditions"), _TARGET)
        if before is not None and before.get("status") == "True":
            told["lastTransitionTime"] = before.get("lastTransitionTime")
        status["conditions"] = [*others, told]
        key = Key(pods.kind.storage, pods.cluster, namespace, name)
        put = Put(key, codec.encode({**pod, "status": status}), int(pod["metadata"]["resourceVersion"]))
        try:
            [revision] = pods.store.write(put).result()
        except Conflict:
            continue
        return replace(options, revision=str(revision)) if options.revision else options
    return options
