"""Running servers and real Kubernetes clusters for end-to-end tests.

`plane` starts `treeplane up` as a user does (support/plane.py says what one can do with it).

A test that takes `real_cluster` or `two_real_clusters` gets the marker `clusters`. Where no cluster can be had it is
skipped with the reason and listed at the end of the run; with CI=true it fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from realclusters import binaries, giteabinary, kcpplugins
from realclusters.cluster import RealCluster, start_all
from support.giteaserver import GiteaServer
from support.plane import Plane
from support.realsyncing import Downstream, Starts, World

from apiserver.storage.lmdb import open_store
from apiserver.stores import DECLARED

CLUSTER_FIXTURES = {"real_binaries", "real_cluster", "two_real_clusters"}
_SKIPPED = "needs real Kubernetes clusters: "
_NO_PLUGINS = "needs kcp's own plugins of kubectl: "
_NO_GITEA = "needs a real Gitea: "


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if CLUSTER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.clusters)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.getreports("skipped") if _SKIPPED in str(report.longrepr)]
    if skipped:
        terminalreporter.section("NOT TESTED against real Kubernetes clusters", red=True)
        for report in skipped:
            terminalreporter.line(report.nodeid)
        terminalreporter.line("To have them: put Go 1.26 or newer on PATH, or set KUBEBUILDER_ASSETS.")
    skipped = [report for report in terminalreporter.getreports("skipped") if _NO_PLUGINS in str(report.longrepr)]
    if skipped:
        terminalreporter.section("NOT TESTED with kcp's own plugins", red=True)
        for report in skipped:
            terminalreporter.line(report.nodeid)
        terminalreporter.line("To have them: reach github.com and Go's modules, or set KCP_PLUGINS to their folder.")
    skipped = [report for report in terminalreporter.getreports("skipped") if _NO_GITEA in str(report.longrepr)]
    if skipped:
        terminalreporter.section("NOT TESTED against a real Gitea", red=True)
        for report in skipped:
            terminalreporter.line(report.nodeid)
        terminalreporter.line("To have it: put Go 1.26 or newer and a C compiler on PATH, or set GITEA_BINARY.")


@pytest.fixture
def example_fleet(tmp_path: Path) -> Path:
    """A copy of examples/fleet-repo, to be changed at will."""
    return Path(shutil.copytree(Path(__file__).parents[2] / "examples" / "fleet-repo", tmp_path / "fleet-repo"))


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Callable[..., Plane]]:
    """A factory: `plane(repository, "--workers", "1")` is a running server that ends with the test."""
    started: list[Plane] = []

    def start(repository: Path | str, *arguments: str, data: Path | None = None) -> Plane:
        new = Plane(repository, data or tmp_path / "server" / "data", *arguments)
        started.append(new)
        new.start()
        return new

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def real_binaries() -> binaries.Binaries:
    """The programs of a real cluster, built once if need be."""
    try:
        return binaries.find()
    except binaries.Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{_SKIPPED}{error}")
        pytest.skip(f"{_SKIPPED}{error}")


@pytest.fixture(scope="session")
def kcp_plugins() -> Path:
    """The folder with kcp's own plugins of kubectl, built once if need be. CI is content without them: what they are
    made of is not where every machine can reach it, as Kubernetes is."""
    try:
        return kcpplugins.find()
    except binaries.Unavailable as error:
        pytest.skip(f"{_NO_PLUGINS}{error}")


@pytest.fixture(scope="session")
def gitea_program() -> Path:
    """CI is content without, as it is without kcp's plugins."""
    try:
        return giteabinary.find()
    except binaries.Unavailable as error:
        pytest.skip(f"{_NO_GITEA}{error}")


@pytest.fixture(scope="session")
def gitea(
    gitea_program: Path, tmp_path_factory: pytest.TempPathFactory, eventually: Callable[..., str]
) -> Iterator[GiteaServer]:
    """One for the whole run, with nothing in it."""
    server = GiteaServer(gitea_program, tmp_path_factory.mktemp("gitea"))
    try:
        server.start(eventually)
        yield server
    finally:
        server.stop()


@pytest.fixture
def real_cluster(
    real_binaries: binaries.Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., RealCluster]]:
    """A factory: `real_cluster("a", workloads=False)` starts a cluster that ends with the test."""
    started: list[RealCluster] = []

    def start(name: str = "cluster", *, workloads: bool = True) -> RealCluster:
        cluster = RealCluster(name, tmp_path_factory.mktemp(name), real_binaries, workloads=workloads)
        started.append(cluster)
        cluster.start()
        return cluster

    yield start
    for cluster in started:
        cluster.stop()


@pytest.fixture(scope="session")
def two_real_clusters(
    real_binaries: binaries.Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RealCluster, RealCluster]]:
    """Two clusters with simulated nodes, shared by the whole run: leave them as you found them."""
    folder = tmp_path_factory.mktemp("clusters")
    west, east = (RealCluster(name, folder / name, real_binaries) for name in ("west", "east"))
    start_all(west, east)
    yield west, east
    west.stop()
    east.stop()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """What is synced: a store as git's loader fills it."""
    store = open_store(tmp_path / "store", sync=False, declared=DECLARED)
    yield World(store)
    store.close()


@pytest.fixture
def syncing(world: World) -> Iterator[Starts]:
    starts = Starts(world)
    yield starts
    starts.stop()


@pytest.fixture
def west(two_real_clusters: tuple[RealCluster, RealCluster], world: World) -> Iterator[Downstream]:
    down = Downstream.of(two_real_clusters[0], "west", world)
    yield down
    down.clean()


@pytest.fixture
def east(two_real_clusters: tuple[RealCluster, RealCluster], world: World) -> Iterator[Downstream]:
    down = Downstream.of(two_real_clusters[1], "east", world)
    yield down
    down.clean()
