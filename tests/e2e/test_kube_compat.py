"""A workspace of type kube-compat, used with kubectl as a cluster without nodes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import Plane, PlaneError

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
LAB = "root:lab"
WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
"""
DECLARED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: declared}\ndata: {a: b}\n"

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("compat")
    fleet = Path(shutil.copytree(EXAMPLE, folder / "fleet-repo"))
    lab = fleet / "workspaces" / "root" / "lab"
    lab.mkdir()
    (lab / "workspace.yaml").write_text(WORKSPACE)
    (lab / "declared.yaml").write_text(DECLARED)
    with Plane(fleet, folder / "server" / "data") as server:
        yield server


@pytest.fixture
def kubectl(served: Plane) -> Kubectl:
    return lambda *arguments, **more: served.kubectl(*arguments, workspace=LAB, **more)


def found(kubectl: Kubectl, *what: str) -> Any:
    return json.loads(kubectl("get", *what, "-o", "json"))


CREATED = {
    "deployment": ("web", "--image=nginx", "--replicas=2"),
    "service nodeport": ("web", "--tcp=80"),
    "service clusterip": ("headless", "--clusterip=None", "--tcp=80"),
    "service externalname": ("outside", "--external-name=example.com"),
    "job": ("once", "--image=busybox"),
    "cronjob": ("often", "--image=busybox", "--schedule=*/5 * * * *"),
    "ingress": ("web", "--rule=web.example.com/=web:80"),
    "poddisruptionbudget": ("web", "--selector=app=web", "--min-available=1"),
    "priorityclass": ("high", "--value=1000"),
    "quota": ("small", "--hard=pods=3"),
    "configmap": ("plain", "--from-literal=a=b"),
    "secret generic": ("hidden", "--from-literal=a=b"),
    "serviceaccount": ("robot",),
    "role": ("reader", "--verb=get", "--resource=pods"),
    "clusterrole": ("reader", "--verb=get", "--resource=nodes"),
    "namespace": ("more",),
}
COLUMNS = {
    "deployments": ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"],
    "services": ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"],
    "jobs": ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"],
    "cronjobs": ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST", "SCHEDULE", "AGE"],
    "ingresses": ["NAME", "CLASS", "HOSTS", "ADDRESS", "PORTS", "AGE"],
    "poddisruptionbudgets": ["NAME", "MIN", "AVAILABLE", "MAX", "UNAVAILABLE", "ALLOWED", "DISRUPTIONS", "AGE"],
    "priorityclasses": ["NAME", "VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY"],
    "apiservices": ["NAME", "SERVICE", "AVAILABLE", "AGE"],
    "componentstatuses": ["NAME", "STATUS", "MESSAGE", "ERROR"],
    "endpointslices": ["NAME", "ADDRESSTYPE", "PORTS", "ENDPOINTS", "AGE"],
}


@pytest.fixture(scope="module")
def filled(served: Plane) -> None:
    for kind, arguments in CREATED.items():
        served.kubectl("create", *kind.split(), *arguments, workspace=LAB)


def test_a_namespace_starts_as_in_any_cluster(kubectl: Kubectl, eventually: Any) -> None:
    kubectl("create", "namespace", "fresh")
    assert eventually(lambda: kubectl("get", "serviceaccount", "default", "-n", "fresh", check=False))
    bundle = eventually(lambda: kubectl("get", "configmap", "kube-root-ca.crt", "-n", "fresh", check=False))
    assert bundle
    kubectl("delete", "configmap", "kube-root-ca.crt", "-n", "fresh")
    eventually(lambda: kubectl("get", "configmap", "kube-root-ca.crt", "-n", "fresh", check=False))
    assert "10.0.0.1" in kubectl("get", "service", "kubernetes")


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("kind", COLUMNS)
def test_tables_have_kubernetes_columns(kubectl: Kubectl, kind: str) -> None:
    head, *rows = kubectl("get", kind).splitlines()
    assert head.split() == COLUMNS[kind]
    assert rows


def test_every_kind_can_be_listed(kubectl: Kubectl) -> None:
    names = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert {
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "nodes",
        "persistentvolumes",
        "resourceclaims.resource.k8s.io",
    } <= set(names)
    kubectl("get", ",".join(names), "-A")


@pytest.mark.usefixtures("filled")
def test_services_get_addresses_and_ports_of_their_own(kubectl: Kubectl) -> None:
    spec = found(kubectl, "service", "web")["spec"]
    assert spec["clusterIP"].startswith("10.0.")
    assert 30000 <= spec["ports"][0]["nodePort"] <= 32767
    assert found(kubectl, "ipaddress", spec["clusterIP"])["spec"]["parentRef"]["name"] == "web"
    kubectl("expose", "deployment", "web", "--name=again", "--port=80")
    assert found(kubectl, "service", "again")["spec"]["clusterIP"] != spec["clusterIP"]
    with pytest.raises(PlaneError, match="may not change once set"):
        kubectl("patch", "service", "web", "-p", '{"spec": {"clusterIP": "10.0.0.99"}}')


@pytest.mark.usefixtures("filled")
def test_an_autoscaler_in_both_versions(kubectl: Kubectl) -> None:
    kubectl("autoscale", "deployment", "web", "--max=3", "--cpu-percent=50")
    old = json.loads(
        kubectl("get", "--raw", f"/clusters/{LAB}/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/web")
    )
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    new = found(kubectl, "hpa", "web")
    assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


@pytest.mark.usefixtures("filled")
def test_the_daily_round(kubectl: Kubectl) -> None:
    kubectl("scale", "deployment", "web", "--replicas=5")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("label", "deployment", "web", "tier=front")
    deployment = found(kubectl, "deployment", "web")
    assert deployment["spec"]["replicas"] == 5
    assert deployment["metadata"]["generation"] == 3
    assert deployment["metadata"]["annotations"]["treeplane.dev/origin"] == "runtime"
    job = found(kubectl, "job", "once")
    assert job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] == job["metadata"]["uid"]
    kubectl("create", "deployment", "brief", "--image=nginx")
    kubectl("delete", "deployment", "brief")
    assert "brief" not in kubectl("get", "deployments")


def test_a_node_is_drained(kubectl: Kubectl, tmp_path: Path) -> None:
    node, binding = tmp_path / "node.json", tmp_path / "binding.json"
    node.write_text(json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))
    binding.write_text(json.dumps({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "placed"},
                                   "target": {"kind": "Node", "name": "n1"}}))  # fmt: skip
    kubectl("create", "-f", str(node))
    for name in ("placed", "free"):
        kubectl("run", name, "--image=x", "--overrides", '{"spec": {"terminationGracePeriodSeconds": 0}}')
    path = f"/clusters/{LAB}/api/v1/namespaces/default/pods/placed/binding"
    kubectl("create", "--raw", path, "-f", str(binding))
    assert kubectl("logs", "free") == ""
    with pytest.raises(PlaneError, match="no connection to node"):
        kubectl("logs", "placed")
    with pytest.raises(PlaneError, match="pod free does not have a host assigned"):
        kubectl("get", "--raw", f"/clusters/{LAB}/api/v1/namespaces/default/pods/free/exec?command=ls")
    kubectl("debug", "free", "--image=busybox", "--container=look", "--attach=false")
    assert found(kubectl, "pod", "free")["spec"]["ephemeralContainers"][0]["name"] == "look"
    assert "node/n1 drained" in kubectl("drain", "n1", "--force")
    assert "placed" not in kubectl("get", "pods")
    assert "free" in kubectl("get", "pods")


def test_what_git_declares_stays_gits(kubectl: Kubectl) -> None:
    with pytest.raises(PlaneError, match=re.escape("edit workspaces/root/lab/declared.yaml, commit and push")):
        kubectl("annotate", "configmap", "declared", "a=b")
    assert "declared" in kubectl("get", "configmap", "declared")


def test_other_workspaces_are_as_they_were(served: Plane) -> None:
    with pytest.raises(PlaneError, match="this fleet is changed in git"):
        served.kubectl("create", "configmap", "a", workspace="root:shop:web")
    assert "runtimeclasses" not in served.kubectl("api-resources", "-o", "name", workspace="root:shop:web")
