"""The jobs of examples/ci that make and remove previews: whom they are for, what they may, and their scripts, run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.pages import steps

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "ci"
ACTIONS = ("github/fleet-preview.yml", "gitea/fleet-preview.yml")
GITLAB = "gitlab/fleet-preview.yml"
MAKE, REMOVE = "Preview of pull request", "is closed"
KEYS = {MAKE: ("make", "fleet-preview"), REMOVE: ("remove", "fleet-preview-remove")}
BOTH = pytest.mark.parametrize("says", [MAKE, REMOVE])


def named(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def job(name: str, says: str) -> Any:
    of_actions, of_gitlab = KEYS[says]
    return named(name)[of_gitlab] if name == GITLAB else named(name)["jobs"][of_actions]


def scripts(found: Any) -> list[str]:
    return found["script"] if "script" in found else [step["run"] for step in found["steps"] if "run" in step]


@BOTH
@pytest.mark.parametrize("name", [*ACTIONS, GITLAB])
def test_a_preview_is_made_and_removed_as_the_page_says(name: str, says: str) -> None:
    typed = [step.typed for step in steps(ROOT / "docs" / "previews.md") if says in step.typed]
    assert [script for script in scripts(job(name, says)) if "git clone" in script] == typed


@BOTH
@pytest.mark.parametrize("name", ACTIONS)
def test_a_preview_is_for_no_stranger(name: str, says: str) -> None:
    """A fork's pull request gets none, the number is the forge's, and one step alone has the token."""
    file, found = named(name), job(name, says)
    assert set(file[True]) == {"pull_request"}, "`on`, which YAML takes for true"
    assert file["permissions"] == {"contents": "read"}
    assert "permissions" not in found
    assert file["env"]["NUMBER"] == "${{ github.event.pull_request.number }}"
    assert "github.event.pull_request.head.repo.full_name == github.repository" in found["if"].split(" && ")
    [holder] = [step for step in found["steps"] if "secrets." in yaml.safe_dump(step)]
    assert "secrets." not in yaml.safe_dump([file["env"], found.get("env", {})])
    assert not re.search(r"app/(?!deploy)|bash|treeplane |make ", holder["run"]), "nothing of the branch is run"
    for step in found["steps"]:
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"] == {"path": "app", "persist-credentials": False}


@BOTH
def test_on_gitlab_it_is_for_no_stranger(says: str) -> None:
    """The token belongs to the environment, which these two jobs have, and each is of a branch of the project."""
    found, common = job(GITLAB, says), named(GITLAB)[".fleet-preview"]
    [rule] = found["rules"]
    asked = set(rule["if"].split(" && "))
    assert asked == {
        '$CI_PIPELINE_SOURCE == "merge_request_event"',
        "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID",
    }
    assert (found["extends"], common["variables"]) == (".fleet-preview", {"NUMBER": "$CI_MERGE_REQUEST_IID"})
    assert "$CI_MERGE_REQUEST_IID" in common["resource_group"], "one after another"
    assert found["environment"]["name"] == "preview/$CI_MERGE_REQUEST_IID"
    assert not re.search(r"app/(?!deploy)|bash|treeplane |make ", "\n".join(found["script"]))


def test_on_gitlab_the_end_of_a_merge_request_removes_it() -> None:
    made, removed = job(GITLAB, MAKE), job(GITLAB, REMOVE)
    assert made["environment"]["on_stop"] == KEYS[REMOVE][1]
    assert removed["environment"]["action"] == "stop"
    assert removed["variables"] == {"GIT_STRATEGY": "none"}, "the branch may be gone"
    assert (removed["rules"][0]["when"], removed["rules"][0]["allow_failure"]) == ("manual", True)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A bare repository with a place for previews."""
    bare = tmp_path / "fleet.git"
    place = tmp_path / "seed/workspaces/root/previews"
    place.mkdir(parents=True)
    (place / "workspace.yaml").write_text("")
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "seed")
    git(tmp_path / "seed", "add", ".")
    git(tmp_path / "seed", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "x")
    git(tmp_path, "clone", "--quiet", "--bare", "seed", str(bare))
    return bare


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def files(fleet: Path) -> set[str]:
    return set(git(fleet, "ls-tree", "-r", "--name-only", "main", "workspaces/root/previews").split())


@pytest.fixture
def runs(fleet: Path, tmp_path: Path) -> Callable[[str, str], int]:
    """Runs the scripts of a job as its forge does, with what it checks out; the exit code."""
    checkout = tmp_path / "work" / "app"
    (checkout / "deploy").mkdir(parents=True)
    (checkout / "deploy/web.yaml").write_text("web")
    (tmp_path / "tmp").mkdir()

    def run(name: str, says: str) -> int:
        found = job(name, says)
        text = "\n".join(scripts(found)) if name == GITLAB else "\n".join(s for s in scripts(found) if "git clone" in s)
        env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        env |= {"FLEET_URL": str(fleet), "FLEET_TOKEN": "t", "FLEET_CA": "/nowhere", "NUMBER": "7"}
        env |= {"CI_PROJECT_DIR": str(checkout), "TMPDIR": str(tmp_path / "tmp")}
        words = ["bash", "-e", "-o", "pipefail", "-c", text]
        done = subprocess.run(words, cwd=checkout if name == GITLAB else checkout.parent, env=env, check=False)
        return done.returncode

    return run


@pytest.mark.parametrize("name", [*ACTIONS, GITLAB])
def test_it_is_made_and_removed(name: str, fleet: Path, runs: Callable[[str, str], int]) -> None:
    before = files(fleet)
    assert runs(name, MAKE) == 0
    top = "workspaces/root/previews/pr-7"
    assert files(fleet) - before == {
        f"{top}/{each}" for each in ("deploy/web.yaml", "workspace.yaml", "placement.yaml")
    }
    assert runs(name, REMOVE) == 0
    assert files(fleet) == before


@pytest.mark.parametrize("name", [*ACTIONS, GITLAB])
def test_a_link_or_a_workspaces_file_of_the_branch_is_refused(
    name: str, fleet: Path, tmp_path: Path, runs: Callable[[str, str], int]
) -> None:
    before, deploy = files(fleet), tmp_path / "work/app/deploy"
    (deploy / "link.yaml").symlink_to("/etc/passwd")
    assert runs(name, MAKE) != 0
    (deploy / "link.yaml").unlink()
    (deploy / "workspace.yaml").write_text("")
    assert runs(name, MAKE) != 0
    assert files(fleet) == before
