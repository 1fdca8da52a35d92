"""Kinds by which an API server is told what to do: definitions, aggregation, admission, flow control, Leases."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import apis as rules_apis
from apiserver.registry.behaviours import definitions as rules_definitions
from apiserver.registry.behaviours import flowcontrol as rules_flowcontrol
from apiserver.registry.behaviours import limits as rules_limits
from apiserver.registry.behaviours import webhooks as rules_webhooks
from apiserver.registry.builtins import conditiontypes
from apiserver.registry.builtins.entry import BuiltinKind, Runtime
from apiserver.registry.printers import control as shown_control
from apiserver.registry.printers import core as shown_core

KINDS = (
    BuiltinKind(
        "MutatingAdmissionPolicy",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        behaviour=rules_webhooks.MUTATING_ADMISSION_POLICY,
        generation=True,
        everywhere=True,
        hashed_as="admissionregistration.k8s.io/v1beta1",
        printer=shown_control.MUTATING_ADMISSION_POLICY,
        put_revised=True,
        unenforced="no write is changed by it",
    ),
    BuiltinKind(
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        behaviour=rules_webhooks.MUTATING_ADMISSION_POLICY_BINDING,
        generation=True,
        everywhere=True,
        hashed_as="admissionregistration.k8s.io/v1beta1",
        printer=shown_control.BINDING,
        put_revised=True,
        unenforced="no write is changed by its policy",
    ),
    BuiltinKind(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        behaviour=rules_webhooks.WEBHOOKS,
        generation=True,
        everywhere=True,
        printer=shown_control.WEBHOOKS,
        put_revised=True,
        unenforced="its webhooks are not called",
    ),
    BuiltinKind(
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        behaviour=rules_webhooks.VALIDATING_ADMISSION_POLICY,
        generation=True,
        everywhere=True,
        printer=shown_control.VALIDATING_ADMISSION_POLICY,
        put_revised=True,
        status_takes=(),
        unenforced="no write is refused by it",
    ),
    BuiltinKind(
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        behaviour=rules_webhooks.VALIDATING_ADMISSION_POLICY_BINDING,
        generation=True,
        everywhere=True,
        printer=shown_control.BINDING,
        put_revised=True,
        unenforced="no write is refused by its policy",
    ),
    BuiltinKind(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        behaviour=rules_webhooks.WEBHOOKS,
        generation=True,
        everywhere=True,
        printer=shown_control.WEBHOOKS,
        put_revised=True,
        unenforced="its webhooks are not called",
    ),
    BuiltinKind(
        "CustomResourceDefinition",
        "customresourcedefinitions.apiextensions.k8s.io",
        behaviour=rules_definitions.CUSTOM_RESOURCE_DEFINITION,
        generation=True,
        everywhere=True,
        hashed_as="apiextensions.k8s.io/v1beta1",
        printer=shown_core.AS_CREATED,
        put_revised=True,
        computed_status=True,
        defines_kinds=True,
        conditions=conditiontypes.DEFINITION,
    ),
    BuiltinKind(
        "APIService",
        "apiservices.apiregistration.k8s.io",
        behaviour=rules_apis.API_SERVICE,
        names=names.path_segment,
        printer=shown_control.API_SERVICE,
        put_revised=True,
        status_takes=(),
        conditions=conditiontypes.API_SERVICE,
    ),
    BuiltinKind(
        "Lease",
        "leases.coordination.k8s.io",
        behaviour=rules_limits.LEASE,
        everywhere=True,
        printer=shown_core.LEASE,
        put_creates=True,
        put_revised=True,
        runtime=Runtime.ALWAYS,
    ),
    BuiltinKind(
        "FlowSchema",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        behaviour=rules_flowcontrol.FLOW_SCHEMA,
        generation=True,
        printer=shown_control.FLOW_SCHEMA,
        status_takes=(),
        unenforced="requests are not sorted by it",
        conditions=conditiontypes.FLOW_SCHEMA,
    ),
    BuiltinKind(
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        behaviour=rules_flowcontrol.PRIORITY_LEVEL_CONFIGURATION,
        generation=True,
        printer=shown_control.PRIORITY_LEVEL_CONFIGURATION,
        status_takes=(),
        unenforced="requests are not limited by it",
    ),
)
