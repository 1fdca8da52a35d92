"""Run Kubernetes' own end-to-end suite against Treeplane: README.md says how.

The server is a `treeplane up` with one workspace, of a type that extends kube-compat, alone in a fleet of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml
from conformance import program
from conformance.suite import Suite, all_names
from realclusters import binaries
from support.plane import Plane

PASSING = Path(__file__).with_name("passing.txt")
MINUTES = 60
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: suite}\nspec: {}\n"
WORKSPACE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: suite, path: root}}
"""
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: suite}
spec:
  extend: {with: [{name: kube-compat, path: root}]}
  writes: %s
"""
ACCESS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: enter}
rules: [{verbs: [access], nonResourceURLs: [/]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: enter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: enter}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
"""
"""As in a cluster: whoever is known gets in, and may do what RBAC says."""


def main() -> int:
    options = _options()
    start = time.monotonic()
    logs = options.logs or Path(tempfile.mkdtemp(prefix="conformance-logs-"))
    try:
        built, module, kubectl = program.find(), program.module(), binaries.find().kubectl
    except binaries.Unavailable as error:
        print(f"conformance: {error}", file=sys.stderr)  # noqa: T201
        return 1
    names = _chosen(built, options)
    if options.list is not None:
        print(*names, sep="\n")  # noqa: T201
        return 0
    with contextlib.ExitStack() as stack:
        kubeconfig = options.kubeconfig or stack.enter_context(_serving(options.writes))
        outcomes = Suite(built, module, kubectl, kubeconfig.resolve(), logs).run(names, options.workers, MINUTES)
    bad = [o for o in outcomes if o.why]
    print(*(outcomes if options.verbose else bad), sep="\n")  # noqa: T201
    passed = len(outcomes) - len(bad)
    print(f"{passed} passed, {len(bad)} failed in {time.monotonic() - start:.0f} s; logs in {logs}")  # noqa: T201
    return 1 if bad or not outcomes else 0


def passing() -> list[str]:
    return PASSING.read_text().splitlines()


def _chosen(built: Path, options: argparse.Namespace) -> list[str]:
    focus, skip = options.list or options.focus, options.skip
    names = passing() if focus is None else [name for name in all_names(built) if re.search(focus, name)]
    return [name for name in names if skip is None or not re.search(skip, name)]


@contextlib.contextmanager
def _serving(writes: str) -> Iterator[Path]:
    """A kubeconfig of the administrator of a workspace that is served meanwhile."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        workspace = folder / "fleet" / "workspaces" / "root" / "suite"
        workspace.mkdir(parents=True)
        (folder / "fleet" / "treeplane.yaml").write_text(FLEET)
        (workspace.parent / "type.yaml").write_text(TYPE % writes)
        (workspace / "workspace.yaml").write_text(WORKSPACE)
        (workspace / "access.yaml").write_text(ACCESS)
        with Plane(folder / "fleet", folder / "server" / "data") as plane:
            config = yaml.safe_load(plane.kubeconfig.read_text())
            for entry in config["clusters"]:
                entry["cluster"]["server"] = f"https://127.0.0.1:{plane.port}/clusters/root:suite"
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(yaml.safe_dump(config))
            yield kubeconfig


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance", description="Kubernetes' own end-to-end suite")
    parser.add_argument("--focus", metavar="REGEX", help="tests of that name instead of those of passing.txt")
    parser.add_argument("--skip", metavar="REGEX", help="but not these")
    parser.add_argument("--list", metavar="REGEX", help="only print the names")
    parser.add_argument("--workers", type=int, default=6, help="how many processes run at once (most tests wait)")
    parser.add_argument("--writes", default="Store", choices=("Store", "Commit"), help="what the workspace's writes do")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster that runs already, instead of starting Treeplane")
    parser.add_argument("--logs", type=Path, help="the folder for output and reports")
    parser.add_argument("--verbose", action="store_true", help="name what passed, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
