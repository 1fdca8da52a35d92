"""The comparing step of each job in examples/ci, run as its shell would run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.loadedfleet import A, LoadedFleet, configmap

EXAMPLES = Path(__file__).parents[4] / "examples" / "ci"


def run(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", **variables}
    return subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)


def steps(file: str, job: str) -> list[Any]:
    found = yaml.safe_load((EXAMPLES / file).read_text())["jobs"][job]["steps"]
    return [each for each in found if each.get("name") == "Compare"]


@pytest.fixture
def clone(fleet: LoadedFleet, tmp_path: Path) -> Path:
    """Of a fleet in which number 7 proposes something bad."""
    served = fleet.repo.head
    proposed = fleet.repo.commit({f"{A}/app.yaml": configmap(a="c"), f"{A}/bad.yaml": "kind: ["})
    fleet.repo.reset(served)
    git = ["git", "-C", str(fleet.repo.path)]
    for ref in ("refs/merge-requests/7/head", "refs/pull/7/head"):
        run([*git, "update-ref", ref, proposed], tmp_path)
    assert run(["git", "clone", "--quiet", str(fleet.repo.path), "clone"], tmp_path).returncode == 0
    folder = tmp_path / "clone"
    run(["git", "fetch", "--quiet", "origin", "+refs/pull/7/head:refs/remotes/pull/7"], folder)
    run(["git", "switch", "--quiet", "--detach", proposed], folder)
    return folder


def test_github(clone: Path, tmp_path: Path) -> None:
    [step] = steps("github/fleet-diff.yml", "diff")
    said = tmp_path / "env"
    done = run(["bash", "-e", "-c", step["run"]], clone, BASE="main", GITHUB_ENV=str(said))
    assert done.returncode == 0, done.stderr
    assert said.read_text() == "code=3\n"
    assert "### Workspace `root:a` would be held" in (clone / "diff.md").read_text()


def test_gitea(clone: Path) -> None:
    [step] = steps("gitea/fleet.yml", "diff")
    (clone / "pulls").write_text("7 main\n8 main\n")
    done = run(["bash", "-e", "-c", step["run"]], clone)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (clone / "diffs").iterdir()] == ["7.md"], "of one that is not there is none"
    assert "### Workspace `root:a` would be held" in (clone / "diffs/7.md").read_text()


def test_gitlab(clone: Path, tmp_path: Path) -> None:
    install, script = yaml.safe_load((EXAMPLES / "gitlab/.gitlab-ci.yml").read_text())["fleet-diff"]["script"]
    assert install == "pip install treeplane"
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"object_attributes": {"iid": 7, "target_branch": "main"}}))
    done = run(["bash", "-e", "-c", script], clone, TRIGGER_PAYLOAD=str(event))
    assert done.returncode == 0, done.stderr
    assert "### Workspace `root:a` would be held" in (clone / "diff.md").read_text()


@pytest.mark.parametrize("file", ["github/fleet-drill.yml", "gitea/fleet-drill.yml"])
def test_drills(clone: Path, file: str) -> None:
    """In what a runner checks out: one commit, and all branches as those of the origin."""
    [step] = [each for each in yaml.safe_load((EXAMPLES / file).read_text())["jobs"]["drill"]["steps"] if "env" in each]
    done = run(["bash", "-e", "-c", step["run"]], clone, BRANCH="main")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("recovery gives what is recorded, byte for byte: 4 workspaces\n")


def test_a_drill_on_gitlab(clone: Path) -> None:
    install, *script = yaml.safe_load((EXAMPLES / "gitlab/.gitlab-ci.yml").read_text())["fleet-drill"]["script"]
    assert install == "pip install treeplane"
    done = run(["bash", "-e", "-c", "\n".join(script)], clone, CI_DEFAULT_BRANCH="main")
    assert done.returncode == 0, done.stderr
