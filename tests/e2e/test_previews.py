"""docs/previews.md, typed as it stands; and what a pull request's manifests, and the job's token, may not do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pages import Step, Typist, steps
from support.plane import COMMAND, Plane, environment, kubectl_program

ROOT = Path(__file__).parents[2]
STEPS = steps(ROOT / "docs" / "previews.md")
OPENED = next(at for at, step in enumerate(STEPS) if "Preview of pull request" in step.typed)
JOB = STEPS[OPENED]._replace(shown="")
NAMESPACES = "/targets/root:infra:local/api/v1/namespaces"

APP = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example/web:1.0.0"}]}
"""
TAKEN = """apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: {name: taken}
spec: {reference: {export: {path: root:team, name: widgets}}}
"""
KEPT = """apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {treeplane.dev/protected: "true"}}
"""
ELSEWHERE = """apiVersion: scheduling.kcp.io/v1alpha1
kind: Placement
metadata: {name: elsewhere}
spec:
  locationSelectors: [{matchLabels: {region: local}}]
  locationResource: {group: workload.kcp.io, version: v1alpha1, resource: synctargets}
  locationWorkspace: root:infra
  namespaceSelector: {}
"""


def configmaps(number: int) -> str:
    """That many, in one file."""
    return "---\n".join(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\n" for n in range(number))


class Scene:
    """The server's machine with a clone, and the checkout of a pull request."""

    def __init__(self, server: Plane, typist: Typist) -> None:
        self.server, self._typist, self.folder = server, typist, server.data.parent

    def type(self, *typed: Step) -> None:
        for step in typed:
            self._typist.type(step)

    def job(self, number: int, manifests: dict[str, str]) -> str:
        """The job makes a preview of these, as the page says; what it was told."""
        self._typist.run(f"cd '{self.folder}'")
        shutil.rmtree(self.folder / "made", ignore_errors=True)
        shutil.rmtree(self.folder / "app")
        for name, text in manifests.items():
            file = self.folder / "app" / "deploy" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return self._typist.run(f"cd '{self.folder}'\nexport NUMBER={number}\n{JOB.typed}")

    def attempt(self, number: int, manifests: dict[str, str]) -> str:
        """What the job was told that came to nothing."""
        with pytest.raises(AssertionError) as failed:
            self.job(number, manifests)
        return str(failed.value)

    def push(self, lines: str) -> str:
        """The job's account pushes what these lines make of the newest commit; what it was told."""
        clone = self.folder / "made"
        begin = f"cd '{clone}'\ngit fetch --quiet\ngit reset --quiet --hard origin/main\n"
        commit = "git add --all\ngit commit --quiet --message 'Something else'\ngit push || true"
        return self._typist.run(f"{begin}{lines}\n{commit}")

    def copies(self) -> list[str]:
        """The workspaces with a namespace on the cluster."""
        items = self.server.get(NAMESPACES)["items"]
        found = [item["metadata"].get("annotations", {}).get("kcp.io/namespace-locator") for item in items]
        return [each for each in found if each]


@pytest.fixture
def scene(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> Iterator[Scene]:
    folder = tmp_path / "machine"
    folder.mkdir()
    path = os.pathsep.join([str(COMMAND.parent), str(Path(kubectl_program()).parent), os.environ["PATH"]])
    typist = Typist(folder, environment(PATH=path), eventually)
    typist.type(Step("treeplane init seed\nmkdir -p app/deploy\n", ""))
    (folder / "app" / "deploy" / "web.yaml").write_text(APP)
    server = plane(folder / "seed", data=folder / ".treeplane")
    server.clone(folder / "fleet")
    return Scene(server, typist)


@pytest.mark.slow
def test_the_page_goes_as_it_is_printed(scene: Scene, eventually: Any) -> None:
    before = eventually(scene.copies, 60, "the team's namespace has a copy")
    scene.type(*STEPS[: OPENED + 2])
    eventually(lambda: len(scene.copies()) == len(before) + 1, 60, "the preview's namespace has a copy")
    assert "previews/pr-7" in recorded(scene, eventually, "pr-7", there=True)

    scene.type(*STEPS[OPENED + 2 :])
    eventually(lambda: scene.copies() == before, 60, "nothing of it is on the cluster")
    assert "previews" not in recorded(scene, eventually, "previews", there=False)
    assert "root:previews" not in scene.server.workspaces()


def recorded(scene: Scene, eventually: Any, name: str, *, there: bool) -> str:
    """The files of the status branch, once a name is among them or is not."""
    work = scene.server.clone(scene.folder / f"status-{name}")

    def files() -> str:
        work.git("fetch", "--quiet")
        return work.git("ls-tree", "-r", "--name-only", "origin/treeplane/status", check=False)

    eventually(lambda: (name in files()) is there and files(), 60, f"{name} is recorded: {there}")
    return files()


@pytest.mark.slow
def test_a_pull_request_decides_on_its_own_preview_alone(scene: Scene, eventually: Any) -> None:
    scene.type(*STEPS[:OPENED])

    # Another Location, and many objects.
    said = scene.job(7, {"web.yaml": APP, "placement.yaml": ELSEWHERE})
    assert "root:previews:pr-7 created" in said
    path = "/clusters/root:previews:pr-7/apis/scheduling.kcp.io/v1alpha1/placements"
    eventually(lambda: phase(scene.server.get(f"{path}/preview")) == "Bound", 60, "its own Placement is bound")
    eventually(lambda: phase(scene.server.get(f"{path}/elsewhere")) == "Pending", 60, "and the other one is not")
    said = scene.job(7, {"web.yaml": APP, "many.yaml": configmaps(60)})
    assert "workspace root:previews:pr-7 held" in said
    assert "may have 50" in said

    # The next pull request is nobody else's matter, and more or less in one does not wait for a word.
    assert "root:previews:pr-8 created" in scene.job(8, {"many.yaml": configmaps(30)})
    assert "is served" in scene.job(8, {"web.yaml": APP})
    assert "is served" in scene.job(7, {"web.yaml": APP})

    # An API that nobody gave to previews, and an object that is not to go.
    assert "Nothing of it is taken" in scene.attempt(9, {"web.yaml": APP, "taken.yaml": TAKEN})
    assert "root:previews:pr-10 created" in scene.job(10, {"kept.yaml": KEPT})
    said = scene.push("git rm -r --quiet workspaces/root/previews/pr-10")
    assert "Allow-Delete: " in said
    assert "root:previews:pr-10" in scene.server.workspaces()

    # What would reach beyond the directory is refused before anything is copied.
    kept = scene.folder / "kept"
    kept.write_text("secret")
    for name in ("workspace.yaml", "below/workspace.json"):
        with pytest.raises(AssertionError, match="find app/deploy"):
            scene.job(9, {"web.yaml": APP, name: "{}"})
        assert not (scene.folder / "made").exists()
    scene.job(9, {"web.yaml": APP})
    shutil.rmtree(scene.folder / "made")
    (scene.folder / "app" / "deploy" / "link.yaml").symlink_to(kept)
    with pytest.raises(AssertionError, match="find app/deploy"):
        scene.type(JOB)


@pytest.mark.slow
def test_the_jobs_token_ends_at_its_place(scene: Scene) -> None:
    scene.type(*STEPS[:OPENED])
    scene.job(7, {"web.yaml": APP})
    previews = "workspaces/root/previews"

    # A workspace below a preview, and one of another type: held, by what root says of the types.
    said = scene.push(f"mkdir {previews}/pr-7/below && touch {previews}/pr-7/below/workspace.yaml")
    assert "root:previews:pr-7:below held" in said
    said = scene.push(f"mkdir {previews}/big\nprintf 'spec: {{type: {{name: universal, path: root}}}}' "
                  f"> {previews}/big/workspace.yaml")  # fmt: skip
    assert "root:previews:big held" in said
    assert "root:previews:big" not in scene.server.workspaces()

    # More than the limit: the job makes none, and goes on with those that are there.
    scene.push(f"for n in $(seq 101 119); do cp -R {previews}/pr-7 {previews}/pr-$n; done")
    with pytest.raises(AssertionError, match="find workspaces"):
        scene.job(120, {"web.yaml": APP})
    assert "is served" in scene.job(119, {"many.yaml": configmaps(2)})

    # The limits themselves, and what is anybody else's.
    for file in ("root/previews/workspace.yaml", "root/preview-types.yaml", "root/infra/previews.yaml"):
        assert "Nothing of it is taken" in scene.push(f"echo '# mine' >> workspaces/{file}")


def phase(placement: dict[str, Any]) -> str:
    return str(placement.get("status", {}).get("phase"))
