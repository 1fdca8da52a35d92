"""N workspaces that each have a kustomization, an overlay on a shared base: a first load, one with outputs on disk, and
commits on top of it: one changed file, one file beside, the base of all. See also rendering.py, which loads nothing.

    .venv/bin/python bench/rendered_load.py 1000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table, verdict
from realclusters import binaries
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import LoadedFleet, configmap

from reconciler.commands.rendering import renderer
from reconciler.rendering.settings import cores

COLD, CHANGED = 60.0, 0.5
"""Seconds: for 1,000 of them cold, on two cores, and for one changed file."""


def files(count: int) -> dict[str, str]:
    found = {
        "treeplane.yaml": f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n",
        "bases/web/kustomization.yaml": "resources: [config.yaml]\n",
        "bases/web/config.yaml": configmap("web", level="0"),
        "workspaces/root/root.yaml": configmap("root"),
    }
    for number in range(count):
        place = f"workspaces/root/w{number}"
        found |= {
            f"{place}/workspace.yaml": "",
            f"{place}/app/kustomization.yaml": "namePrefix: k-\nresources: [own.yaml, ../../../../bases/web]\n",
            f"{place}/app/own.yaml": configmap("own", level=str(number)),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=1_000)
    parser.add_argument("--kubectl", type=Path, help="the program; default: the one that the tests build")
    options = parser.parse_args()
    kubectl = options.kubectl or Path(binaries.find().kubectl)
    with tempfile.TemporaryDirectory(prefix="rendered-") as made:
        measured(Path(made), kubectl, options.workspaces)


def measured(scratch: Path, kubectl: Path, count: int) -> None:
    repo = FleetRepo(scratch / "fleet.git")
    repo.commit(files(count))
    cold = loaded(scratch, "cold", repo, kubectl, lambda _: None)
    warm = loaded(scratch, "warm", repo, kubectl, lambda _: None)
    place = "workspaces/root/w0"
    steps = {
        "one file changed": {f"{place}/app/own.yaml": configmap("own", level="new")},
        "one file beside": {f"{place}/plain.yaml": configmap("plain")},
        "a shared file that nobody names": {"bases/notes.txt": ""},
        "the base of all": {"bases/web/config.yaml": configmap("web", level="1")},
    }
    times: dict[str, float] = {}

    def commit(fleet: LoadedFleet) -> None:
        for name, changes in steps.items():
            times[name] = timed(lambda changes=changes: fleet.commit(changes))
            assert fleet.held() == {}

    loaded(scratch, "commits", repo, kubectl, commit)
    expected = COLD * count / 1_000 * 2 / cores()
    changed = times["one file changed"]
    table(
        f"{count:,} workspaces with a kustomization each on {cores()} cores ({kubectl})",
        [
            ["", "seconds", ""],
            ["first load", f"{cold:.2f}", f"expected {expected:.1f} s: {verdict(cold <= expected)}"],
            ["first load, outputs on disk", f"{warm:.2f}", ""],
            ["one file changed", f"{changed:.3f}", f"expected {CHANGED} s: {verdict(changed <= CHANGED)}"],
            *([name, f"{took:.3f}", ""] for name, took in times.items() if name != "one file changed"),
        ],
    )


def loaded(scratch: Path, name: str, repo: FleetRepo, kubectl: Path, then: Callable[[LoadedFleet], None]) -> float:
    """Seconds of a first load into a store of its own."""
    with closing(renderer(scratch / "cache", kubectl)) as renders:
        fleet = LoadedFleet(scratch / name, repo=repo, renders=renders)
        took = timed(fleet.load)
        assert fleet.held() == {}
        then(fleet)
        fleet.close()
        return took


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
