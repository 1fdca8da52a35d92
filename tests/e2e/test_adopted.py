"""Repositories for Flux and for Argo CD: the fleet that `init --from` writes of one is served, and has its objects."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.adoptable import ARGO, FLUX
from support.plane import COMMAND, Plane, environment

FLEETS = {
    "flux": (
        FLUX,
        {
            "root:apps-staging": {"deployments/web/web-staging", "configmaps/web/settings-staging"},
            "root:apps-production": {"deployments/web/web-production"},
            "root:infrastructure": {"resourcequotas/infra/all"},
        },
    ),
    "argo": (
        ARGO,
        {
            "root:apps-web": {"deployments/shop/web"},
            "root:teams-red": {"configmaps/default/red"},
            "root:teams-blue-team": {"configmaps/default/blue"},
        },
    ),
}
"""By whose repository it is: its files, and the objects that came to clusters, by workspace."""
ELSEWHERE = {"flux": "into infra: say so", "argo": "into teams: say so"}
"""What is left to do by hand is told: such an object had what names no namespace stand there."""


@pytest.mark.parametrize("whose", FLEETS)
def test_what_is_written_is_served(tmp_path: Path, whose: str, eventually: Any) -> None:
    if whose == "flux" and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH, and renders kustomizations")
    files, objects = FLEETS[whose]
    _write(tmp_path / "repository", files)
    command = [COMMAND, "init", "--from", "repository", "fleet"]
    made = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert ELSEWHERE[whose] in made.stdout, made.stdout + made.stderr
    with Plane(tmp_path / "fleet", tmp_path / "server" / "data") as server:
        for workspace, wanted in objects.items():
            for each in wanted:
                resource, namespace, name = each.split("/")
                found = eventually(
                    lambda r=resource, ns=namespace, w=workspace: server.kubectl(
                        "get", r, "-n", ns, "-o", "name", workspace=w, check=False
                    ),
                    30,
                )
                assert name in {line.partition("/")[2] for line in found.splitlines()}
        listed = server.kubectl("get", "workspaces", "-o", "name", workspace="root").splitlines()
        assert {f"root:{line.partition('/')[2]}" for line in listed} == {"root:compute", *objects}


def _write(top: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
