"""docs/tutorial.md, typed as it stands, with two real clusters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from realclusters.cluster import RealCluster
from support.pages import Typist, steps
from support.plane import COMMAND, environment

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


@pytest.fixture
def clusters(two_real_clusters: tuple[RealCluster, RealCluster]) -> Iterator[tuple[RealCluster, RealCluster]]:
    if not two_real_clusters[0].workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    yield two_real_clusters
    for each in two_real_clusters:
        each.kubectl("delete", "namespaces", "-l", "kcp.io/tenant-id")
        each.kubectl("delete", "leases,serviceaccounts,roles,rolebindings", "-n", "treeplane-system", "--all")
        each.kubectl("delete", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/managed-by=treeplane")


@pytest.mark.slow
@pytest.mark.clusters
def test_the_tutorial_goes_as_it_is_printed(
    clusters: tuple[RealCluster, RealCluster], tmp_path: Path, eventually: Any
) -> None:
    path = os.pathsep.join([str(COMMAND.parent), str(Path(clusters[0].binaries.kubectl).parent), os.environ["PATH"]])
    for name, cluster in zip(("paris", "tokyo"), clusters, strict=True):
        (tmp_path / f"{name}.kubeconfig").write_bytes(cluster.kubeconfig)
    reader = {
        f"GIT_{who}_{what}": "reader@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    typist = Typist(tmp_path, environment(PATH=path, TREEPLANE_LISTEN="127.0.0.1:0", **reader), eventually)
    try:
        for step in steps(PAGE):
            typist.type(step)
    finally:
        typist.stop()
