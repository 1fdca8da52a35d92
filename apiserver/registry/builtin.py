"""The kinds that are there without a CRD or binding: in every workspace, and in an embedded sync target."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from apiserver.model.keys import storage_name
from apiserver.registry.custom import kinds_of_crd
from apiserver.registry.facts import load
from apiserver.registry.generation import keeps_generation
from apiserver.registry.kindtable import KindTable
from apiserver.registry.printers import catalogue
from apiserver.registry.schemas import kubernetes_source
from apiserver.registry.served import Scale, ServedKind

WORKSPACE = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "configmaps",
        "customresourcedefinitions.apiextensions.k8s.io",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "localsubjectaccessreviews.authorization.k8s.io",
        "namespaces",
        "resourcequotas",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "secrets",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectreviews.authentication.k8s.io",
        "selfsubjectrulesreviews.authorization.k8s.io",
        "serviceaccounts",
        "subjectaccessreviews.authorization.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)
"""Kubernetes' own kinds in every workspace; workload kinds come by binding."""

_SAME_STORAGE = {"events.events.k8s.io": "events"}
_OTHER_VERSIONS = frozenset({("horizontalpodautoscalers.autoscaling", "v1")})
"""Versions in which objects are served and not stored."""
_DEPRECATED = {
    "componentstatuses": "v1 ComponentStatus is deprecated in v1.19+",
    "endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""What a Warning says to whoever uses the kind. It stays for now."""
_SCALE = Scale(".spec.replicas", ".status.replicas", ".status.selector")
_SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "replicationcontrollers": ("status.replicas",),
    "replicasets.apps": ("status.replicas",),
    "jobs.batch": ("status.successful",),
    "certificatesigningrequests.certificates.k8s.io": ("spec.signerName",),
    "ipaddresses.networking.k8s.io": ("spec.parentRef.name", "spec.parentRef.namespace", "spec.parentRef.resource"),
    "resourceslices.resource.k8s.io": ("spec.driver", "spec.nodeName"),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "events.events.k8s.io": (
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ),
}


@cache
def workspace_builtins() -> KindTable:
    """What every workspace serves: Kubernetes' data and RBAC kinds, reviews, and Treeplane's own kinds."""
    kinds = [k for k in _kubernetes() if k.qualified in WORKSPACE]
    return KindTable([*kinds, *_treeplane()])


@cache
def target_builtins() -> KindTable:
    """What an embedded sync target serves: every stable kind of Kubernetes."""
    return KindTable(_kubernetes())


@cache
def kubernetes_builtins() -> KindTable:
    """What a workspace serves whose type asks for all of Kubernetes: its every stable kind, and Treeplane's own."""
    return KindTable([*_kubernetes(), *_treeplane()])


KUBERNETES = "Kubernetes"
"""As `spec.builtins` of a WorkspaceType: all of Kubernetes' kinds."""


def builtins_of(name: str) -> KindTable:
    """The kinds that a workspace starts with, by the name that its WorkspaceRecord has for them ("": the usual)."""
    return kubernetes_builtins() if name == KUBERNETES else workspace_builtins()


@cache
def kubernetes_kind(group: str, resource: str, version: str) -> ServedKind | None:
    """Kubernetes' own kind of that name, whether or not a workspace has it."""
    return target_builtins().by_resource(group, version, resource)


def is_kubernetes(group: str, resource: str) -> bool:
    return target_builtins().preferred(group, resource) is not None


def _treeplane() -> list[ServedKind]:
    return [replace(kind, builtin=True) for crd in load.treeplane() for kind in kinds_of_crd(crd)]


@cache
def _kubernetes() -> tuple[ServedKind, ...]:
    facts = load.kubernetes()
    order = {group: at for at, group in enumerate(_GROUP_ORDER)}
    listed = sorted(facts["resources"], key=lambda r: (order.get(r["group"], len(order)), r["group"]))
    return tuple(_served(r) for r in listed)


_GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
)


def _served(fact: dict[str, Any]) -> ServedKind:
    name = storage_name(fact["group"], fact["resource"])
    source = kubernetes_source(fact["schema"])
    subresources = frozenset(fact["subresources"])
    stored = "get" in fact["verbs"]
    return ServedKind(
        group=fact["group"],
        version=fact["version"],
        resource=fact["resource"],
        singular=fact["singular"],
        kind=fact["kind"],
        list_kind=f"{fact['kind']}List",
        short_names=tuple(fact["short_names"]),
        categories=tuple(fact["categories"]),
        namespaced=fact["namespaced"],
        verbs=frozenset(fact["verbs"]),
        subresources=subresources,
        storage=_SAME_STORAGE.get(name, name) if stored else "",
        source=source,
        columns=catalogue.printer_of(name).columns,
        custom=False,
        builtin=True,
        generation=keeps_generation(name),
        storage_version=name not in _SAME_STORAGE and (name, fact["version"]) not in _OTHER_VERSIONS,
        scale=_SCALE if "scale" in subresources else None,
        selectable=_SELECTABLE.get(name, ()),
        deprecated=name in _DEPRECATED,
        deprecation_warning=_DEPRECATED.get(name, ""),
        digest=f"{source.digest}/{name}/{fact['version']}",
    )
