"""What becomes of real repositories: each directory with a kustomization or a chart, rendered as Treeplane does it.

Takes clones (work trees or bare repositories) and renders their HEAD, each outermost directory and each kustomization
below it, with the whole repository to be seen:

    python bench/rendering_real.py ../flux2-kustomize-helm-example ../argocd-example-apps

`--kubectl` and `--helm` name the programs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.settings import RenderingBounds, RenderingSettings
from reconciler.repository.objects import Repository, TreeEntry

NAMES = {
    "kustomization.yaml": Tool.KUSTOMIZE,
    "kustomization.yml": Tool.KUSTOMIZE,
    "Kustomization": Tool.KUSTOMIZE,
    "Chart.yaml": Tool.HELM,
}


def files(repo: Repository, tree: str, above: str = "") -> Iterator[tuple[str, TreeEntry]]:
    for entry in repo.entries(tree):
        path = f"{above}{entry.name}"
        if entry.kind == "tree":
            yield from files(repo, entry.id, f"{path}/")
        elif entry.kind != "commit":
            yield path, entry


def rendered_below(directory: str, seen: list[tuple[str, TreeEntry]]) -> list[tuple[str, TreeEntry]]:
    return [(path, entry) for path, entry in seen if path.startswith(f"{directory}/") or not directory]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("clones", nargs="+", type=Path)
    options.add_argument("--kubectl", type=Path)
    options.add_argument("--helm", type=Path)
    options.add_argument("--output", type=int, default=3, metavar="MIB", help="what one may print")
    told = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        bounds = RenderingBounds(files=50_000, output=told.output << 20)
        settings = RenderingSettings(Path(scratch) / "cache", told.kubectl, told.helm, bounds=bounds)
        renderer = DirectoryRenderer(settings)
        for tool in Tool:
            print(f"{tool}: {renderer.version(tool) or 'does not run here'}")
        for clone in told.clones:
            report(renderer, clone)
        renderer.close()


def report(renderer: DirectoryRenderer, clone: Path) -> None:
    repo = Repository(clone)
    head = repo.resolve("HEAD")
    assert head is not None, f"{clone} has no HEAD"
    seen = list(files(repo, repo.commit(head).tree))
    good, spent = 0, 0.0
    places = [
        (path.rpartition("/")[0], NAMES[path.rpartition("/")[2]])
        for path, _ in seen
        if path.rpartition("/")[2] in NAMES
    ]
    print(f"\n{clone} at {head[:7]}: {len(seen)} files, {len(places)} directories to render")
    for directory, tool in places:
        shown = seen if tool is Tool.KUSTOMIZE else rendered_below(directory, seen)
        request = RenderRequest(tool, directory, repo, lambda shown=shown: shown, f"{head}:{directory}")
        began = time.perf_counter()
        came = renderer.rendered(request)
        took = time.perf_counter() - began
        spent += took
        good += not came.fault
        what = f"{len(came.output):>9,} bytes" if not came.fault else f"{came.fault}\n      -> {came.hint}"
        print(f"{took * 1000:6.0f} ms {tool:9} {directory or '.'}: {what}")
    print(f"{good} of {len(places)} render, {spent:.1f} s")


if __name__ == "__main__":
    main()
