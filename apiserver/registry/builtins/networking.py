"""Services' addresses and what leads to them: networking.k8s.io and discovery.k8s.io."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import addresses as rules_addresses
from apiserver.registry.behaviours import networking as rules_networking
from apiserver.registry.builtins import conditiontypes
from apiserver.registry.builtins.entry import BuiltinKind, Runtime, Sync
from apiserver.registry.printers import networking as shown_networking

KINDS = (
    BuiltinKind(
        "Ingress",
        "ingresses.networking.k8s.io",
        behaviour=rules_networking.INGRESS,
        generation=True,
        printer=shown_networking.INGRESS,
        plugins=("DefaultIngressClass",),
        sync=Sync.BOUND,
    ),
    BuiltinKind(
        "NetworkPolicy",
        "networkpolicies.networking.k8s.io",
        behaviour=rules_networking.NETWORK_POLICY,
        generation=True,
        printer=shown_networking.NETWORK_POLICY,
        sync=Sync.BOUND,
    ),
    BuiltinKind(
        "EndpointSlice",
        "endpointslices.discovery.k8s.io",
        behaviour=rules_addresses.ENDPOINT_SLICE,
        generation=True,
        labels_count=True,
        printer=shown_networking.ENDPOINT_SLICE,
        runtime=Runtime.OWN,
        made_alone=True,
    ),
    BuiltinKind(
        "IngressClass",
        "ingressclasses.networking.k8s.io",
        behaviour=rules_networking.INGRESS_CLASS,
        generation=True,
        printer=shown_networking.INGRESS_CLASS,
    ),
    BuiltinKind(
        "IPAddress",
        "ipaddresses.networking.k8s.io",
        behaviour=rules_addresses.IP_ADDRESS,
        names=names.ip_address,
        selectable=("spec.parentRef.name", "spec.parentRef.namespace", "spec.parentRef.resource"),
        printer=shown_networking.IP_ADDRESS,
        runtime=Runtime.OWN,
    ),
    BuiltinKind(
        "ServiceCIDR",
        "servicecidrs.networking.k8s.io",
        behaviour=rules_addresses.SERVICE_CIDR,
        printer=shown_networking.SERVICE_CIDR,
        status_takes=(),
        conditions=conditiontypes.SERVICE_CIDR,
    ),
)
