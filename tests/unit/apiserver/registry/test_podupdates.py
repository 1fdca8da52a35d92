"""What of a Pod may change, in the words of a kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.registry.behaviours import podupdates

CONTAINERS = [{"name": "c", "image": "x"}]
TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
STAY = {"key": "a", "operator": "Exists", "tolerationSeconds": 5}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": CONTAINERS, **spec}}


def affinity(*keys: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


GATED = {"schedulingGates": [{"name": "g"}]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"containers": [{"name": "c", "image": "y"}]}),
        ({}, {"activeDeadlineSeconds": 5}),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}),
        ({"tolerations": [STAY]}, {"tolerations": [{**STAY, "tolerationSeconds": 9}, {"operator": "Exists"}]}),
        (GATED, {}),
        (GATED, {**GATED, "nodeSelector": {"a": "b"}}),
        ({**GATED, "nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "c": "d"}}),
        (GATED, {**GATED, "affinity": affinity("a")}),
        ({**GATED, "affinity": affinity("a")}, {**GATED, "affinity": affinity("a", "b")}),
    ],
)
def test_what_may_change(old: Any, new: Any) -> None:
    assert podupdates.check(pod(**old), pod(**new)) == []


@pytest.mark.parametrize(
    ("old", "new", "field", "text"),
    [
        ({}, {"containers": [*CONTAINERS, *CONTAINERS]}, "spec.containers",
         "Forbidden: pod updates may not add or remove containers"),
        ({}, {"containers": [{"name": "d", "image": "x"}]}, "spec", "Forbidden: pod updates may not change fields"),
        ({}, {"nodeSelector": {"a": "b"}}, "spec", "Forbidden: pod updates may not change fields"),
        ({}, {"nodeName": "n"}, "spec", "Forbidden: pod updates may not change fields"),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6}, "spec.activeDeadlineSeconds",
         "Invalid value: 6: must be less than or equal to previous value"),
        ({"activeDeadlineSeconds": 5}, {}, "spec.activeDeadlineSeconds",
         "Invalid value: null: must not update from a positive integer to nil value"),
        ({"tolerations": [STAY]}, {}, "spec.tolerations",
         "Forbidden: existing toleration can not be modified except its tolerationSeconds"),
        ({}, GATED, "spec.schedulingGates[0].name",
         "Forbidden: only deletion is allowed, but found new scheduling gate 'g'"),
        ({**GATED, "nodeSelector": {"a": "b"}}, {**GATED, "nodeSelector": {"a": "c"}}, "spec.nodeSelector",
         'Invalid value: {"a":"c"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)'),
        ({**GATED, "affinity": affinity("a")}, {**GATED, "affinity": affinity("b")}, f"{TERMS}[0]",
         "only additions are allowed (no mutations or deletions)"),
        ({**GATED, "affinity": affinity("a")}, GATED, TERMS,
         "no additions/deletions to non-empty NodeSelectorTerms list are allowed"),
    ],
)  # fmt: skip
def test_what_may_not(old: Any, new: Any, field: str, text: str) -> None:
    [cause] = podupdates.check(pod(**old), pod(**new))
    assert cause.field == field
    assert text in cause.message


def test_the_class_of_service_stays() -> None:
    old, new = {"status": {"qosClass": "Burstable"}}, {"status": {"phase": "Running"}}
    podupdates.carry_status(old, new)
    assert new["status"] == {"phase": "Running", "qosClass": "Burstable"}
    assert podupdates.check_status(old, new) == []
    [cause] = podupdates.check_status(old, {"status": {"qosClass": "Guaranteed"}})
    assert (cause.field, cause.message) == ("status.qosClass", 'Invalid value: "Guaranteed": field is immutable')
    assert podupdates.check_status({}, new) == []
