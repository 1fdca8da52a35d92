"""What the README promises a newcomer, typed as it says: serve the example, look, push, look again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import Plane, PlaneError
from support.promptness import promptly

from apiserver.registry.builtins.catalogue import ENTRIES

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
STATUS = "origin/treeplane/status"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One server for all of these: only the first test changes something, and nothing that the others look at."""
    folder = tmp_path_factory.mktemp("newcomer")
    fleet = shutil.copytree(EXAMPLE, folder / "fleet-repo")
    with Plane(fleet, folder / "server" / "data") as server:
        yield server


def test_the_readme_step_by_step(served: Plane, tmp_path: Path, eventually: Any) -> None:
    lines = served.kubectl("get", "workspaces").splitlines()
    assert lines[0].split() == ["NAME", "TYPE", "REGION", "PHASE", "COMMIT", "PINNED", "HELD", "LAG", "URL", "AGE"]
    assert [line.split()[0] for line in lines[1:]] == ["compute", "infra", "media", "shop"]
    assert all("Ready" in line for line in lines[1:])

    tree = served.kubectl("ws", "tree")
    assert "└── root" in tree
    assert "        └── web" in tree
    assert "Current workspace is 'root:shop:web'" in served.kubectl("ws", WEB)

    clone = served.clone(tmp_path / "fleet")
    eventually(lambda: "2/2" in deployments(served), 30, "the example's Deployment is ready")

    def push(number: int) -> None:
        clone.edit(DEPLOYMENT, f"replicas: {number + 2}", f"replicas: {number + 3}")
        clone.commit(f"{number + 3} replicas")
        clone.push()

    def runs(number: int) -> None:
        eventually(lambda: ready(served) == number + 3, 30, f"{number + 3} replicas are ready")

    count = 3 + promptly(2, push, runs, "what is pushed is ready")
    head = clone.git("rev-parse", "HEAD").strip()
    assert f"{count}/{count}" in deployments(served)

    production, staging = served.kubectl("get", "placements", "-o", "wide", "--no-headers").splitlines()
    assert production.split()[:4] == ["production", "Bound", "europe", "eu-west"]
    assert "runs on sync target root:infra:locations:eu-west, which Location europe of" in production
    assert staging.split()[:4] == ["staging", "Bound", "america", "us-east"]

    file = f"{STATUS}:workspaces/root/shop/web/_status/default/deployments.apps/web.yaml"

    def published() -> bool:
        clone.git("fetch", "--quiet")
        said = clone.git("show", file, check=False)  # it is not there yet where the branch has just begun
        return f"readyReplicas: {count}" in said

    eventually(published, 60, "the status branch has all ready replicas")
    trailer = clone.git("log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", STATUS).strip()
    assert trailer == head == clone.git("rev-parse", f"{STATUS}^2").strip()


def test_every_object_says_where_it_comes_from(served: Plane) -> None:
    web = json.loads(served.kubectl("get", "deployment", "web", "-o", "json", workspace=WEB))
    annotations = web["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == DEPLOYMENT
    assert len(annotations["treeplane.dev/source-commit"]) == 40
    shop = json.loads(served.kubectl("get", "workspace", "web", "-o", "json", workspace="root:shop"))
    assert annotations["kcp.io/cluster"] == shop["spec"]["cluster"]
    by_name = served.kubectl("get", "deployment", "web", "-o", "name", workspace=shop["spec"]["cluster"])
    assert by_name == "deployment.apps/web\n"

    with pytest.raises(PlaneError, match=DEPLOYMENT):
        served.kubectl("scale", "deployment", "web", "--replicas=5", workspace=WEB)


def test_the_tree_and_every_workspace_of_its_own(served: Plane) -> None:
    assert served.kubectl("get", "workspaces", workspace="root:shop").count("Ready") == 3

    # The same kind in two versions, each with its own schema.
    studio = json.loads(served.kubectl("get", "channels", "news", "-o", "json", workspace="root:media:studio"))
    streaming = json.loads(served.kubectl("get", "channels", "news", "-o", "json", workspace="root:media:streaming"))
    assert (studio["apiVersion"], studio["spec"]["bitrate"]) == ("media.example/v1alpha1", 3000)
    assert (streaming["apiVersion"], streaming["spec"]["live"]) == ("media.example/v1", True)

    # A kind that is bound exists where it is bound, and only there.
    assert "postgres" in served.kubectl("get", "databases", workspace=WEB)
    with pytest.raises(PlaneError, match="the server doesn't have a resource type"):
        served.kubectl("get", "databases", workspace="root:media:studio")


def test_both_sync_targets_run_their_part(served: Plane, eventually: Any) -> None:
    for target, count in (("eu-west", 3), ("us-east", 1)):
        path = f"/targets/root:infra:locations:{target}/apis/apps/v1/deployments"

        def available(path: str = path) -> int:
            items = served.get(path)["items"]
            return sum(item.get("status", {}).get("availableReplicas", 0) == item["spec"]["replicas"] for item in items)

        eventually(lambda count=count, available=available: available() >= count, 30, target)
    job = ("get", "job", "migrate-orders", "-n", "checkout", "-o", "jsonpath={.status.succeeded}")
    eventually(lambda: served.kubectl(*job, workspace="root:shop:checkout") == "1", 30, "the Job is complete")


def test_each_condition_that_is_told_of_a_kind_is_declared(served: Plane, eventually: Any) -> None:
    """Conditions of other kinds are those of the clusters on which their objects run."""
    known = {
        (entry.resource, about.type, reason)
        for entry in ENTRIES.values()
        for about in entry.conditions
        for reason in (*about.amiss, *about.usual)
    }
    resources = {resource for resource, _, _ in known} - {"pods"}

    def told() -> set[tuple[str, str, str]]:
        return {
            (resource, each["type"], each["reason"])
            for key, obj in served.everything().items()
            for each in (obj.get("status") or {}).get("conditions") or ()
            if (resource := key.split("/")[1]) in resources
        }

    # Controllers tell them, kind by kind.
    eventually(lambda: len({resource for resource, _, _ in told()}) > 7, 60, "most kinds have conditions")
    assert told() <= known


def deployments(plane: Plane) -> str:
    """The line of the Deployment `web`, as kubectl prints it."""
    return plane.kubectl("get", "deployments", "web", "--no-headers")


def ready(plane: Plane) -> int:
    web = plane.get(f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web")
    return int(web.get("status", {}).get("readyReplicas", 0))
