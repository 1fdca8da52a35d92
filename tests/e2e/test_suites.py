"""A client's own test suite, as its module brings it, against a workspace of type kube-compat. It is built from what
tests/clients/suites/go.mod pins, and told that the cluster is there already. docs/clients.md says which other suites
were run by hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plane import Plane
from support.worlds import World

SUITES = Path(__file__).parents[1] / "clients" / "suites"
PATH = "/clusters/root:compat"
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: suites}\n",
    "workspaces/root/compat/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
""",
}


def _go(*arguments: str) -> subprocess.CompletedProcess[str]:
    go = shutil.which("go")
    if go is None:
        _without("no go on PATH")
    variables = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    command = [str(go), *arguments]
    return subprocess.run(command, cwd=SUITES, env=variables, capture_output=True, text=True, check=False)


def _without(reason: str) -> None:
    text = f"needs Go and the modules of clients' suites: {reason}"
    if os.environ.get("CI") == "true":
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture
def suite(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """A factory: `suite("module/package")` is the built test program and the folder that it expects to run in."""

    def build(package: str) -> tuple[Path, Path]:
        found = _go("mod", "download")
        if found.returncode != 0:
            _without(found.stderr.strip().splitlines()[-1])
        program = tmp_path / "suite.test"
        built = _go("test", "-c", "-o", str(program), package)
        assert built.returncode == 0, built.stderr
        return program, Path(_go("list", "-f", "{{.Dir}}", package).stdout.strip())

    return build


LEFT_OUT = "MigrateAPIVersion"
"""Tests that want the error which kube-apiserver gives when it converts field ownership between versions."""


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first build compiles client-go
def test_flux_server_side_apply(suite: Any, tmp_path: Path, eventually: Any) -> None:
    program, folder = suite("github.com/fluxcd/pkg/ssa")
    repository = tmp_path / "fleet"
    for name, text in FLEET.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    with Plane(repository, tmp_path / "server" / "data", "--workers", "2") as plane:
        eventually(lambda: plane.request("GET", f"{PATH}/api/v1/namespaces/default").status == 200, 60)
        variables = {**World(plane, PATH, tmp_path).environment(), "USE_EXISTING_CLUSTER": "true"}
        command = [str(program), "-test.v", f"-test.skip={LEFT_OUT}"]
        result = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    failed = re.findall(r"(?:.*\n){0,6}\s*--- FAIL.*", result.stdout)
    assert (result.returncode, failed) == (0, []), result.stderr[-2000:]
    assert result.stdout.count("--- PASS") >= 190
