"""What kube-apiserver says of where Pods want to run without refusing it. Called by podwarnings."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.registry.behaviours.base import Object

_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_NO_POD = "a null labelSelector results in matching no pod"
_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}


def of_nodes(at: str, spec: Object) -> Iterator[str]:
    """Of the nodes that a spec at `at` asks for: labels that are called otherwise by now, spreads over no Pod."""
    yield from _nodes(at, spec)
    yield from _spread(at, spec)


def _nodes(at: str, spec: Object) -> Iterator[str]:
    for key in spec.get("nodeSelector") or {}:
        if key in _NODE_LABELS:
            yield f"{at}.nodeSelector[{key}]: {_NODE_LABELS[key]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = [
        (f"{at}.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[{i}]", term)
        for i, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ())
    ]
    terms += [
        (f"{at}.affinity.nodeAffinity.{_PREFERRED}[{i}].preference", each.get("preference") or {})
        for i, each in enumerate(affinity.get(_PREFERRED) or ())
    ]
    for where, term in terms:
        for index, expression in enumerate(term.get("matchExpressions") or ()):
            key = expression.get("key")
            if key in _NODE_LABELS:
                yield f"{where}.matchExpressions[{index}].key: {key} is {_NODE_LABELS[key]}"


def _spread(at: str, spec: Object) -> Iterator[str]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where, key = f"{at}.topologySpreadConstraints[{index}]", constraint.get("topologyKey")
        if key in _NODE_LABELS:
            yield f"{where}.topologyKey: {key} is {_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{where}.labelSelector: {_NO_POD}"


def of_other_pods(at: str, affinity: Object) -> Iterator[str]:
    """Of the Pods that an affinity at `at` speaks of."""
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        for index, term in enumerate(found.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at}.{kind}.{_REQUIRED}[{index}].labelSelector: {_NO_POD}"
        for index, weighted in enumerate(found.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{at}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_POD}"
