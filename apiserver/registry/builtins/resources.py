"""What Pods are given: devices, runtimes, priorities."""

from __future__ import annotations

from apiserver.registry.behaviours import addresses as rules_addresses
from apiserver.registry.behaviours import apis as rules_apis
from apiserver.registry.behaviours import limits as rules_limits
from apiserver.registry.builtins.entry import BuiltinKind
from apiserver.registry.printers import capacity as shown_capacity
from apiserver.registry.printers import control as shown_control

KINDS = (
    BuiltinKind(
        "RuntimeClass",
        "runtimeclasses.node.k8s.io",
        behaviour=rules_addresses.RUNTIME_CLASS,
        printer=shown_capacity.RUNTIME_CLASS,
        put_creates=True,
        put_revised=True,
    ),
    BuiltinKind(
        "DeviceClass",
        "deviceclasses.resource.k8s.io",
        generation=True,
        answers_deleted=True,
    ),
    BuiltinKind(
        "ResourceClaim",
        "resourceclaims.resource.k8s.io",
        behaviour=rules_apis.RESOURCE_CLAIM,
        printer=shown_control.RESOURCE_CLAIM,
        status_takes=(),
        answers_deleted=True,
    ),
    BuiltinKind(
        "ResourceClaimTemplate",
        "resourceclaimtemplates.resource.k8s.io",
        behaviour=rules_apis.RESOURCE_CLAIM_TEMPLATE,
        answers_deleted=True,
    ),
    BuiltinKind(
        "ResourceSlice",
        "resourceslices.resource.k8s.io",
        behaviour=rules_apis.RESOURCE_SLICE,
        generation=True,
        selectable=("spec.driver", "spec.nodeName"),
        unselectable="field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
        printer=shown_control.RESOURCE_SLICE,
        answers_deleted=True,
    ),
    BuiltinKind(
        "PriorityClass",
        "priorityclasses.scheduling.k8s.io",
        behaviour=rules_limits.PRIORITY_CLASS,
        generation=True,
        printer=shown_capacity.PRIORITY_CLASS,
        vetted_by="Priority",
    ),
)
