"""N kustomizations, each an overlay of its own on a shared base: rendered for the first time, from the disk cache after
a restart, and again after one file has changed; beside the bare program, in the same run and as many at once.

    .venv/bin/python bench/rendering.py 1000
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table, verdict
from realclusters import binaries
from support.renderings import RenderedFiles

from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.request import RenderRequest
from reconciler.rendering.settings import RenderingSettings, cores

COLD, CHANGED = 60.0, 0.5
"""Seconds: for 1,000 of them cold, on two cores, and for one changed file."""
BASE = {
    "shared/base/kustomization.yaml": "resources: [deployment.yaml, service.yaml]\n",
    "shared/base/deployment.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n"
        "  template:\n    metadata: {labels: {app: web}}\n    spec:\n"
        "      containers: [{name: web, image: 'registry.example.org/web:1.0'}]\n"
    ),
    "shared/base/service.yaml": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
    ),
}


def overlay(number: int, replicas: int = 2) -> dict[str, str]:
    directory = f"workspaces/root/w{number}/app"
    text = (
        f"namePrefix: w{number}-\nresources: [../../../../shared/base]\n"
        f"replicas: [{{name: web, count: {replicas}}}]\n"
        f"configMapGenerator: [{{name: about, literals: [number={number}]}}]\n"
    )
    return {**BASE, f"{directory}/kustomization.yaml": text}


def spent() -> float:
    """Seconds of CPU of this process and all that it waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kustomizations", type=int, nargs="?", default=1_000)
    parser.add_argument("--kubectl", type=Path, help="the program; default: the one that the tests build")
    options = parser.parse_args()
    kubectl = options.kubectl or Path(binaries.find().kubectl)
    with tempfile.TemporaryDirectory(prefix="rendering-") as made:
        measured(Path(made), kubectl, options.kustomizations)


def measured(scratch: Path, kubectl: Path, count: int) -> None:
    files, places = RenderedFiles(scratch / "git"), [f"workspaces/root/w{n}/app" for n in range(count)]
    requests = [files.request(overlay(n), place) for n, place in enumerate(places)]
    settings = RenderingSettings(scratch / "cache", kubectl)
    bare = timed(lambda: bare_runs(scratch / "bare", kubectl, count))
    cold = timed(lambda: all_of(DirectoryRenderer(settings), requests))
    warm = timed(lambda: all_of(DirectoryRenderer(settings), requests))
    renderer = DirectoryRenderer(settings)
    all_of(renderer, requests)
    again = [files.request(overlay(0, 3), places[0]), *requests[1:]]
    changed = timed(lambda: all_of(renderer, again))
    expected = COLD * count / 1_000 * 2 / cores()
    table(
        f"{count:,} kustomizations on {cores()} cores ({kubectl})",
        [
            ["", "seconds", "CPU seconds", "each"],
            told("the bare program", bare, count),
            [*told("cold", cold, count), f"expected {expected:.1f} s: {verdict(cold[0] <= expected)}"],
            told("after a restart, from disk", warm, count),
            [*told("one file changed", changed, 1), f"expected {CHANGED} s: {verdict(changed[0] <= CHANGED)}"],
        ],
    )


def all_of(renderer: DirectoryRenderer, requests: list[RenderRequest]) -> None:
    renderer.expect(requests)
    for request in requests:
        came = renderer.rendered(request)
        assert came.output, came
    renderer.close()


def bare_runs(top: Path, kubectl: Path, count: int) -> None:
    """The program by itself, without a sandbox, on files that are there."""
    for number in range(count):
        for path, content in overlay(number).items():
            file = top / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    environment = {**os.environ, "KUBECONFIG": "/nowhere"}

    def run(number: int) -> None:
        place = top / f"workspaces/root/w{number}/app"
        subprocess.run([kubectl, "kustomize", "."], cwd=place, env=environment, capture_output=True, check=True)

    with ThreadPoolExecutor(cores()) as pool:
        list(pool.map(run, range(count)))


def timed(work: Callable[[], None]) -> tuple[float, float]:
    began, cpu = time.perf_counter(), spent()
    work()
    return time.perf_counter() - began, spent() - cpu


def told(name: str, took: tuple[float, float], count: int) -> list[str]:
    return [name, f"{took[0]:.2f}", f"{took[1]:.2f}", f"{took[0] / count * 1000:.1f} ms"]


if __name__ == "__main__":
    main()
