"""Real Kubernetes clusters for end-to-end tests.

A test that takes `real_cluster` or `two_real_clusters` gets the marker `clusters`. Where no cluster can be had it is
skipped with the reason and listed at the end of the run; with CI=true it fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from realclusters import binaries
from realclusters.cluster import RealCluster, start_all

CLUSTER_FIXTURES = {"real_binaries", "real_cluster", "two_real_clusters"}
_SKIPPED = "needs real Kubernetes clusters: "


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


@pytest.fixture(scope="session")
def real_binaries() -> binaries.Binaries:
    """The programs of a real cluster, built once if need be."""
    try:
        return binaries.find()
    except binaries.Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{_SKIPPED}{error}")
        pytest.skip(f"{_SKIPPED}{error}")


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
