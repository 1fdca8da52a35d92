"""CustomResourceDefinitions of Kubernetes' own groups."""

from typing import Any

import pytest

from apiserver.registry.behaviours import approvals

SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
WANTED = 'protected groups must have approval annotation "api-approved.kubernetes.io"'
URL = "https://github.com/kubernetes-sigs/gateway-api/pull/1"


def crd(group: str, value: str | None = None) -> dict[str, Any]:
    annotations = {} if value is None else {"annotations": {approvals.ANNOTATION: value}}
    return {"metadata": {"name": "a", **annotations}, "spec": {"group": group}}


@pytest.mark.parametrize("group", ["example.io", "k8s.io.example", "xk8s.io"])
def test_other_groups_need_no_approval(group: str) -> None:
    assert (approvals.check(crd(group)), approvals.condition(crd(group), "")) == ([], [])


@pytest.mark.parametrize(
    ("value", "error", "status", "reason", "message"),
    [
        (None, "Required value", "False", "MissingAnnotation", f"{WANTED}, {SEE}"),
        ("", "Required value", "False", "MissingAnnotation", f"{WANTED}, {SEE}"),
        ("yes", 'Invalid value: "yes"', "False", "InvalidAnnotation",
         f'{WANTED} with either a URL or a reason starting with "unapproved", {SEE}'),
        ("unapproved, tried out", "", "False", "UnapprovedAnnotation", 'not approved: "unapproved, tried out"'),
        (URL, "", "True", "ApprovedAnnotation", f"approved in {URL}"),
    ],
)  # fmt: skip
def test_kubernetes_groups(value: str | None, error: str, status: str, reason: str, message: str) -> None:
    for group in ("k8s.io", "gateway.networking.k8s.io", "x.kubernetes.io"):
        found = [c.message for c in approvals.check(crd(group, value))]
        assert found == ([f"{error}: {message}"] if error else [])
        [condition] = approvals.condition(crd(group, value), "2026-01-01T00:00:00Z")
        assert (condition["status"], condition["reason"], condition["message"]) == (status, reason, message)
        assert condition["type"] == "KubernetesAPIApprovalPolicyConformant"
