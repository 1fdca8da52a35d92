"""Servers that lost what they had, and are the same again: with the store gone, from a clone, and without the keys."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.formats import set_format
from support.plane import Plane, PlaneError, environment

from apiserver.storage.lmdb_environment import FORMAT

Object = dict[str, Any]
World = dict[str, Object]

WEB = "root:shop:web"
CHECKOUT = "root:shop:checkout"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
BROKEN = "workspaces/root/shop/checkout/broken.yaml"
LATER = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: later}\n"
WORKSPACES = (
    "root", "root:compute", "root:infra", "root:infra:locations", "root:media", "root:media:streaming",
    "root:media:studio", "root:shop", "root:shop:checkout", "root:shop:databases", "root:shop:web",
)  # fmt: skip
TARGETS = ("root:infra:locations:eu-west", "root:infra:locations:us-east")

SERVER = re.compile(r"https://127\.0\.0\.1:\d+")
RUNTIME = {"events", "leases"}
"""Kinds that need not survive."""
TIMES = {
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastSyncerHeartbeatTime",
    "lastHeartbeatTime",
    "startTime",
    "completionTime",
}


@pytest.fixture
def served(plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any) -> Plane:
    """The example with some history: a change, an object that went and came, a workspace that is held."""
    running = plane(example_fleet)
    clone = running.clone(tmp_path / "work")
    clone.write(DEPLOYMENT, (clone.folder / DEPLOYMENT).read_text().replace("replicas: 2", "replicas: 3", 1))
    config = "workspaces/root/shop/web/config.yaml"
    text = (clone.folder / config).read_text()
    (clone.folder / config).unlink()
    clone.commit("three replicas, no configuration")
    clone.write(config, text)
    clone.commit("the configuration is back")
    clone.write(BROKEN, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken, namespace: nowhere}\n")
    clone.commit("break the checkout")
    clone.push()
    eventually(lambda: running_everywhere(running), 60, "all is running")
    settled(running, repository_of(running), eventually)
    return running


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_store_and_mirror_are_caches(served: Plane, eventually: Any, end: signal.Signals) -> None:
    before, clusters, status = world(served), copies(served), status_of(repository_of(served))
    served.stop(end)
    shutil.rmtree(served.data / "store")
    shutil.rmtree(served.data / "mirror")
    served.start()
    same(untimed(world(served)), untimed(before))
    # What means only that somebody looked comes back with the first look.
    eventually(lambda: same(beating(world(served)), beating(before)), 30, "the same to the second")
    settled(served, repository_of(served), eventually)
    same(beating(world(served)), beating(before))
    # The clusters were in step: nothing was written to them. And nothing was left to say.
    same(copies(served), clusters)
    assert status_of(repository_of(served)) == status
    follows_what_heals(served, eventually)


@pytest.mark.parametrize("how", ["from a backup", "cut off"])
def test_a_store_that_cannot_be_believed_is_recovered(served: Plane, tmp_path: Path, eventually: Any, how: str) -> None:
    """store/ alone is another than what the status branch recorded of it, and the start says so."""
    served.stop()
    shutil.copytree(served.data / "store", tmp_path / "kept")
    served.start()
    clone = served.clone(tmp_path / "again")
    clone.write(DEPLOYMENT, (clone.folder / DEPLOYMENT).read_text().replace("replicas: 3", "replicas: 4", 1))
    clone.commit("four replicas")
    clone.push()
    eventually(lambda: running_everywhere(served), 60, "all is running")
    settled(served, repository_of(served), eventually)
    before, status = world(served), status_of(repository_of(served))
    served.stop()
    store = served.data / "store"
    if how == "from a backup":
        shutil.rmtree(store)
        shutil.copytree(tmp_path / "kept", store)
    else:
        with (store / "data.mdb").open("r+b") as data:
            data.truncate((store / "data.mdb").stat().st_size // 3)
    served.start()
    same(untimed(world(served)), untimed(before))
    said = served.output()
    assert (
        said.count("it is older, as from a backup" if how == "from a backup" else "set aside as data.mdb.damaged") == 1
    )
    settled(served, repository_of(served), eventually)
    assert status_of(repository_of(served)) == status


def test_a_store_of_an_older_release_is_rebuilt_and_one_of_a_newer_refused(served: Plane, eventually: Any) -> None:
    """There and back: what another release left, with clients that watched it, and a push that came meanwhile."""
    repository, store = repository_of(served), served.data / "store"
    before, clusters, status = world(served), copies(served), status_of(repository)
    maps = f"/clusters/{WEB}/api/v1/configmaps"
    seen = served.get(maps)["metadata"]["resourceVersion"]
    watching = served.connection()
    stream = watching.stream(f"{maps}?watch=1&resourceVersion={seen}")
    served.stop()
    assert stream.read() == b""  # it ended in order, with nothing told that was not so
    watching.close()

    set_format(store, int(FORMAT) + 1)
    newer = (store / "data.mdb").read_bytes()
    with pytest.raises(PlaneError, match=f"format {int(FORMAT) + 1}, which a newer Treeplane wrote"):
        served.start()
    assert "Traceback" not in served.output()
    assert served.stop() == 3
    assert (store / "data.mdb").read_bytes() == newer
    assert status_of(repository) == status

    set_format(store, int(FORMAT) - 1)
    served.start()
    assert "is built anew" in served.output()
    same(untimed(world(served)), untimed(before))
    settled(served, repository, eventually)
    same(copies(served), clusters)  # nothing was written to any of them
    assert status_of(repository) == status
    # Whoever watched is told to list again, and the revisions of what is listed go on from what was seen.
    watching = served.connection()
    [told] = watching.stream(f"{maps}?watch=1&resourceVersion={seen}").read().splitlines()
    assert json.loads(told)["object"]["code"] == 410
    listed_again = served.get(maps)["metadata"]["resourceVersion"]
    assert int(listed_again) > int(seen)
    stream = watching.stream(f"{maps}?watch=1&resourceVersion={listed_again}")
    clone = served.clone(served.data.parent / "after")
    clone.write("workspaces/root/shop/web/later.yaml", LATER)
    clone.commit("pushed to the newer release")
    clone.push()
    assert json.loads(stream.readline())["object"]["metadata"]["name"] == "later"
    watching.close()
    the_page_leads_back(served, eventually)


@pytest.mark.parametrize("keys", [True, False], ids=["with the keys", "without the keys"])
def test_a_clone_is_the_fleet(
    served: Plane, plane: Callable[..., Plane], tmp_path: Path, eventually: Any, keys: bool
) -> None:
    before = world(served)
    served.stop()
    fleet = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(repository_of(served)), str(fleet)], check=True)
    arguments = ["--keys", str(served.data / "keys")] if keys else []
    new = plane(fleet, *arguments, data=tmp_path / "new" / "data")
    if not keys:  # what is in them cannot come back
        before = {name: obj for name, obj in before.items() if " /api/v1/secrets kcp-system/" not in name}
    # Times aside: the embedded clusters are gone and made anew.
    same(untimed(without_clusters(world(new))), untimed(without_clusters(before)))
    eventually(lambda: running_everywhere(new), 60, "all is running again")
    eventually(lambda: same(untimed(world(new)), untimed(before)), 30, "the same statuses")
    same(untimed(world(new)), untimed(before))
    settled(new, fleet, eventually)


def test_a_clone_whose_head_names_another_status_branch_is_the_fleet(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """That commit is held; whoever has lost all but the repository goes on from the branch that was in use."""
    running = plane(example_fleet)
    deployment = f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web"
    uid = running.get(deployment)["metadata"]["uid"]
    clone = running.clone(tmp_path / "work")
    served = clone.git("rev-parse", "HEAD").strip()
    text = (clone.folder / "treeplane.yaml").read_text()
    clone.write("treeplane.yaml", text.replace("treeplane/status", "elsewhere"))
    clone.commit("another status branch")
    clone.push()
    eventually(lambda: status_of(repository_of(running)), 30, "it is recorded")
    running.stop()
    copy = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(repository_of(running)), str(copy)], check=True)
    new = plane(copy, data=tmp_path / "new" / "data")
    assert new.get(deployment)["metadata"]["uid"] == uid
    assert f"workspaces at {served[:10]}" in new.output()


def the_page_leads_back(plane: Plane, eventually: Any) -> None:
    """From a store that a newer release has written, by what docs/upgrade.md has one type."""
    page = (Path(__file__).parents[2] / "docs" / "upgrade.md").read_text()
    after, back = (block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    around = environment(PATH=f"{plane.command.parent}:{os.environ['PATH']}")
    (plane.data.parent / ".treeplane").symlink_to(plane.data)

    def typed(line: str) -> int:
        return subprocess.run(line, shell=True, cwd=plane.data.parent, env=around, check=False).returncode

    settled(plane, repository_of(plane), eventually)
    before = world(plane)
    plane.stop()
    set_format(plane.data / "store", int(FORMAT) + 1)
    assert [typed(line) for line in back] == [0]
    plane.start()
    same(untimed(world(plane)), untimed(before))
    version, status = after
    assert typed(version) == 0
    assert typed(status) in (0, 1)


def follows_what_heals(plane: Plane, eventually: Any) -> None:
    clone = plane.clone(plane.data.parent / "healing")
    (clone.folder / BROKEN).unlink()
    clone.commit("heal the checkout")
    clone.push()
    eventually(lambda: "True" in held(plane), 60, "the workspace is healed")


# -- the world


def world(plane: Plane) -> World:
    """Every object of every workspace, without what may differ."""
    out: World = {}
    with reader(plane) as get:
        for path in WORKSPACES:
            for prefix, resource in listed(get, f"/clusters/{path}"):
                for obj in get(f"{prefix}/{resource}")["items"]:
                    group = prefix.rpartition(f"/clusters/{path}")[2]
                    out[f"{path} {group}/{resource} {name_of(obj)}"] = comparable(obj)
    assert len(out) > 100
    return out


def comparable(obj: Object) -> Object:
    """Without its revision, and without the host of URLs."""
    out = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}
    found: Object = json.loads(SERVER.sub("https://server", json.dumps(out)))
    return found


def targets(plane: Plane) -> World:
    """What stands on the embedded clusters, with revisions: a write would show."""
    out: World = {}
    with reader(plane) as get:
        for target in TARGETS:
            for prefix, resource in listed(get, f"/targets/{target}"):
                for obj in get(f"{prefix}/{resource}")["items"]:
                    out[f"{target} {resource} {name_of(obj)}"] = obj
    assert any("deployments" in name for name in out)
    return out


def copies(plane: Plane) -> World:
    """All that stands on the clusters but the inventories: one that named an earlier commit, which had changed nothing
    there, may name the later one after a start."""
    return {name: obj for name, obj in targets(plane).items() if not name.endswith("/treeplane-inventory")}


def name_of(obj: Object) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


@contextmanager
def reader(plane: Plane) -> Iterator[Callable[[str], Any]]:
    """Reads over one connection: there are hundreds of lists."""
    connection = plane.connection()

    def get(path: str) -> Any:
        answer = connection.request("GET", path)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.body}"
        return answer.body

    try:
        yield get
    finally:
        connection.close()


def listed(get: Callable[[str], Any], base: str) -> list[tuple[str, str]]:
    """(prefix, resource) of all that can be listed, each in the best of its versions."""
    prefixes = [("", f"{base}/api/v1")]
    for group in get(f"{base}/apis")["groups"]:
        prefixes += [(group["name"], f"{base}/apis/{version['groupVersion']}") for version in group["versions"]]
    found: dict[tuple[str, str], str] = {}
    for group, prefix in prefixes:
        for resource in get(prefix)["resources"]:
            if "list" in resource["verbs"] and "/" not in resource["name"] and resource["name"] not in RUNTIME:
                found.setdefault((group, resource["name"]), prefix)
    return [(prefix, name) for (_, name), prefix in found.items()]


def without(found: Any, fields: set[str]) -> Any:
    if isinstance(found, dict):
        return {key: without(value, fields) for key, value in found.items() if key not in fields}
    if isinstance(found, list):
        items = [without(value, fields) for value in found]
        conditions = bool(items) and all(isinstance(i, dict) and {"type", "status"} <= i.keys() for i in items)
        return sorted(items, key=lambda i: str(i["type"])) if conditions else items
    return found


def untimed(found: World) -> World:
    """Without times, and conditions in the order of their types."""
    cleaned: World = without(found, TIMES)
    return cleaned


def beating(found: World) -> World:
    """Without heartbeats."""
    cleaned: World = without(found, {"lastSyncerHeartbeatTime"})
    return cleaned


def without_clusters(found: World) -> World:
    """What the workspaces themselves know: statuses of what runs on clusters that are gone may be on their way."""
    return {name: {k: v for k, v in obj.items() if k != "status"} for name, obj in found.items()}


def difference(found: World, expected: World) -> list[str]:
    """Every field that differs, with its path."""
    out: list[str] = []

    def compare(path: str, here: Any, there: Any) -> None:
        if isinstance(here, dict) and isinstance(there, dict):
            for key in sorted(here.keys() | there.keys()):
                compare(f"{path} {key}", here.get(key), there.get(key))
        elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
            for number, (one, other) in enumerate(zip(here, there, strict=True)):
                compare(f"{path} {number}", one, other)
        elif here != there:
            out.append(f"{path}: {str(here)[:300]} was {str(there)[:300]}")

    compare("", found, expected)
    return out


def same(found: World, expected: World) -> bool:
    differ = difference(found, expected)
    assert not differ, "\n".join(differ[:20])
    return True


# -- waiting


def running_everywhere(plane: Plane) -> bool:
    ready = ("get", "deployments", "-A", "-o", "jsonpath={.items[*].status.readyReplicas}")
    jobs = ("get", "jobs", "-n", "checkout", "-o", "jsonpath={.items[*].status.succeeded}")
    wanted = ("get", "deployments", "-A", "-o", "jsonpath={.items[*].spec.replicas}")
    for path in (WEB, CHECKOUT, "root:media:streaming"):
        if plane.kubectl(*ready, workspace=path) != plane.kubectl(*wanted, workspace=path):
            return False
    return plane.kubectl(*jobs, workspace=CHECKOUT) == "1" and "False" in held(plane)


def held(plane: Plane) -> str:
    condition = "jsonpath={.status.conditions[?(@.type=='CommitApplied')].status}"
    return plane.kubectl("get", "workspace", "checkout", "-o", condition, workspace="root:shop")


def repository_of(plane: Plane) -> Path:
    return plane.data / "repo" / "fleet.git"


def status_of(repository: Path) -> str:
    command = ["git", "-C", str(repository), "rev-parse", "--verify", "--quiet", "refs/heads/treeplane/status"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def settled(plane: Plane, repository: Path, eventually: Any, quiet: float = 2.0) -> None:
    """Until the status branch has everything: it has not moved for some time."""
    last = {"status": "", "since": time.monotonic()}

    def still() -> bool:
        now = status_of(repository)
        if now != last["status"]:
            last.update(status=now, since=time.monotonic())
        return bool(now) and time.monotonic() - float(last["since"]) > quiet

    eventually(still, 60, "the status branch is at rest")
    assert plane.output()
