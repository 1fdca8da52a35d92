"""What an ordinary workspace serves without a binding or a definition: exactly what kcp's does, each in one version."""

from __future__ import annotations

import pytest

from apiserver.admission import unenforced
from apiserver.registry import discovery
from apiserver.registry.kinds import kubernetes_builtins, workspace_builtins

SERVED = """
v1: configmaps events namespaces namespaces/finalize namespaces/status resourcequotas resourcequotas/status secrets
  serviceaccounts serviceaccounts/token
admissionregistration.k8s.io/v1: mutatingadmissionpolicies mutatingadmissionpolicybindings
  mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicies/status
  validatingadmissionpolicybindings validatingwebhookconfigurations
apiextensions.k8s.io/v1: customresourcedefinitions customresourcedefinitions/status
apis.kcp.io/v1alpha2: apibindings apibindings/status apiexports apiexports/status
apis.kcp.io/v1alpha1: apibindings apibindings/status apiexportendpointslices apiexportendpointslices/status
  apiexports apiexports/status apiresourceschemas
authentication.k8s.io/v1: selfsubjectreviews tokenreviews
authorization.k8s.io/v1: localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews
  subjectaccessreviews
certificates.k8s.io/v1: certificatesigningrequests certificatesigningrequests/approval
  certificatesigningrequests/status
coordination.k8s.io/v1: leases
core.kcp.io/v1alpha1: logicalclusters logicalclusters/status
events.k8s.io/v1: events
rbac.authorization.k8s.io/v1: clusterrolebindings clusterroles rolebindings roles
topology.kcp.io/v1alpha1: partitions partitionsets partitionsets/status
tenancy.kcp.io/v1alpha1: workspaces workspaces/status workspacetypes workspacetypes/status
"""


def _said() -> dict[str, list[str]]:
    lines = SERVED.strip().replace("\n  ", " ").splitlines()
    return {name: names.split() for name, _, names in (line.partition(": ") for line in lines)}


def test_discovery_names_exactly_these() -> None:
    kinds = workspace_builtins()
    found: dict[str, list[str]] = {}
    for group, versions in kinds.groups().items():
        for version in versions:
            document = discovery.api_resource_list(kinds, group, version)
            assert document is not None
            found[document["groupVersion"]] = sorted(resource["name"] for resource in document["resources"])
    assert found == {name: sorted(names) for name, names in _said().items()}


def test_each_group_has_one_version_but_that_of_exports_and_bindings() -> None:
    several = {group: versions for group, versions in workspace_builtins().groups().items() if len(versions) > 1}
    assert several == {"apis.kcp.io": ["v1alpha2", "v1alpha1"]}


@pytest.mark.parametrize(
    "resource",
    [
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ],
)
def test_who_writes_a_policy_or_webhook_is_told_that_it_is_not_enforced(resource: str) -> None:
    kind = workspace_builtins().preferred("admissionregistration.k8s.io", resource)
    assert kind is not None and "create" in kind.verbs
    [told] = unenforced.warnings(kind)
    assert told.startswith(f"{kind.kind} is stored but not enforced yet: ")


def test_limit_ranges_come_with_all_of_kubernetes_alone() -> None:
    assert workspace_builtins().preferred("", "limitranges") is None
    assert kubernetes_builtins().preferred("", "limitranges") is not None
