"""The example fleet on two real Kubernetes clusters instead of embedded ones."""

from __future__ import annotations

import base64
import json
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from realclusters.cluster import TOKEN, RealCluster
from support.plane import Clone, Plane
from support.promptness import promptly

LOCATIONS = "root:infra:locations"
WEB = "root:shop:web"
STREAMING = "root:media:streaming"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"
KINDS = ("namespaces", "configmaps", "secrets", "services", "deployments", "jobs", "ingresses")
PASSWORDS = {"login": "hunter2-of-keys", "session": "hunter2-of-git"}


@dataclass(frozen=True, slots=True)
class Downstream:
    """What one server has on one cluster."""

    cluster: RealCluster
    key: str
    """Of the SyncTarget, as in the label of everything that is its."""

    def objects(self) -> dict[str, dict[str, Any]]:
        """By `Kind/upstream namespace/name`; namespaces are found again by their locator."""
        listed = self.cluster.kubectl(
            "get", ",".join(KINDS), "-A", "-o", "json", "-l", f"internal.workload.kcp.io/cluster={self.key}"
        )
        items = json.loads(listed)["items"]
        locators = {
            item["metadata"]["name"]: json.loads(item["metadata"]["annotations"]["kcp.io/namespace-locator"])
            for item in items
            if item["kind"] == "Namespace"
        }
        out = {}
        for item in items:
            # One kind is asked for after the other: what stands in a newer namespace is not seen yet.
            where = locators.get(item["metadata"].get("namespace") or item["metadata"]["name"])
            if where is not None:
                out[f"{item['kind']}/{where['namespace']}/{item['metadata']['name']}"] = item
        return out

    def available(self) -> dict[str, int]:
        """Deployments as `namespace/name` (upstream) with their available replicas."""
        found = self.objects()
        return {
            key.removeprefix("Deployment/"): item["status"].get("availableReplicas", 0)
            for key, item in found.items()
            if item["kind"] == "Deployment"
        }

    def find(self, key: str) -> dict[str, Any]:
        return self.objects()[key]


@pytest.fixture
def west(two_real_clusters: tuple[RealCluster, RealCluster]) -> RealCluster:
    if not two_real_clusters[0].workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    return two_real_clusters[0]


@pytest.fixture
def east(two_real_clusters: tuple[RealCluster, RealCluster]) -> RealCluster:
    return two_real_clusters[1]


@pytest.fixture
def keys(tmp_path: Path, west: RealCluster, east: RealCluster) -> Path:
    """A keys directory with the kubeconfigs of both clusters, and a password for the web team."""
    keys = tmp_path / "keys"
    for name, cluster in (("eu-west", west), ("us-east", east)):
        secret(keys / "secrets" / LOCATIONS, name, kubeconfig=cluster.kubeconfig)
    secret(keys / "secrets" / WEB, "login", password=PASSWORDS["login"].encode())
    return keys


# Named before `plane` in a test, so that the server has ended when its namespaces are deleted.
@pytest.fixture
def fleet(example_fleet: Path, west: RealCluster, east: RealCluster) -> Iterator[Path]:
    """The example with references to Secrets instead of embedded targets, and a Secret that stands in git."""
    for name in ("eu-west", "us-east"):
        manifest = example_fleet / "workspaces" / "root" / "infra" / "locations" / f"{name}.yaml"
        reference = f"connection: {{kubeconfigSecretRef: {{namespace: default, name: {name}}}}}"
        content = manifest.read_text()
        assert content.count("\n  connection: {embedded: {}}") == 1
        manifest.write_text(content.replace("connection: {embedded: {}}", reference))
    (example_fleet / "workspaces" / "root" / "shop" / "web" / "session.yaml").write_text(
        f"apiVersion: v1\nkind: Secret\nmetadata: {{name: session}}\nstringData: {{password: {PASSWORDS['session']}}}\n"
    )
    yield example_fleet
    for cluster in (west, east):
        cluster.kubectl("delete", "namespaces", "-l", "kcp.io/tenant-id", "--wait=false")
        # The next test's fleet may be the same one, and would begin with an earlier epoch.
        cluster.kubectl("delete", "leases", "-n", "treeplane-system", "--all")


def repository(fleet: Path) -> Clone:
    """The fleet's directory as a repository, with all of it in one commit."""
    work = Clone(fleet)
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    return work


def secret(folder: Path, name: str, **data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    values = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "default"}
    (folder / f"{name}.yaml").write_text(
        json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": values})
    )


def downstream(server: Plane, name: str, cluster: RealCluster) -> Downstream:
    target = server.get(f"/clusters/{LOCATIONS}/apis/workload.kcp.io/v1alpha1/synctargets/{name}")
    return Downstream(cluster, target["metadata"]["labels"]["internal.workload.kcp.io/key"])


def both(server: Plane, west: RealCluster, east: RealCluster, eventually: Any) -> tuple[Downstream, Downstream]:
    """Both sides, once every Deployment of the example is available somewhere and everybody knows."""
    eventually(lambda: synced(server), 60, "every placement is synced")
    sides = downstream(server, "eu-west", west), downstream(server, "us-east", east)
    wanted = {"default/web": 2, "default/search": 1, "checkout/checkout": 2, "staging/web": 1, "edge/edge": 3}
    eventually(lambda: sides[0].available() | sides[1].available() == wanted, 60, "all is available")

    def known() -> bool:
        found = server.everything()
        deployments = [item for key, item in found.items() if "/deployments/" in key]
        jobs = [item for key, item in found.items() if "/jobs/" in key]
        assert (len(deployments), len(jobs)) == (5, 1)
        return all(each["status"].get("availableReplicas") == each["spec"]["replicas"] for each in deployments) and all(
            condition(job, "Complete") for job in jobs
        )

    eventually(known, 20, "statuses are upstream")
    return sides


def synced(server: Plane) -> bool:
    placements = server.get("/clusters/*/apis/scheduling.kcp.io/v1alpha1/placements")["items"]
    return len(placements) == 4 and all(condition(each, "Synced").get("status") == "True" for each in placements)


def condition(obj: dict[str, Any], kind: str) -> dict[str, Any]:
    found = (each for each in obj.get("status", {}).get("conditions", []) if each["type"] == kind)
    return next(found, {})


def placement(server: Plane, workspace: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = server.get(f"/clusters/{workspace}/apis/scheduling.kcp.io/v1alpha1/placements/{name}")
    return found


def test_the_example_runs_on_two_clusters(
    fleet: Path,
    plane: Callable[..., Plane],
    keys: Path,
    west: RealCluster,
    east: RealCluster,
    tmp_path: Path,
    eventually: Any,
) -> None:
    server = plane(fleet, "--trust-targets", LOCATIONS, "--keys", str(keys))
    europe, america = both(server, west, east, eventually)
    assert {"default/web", "default/search", "checkout/checkout"} <= europe.available().keys()
    assert {"staging/web"} <= america.available().keys()
    eventually(lambda: europe.find("Job/checkout/migrate-orders")["status"].get("succeeded") == 1, 20)
    job = "/clusters/root:shop:checkout/apis/batch/v1/namespaces/checkout/jobs/migrate-orders"
    eventually(lambda: server.get(job)["status"].get("succeeded") == 1, 30)
    password = base64.b64encode(PASSWORDS["session"].encode()).decode()
    assert europe.find("Secret/default/session")["data"] == {"password": password}
    assert "Secret/default/login" in europe.objects()
    for item in europe.objects().values():  # where it stands in git is nobody's business down there
        ours = {key for key in item["metadata"].get("annotations", {}) if key.startswith("treeplane.dev/")}
        assert ours <= ({"treeplane.dev/of"} if item["kind"] == "Job" else set())

    # A push goes down, what the cluster answers comes up.
    clone = server.clone(tmp_path / "clone")

    def replicas() -> int:
        return int(europe.find("Deployment/default/web")["spec"]["replicas"])

    def push(number: int) -> None:
        clone.edit(DEPLOYMENT, f"replicas: {number + 2}", f"replicas: {number + 3}")
        clone.commit(f"{number + 3} replicas")
        clone.push()

    def runs(number: int) -> None:
        eventually(lambda: replicas() == number + 3, 30)

    count = 3 + promptly(2, push, runs, "what is pushed is on the cluster")
    ready = ("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
    eventually(lambda: server.kubectl(*ready, workspace=WEB) == str(count), 20)

    # Changed by hand, put right; deleted by hand, back again.
    web = europe.find("Deployment/default/web")["metadata"]
    west.kubectl("-n", web["namespace"], "scale", "deployment", "web", "--replicas=7")
    eventually(lambda: replicas() == count, 30, "drift is put right")
    west.kubectl("-n", web["namespace"], "delete", "service", "web")
    eventually(lambda: "Service/default/web" in europe.objects(), 30, "what was deleted is back")

    # Dropped from git, gone from the cluster; what others put beside it stays.
    west.kubectl("-n", web["namespace"], "create", "configmap", "somebody-elses", "--from-literal=a=b")
    clone.git("rm", "-q", "-r", "workspaces/root/shop/web/search")
    clone.commit("no search")
    clone.push()
    eventually(lambda: not [key for key in europe.objects() if key.endswith("/search")], 20, "it is pruned")
    assert "Deployment/default/web" in europe.objects()
    assert west.kubectl("-n", web["namespace"], "get", "configmap", "somebody-elses", "-o", "name")

    no_secret_is_published(server, keys, Clone(server.data / "repo" / "fleet.git"))


def no_secret_is_published(server: Plane, keys: Path, repository: Clone) -> None:
    """Neither plain nor encoded: in any status commit, for what is kept from git in any object, and in any log."""
    words = [TOKEN, base64.b64encode(TOKEN.encode()).decode(), *PASSWORDS.values()]
    words += [base64.b64encode(word.encode()).decode() for word in PASSWORDS.values()]
    kept = [
        value[:60]
        for file in keys.rglob("secrets/**/*.yaml")
        for value in json.loads(file.read_text())["data"].values()
    ]
    patterns = [argument for word in [*words, *kept] for argument in ("-e", word)]
    commits = repository.git("rev-list", "--first-parent", "treeplane/status", "--not", "main").split()
    assert len(commits) > 3
    assert repository.git("grep", "--text", "-l", "-F", *patterns, *commits, check=False) == ""
    assert "readyReplicas" in repository.git("grep", "--text", "-h", "-F", "-e", "readyReplicas", *commits)
    every = [line.split() for line in repository.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()]
    blobs = [name for name, kind, _ in every if kind == "blob"]
    everything = "".join(repository.git("cat-file", "blob", name) for name in blobs)
    logs = server.output()
    for word in (TOKEN, PASSWORDS["login"], base64.b64encode(PASSWORDS["login"].encode()).decode(), *kept):
        assert word not in everything
        assert word not in logs
    for word in words:
        assert word not in logs


def test_a_fresh_data_directory_writes_nothing_to_the_clusters(
    fleet: Path,
    plane: Callable[..., Plane],
    keys: Path,
    west: RealCluster,
    east: RealCluster,
    tmp_path: Path,
    eventually: Any,
) -> None:
    work = repository(fleet)
    server = plane(fleet, "--trust-targets", LOCATIONS, "--keys", str(keys), data=tmp_path / "first" / "data")
    sides = both(server, west, east, eventually)
    eventually(lambda: all(noted(side, work) for side in sides), 20, "the commit is noted in every inventory")
    before, there = server.everything(), [side.objects() for side in sides]
    server.stop()
    applies = [applied(side.cluster) for side in sides]

    # Another server, as far as the clusters are concerned: it writes to them once it was told to take over.
    server.data = tmp_path / "second" / "data"
    server.start()
    [holder] = re.findall(r"--take-over (\S+)$", server.output(), re.MULTILINE)
    server.stop()
    assert [applied(side.cluster) for side in sides] == applies
    server.data = tmp_path / "third" / "data"
    server.arguments = (*server.arguments, "--take-over", holder)
    server.start()
    eventually(lambda: synced(server), 30)
    recovered = {key: plain(item) for key, item in before.items()}
    eventually(lambda: {key: plain(item) for key, item in server.everything().items()} == recovered, 30)

    # Something that has to go down, so that the rest has certainly been looked at.
    work.edit("workspaces/root/shop/web/config.yaml", "search,wishlist", "search")
    work.edit("workspaces/root/shop/web/staging/web.yaml", "search,wishlist,reviews", "reviews")
    work.commit("fewer features")
    for side, was, features in zip(sides, there, ("default", "staging"), strict=True):
        key = f"ConfigMap/{features}/web"
        eventually(lambda side=side, key=key, was=was: side.find(key)["data"] != was[key]["data"], 30)
    eventually(lambda: all(noted(side, work, WEB) for side in sides), 20)
    assert [applied(side.cluster) for side in sides] == [count + 2 for count in applies]
    for side, was, changed in zip(sides, there, ("default", "staging"), strict=True):
        now = side.objects()
        touched = {key for key in now if revisions(now)[key] != revisions(was).get(key)}
        assert now.keys() == was.keys()
        assert touched == {f"ConfigMap/{changed}/web", f"ConfigMap/{changed}/treeplane-inventory"}
        for key in now.keys() - touched:
            assert now[key]["metadata"].get("managedFields") == was[key]["metadata"].get("managedFields")


def test_what_was_withdrawn_while_nobody_was_there_goes(
    fleet: Path,
    plane: Callable[..., Plane],
    keys: Path,
    west: RealCluster,
    east: RealCluster,
    tmp_path: Path,
    eventually: Any,
) -> None:
    """A Placement goes by a commit while the server is away, and its store is lost: git tells what it had placed."""
    work = repository(fleet)
    server = plane(fleet, "--trust-targets", LOCATIONS, "--keys", str(keys), data=tmp_path / "first" / "data")
    _, america = both(server, west, east, eventually)
    eventually(lambda: noted(america, work, WEB), 20)
    assert "Deployment/staging/web" in america.objects()
    server.stop()
    manifest = fleet / "workspaces" / "root" / "shop" / "web" / "placements.yaml"
    production, staging, _ = manifest.read_text().partition("---\n")
    assert staging
    manifest.write_text(production)
    work.commit("no staging")

    for cache in ("store", "mirror"):
        shutil.rmtree(server.data / cache)
    server.start()
    eventually(lambda: not [key for key in america.objects() if "/staging/" in key], 30, "the copies are gone")
    where = f"/clusters/{WEB}/apis/apps/v1/namespaces/staging/deployments/web"
    eventually(lambda: not server.get(where).get("status"), 20, "its last status is gone")
    told = condition(server.get(f"/clusters/{WEB}/api/v1/namespaces/staging"), "NamespaceScheduled")
    assert told["reason"] == "NotSelected"
    assert "Deployment/default/web" in downstream(server, "eu-west", west).objects()


def test_a_server_that_stood_still_writes_nothing_once_another_took_over(
    fleet: Path,
    plane: Callable[..., Plane],
    keys: Path,
    west: RealCluster,
    east: RealCluster,
    tmp_path: Path,
    eventually: Any,
) -> None:
    """It cannot know: neither from git, which it did not read meanwhile, nor by a clock that it did not look at."""
    work = repository(fleet)
    bare = tmp_path / "fleet.git"
    work.git("clone", "--quiet", "--bare", ".", str(bare))
    work.git("remote", "add", "origin", str(bare))
    options = (f"file://{bare}", "--poll", "1", "--trust-targets", LOCATIONS, "--keys", str(keys))
    first = plane(*options, data=tmp_path / "first" / "data")
    europe, _ = both(first, west, east, eventually)
    assert lease(west)["metadata"]["annotations"] == {"treeplane.dev/epoch": "1"}
    holder = lease(west)["spec"]["holderIdentity"]

    with first.still():
        second = plane(*options, "--take-over", holder, data=tmp_path / "second" / "data")
        eventually(lambda: lease(west)["spec"]["holderIdentity"] != holder, 20, "the second one takes the Lease")
        taker = lease(west)["spec"]["holderIdentity"]
        assert lease(west)["metadata"]["annotations"]["treeplane.dev/epoch"] == "2"
        work.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
        work.commit("three replicas")
        work.git("push", "--quiet", "origin", "HEAD:main")
        eventually(lambda: europe.find("Deployment/default/web")["spec"]["replicas"] == 3, 40, "and writes")
        europe.cluster.kubectl(
            "-n",
            europe.find("Deployment/default/web")["metadata"]["namespace"],
            "scale",
            "deployment/web",
            "--replicas=7",
        )
        eventually(lambda: europe.find("Deployment/default/web")["spec"]["replicas"] == 3, 20, "drift is reverted")
    eventually(lambda: "holds this fleet" in first.output(), 30, "the first one observes")
    assert lease(west)["spec"]["holderIdentity"] == taker
    assert europe.find("Deployment/default/web")["spec"]["replicas"] == 3

    # Killed and started again it need not wait for its own Lease to run out.
    second.stop(signal.SIGKILL)
    work.edit(DEPLOYMENT, "replicas: 3", "replicas: 4")
    work.commit("four replicas")
    work.git("push", "--quiet", "origin", "HEAD:main")
    second.start()
    eventually(lambda: europe.find("Deployment/default/web")["spec"]["replicas"] == 4, 10, "it writes")
    assert lease(west)["spec"]["holderIdentity"].split("/")[0] == taker.split("/")[0]
    assert lease(west)["spec"]["holderIdentity"] != taker
    second.stop()
    assert "holderIdentity" not in lease(west)["spec"], "given back"


def lease(cluster: RealCluster) -> Any:
    [found] = json.loads(cluster.kubectl("get", "leases", "-n", "treeplane-system", "-o", "json"))["items"]
    return found


def applied(cluster: RealCluster) -> int:
    """How many server-side applies the cluster has answered, no-ops included. Nobody but us applies there."""
    metrics = cluster.request("GET", "/metrics")[1].splitlines()
    lines = [line for line in metrics if line.startswith("apiserver_request_total{") and 'verb="APPLY"' in line]
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if 'dry_run="All"' not in line))


def revisions(objects: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {key: item["metadata"]["resourceVersion"] for key, item in objects.items()}


def plain(item: Any) -> Any:
    """What recovery gives again: no resource version, no time that only means "still so", conditions in any order."""
    if isinstance(item, list):
        return sorted((plain(each) for each in item), key=json.dumps)
    if not isinstance(item, dict):
        return item
    dropped = ("resourceVersion", "lastUpdateTime", "lastProbeTime")
    return {key: plain(value) for key, value in sorted(item.items()) if key not in dropped}


def noted(side: Downstream, work: Clone, workspace: str = "") -> bool:
    """Whether the inventories (of one workspace) name the commit that is the head of `work`."""
    head = work.git("rev-parse", "HEAD").strip()
    found = [item["data"] for key, item in side.objects().items() if key.endswith("/treeplane-inventory")]
    of = [data for data in found if not workspace or data["workspace"] == workspace]
    return bool(of) and all(data["commit"] == head for data in of)


def test_a_cluster_that_hangs_loses_its_placements_and_slows_nobody(
    fleet: Path,
    plane: Callable[..., Plane],
    keys: Path,
    west: RealCluster,
    east: RealCluster,
    tmp_path: Path,
    eventually: Any,
) -> None:
    times = ("--heartbeat-seconds", "0.3", "--threshold-seconds", "1.5", "--tolerance-seconds", "2")
    server = plane(fleet, "--trust-targets", LOCATIONS, "--keys", str(keys), *times)
    clone = server.clone(tmp_path / "clone")
    europe, america = both(server, west, east, eventually)
    # The edge caches may run on either continent; everything else of that cluster may not.
    if "edge/edge" in europe.available():
        hanging, other, key, path = europe, america, "Deployment/staging/web", "staging/web.yaml"
        stays = placement(server, WEB, "production")
    else:
        hanging, other, key, path = america, europe, "Deployment/default/web", "deployment.yaml"
        stays = placement(server, WEB, "staging")
    replicas = other.find(key)["spec"]["replicas"]
    hanging.cluster.pause()
    try:
        paused, took = time.monotonic(), list[float]()
        for number in range(replicas + 1, replicas + 4):
            clone.edit(f"workspaces/root/shop/web/{path}", f"replicas: {number - 1}", f"replicas: {number}")
            clone.commit(f"{number} replicas")
            clone.push()
            pushed = time.monotonic()
            eventually(lambda number=number: other.find(key)["spec"]["replicas"] == number, 30)
            took.append(time.monotonic() - pushed)
        assert sorted(took)[1] < 2, took  # the machine may stand still at one of them
        eventually(lambda: other.available().get("edge/edge") == 3, 30, "the edge caches have moved")
        assert time.monotonic() - paused > 3  # threshold and tolerance
        edge = placement(server, STREAMING, "production")
        assert condition(edge, "Ready")["status"] == "True"
        # What may run nowhere else stays where it is, and says so.
        where = stays["metadata"]["name"]

        def told() -> str:
            now = placement(server, WEB, where)
            assert now["status"]["selectedLocation"] == stays["status"]["selectedLocation"]
            return " ".join(each["message"] for each in now["status"]["conditions"] if each["status"] != "True")

        assert eventually(told, 30)
        name = {europe.key: "eu-west", america.key: "us-east"}[hanging.key]
        target = server.get(f"/clusters/{LOCATIONS}/apis/workload.kcp.io/v1alpha1/synctargets/{name}")
        assert condition(target, "Ready")["status"] == "False"
        assert "no answer" in condition(target, "Ready")["message"]
    finally:
        hanging.cluster.resume()
    # It is back: the copies that were replaced go, the ones that had to stay are as git has them.
    eventually(lambda: "edge/edge" not in hanging.available(), 60, "the copy that was left behind is gone")
    assert other.available()["edge/edge"] == 3
    eventually(lambda: condition(placement(server, WEB, where), "Synced").get("status") == "True", 30)
    assert key not in hanging.objects()
