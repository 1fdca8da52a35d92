"""`writes: Commit`: kubectl writes, git has it, and nothing that was acknowledged is ever lost."""

from __future__ import annotations

import dataclasses
import http.client
import itertools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.plane import Connection, Credentials, Plane, PlaneError, environment
from support.shipped import SCHEDULING, binding

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
LAB = "root:lab"
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: committed}
spec:
  extend: {with: [{name: kube-compat, path: root}]}
  writes: Commit
"""
WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: committed, path: root}}
"""
SETTINGS = """\
# What the lab runs with.
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  size: "1" # one is enough
  colour: red
"""
CONFIGMAPS = f"/clusters/{LAB}/api/v1/namespaces/default/configmaps"


def fleet_in(folder: Path) -> Path:
    fleet = Path(shutil.copytree(EXAMPLE, folder / "fleet-repo"))
    lab = fleet / "workspaces" / "root" / "lab"
    lab.mkdir()
    (lab.parent / "committed.yaml").write_text(TYPE)
    (lab / "workspace.yaml").write_text(WORKSPACE)
    (lab / "apis.yaml").write_text(binding(SCHEDULING))
    (lab / "settings.yaml").write_text(SETTINGS)
    return fleet


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("commit")
    with Plane(fleet_in(folder), folder / "server" / "data") as server:
        yield server


@pytest.fixture
def kubectl(served: Plane) -> Callable[..., str]:
    return lambda *arguments, **more: served.kubectl(*arguments, workspace=LAB, **more)


def test_what_kubectl_does_is_in_git(served: Plane, kubectl: Callable[..., str], tmp_path: Path) -> None:
    clone = served.clone(tmp_path / "clone")
    kubectl("create", "namespace", "shop")
    kubectl("create", "deployment", "web", "--image=nginx", "--namespace=shop")
    kubectl("scale", "deployment", "web", "--replicas=3", "--namespace=shop")
    kubectl("patch", "configmap", "settings", "--type=merge", "--patch", '{"data": {"size": "2"}}')
    clone.git("pull", "--quiet")
    lab = clone.folder / "workspaces" / "root" / "lab"
    assert (lab / "settings.yaml").read_text() == SETTINGS.replace('"1"', '"2"')
    web = (lab / "_objects" / "shop" / "deployments.apps" / "web.yaml").read_text()
    assert "replicas: 3" in web
    assert "status" not in web
    assert "terminationMessagePath" not in web, "what the server fills in is not git's"
    said = clone.git("log", "--format=%an: %s", "-4").splitlines()
    assert said == [
        f"kcp-admin: Update configmaps default/settings in {LAB}",
        f"kcp-admin: Update deployments.apps shop/web in {LAB}",
        f"kcp-admin: Create deployments.apps shop/web in {LAB}",
        f"kcp-admin: Create namespaces shop in {LAB}",
    ]
    # And the other way round: a push on top of it.
    clone.edit("workspaces/root/lab/settings.yaml", "red", "blue")
    clone.commit("Paint it blue")
    clone.push()
    kubectl("wait", "configmap/settings", "--for=jsonpath={.data.colour}=blue", "--timeout=20s")
    kubectl("delete", "namespace", "shop")
    clone.git("pull", "--quiet")
    assert not (lab / "_objects" / "shop").exists()
    assert "shop" not in "".join(str(p) for p in lab.rglob("*"))


def test_a_custom_resource_and_its_definition_come_and_go(
    served: Plane, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    definition = tmp_path / "crd.yaml"
    definition.write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: toys.example.org}\n"
        "spec:\n  group: example.org\n  scope: Namespaced\n  names: {plural: toys, kind: Toy}\n  versions:\n"
        "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, "
        "x-kubernetes-preserve-unknown-fields: true}}}\n"
    )
    toy = tmp_path / "toy.yaml"
    toy.write_text("apiVersion: example.org/v1\nkind: Toy\nmetadata: {name: bear}\nspec: {soft: true}\n")
    kubectl("apply", "--server-side", "--filename", str(definition))
    kubectl("wait", "crd/toys.example.org", "--for=condition=Established", "--timeout=20s")
    kubectl("apply", "--filename", str(toy))
    clone = served.clone(tmp_path / "clone")
    made = clone.folder / "workspaces/root/lab/_objects/default/toys.example.org/bear.yaml"
    assert "soft: true" in made.read_text()
    kubectl("delete", "crd", "toys.example.org", "--timeout=20s")
    clone.git("pull", "--quiet")
    assert not made.exists()
    assert not list(clone.folder.rglob("toys.example.org*"))


def test_another_teams_api_is_bound_by_who_may(served: Plane, kubectl: Callable[..., str], tmp_path: Path) -> None:
    """The example's team of databases lets the group shop-web bind them. What is taken goes before the binding."""
    for name, role in (("enter", "system:kcp:workspace:access"), ("rule", "cluster-admin")):
        kubectl("create", "clusterrolebinding", f"eve-{name}", f"--clusterrole={role}", "--user=eve")
    binding = tmp_path / "binding.yaml"
    binding.write_text(
        "apiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata: {name: databases}\n"
        "spec: {reference: {export: {path: 'root:shop:databases', name: databases}}}\n"
    )
    # Whom kcp-admin acts for is nobody in other workspaces; whom system:masters do is there as well.
    eve = ("apply", "--filename", str(binding), "--user=shard-admin", "--as=eve")
    for way in ((), ("--server-side",), ("--dry-run=server",)):
        with pytest.raises(PlaneError, match="no permission to bind to export root:shop:databases:databases"):
            kubectl(*eve, *way)
    with pytest.raises(PlaneError, match="no permission to bind to export root:shop:databases:databases"):
        kubectl(*eve[:-2], *eve[-1:], "--as-group=shop-web")
    kubectl(*eve, "--as-group=shop-web")
    kubectl("wait", "apibinding/databases", "--for=condition=Ready", "--timeout=20s")
    database = tmp_path / "database.yaml"
    database.write_text(
        "apiVersion: data.shop.example/v1\nkind: Database\nmetadata: {name: orders}\nspec: {engine: postgres}\n"
    )
    kubectl("apply", "--filename", str(database))
    clone = served.clone(tmp_path / "clone")
    objects = clone.folder / "workspaces/root/lab/_objects"
    assert (objects / "default/databases.data.shop.example/orders.yaml").exists()
    kubectl("delete", "apibinding", "databases", "--timeout=20s")
    with pytest.raises(PlaneError, match=r"doesn't have a resource type|could not find the requested resource"):
        kubectl("get", "databases")
    clone.git("pull", "--quiet")
    assert not list(objects.rglob("*databases*"))


def test_a_manifest_of_kcps_first_years_is_applied(served: Plane, kubectl: Callable[..., str], tmp_path: Path) -> None:
    """As git takes it, by kubectl, which asks discovery for the group that it says."""
    file = tmp_path / "placement.yaml"
    file.write_text(
        "apiVersion: scheduling.kcp.dev/v1alpha1\nkind: Placement\nmetadata: {name: old}\nspec:\n"
        "  locationSelectors: [{}]\n  namespaceSelector: {}\n"
    )
    assert "old created" in kubectl("apply", "--filename", str(file))
    assert "old unchanged" in kubectl("apply", "--filename", str(file))
    file.write_text(file.read_text().replace("{name: old}", "{name: old, labels: {a: b}}"))
    assert "old configured" in kubectl("apply", "--filename", str(file))
    assert "serverside-applied" in kubectl("apply", "--server-side", "--filename", str(file))
    assert kubectl("diff", "--filename", str(file)) == ""
    resource = "{group: workload.kcp.dev, version: v1alpha1, resource: synctargets}"
    file.write_text(f"{file.read_text()}  locationResource: {resource}\n")
    kubectl("apply", "--filename", str(file))
    file.write_text(file.read_text() + "  nonsense: true\n")
    with pytest.raises(PlaneError, match="nonsense"):
        kubectl("apply", "--filename", str(file))
    found = kubectl("get", "placements", "old", "--output=jsonpath={.apiVersion} {.spec.locationResource.group}")
    assert found == "scheduling.kcp.io/v1alpha1 workload.kcp.io"
    assert [line.split()[0] for line in kubectl("api-resources", "--no-headers").splitlines()].count("placements") == 1
    clone = served.clone(tmp_path / "clone")
    made = clone.folder / "workspaces/root/lab/_objects/_cluster/placements.scheduling.kcp.io/old.yaml"
    assert made.read_text().startswith("apiVersion: scheduling.kcp.io/v1alpha1\n")
    kubectl("delete", "--filename", str(file))
    # Where writes are refused, so is this one, by the file that says it.
    file.write_text((EXAMPLE / "workspaces/root/media/teams/streaming/placements.yaml").read_text())
    with pytest.raises(PlaneError, match=r"edit workspaces/root/media/teams/streaming/placements\.yaml"):
        served.kubectl("label", "--filename", str(file), "a=b", workspace="root:media:streaming")


USERS, EACH = [f"user-{number}" for number in range(8)], 12


def test_many_users_at_once_are_few_commits_and_git_says_who(
    served: Plane, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    for name, role in (("enter", "system:kcp:workspace:access"), ("rule", "cluster-admin")):
        kubectl("create", "clusterrolebinding", f"team-{name}", f"--clusterrole={role}", "--group=team")
    clone = served.clone(tmp_path / "clone")
    before, begun = clone.git("rev-parse", "HEAD").strip(), threading.Barrier(len(USERS))
    wrote = {f"{user}-{number}": user for user in USERS for number in range(EACH)}

    def write(user: str) -> list[int]:
        admin = Credentials.read(served.kubeconfig)
        headers = {**admin.headers, "Impersonate-User": user, "Impersonate-Group": "team"}
        connection = Connection(dataclasses.replace(admin, headers=headers), 30)
        begun.wait()
        found = []
        for name in (name for name, who in wrote.items() if who == user):
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"by": user}}
            found.append(connection.request("POST", CONFIGMAPS, body).status)
        connection.close()
        return found

    with ThreadPoolExecutor(len(USERS)) as threads:
        assert {status for answers in threads.map(write, USERS) for status in answers} == {201}
    clone.git("pull", "--quiet")
    log = clone.git("log", "--format=%H %an", f"{before}..HEAD").splitlines()
    assert len(log) < len(wrote) / 2
    said: dict[str, str] = {}
    for commit, author in (line.split(" ") for line in log):
        trailers = clone.git("show", "--no-patch", "--format=%(trailers:key=Written-By,valueonly)", commit).splitlines()
        lines = [line.split(" ") for line in trailers if line]
        assert bool(lines) == (author == "Treeplane")
        if lines:
            co_authors = clone.git("show", "--no-patch", "--format=%(trailers:key=Co-authored-by,valueonly)", commit)
            assert {*co_authors.split("\n")} - {""} == {f"{user} <{user}@localhost>" for *_, user in lines}
        for workspace, resource, name, user in lines:
            assert (workspace, resource) == (LAB, "configmaps")
            said[name.removeprefix("default/")] = user
        if not lines:
            changed = clone.git("show", "--name-only", "--format=", commit).splitlines()
            said |= {Path(path).stem: author for path in changed}
    assert said == wrote
    assert kubectl("get", "configmap", "user-3-7", "--output=jsonpath={.data.by}") == "user-3"


@pytest.mark.parametrize("roles", ["together", "apart"])
def test_what_was_acknowledged_survives_kills_and_a_lost_store(tmp_path: Path, roles: str) -> None:
    data = tmp_path / "server" / "data"
    with Plane(fleet_in(tmp_path), data, "--roles", roles) as server:
        answered = _write_under_kills(server)
        names = {item["metadata"]["name"]: item for item in server.get(CONFIGMAPS)["items"]}
        clone = server.clone(tmp_path / "clone")
        files = clone.folder / "workspaces/root/lab/_objects/default/configmaps"
        assert {p.stem for p in files.glob("*.yaml")} == {n for n in names if n[1:].isdigit()}
        assert {name: obj["metadata"]["uid"] for name, obj in answered.items()} == {
            name: names[name]["metadata"]["uid"] for name in answered
        }
        server.kubectl("wait", "namespace/default", "--for=jsonpath={.status.phase}=Active", workspace=LAB)
    for cache in ("store", "mirror"):
        shutil.rmtree(data / cache)
    with Plane(tmp_path / "fleet-repo", data) as server:
        again = {item["metadata"]["name"]: item for item in server.get(CONFIGMAPS)["items"]}
        for name, obj in names.items():
            if name[1:].isdigit():
                assert again[name]["metadata"]["uid"] == obj["metadata"]["uid"]
                assert again[name]["metadata"]["creationTimestamp"] == obj["metadata"]["creationTimestamp"]
                assert again[name]["data"] == obj["data"]


def _write_under_kills(server: Plane, threads: int = 4, kills: int = 2) -> dict[str, Any]:
    """Creates ConfigMaps from several threads while the reconciler is killed; what was answered with 201, by name."""
    answered: dict[str, Any] = {}
    numbers, stop = itertools.count(), threading.Event()

    def write() -> None:
        connection = server.connection()
        while not stop.is_set():
            name = f"k{next(numbers)}"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"name": name}}
            try:
                answer = connection.request("POST", CONFIGMAPS, body)
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = server.connection()
                continue
            if answer.status == 201:
                answered[name] = answer.body
        connection.close()

    writers = [threading.Thread(target=write) for _ in range(threads)]
    for writer in writers:
        writer.start()
    for _ in range(kills):
        goal, reconciler = len(answered) + 20, _reconciler(server)
        assert reconciler, "0 would be everybody here"
        while len(answered) < goal:
            stop.wait(0.01)
        os.kill(reconciler, signal.SIGKILL)
        while _reconciler(server) in (0, reconciler):
            stop.wait(0.01)
    goal = len(answered) + 20
    while len(answered) < goal:
        stop.wait(0.01)
    stop.set()
    for writer in writers:
        writer.join()
    return answered


def _reconciler(server: Plane) -> int:
    for pid in server.pids():
        try:
            if b"reconciler.commands.reconcile\0all" in Path(f"/proc/{pid}/cmdline").read_bytes():  # it commits
                return pid
        except OSError:
            continue
    return 0


def test_a_branch_that_is_checked_out_is_refused_by_name(tmp_path: Path) -> None:
    fleet = fleet_in(tmp_path)
    git = ["git", "-C", str(fleet), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
        subprocess.run([*git, *arguments], env=environment(), check=True)
    server = Plane(fleet, tmp_path / "server" / "data")
    with server, pytest.raises(PlaneError, match=f"checked out in {fleet}"):
        server.kubectl("create", "configmap", "a", workspace=LAB)
