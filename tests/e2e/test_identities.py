"""Identities with real kubectl, in a kube-compat workspace: tokens, RBAC and its limits, acting as somebody else."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from support.plane import Plane, PlaneError, environment, kubectl_program

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
LAB = "root:lab"
WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
"""

RBAC = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot, namespace: default}]
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The example with a workspace `root:lab` that takes writes, and a user ann who may enter it and manage RBAC."""
    folder = tmp_path_factory.mktemp("identities")
    fleet = Path(copytree(EXAMPLE, folder / "fleet"))
    lab = fleet / "workspaces" / "root" / "lab"
    lab.mkdir()
    (lab / "workspace.yaml").write_text(WORKSPACE)
    tokens = folder / "tokens.csv"
    tokens.write_text("ann-token,ann,1,devs\n")
    with Plane(fleet, folder / "server" / "data", "--workers", "1", "--token-auth-file", str(tokens)) as server:
        kubectl(server, "create", "serviceaccount", "robot")
        kubectl(server, "apply", "-f", "-", text=RBAC)
        rules = ("--verb=get,list,create,update,patch,delete", "--resource=roles,rolebindings,configmaps")
        kubectl(server, "create", "clusterrole", "managers", *rules)
        kubectl(server, "create", "clusterrolebinding", "managers", "--clusterrole=managers", "--user=ann")
        binding = ("--clusterrole=system:kcp:workspace:access", "--user=ann")
        kubectl(server, "create", "clusterrolebinding", "access", *binding)
        # A controller makes it; tests know by it that a list is told.
        kubectl(server, "wait", "configmap/kube-root-ca.crt", "--for=create", "--timeout=60s")
        yield server


def kubectl(served: Plane, *arguments: str, text: str = "", token: str = "", workspace: str = LAB) -> str:
    """kubectl with standard input; by the administrator or the bearer of `token`."""
    if not text:
        return served.kubectl(*arguments, workspace=workspace, token=token)
    url = f"https://127.0.0.1:{served.port}/clusters/{workspace}"
    command = [kubectl_program(), *arguments, "--server", url]
    variables = environment(KUBECONFIG=str(served.kubeconfig))
    done = subprocess.run(command, env=variables, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PlaneError(done.stderr)
    return done.stdout


def whoami(served: Plane, token: str, workspace: str = LAB) -> Any:
    found = served.kubectl("auth", "whoami", "-o", "json", workspace=workspace, token=token)
    return json.loads(found)["status"]["userInfo"]


def test_a_token_is_made_and_used(served: Plane) -> None:
    token = kubectl(served, "create", "token", "robot", "--duration=15m").strip()
    user = whoami(served, token)
    assert user["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in user["groups"]
    assert "kube-root-ca.crt" in kubectl(served, "get", "configmaps", token=token)
    with pytest.raises(PlaneError, match=re.escape('User "system:serviceaccount:default:robot" cannot list')):
        kubectl(served, "get", "secrets", token=token)


def test_in_another_workspace_it_is_nobody(served: Plane) -> None:
    token = kubectl(served, "create", "token", "robot").strip()
    with pytest.raises(PlaneError, match='User "system:anonymous" cannot list'):
        path = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps"
        kubectl(served, "get", "--raw", path, token=token)


def test_a_token_secret_is_filled(served: Plane, eventually: Any) -> None:
    manifest = """\
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}
"""
    kubectl(served, "apply", "-f", "-", text=manifest)
    get = ("get", "secret", "robot-token", "-o", "jsonpath={.data.token}")
    token = base64.b64decode(eventually(lambda: kubectl(served, *get), 60)).decode()
    assert whoami(served, token)["username"] == "system:serviceaccount:default:robot"
    kubectl(served, "delete", "secret", "robot-token")
    with pytest.raises(PlaneError, match=r"(?i)unauthorized|logged in"):
        kubectl(served, "get", "configmaps", token=token)


def test_can_i(served: Plane) -> None:
    robot = "--as=system:serviceaccount:default:robot"
    assert kubectl(served, "auth", "can-i", "list", "configmaps", robot) == "yes\n"
    no = served.kubectl("auth", "can-i", "delete", "configmaps", robot, workspace=LAB, check=False)
    assert no == "no - access denied\n"
    assert kubectl(served, "auth", "can-i", "get", "/api", robot) == "yes\n"
    listed = kubectl(served, "auth", "can-i", "--list", robot)
    assert re.search(r"configmaps\s+\[\]\s+\[\]\s+\[get list\]", listed)


def test_acting_as_somebody_with_uid_groups_and_extra(served: Plane) -> None:
    arguments = ("--as=ann", "--as-group=devs", "--as-uid=7", "-o", "json")
    user = json.loads(kubectl(served, "auth", "whoami", *arguments))["status"]["userInfo"]
    assert (user["username"], user["uid"]) == ("ann", "7")
    assert set(user["groups"]) == {"devs", "system:authenticated"}
    with pytest.raises(PlaneError, match=re.escape('users "bea" is forbidden: User "ann" cannot impersonate')):
        kubectl(served, "get", "configmaps", "--as=bea", token="ann-token")


def test_nobody_grants_what_they_do_not_hold(served: Plane) -> None:
    create = ("create", "role", "thief", "--verb=get", "--resource=secrets")
    with pytest.raises(PlaneError, match="is attempting to grant RBAC permissions not currently held") as refused:
        kubectl(served, *create, token="ann-token")
    assert '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}' in str(refused.value)
    kubectl(served, "create", "role", "fair", "--verb=get", "--resource=configmaps", token="ann-token")
    with pytest.raises(PlaneError, match="not currently held"):
        kubectl(served, "create", "rolebinding", "b", "--clusterrole=admin", "--user=ann", token="ann-token")
    kubectl(served, "create", "rolebinding", "b", "--role=fair", "--user=bob", token="ann-token")


def test_reconcile(served: Plane, tmp_path: Path) -> None:
    file = tmp_path / "rbac.yaml"
    file.write_text(RBAC.replace("[get, list]", "[get, list, watch]"))
    said = kubectl(served, "auth", "reconcile", "-f", str(file), "--dry-run=client")
    assert "reader" in said
    get = ("get", "role", "reader", "-o", "jsonpath={.rules[*].verbs}")
    assert "watch" not in kubectl(served, *get)
    kubectl(served, "auth", "reconcile", "-f", str(file))
    assert "watch" in kubectl(served, *get)
    assert kubectl(served, "get", "role", "reader", "-o", "jsonpath={.rules[0].verbs[0]}") == "get"


def test_the_bootstrap_roles_are_there(served: Plane) -> None:
    listed = kubectl(served, "get", "clusterroles", "-o", "name")
    for name in ("cluster-admin", "admin", "edit", "view", "system:auth-delegator", "system:basic-user"):
        assert f"clusterrole.rbac.authorization.k8s.io/{name}\n" in listed
    assert "cluster-admin" in kubectl(served, "describe", "clusterrolebinding", "cluster-admin")


def test_others_can_verify_tokens(served: Plane) -> None:
    found = json.loads(kubectl(served, "get", "--raw", "/.well-known/openid-configuration"))
    assert found["issuer"] == "https://kcp.default.svc"
    keys = json.loads(kubectl(served, "get", "--raw", "/openid/v1/jwks"))["keys"]
    assert keys[0]["alg"] == "ES256"


def test_no_secret_is_in_what_the_server_writes(served: Plane) -> None:
    """Tokens, keys and Secrets stand in keys/ and the store, never in a log or in metrics."""
    token = kubectl(served, "create", "token", "robot").strip()
    kubectl(served, "create", "secret", "generic", "s", "--from-literal=k=s3ntinel-value")
    whoami(served, token)
    for path in ("/clusters/root:lab/api/v1/secrets?labelSelector=a==b=c", "/clusters/root:lab/nowhere"):
        served.request("GET", path)
    written = served.output()
    written += str(served.request("GET", "/metrics").body)
    encoded = base64.b64encode(b"s3ntinel-value").decode()
    for secret in (token, token.split(".")[2], "ann-token", "s3ntinel-value", encoded, "PRIVATE KEY"):
        assert secret not in written


def test_a_bound_token_ends_with_what_it_is_bound_to(served: Plane) -> None:
    kubectl(served, "create", "secret", "generic", "lease-of-a-token")
    bound = ("--bound-object-kind=Secret", "--bound-object-name=lease-of-a-token")
    token = kubectl(served, "create", "token", "robot", *bound).strip()
    assert "kube-root-ca.crt" in kubectl(served, "get", "configmaps", token=token)
    kubectl(served, "delete", "secret", "lease-of-a-token")
    with pytest.raises(PlaneError, match=r"(?i)unauthorized|logged in"):
        kubectl(served, "get", "configmaps", token=token)


def test_a_token_for_another_audience_is_not_for_this_server(served: Plane) -> None:
    token = kubectl(served, "create", "token", "robot", "--audience=vault").strip()
    with pytest.raises(PlaneError, match=r"(?i)unauthorized|logged in"):
        kubectl(served, "get", "configmaps", token=token)


def test_a_pod_gets_its_accounts_token(served: Plane) -> None:
    kubectl(served, "run", "p", "--image=i")
    get = (
        "get",
        "pod",
        "p",
        "-o",
        "jsonpath={.spec.serviceAccountName} {.spec.containers[0].volumeMounts[0].mountPath}",
    )
    assert kubectl(served, *get) == "default /var/run/secrets/kubernetes.io/serviceaccount"
    kubectl(served, "delete", "pod", "p", "--wait=false")


def test_in_an_embedded_target_too(served: Plane) -> None:
    url = "/targets/root:infra:locations:eu-west"
    path = f"{url}/api/v1/namespaces/default/serviceaccounts"
    served.request("POST", path, {"metadata": {"name": "robot"}})
    token = served.request("POST", f"{path}/robot/token", {"spec": {}}).body["status"]["token"]
    base = ("--server", f"https://127.0.0.1:{served.port}{url}")
    user = json.loads(served.kubectl("auth", "whoami", "-o", "json", *base, token=token))["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:robot"
    elsewhere = f"/clusters/{LAB}/api/v1/namespaces/default/configmaps"
    with pytest.raises(PlaneError, match="system:anonymous"):
        served.kubectl("get", "--raw", elsewhere, *base[:1], f"https://127.0.0.1:{served.port}", token=token)


def test_anonymous_requests_are_let_in_where_that_is_on(tmp_path: Path) -> None:
    fleet = Path(copytree(EXAMPLE, tmp_path / "fleet"))
    with Plane(fleet, tmp_path / "server" / "data", "--workers", "1", "--anonymous-auth") as server:
        tls = ssl.create_default_context(cafile=server.data / "keys" / "ca.crt")

        def ask(path: str) -> tuple[int, str]:
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=tls, timeout=30)
            connection.request("GET", path)
            answer = connection.getresponse()
            found = answer.status, answer.read().decode()
            connection.close()
            return found

        assert ask("/clusters/root/healthz") == (200, "ok")
        status, text = ask("/clusters/root/api/v1/configmaps")
        assert (status, 'User \\"system:anonymous\\" cannot list' in text) == (403, True)
