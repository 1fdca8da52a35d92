"""What a workspace with all of Kubernetes' kinds starts with, as a kube-apiserver makes it when it first starts.

Rendered at load like other computed objects. From then on they are runtime objects like those of clients, who may
change them; what is named here is put back when the workspace is next judged whole, as a kube-apiserver does when it
restarts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import orjson

from apiserver.auth import bootstrap as rbac
from apiserver.model.conditions import condition
from apiserver.model.marks import ORIGIN, RUNTIME
from apiserver.registry import apiservices, priorities
from apiserver.registry import servicenetwork as net
from apiserver.registry.kinds import kubernetes_builtins
from reconciler.plan import flowcontrol

Object = dict[str, Any]

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
_COMPONENTS = ("controller-manager", "etcd-0", "scheduler")
_AUTOUPDATE = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
_GROUP_PRIORITIES = {
    "": 18000,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "apps": 17800,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "coordination.k8s.io": 16500,
    "discovery.k8s.io": 16200,
    "events.k8s.io": 17750,
    "flowcontrol.apiserver.k8s.io": 16100,
    "networking.k8s.io": 17200,
    "node.k8s.io": 16300,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "resource.k8s.io": 16200,
    "scheduling.k8s.io": 16600,
    "storage.k8s.io": 16800,
}
_VERSION_PRIORITIES = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}


def objects(groups: dict[str, list[str]], at: str) -> list[Object]:
    """`groups`: the API groups of the workspace's built-in kinds, each with its versions. `at`: the time for
    conditions (RFC 3339). Objects may carry a status."""
    return [*_namespaces(), *_network(at), *_priorities(), *_components(), *_services(groups, at), *_flows(at),
            *_rbac()]  # fmt: skip


@cache
def digest() -> str:
    """Of all that such a workspace starts with: another one where this version of Treeplane ships something else."""
    return hashlib.sha256(orjson.dumps(objects(kubernetes_builtins().groups(), ""))).hexdigest()


def _object(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Object:
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if "labels" in content:
        metadata["labels"] = content.pop("labels")
    metadata["annotations"] = {ORIGIN: RUNTIME}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _namespaces() -> Iterator[Object]:
    for name in NAMESPACES:
        yield _object("v1", "Namespace", name)


def _network(at: str) -> Iterator[Object]:
    """The Service `kubernetes` and what belongs to it."""
    ready = condition("Ready", True, "", "the range of the cluster's first Services is ready", at=at)
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
    port = {"name": "https", "port": net.API_PORT, "protocol": "TCP"}
    networking = "networking.k8s.io/v1"
    yield _object(
        networking, "ServiceCIDR", "kubernetes", spec={"cidrs": [net.CIDR]}, status={"conditions": [dict(ready)]}
    )
    yield _object(networking, "IPAddress", net.KUBERNETES_ADDRESS, labels=labels, spec={"parentRef": parent})
    yield _object(
        "v1",
        "Service",
        "kubernetes",
        "default",
        labels={"component": "apiserver", "provider": "kubernetes"},
        spec={
            "type": "ClusterIP",
            "clusterIP": net.KUBERNETES_ADDRESS,
            "clusterIPs": [net.KUBERNETES_ADDRESS],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": net.API_PORT}],
        },
        status={"loadBalancer": {}},
    )
    yield _object(
        "v1",
        "Endpoints",
        "kubernetes",
        "default",
        labels={"endpointslice.kubernetes.io/skip-mirror": "true"},
        subsets=[{"addresses": [{"ip": net.API_ADDRESS}], "ports": [dict(port)]}],
    )
    yield _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "kubernetes",
        "default",
        labels={"kubernetes.io/service-name": "kubernetes"},
        addressType="IPv4",
        endpoints=[{"addresses": [net.API_ADDRESS], "conditions": {"ready": True}}],
        ports=[dict(port)],
    )


def _priorities() -> Iterator[Object]:
    for name, (value, description) in priorities.SYSTEM.items():
        yield _object("scheduling.k8s.io/v1", "PriorityClass", name, value=value, description=description)


def _components() -> Iterator[Object]:
    for name in _COMPONENTS:
        healthy = {"type": "Healthy", "status": "True", "message": "ok"}
        yield _object("v1", "ComponentStatus", name, conditions=[healthy])


def _services(groups: dict[str, list[str]], at: str) -> Iterator[Object]:
    """An APIService for every version of Kubernetes' own groups."""
    for group, versions in groups.items():
        for version in versions if group in _GROUP_PRIORITIES else ():
            yield _object(
                "apiregistration.k8s.io/v1",
                "APIService",
                f"{version}.{group}",
                labels={apiservices.LABEL: apiservices.STARTED},
                spec={
                    **({"group": group} if group else {}),
                    "version": version,
                    "groupPriorityMinimum": _GROUP_PRIORITIES[group],
                    "versionPriority": _VERSION_PRIORITIES.get((group, version), 15),
                },
                status={"conditions": [apiservices.available(at)]},
            )


def _flows(at: str) -> Iterator[Object]:
    for kind, name, content in flowcontrol.objects(at):
        made = _object(flowcontrol.API_VERSION, kind, name, **content)
        made["metadata"]["annotations"].update(flowcontrol.AUTOUPDATE)
        yield made


def _rbac() -> Iterator[Object]:
    """The roles that are in force everywhere, as objects, and those of a cluster's controllers; rules of aggregated
    ones come from their parts."""
    for manifest in (*rbac.CLUSTER_ROLES.values(), *rbac.CLUSTER_ROLE_BINDINGS, *rbac.cluster_manifests()):
        made = {**manifest, "metadata": {**manifest["metadata"], "annotations": {**_AUTOUPDATE, ORIGIN: RUNTIME}}}
        if "aggregationRule" in made:
            made.pop("rules", None)
        yield made
