"""What of a Pod may change once it is there: images, a deadline, more tolerations, gates that are lifted; and while
there are gates, on which nodes it may run. Other things have subresources.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry.behaviours import tolerations
from apiserver.registry.behaviours.base import Object
from apiserver.schema import messages

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LISTS = ("containers", "initContainers")
_CHECKED = ("activeDeadlineSeconds", "tolerations", "schedulingGates")
_MOST = 2**31 - 1
_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def carry(old: Object, new: Object) -> None:
    """What a Pod was given when it was made, a client that updates it need not know of."""
    for field in ("priority", "preemptionPolicy"):
        if old["spec"].get(field) is not None:
            new["spec"].setdefault(field, old["spec"][field])
    if old["spec"].get("tolerations"):
        tolerations.default(new["spec"])


def check(old: Object, new: Object) -> list[Cause]:
    before, after = old["spec"], new["spec"]
    for field in _LISTS:
        if len(before.get(field) or ()) != len(after.get(field) or ()):
            return [messages.forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    causes = _deadline(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))
    if causes:
        return causes
    causes = _tolerations(before.get("tolerations") or [], after.get("tolerations") or [])
    causes += _gates(before.get("schedulingGates") or [], after.get("schedulingGates") or [])
    fixed, now = _fixed(before), _fixed(after)
    if before.get("schedulingGates"):
        causes += _placement(fixed, now)
    return causes if fixed == now else [*causes, messages.forbidden("spec", _MAY_CHANGE)]


def _fixed(spec: Object) -> Object:
    """What of a Pod's spec stays."""
    found = {k: v for k, v in spec.items() if k not in _CHECKED}
    for field in _LISTS:
        found[field] = [{k: v for k, v in c.items() if k != "image"} for c in spec.get(field) or ()]
    return found


def _deadline(before: int | None, after: int | None) -> list[Cause]:
    path = "spec.activeDeadlineSeconds"
    if after is None:
        text = "must not update from a positive integer to nil value"
        return [] if before is None else [messages.invalid(path, None, text)]
    if not 0 <= after <= _MOST:
        return [messages.invalid(path, after, f"must be between 0 and {_MOST}, inclusive")]
    if before is not None and after > before:
        return [messages.invalid(path, after, "must be less than or equal to previous value")]
    return []


def _tolerations(before: list[Object], after: list[Object]) -> list[Cause]:
    def bare(toleration: Object) -> Object:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}

    there = [bare(t) for t in after]
    if all(bare(t) in there for t in before):
        return []
    text = "existing toleration can not be modified except its tolerationSeconds"
    return [messages.forbidden("spec.tolerations", text)]


def _gates(before: list[Object], after: list[Object]) -> list[Cause]:
    known = {gate.get("name") for gate in before}
    return [
        messages.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(after)
        if gate.get("name") not in known
    ]


def _placement(fixed: Object, now: Object) -> list[Cause]:
    """Of a gated Pod: it may be confined to fewer nodes. What is looked at here is taken out of both."""
    causes = []
    was, wanted = fixed.pop("nodeSelector", None) or {}, now.pop("nodeSelector", None) or {}
    if not was.items() <= wanted.items():
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        causes.append(messages.invalid("spec.nodeSelector", wanted, text))
    before, after = _take_affinity(fixed), _take_affinity(now)
    if before and len(before) != len(after):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*causes, messages.invalid(_TERMS, after, text)]
    for index, term in enumerate(before):
        if not _only_more(term, after[index]):
            text = "only additions are allowed (no mutations or deletions)"
            causes.append(messages.invalid(f"{_TERMS}[{index}]", after[index], text))
    return causes


def _take_affinity(spec: Object) -> list[Object]:
    """The terms that a node has to meet; node affinity is taken out of the spec."""
    affinity = dict(spec.pop("affinity", None) or {})
    found = affinity.pop("nodeAffinity", None) or {}
    if affinity:
        spec["affinity"] = affinity
    required = found.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Object] = required.get("nodeSelectorTerms") or []
    return terms


def _only_more(before: Object, after: Object) -> bool:
    parts = [(before.get(f) or [], after.get(f) or []) for f in ("matchExpressions", "matchFields")]
    if not any(old for old, _ in parts):
        return not any(new for _, new in parts)
    return all(new[: len(old)] == old for old, new in parts)


def carry_status(old: Object, new: Object) -> None:
    """The class of service stays, for kubelets that forget it."""
    quality = _class(old)
    if quality and not _class(new):
        new.setdefault("status", {})["qosClass"] = quality


def check_status(old: Object, new: Object) -> list[Cause]:
    before, after = _class(old), _class(new)
    return [messages.invalid("status.qosClass", after, "field is immutable")] if before and before != after else []


def _class(pod: Object) -> Any:
    return (pod.get("status") or {}).get("qosClass")
