"""`writes: Propose`: kubectl writes, a branch has it, and what is served changes when somebody merges that."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.plane import Plane, PlaneError

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
LAB = "root:lab"
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: proposed}
spec:
  extend: {with: [{name: kube-compat, path: root}]}
  writes: Propose
"""
WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: proposed, path: root}}
"""
SETTINGS = """\
# What the lab runs with.
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  size: "1" # one is enough
"""
MINE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\ndata: {a: b}\n"
BRANCH = "treeplane/proposals/kcp--admin/root-lab"
FILES = "workspaces/root/lab"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("propose")
    fleet = Path(shutil.copytree(EXAMPLE, folder / "fleet-repo"))
    lab = fleet / "workspaces" / "root" / "lab"
    lab.mkdir()
    (lab.parent / "proposed.yaml").write_text(TYPE)
    (lab / "workspace.yaml").write_text(WORKSPACE)
    (lab / "settings.yaml").write_text(SETTINGS)
    with Plane(fleet, folder / "server" / "data") as server:
        yield server


@pytest.fixture
def kubectl(served: Plane) -> Callable[..., str]:
    return lambda *arguments, **more: served.kubectl(*arguments, workspace=LAB, **more)


def test_what_kubectl_does_waits_for_a_merge(served: Plane, kubectl: Callable[..., str], tmp_path: Path) -> None:
    clone, file = served.clone(tmp_path / "clone"), tmp_path / "mine.yaml"
    file.write_text(MINE)
    told = f"proposed on branch {BRANCH}; it is served once that is merged"
    for _ in range(2):
        assert "configmap/mine created" in kubectl("apply", "--filename", str(file)), "it is not there yet"
        with pytest.raises(PlaneError, match=f"Warning: {told}"):
            kubectl("apply", "--filename", str(file), "--warnings-as-errors")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("patch", "configmap", "settings", "--type=merge", "--patch", '{"data": {"size": "2"}}')
    with pytest.raises(PlaneError, match="NotFound"):
        kubectl("get", "configmap", "mine")
    assert kubectl("get", "configmap", "settings", "--output=jsonpath={.data.size}") == "1"
    clone.git("fetch", "--quiet")
    said = clone.git("log", "--format=%an: %s", f"main..origin/{BRANCH}").splitlines()
    assert said == [
        f"kcp-admin: Propose to update configmaps default/settings in {LAB}",
        f"kcp-admin: Propose to create deployments.apps default/web in {LAB}",
        f"kcp-admin: Propose to create configmaps default/mine in {LAB}",
    ]
    changed = clone.git("diff", "--name-only", "main", f"origin/{BRANCH}").split()
    assert changed == [f"{FILES}/_objects/default/configmaps/mine.yaml",
                       f"{FILES}/_objects/default/deployments.apps/web.yaml", f"{FILES}/settings.yaml"]  # fmt: skip
    assert clone.git("show", f"origin/{BRANCH}:{FILES}/settings.yaml") == SETTINGS.replace('"1"', '"2"')
    # Whoever may read the workspace reads it as it is proposed to be.
    proposed = f"/commits/{BRANCH}/clusters/{LAB}/api/v1/namespaces/default/configmaps"
    assert served.get(f"{proposed}/settings")["data"] == {"size": "2"}
    assert served.get(f"{proposed}/mine")["data"] == {"a": "b"}
    # Somebody merges it, and it is served; the next proposal begins on top of that.
    clone.git("merge", "--quiet", "--no-edit", f"origin/{BRANCH}")
    clone.push()
    kubectl("wait", "configmap/settings", "--for=jsonpath={.data.size}=2", "--timeout=20s")
    kubectl("wait", "deployment/web", "--for=create", "--timeout=20s")
    assert "mine unchanged" in kubectl("apply", "--filename", str(file))


def test_a_deletion_ends_with_where_it_is_proposed(served: Plane, kubectl: Callable[..., str], tmp_path: Path) -> None:
    clone = served.clone(tmp_path / "clone")
    clone.write(f"{FILES}/gone.yaml", MINE.replace("mine", "gone"))
    clone.commit("Declare it")
    clone.push()
    kubectl("wait", "configmap/gone", "--for=jsonpath={.data.a}=b", "--timeout=20s")
    for _ in range(2):
        with pytest.raises(PlaneError, match=rf'configmaps "gone" is forbidden: proposed on branch {BRANCH}; '):
            kubectl("delete", "configmap", "gone", "--timeout=20s")
    assert kubectl("get", "configmap", "gone", "--output=name").strip() == "configmap/gone"
    kubectl("delete", "configmap", "gone", "--dry-run=server")
    clone.git("fetch", "--quiet")
    assert clone.git("diff", "--name-status", f"main...origin/{BRANCH}").split() == ["D", f"{FILES}/gone.yaml"]
    clone.git("merge", "--quiet", "--no-edit", f"origin/{BRANCH}")
    clone.push()
    kubectl("wait", "configmap/gone", "--for=delete", "--timeout=20s")
    clone.git("push", "--quiet", "origin", "--delete", BRANCH)


def test_what_would_hold_the_workspace_and_secrets_are_refused(kubectl: Callable[..., str], tmp_path: Path) -> None:
    with pytest.raises(PlaneError, match="keys/secrets/"):
        kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    file = tmp_path / "more.yaml"
    file.write_text(MINE.replace("mine", "more"))
    kubectl("apply", "--server-side", "--filename", str(file))
    assert "+kind: ConfigMap" in kubectl("diff", "--filename", str(file), check=False)
