"""A tenant: a token, the verb `access` on a workspace, and RBAC in that very workspace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.plane import Plane, PlaneError

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
WEB = "root:shop:web"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """The example with two users: ana is of the web team, otto runs the fleet. Nothing here changes it."""
    folder = tmp_path_factory.mktemp("tenants")
    tokens = folder / "tokens.csv"
    tokens.write_text('ana-token,ana,1,"shop-web,everyone"\notto-token,otto,2,platform\n')
    with Plane(EXAMPLE, folder / "server" / "data", "--token-auth-file", str(tokens)) as server:
        yield server


def ana(served: Plane, *arguments: str) -> str:
    return served.kubectl(*arguments, workspace=WEB, token="ana-token")


def test_in_her_workspace_she_reads(served: Plane) -> None:
    assert "web" in ana(served, "get", "deployments")
    assert ana(served, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "ana"
    assert ana(served, "auth", "can-i", "list", "deployments.apps") == "yes\n"


def test_what_she_may_not_is_said_in_kubernetes_words(served: Plane) -> None:
    with pytest.raises(PlaneError, match=re.escape('secrets is forbidden: User "ana" cannot list resource "secrets"')):
        ana(served, "get", "secrets")
    text = 'deployments.apps "web" is forbidden: User "ana" cannot delete resource "deployments" in API group "apps"'
    with pytest.raises(PlaneError, match=re.escape(text)) as refused:
        ana(served, "delete", "deployment", "web")
    # Who may not write is not told in which file to do it.
    assert "deployment.yaml" not in str(refused.value)


@pytest.mark.parametrize("workspace", ["root", "root:shop", "root:shop:checkout", "root:shop:nowhere"])
def test_nothing_is_inherited_and_what_is_not_hers_does_not_show(served: Plane, workspace: str) -> None:
    text = 'User "ana" cannot list resource "configmaps" in API group "" in the namespace "default": access denied'
    with pytest.raises(PlaneError, match=f"configmaps is forbidden: {text}"):
        ana(served, "get", "--raw", f"/clusters/{workspace}/api/v1/namespaces/default/configmaps")


def test_all_workspaces_at_once_are_for_administrators(served: Plane) -> None:
    with pytest.raises(PlaneError, match="access denied"):
        ana(served, "get", "--raw", "/clusters/*/api/v1/configmaps")
    assert served.get("/clusters/*/api/v1/configmaps")["items"]


def test_whoever_runs_the_fleet_sees_the_first_level(served: Plane) -> None:
    listed = served.kubectl("get", "workspaces", "-o", "name", workspace="root", token="otto-token")
    assert "workspace.tenancy.kcp.io/shop" in listed
    with pytest.raises(PlaneError, match="Forbidden"):
        served.kubectl("get", "workspaces", workspace="root:shop", token="otto-token")


def test_nobody_gets_nowhere(served: Plane) -> None:
    with pytest.raises(PlaneError, match=r"(?i)unauthorized|logged in"):
        served.kubectl("get", "namespaces", workspace=WEB, token="made-up")


def test_the_administrator_acts_as_a_tenant(served: Plane) -> None:
    arguments = ("auth", "can-i", "list", "deployments.apps", "--as", "bea", "--as-group", "shop-web")
    assert served.kubectl(*arguments, workspace=WEB) == "yes\n"
    assert "yes" not in served.kubectl(*arguments, workspace="root:shop:checkout", check=False)


@pytest.mark.parametrize(
    ("context", "name", "group"),
    [
        ("root", "kcp-admin", "system:kcp:admin"),
        ("base", "kcp-admin", "system:kcp:admin"),
        ("shard-base", "shard-admin", "system:masters"),
        ("system:admin", "shard-admin", "system:masters"),
    ],
)
def test_each_of_kcps_contexts_is_somebodys(served: Plane, context: str, name: str, group: str) -> None:
    found = json.loads(served.kubectl("--context", context, "auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (found["username"], group in found["groups"]) == (name, True)


def test_what_is_in_force_everywhere_is_seen_in_system_admin(served: Plane) -> None:
    listed = served.kubectl("--context", "system:admin", "get", "clusterroles,clusterrolebindings", "-o", "name")
    assert "clusterrole.rbac.authorization.k8s.io/system:kcp:workspace:access" in listed
    assert "clusterrolebinding.rbac.authorization.k8s.io/system:kcp:admin:cluster-admin" in listed
    with pytest.raises(PlaneError, match="ships with the server"):
        served.kubectl("--context", "system:admin", "create", "clusterrole", "mine", "--verb=get", "--resource=secrets")
    with pytest.raises(PlaneError, match="access denied"):
        served.kubectl("get", "clusterroles", workspace="system:admin")
