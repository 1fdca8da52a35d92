"""Run Kubernetes' own end-to-end suite against Treeplane: README.md says how."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import time
from pathlib import Path

from conformance import program
from conformance.serving import serving
from conformance.suite import Suite, all_names
from realclusters import binaries
from support import compat

PASSING = Path(__file__).with_name("passing.txt")
MINUTES = 60


def main() -> int:
    options = _options()
    start = time.monotonic()
    logs = options.logs or Path(tempfile.mkdtemp(prefix="conformance-logs-"))
    try:
        built, module, programs = program.find(), program.module(), binaries.find()
    except binaries.Unavailable as error:
        print(f"conformance: {error}", file=sys.stderr)  # noqa: T201
        return 1
    names = _chosen(built, options)
    if options.list is not None:
        print(*names, sep="\n")  # noqa: T201
        return 0
    with contextlib.ExitStack() as stack:
        kubeconfig = options.kubeconfig or stack.enter_context(
            serving(programs, options.writes, pods=not options.inert)
        )
        suite = Suite(built, module, programs.kubectl, kubeconfig.resolve(), logs)
        outcomes = suite.run(names, options.workers, MINUTES)
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


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="conformance", description="Kubernetes' own end-to-end suite")
    parser.add_argument("--focus", metavar="REGEX", help="tests of that name instead of those of passing.txt")
    parser.add_argument("--skip", metavar="REGEX", help="but not these")
    parser.add_argument("--list", metavar="REGEX", help="only print the names")
    parser.add_argument("--workers", type=int, default=6, help="how many processes run at once (most tests wait)")
    parser.add_argument("--writes", default="Store", choices=compat.WRITES, help="what the workspace's writes do")
    parser.add_argument("--inert", action="store_true", help="without what makes Pods run")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster that runs already, instead of starting Treeplane")
    parser.add_argument("--logs", type=Path, help="the folder for output and reports")
    parser.add_argument("--verbose", action="store_true", help="name what passed, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
