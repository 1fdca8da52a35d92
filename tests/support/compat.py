"""A workspace with all of Kubernetes' kinds, whose writes go where a test wants them. For runners of others' suites."""

from __future__ import annotations

from pathlib import Path

WRITES = ("Store", "Commit")
_TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: suite}
spec:
  extend: {with: [{name: kube-compat, path: root}]}
  writes: %s
"""
_WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: suite, path: root}}
"""


def put(fleet: Path, name: str, writes: str) -> Path:
    """Writes the workspace `root:<name>` and its type into a fleet's directory; the workspace's directory."""
    root = fleet / "workspaces" / "root"
    (root / name).mkdir(parents=True)
    (root / "suite-type.yaml").write_text(_TYPE % writes)
    (root / name / "workspace.yaml").write_text(_WORKSPACE)
    return root / name
