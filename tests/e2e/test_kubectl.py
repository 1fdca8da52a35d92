"""What kubectl and the Python client do with a workspace: each kubectl there is, over one running fleet.

Kubectls: $KUBECTL, the one on PATH, and the one that was built for real clusters, if it was.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, dynamic, watch
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from support.kubectls import KUBECTLS
from support.plane import Plane, environment, kubectl_program

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
WEB = "root:shop:web"
LAB = "root:lab"
OPEN = "root:lab:open"
"""Where writes are commits."""
TOKENS = 'bob-token,bob,1,"lab"\neve-token,eve,2\n'

WIDGETS = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.w.example}
spec:
  group: w.example
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wi], categories: [all]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.mode}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Mode, type: string, jsonPath: .spec.mode}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Wide, type: string, jsonPath: .spec.wide, priority: 1}
    schema:
      openAPIV3Schema:
        description: A widget of the lab.
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [mode]
            properties:
              mode: {type: string, enum: [a, b], description: How it works.}
              replicas: {type: integer, default: 2, minimum: 0}
              wide: {type: string, default: broad}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: w.example/v1beta1 is old
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
{apiVersion: w.example/v1, kind: Widget, metadata: {name: one, labels: {tier: front}}, spec: {mode: a}}
---
{apiVersion: w.example/v1beta1, kind: Widget, metadata: {name: two}, spec: {mode: b}}
"""

ACCESS = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lab}
rules:
- {nonResourceURLs: [/], verbs: [access]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lab}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lab}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: lab}]
"""

MANY = "".join(
    f"---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{i:02}, labels: {{odd: '{i % 2}'}}}}}}\n"
    for i in range(25)
)

TENANCY = "apiVersion: tenancy.kcp.io/v1alpha1\n"
FILES = {
    "workspace.yaml": "",
    "widgets.yaml": WIDGETS,
    "access.yaml": ACCESS,
    "many.yaml": MANY,
    "types.yaml": f"{TENANCY}kind: WorkspaceType\nmetadata: {{name: committed}}\nspec: {{writes: Commit}}\n",
    "open/workspace.yaml": f"{TENANCY}kind: Workspace\nspec: {{type: {{name: committed, path: 'root:lab'}}}}\n",
    "open/widgets.yaml": WIDGETS,
    "open/many.yaml": MANY,
    "never/workspace.yaml": "",
    "never/thing.yaml": "{apiVersion: nosuch.example/v1, kind: Thing, metadata: {name: a}}\n",
}

CHANGED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c01}\ndata: {k: changed}\n"
NEW = CHANGED.replace("c01", "new")
LEASE = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: lock}\nspec: {holderIdentity: me}\n"


@dataclass(frozen=True, slots=True)
class Kubectl:
    """`kubectl("get", "cm")` is its standard output, `kubectl.refused(…)` its standard error."""

    program: str
    served: Plane
    cache: Path
    workspace: str = LAB
    token: str = ""

    def at(self, workspace: str = LAB, token: str = "") -> Kubectl:
        return Kubectl(self.program, self.served, self.cache, workspace, token)

    def words(self, arguments: tuple[str, ...]) -> list[str]:
        server = f"https://127.0.0.1:{self.served.port}"
        if arguments[:2] != ("get", "--raw"):  # for which older ones drop the server's path
            server += f"/clusters/{self.workspace}"
        where = [self.program, "--cache-dir", str(self.cache), "--server", server]
        if not self.token:
            return [*where, "--kubeconfig", str(self.served.kubeconfig), *arguments]
        authority = str(self.served.data / "keys" / "ca.crt")
        return [*where, "--token", self.token, "--certificate-authority", authority, *arguments]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        words, more = self.words(arguments), environment(KUBECONFIG=os.devnull)
        return subprocess.run(words, input=stdin, env=more, capture_output=True, text=True, check=False, timeout=120)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)}: {done.stdout}"
        return done.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The example and a workspace `lab`. What tests change they change back."""
    folder = tmp_path_factory.mktemp("kubectl")
    fleet = Path(shutil.copytree(EXAMPLE, folder / "fleet-repo"))
    for name, text in FILES.items():
        file = fleet / "workspaces" / "root" / "lab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "tokens.csv").write_text(TOKENS)
    with Plane(fleet, folder / "server" / "data", "--token-auth-file", str(folder / "tokens.csv")) as server:
        yield server


@pytest.fixture(scope="module", params=KUBECTLS.values(), ids=list(KUBECTLS))
def kubectl(request: pytest.FixtureRequest, served: Plane, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(request.param or kubectl_program(), served, tmp_path_factory.mktemp("cache"))


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# -- reading


def test_discovery_and_explain(kubectl: Kubectl) -> None:
    kinds = kubectl("api-resources", "--no-headers")
    for line in ("configmaps +cm +v1 +true +ConfigMap", "widgets +wi +w.example/v1 +true +Widget",
                 "workspaces +ws +tenancy.kcp.io/v1alpha1 +false +Workspace"):  # fmt: skip
        assert re.search(f"(?m)^{line}$", kinds)
    assert "deployments" not in kinds
    assert "deployments" in kubectl.at(WEB)("api-resources")
    assert {"v1", "w.example/v1", "w.example/v1beta1"} <= set(kubectl("api-versions").split())

    assert "data\t<map[string]string>" in kubectl("explain", "configmap")
    assert "A widget of the lab." in kubectl("explain", "widget")
    assert "how many commits of the" in kubectl("explain", "workspace.status.lag")
    assert "CommitApplied:" in kubectl("explain", "workspace.status.conditions")
    assert "How it works." in kubectl("explain", "widget.spec.mode")
    assert "replicas\t<integer>" in kubectl.at(WEB)("explain", "deployment.spec")
    assert "how much it may hold" in kubectl.at(WEB)("explain", "database.spec.size")


def test_tables(kubectl: Kubectl) -> None:
    assert rows(kubectl("get", "wi")) == [["NAME", "MODE", "REPLICAS", "READY"], ["one", "a", "2"], ["two", "b", "2"]]
    assert rows(kubectl("get", "wi", "one", "-o", "wide"))[1] == ["one", "a", "2", "broad"]
    assert "widget.w.example/one" in kubectl("get", "all", "-o", "name")
    web = rows(kubectl.at(WEB)("get", "deploy,svc,ing", "-o", "wide"))
    assert web[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert ["NAME", "CLASS", "HOSTS", "ADDRESS", "PORTS", "AGE"] in web
    workspaces = rows(kubectl.at("root")("get", "ws"))
    assert workspaces[0] == ["NAME", "TYPE", "REGION", "PHASE", "COMMIT", "PINNED", "HELD", "LAG", "URL", "AGE"]


def test_other_forms(kubectl: Kubectl) -> None:
    one = json.loads(kubectl("get", "wi", "one", "-o", "json"))
    assert one["spec"] == {"mode": "a", "replicas": 2, "wide": "broad"}
    assert one["metadata"]["annotations"]["treeplane.dev/source-path"] == "workspaces/root/lab/widgets.yaml"
    assert kubectl("get", "wi", "-o", "custom-columns=M:.spec.mode", "--no-headers").split() == ["a", "b"]
    assert kubectl("get", "wi", "--sort-by=.spec.mode", "-o", "name").split()[0] == "widget.w.example/one"
    assert "kind: Widget" in kubectl("get", "wi", "one", "-o", "yaml")
    assert "Mode:" in kubectl("describe", "wi", "one")
    scale = json.loads(kubectl("get", "wi", "one", "--subresource=scale", "-o", "json"))
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    old = kubectl.run("get", "widgets.v1beta1.w.example", "two", "-o", "jsonpath={.apiVersion}")
    assert (old.stdout, "w.example/v1beta1 is old" in old.stderr) == ("w.example/v1beta1", True)


def test_pages_and_selectors(kubectl: Kubectl) -> None:
    assert len(kubectl("get", "cm", "--chunk-size=7", "-o", "name").split()) == 25
    assert len(kubectl("get", "cm", "-l", "odd=1", "-o", "name").split()) == 12
    assert len(kubectl("get", "cm", "-l", "odd notin (1)", "-o", "name").split()) == 13
    assert kubectl("get", "cm", "--field-selector", "metadata.name=c03", "-o", "name") == "configmap/c03\n"
    assert kubectl("get", "wi", "--field-selector", "spec.mode=b", "-o", "name") == "widget.w.example/two\n"
    said = kubectl.refused("get", "cm", "--field-selector", "data.x=1")
    assert '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"' in said
    assert 'Error from server (NotFound): configmaps "nope" not found' in kubectl.refused("get", "cm", "nope")


def test_waiting(kubectl: Kubectl) -> None:
    web = kubectl.at(WEB)
    assert "successfully rolled out" in web("rollout", "status", "deployment/web", "--timeout=60s")
    assert "condition met" in web("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    assert "timed out" in web.refused("wait", "--for=condition=Never", "deployment/web", "--timeout=1s")
    assert "condition met" in kubectl("wait", "--for=condition=Established", "crd/widgets.w.example")


def test_watching_what_a_client_writes(kubectl: Kubectl) -> None:
    words = kubectl.words(("get", "leases", "--watch", "-l", "seen=yes", "-o", "jsonpath={.metadata.labels}{'\\n'}"))
    with subprocess.Popen(words, env=environment(KUBECONFIG=os.devnull), stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            assert "lock created" in kubectl("create", "-f", "-", stdin=LEASE)
            assert "lock labeled" in kubectl("label", "lease", "lock", "seen=yes")
            assert json.loads(watching.stdout.readline()) == {"seen": "yes"}
        finally:
            watching.terminate()
    assert "me" in kubectl("get", "lease", "lock")
    assert 'leases.coordination.k8s.io "lock" already exists' in kubectl.refused("create", "-f", "-", stdin=LEASE)
    assert "deleted" in kubectl("delete", "lease", "lock")


# -- writing


def test_dry_runs(kubectl: Kubectl) -> None:
    kubectl = kubectl.at(OPEN)
    dry = ("--dry-run=server", "-o", "jsonpath={.data.k}")
    assert kubectl("create", "-f", "-", *dry, stdin=NEW) == "changed"
    assert kubectl("apply", "-f", "-", *dry, stdin=NEW) == "changed"
    assert kubectl("apply", "-f", "-", *dry, stdin=CHANGED) == "changed"
    assert kubectl("apply", "--server-side", "-f", "-", *dry, stdin=CHANGED) == "changed"
    assert "k: changed" in kubectl.run("diff", "-f", "-", stdin=CHANGED).stdout
    assert kubectl("patch", "cm", "c01", "-p", '{"data":{"k":"v"}}', *dry) == "v"
    assert kubectl("patch", "cm", "c01", "--type=merge", "-p", '{"data":{"k":"v"}}', *dry) == "v"
    add = '[{"op":"add","path":"/data","value":{"k":"v"}}]'
    assert kubectl("patch", "cm", "c01", "--type=json", "-p", add, *dry) == "v"
    assert "deleted (server dry run)" in kubectl("delete", "cm", "c01", "--dry-run=server").replace(
        "deleted from default namespace", "deleted"
    )
    secret = ("create", "secret", "generic", "s", "--from-literal=a=b", "--dry-run=server", "-o", "jsonpath={.data.a}")
    assert kubectl(*secret) == "Yg=="
    assert kubectl("get", "cm", "c01", "-o", "jsonpath={.data}") == ""


def test_what_is_wrong_with_an_object(kubectl: Kubectl) -> None:
    kubectl = kubectl.at(OPEN)
    patch = ("patch", "wi", "one", "--dry-run=server", "-p")
    said = kubectl.refused(*patch, '{"spec":{"mode":"z"}}', "--type=merge")
    assert 'The Widget "one" is invalid: spec.mode: Unsupported value: "z": supported values: "a", "b"' in said
    assert "strategic-merge-patch+json is not supported" in kubectl.refused(*patch, '{"spec":{"mode":"b"}}')
    create = ("create", "--dry-run=server", "-f", "-")
    assert 'unknown field "dat"' in kubectl.refused(*create, stdin=NEW.replace("data:", "dat:"))
    assert 'namespaces "nope" not found' in kubectl.refused(*create, "-n", "nope", stdin=NEW)
    assert 'configmaps "c01" already exists' in kubectl.refused(*create, stdin=CHANGED)
    assert "cannot unmarshal" in kubectl.refused(*create, "--validate=false", stdin=NEW.replace("changed", "[]"))


REFUSED = [
    (LAB, "apply -f -", "lab/many.yaml"),
    (LAB, "apply --server-side -f -", "lab/many.yaml"),
    (LAB, "replace -f -", "lab/many.yaml"),
    (LAB, "delete cm c01", "lab/many.yaml"),
    (LAB, "annotate cm c01 a=b", "lab/many.yaml"),
    (LAB, "scale widget one --replicas=3", "lab/widgets.yaml"),
    (LAB, "create namespace new", "add a manifest to workspaces/root/lab"),
    (WEB, "set image deployment/web web=other:1", "shop/web/deployment.yaml"),
    (WEB, "rollout restart deployment/web", "shop/web/deployment.yaml"),
    (WEB, "set image deployment/web web=other:1 --dry-run=server", "shop/web/deployment.yaml"),
    (LAB, "apply --dry-run=server -f -", "lab/many.yaml"),
    (LAB, "diff -f -", "lab/many.yaml"),
    ("root", "delete workspace lab", "lab/workspace.yaml"),
]


@pytest.mark.parametrize(("workspace", "command", "file"), REFUSED, ids=[command for _, command, _ in REFUSED])
def test_refused_writes_name_the_file(kubectl: Kubectl, workspace: str, command: str, file: str) -> None:
    said = kubectl.at(workspace).refused(*command.split(), stdin=CHANGED)
    assert "forbidden: this fleet is changed in git, not here" in said
    assert file in said


CONNECTIONS = [
    (WEB, "logs deployment/web", "kubectl logs is not supported"),
    (WEB, "exec deploy/web -- ls", "kubectl exec is not supported"),
    (WEB, "attach deploy/web", "kubectl attach is not supported"),
    (WEB, "port-forward service/web :80", "kubectl port-forward is not supported"),
    (WEB, "top pods", "Metrics API not available"),
    (LAB, "cp some:/etc/hosts hosts", "pods are not served in workspace root:lab"),
    (LAB, "logs some", 'the server doesn\'t have a resource type "pods"'),
    (LAB, "top nodes", "Metrics API not available"),
]


@pytest.mark.parametrize(("workspace", "command", "said"), CONNECTIONS, ids=[f"{w} {c}" for w, c, _ in CONNECTIONS])
def test_what_needs_a_node_is_answered_at_once(kubectl: Kubectl, workspace: str, command: str, said: str) -> None:
    began = time.monotonic()
    assert said in kubectl.at(workspace).refused(*command.split())
    assert time.monotonic() - began < 20, "kubectl would wait for Pods for 20 or 60 seconds"


def test_statuses_are_written(kubectl: Kubectl) -> None:
    status = '{"status":{"conditions":[{"type":"Ready","status":"True"}]},"spec":{"mode":"b"}}'
    kubectl("patch", "wi", "one", "--subresource=status", "--type=merge", "-p", status)
    assert rows(kubectl("get", "wi", "one"))[1] == ["one", "a", "2", "True"]
    kubectl("patch", "wi", "one", "--subresource=status", "--type=merge", "-p", '{"status":null}')


# -- who may


def test_who_may_what(kubectl: Kubectl) -> None:
    bob = kubectl.at(token="bob-token")
    assert "bob" in bob("auth", "whoami")
    assert bob("auth", "can-i", "get", "cm") == "yes\n"
    assert bob.run("auth", "can-i", "delete", "cm").stdout == "no - access denied\n"
    assert ["configmaps", "[]", "[]", "[get", "list", "watch]"] in rows(bob("auth", "can-i", "--list"))
    assert kubectl.run("auth", "can-i", "get", "secrets", "--as=bob", "--as-group=lab").stdout == "no - access denied\n"
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"


def test_the_file_is_named_to_those_only_who_may_write(kubectl: Kubectl) -> None:
    bob, eve = kubectl.at(token="bob-token"), kubectl.at(token="eve-token")
    assert bob("get", "cm", "c01", "-o", "name") == "configmap/c01\n"
    said = bob.refused("delete", "cm", "c01")
    assert 'configmaps "c01" is forbidden: User "bob" cannot delete resource "configmaps"' in said
    assert "many.yaml" not in said
    assert 'User "eve" cannot' in eve.refused("get", "--raw", f"/clusters/{LAB}/api/v1/configmaps")
    for elsewhere in ("root", WEB, "root:nowhere", "*"):
        denied = bob.refused("get", "--raw", f"/clusters/{elsewhere}/api/v1/configmaps")
        assert "access denied" in denied
    everywhere = json.loads(kubectl.at("*")("get", "cm", "-A", "-o", "json"))["items"]
    assert len({c["metadata"]["annotations"]["kcp.io/cluster"] for c in everywhere}) > 2
    assert "Unauthorized" in kubectl.at(token="wrong").refused("get", "--raw", f"/clusters/{LAB}/api")


def test_a_workspace_that_needs_a_commit_says_which_file(kubectl: Kubectl) -> None:
    said = kubectl.at("root:lab:never").refused("get", "cm")
    assert "lab/never/thing.yaml:1: no kind" in said
    assert "ServiceUnavailable" in said


# -- the Python client: legacy discovery, models that refuse what is missing


def python(served: Plane, workspace: str) -> client.ApiClient:
    configuration = client.Configuration()
    configuration.host = f"https://127.0.0.1:{served.port}/clusters/{workspace}"
    keys = served.data / "keys"
    configuration.ssl_ca_cert, configuration.cert_file = str(keys / "ca.crt"), str(keys / "admin.crt")
    configuration.key_file = str(keys / "admin.key")
    return client.ApiClient(configuration)


def test_the_python_client_reads(served: Plane) -> None:
    lab, core = python(served, LAB), client.CoreV1Api(python(served, LAB))
    first = core.list_namespaced_config_map("default", limit=10)
    assert (len(first.items), first.metadata.remaining_item_count) == (10, 15)
    second = core.list_namespaced_config_map("default", limit=20, _continue=first.metadata._continue)
    assert (len(second.items), second.metadata.resource_version) == (15, first.metadata.resource_version)
    widgets = dynamic.DynamicClient(lab).resources.get(api_version="w.example/v1", kind="Widget")
    assert [w.spec.replicas for w in widgets.get(namespace="default").items] == [2, 2]
    apps = client.AppsV1Api(python(served, WEB))
    assert apps.read_namespaced_deployment("web", "default").spec.strategy.type == "RollingUpdate"
    with pytest.raises(client.ApiException) as expired:
        next(watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version="1", timeout_seconds=5))
    assert (expired.value.status, expired.value.reason.partition(":")[0]) == (410, "Expired")


def test_the_python_client_elects_a_leader_and_writes_events(served: Plane, eventually: Any) -> None:
    lab = python(served, LAB)
    client.Configuration.set_default(lab.configuration)
    leading, ended = threading.Event(), threading.Event()
    config = electionconfig.Config(
        LeaseLock("leader", "default", "me"), 3, 2, 1, onstarted_leading=leading.set, onstopped_leading=ended.set
    )

    def elect() -> None:
        with suppress(Exception):  # it has no way to be told to stop
            leaderelection.LeaderElection(config).run()

    threading.Thread(target=elect, daemon=True).start()
    assert leading.wait(60)
    lease = client.CoordinationV1Api(lab).read_namespaced_lease("leader", "default")
    assert lease.spec.holder_identity == "me"

    about = client.V1ObjectReference(kind="ConfigMap", name="c01", namespace="default")
    event = client.CoreV1Event(
        metadata=client.V1ObjectMeta(generate_name="e-"), involved_object=about, reason="Seen", message="hello"
    )
    core = client.CoreV1Api(lab)
    made = core.create_namespaced_event("default", event)
    found = core.list_namespaced_event("default", field_selector="involvedObject.name=c01").items
    assert [(e.metadata.name, e.message) for e in found] == [(made.metadata.name, "hello")]
    core.delete_namespaced_event(made.metadata.name, "default")
