"""The jobs of examples/ci for a fleet: who reads a stranger's branch has no secret and may write nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.commands.comment import comment

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "ci"
FILES = sorted(each for each in FOLDER.rglob("*.yml"))

READING = {
    "github/fleet-diff.yml": "diff",
    "gitlab/.gitlab-ci.yml": "fleet-diff",
    "gitea/fleet.yml": "diff",
}
COMMENTING = {
    "github/fleet-comment.yml": "comment",
    "gitlab/.gitlab-ci.yml": "fleet-comment",
    "gitea/fleet.yml": "comment",
}
DRILLING = {
    "github/fleet-drill.yml": "drill",
    "gitlab/.gitlab-ci.yml": "fleet-drill",
    "gitea/fleet-drill.yml": "drill",
}
PREVIEWING = {f"{forge}/fleet-preview.yml" for forge in ("github", "gitlab", "gitea")}
"""See test_preview_jobs."""
ACTIONS = [each for each in FILES if "gitlab" not in str(each)]


def named(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def job(name: str, key: str) -> dict[str, Any]:
    file = named(name)
    found = file.get("jobs", file)[key]
    assert isinstance(found, dict)
    return found


def scripts(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each script of a job, with the variables that it gets besides everybody's."""
    if "script" in found:
        yield "\n".join(found["script"]), found.get("variables", {})
    for step in found.get("steps", ()):
        if "run" in step:
            yield step["run"], step.get("env", {})


def rights(name: str, key: str) -> dict[str, str]:
    """Of the token that a forge makes for a job."""
    found = job(name, key).get("permissions", named(name).get("permissions"))
    assert isinstance(found, dict), "without a word it may be anything"
    return found


def test_all_files_are_looked_at() -> None:
    assert {str(each.relative_to(FOLDER)) for each in FILES} == {*READING, *COMMENTING, *DRILLING, *PREVIEWING}


@pytest.mark.parametrize(("name", "key"), DRILLING.items())
def test_who_drills_reads_and_has_no_secret(name: str, key: str) -> None:
    found = job(name, key)
    assert any("treeplane drill" in script for script, _ in scripts(found))
    assert not re.search(r"secrets|TOKEN|--keys", yaml.safe_dump(found))
    if "gitlab" not in name:
        assert rights(name, key) == {"contents": "read"}
        assert set(named(name)[True]) == {"schedule", "workflow_dispatch"}, "nobody's pull request starts it"
        [checkout] = [step for step in found["steps"] if "actions/checkout" in step.get("uses", "")]
        assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_no_trigger_has_secrets_and_the_strangers_branch(file: Path) -> None:
    assert "pull_request_target" not in file.read_text()


@pytest.mark.parametrize(("name", "key"), READING.items())
def test_who_reads_has_no_secret(name: str, key: str) -> None:
    found = job(name, key)
    assert any("treeplane diff" in script for script, _ in scripts(found))
    assert not re.search(r"secrets|GITLAB_TOKEN|treeplane comment", yaml.safe_dump(found))
    assert "environment" not in found, "variables may belong to one"
    for step in found.get("steps", ()):
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
            assert step["with"]["fetch-depth"] == 0


@pytest.mark.parametrize(("name", "key"), READING.items())
def test_no_script_that_reads_has_a_token(name: str, key: str) -> None:
    for script, variables in scripts(job(name, key)):
        if "treeplane diff" in script:
            assert not re.search("token", f"{script}{variables}", re.IGNORECASE)


@pytest.mark.parametrize(("name", "key"), [each for each in READING.items() if "gitlab" not in each[0]])
def test_the_token_of_who_reads_may_only_read(name: str, key: str) -> None:
    assert set(rights(name, key).values()) == {"read"}


@pytest.mark.parametrize(("name", "key"), COMMENTING.items())
def test_who_comments_reads_nothing_of_the_stranger(name: str, key: str) -> None:
    found = job(name, key)
    text = yaml.safe_dump(found)
    assert "treeplane comment" in text
    assert not re.search(r"actions/checkout|git (fetch|clone|checkout)|treeplane diff", text)
    if "gitlab" in name:
        assert found["variables"]["GIT_STRATEGY"] == "none"


def test_on_github_who_comments_may_do_just_that() -> None:
    assert rights("github/fleet-comment.yml", "comment") == {"actions": "read", "pull-requests": "write"}
    file = named("github/fleet-comment.yml")
    assert file["permissions"] == {}
    assert set(file[True]) == {"workflow_run"}, "`on`, which YAML takes for true"
    assert set(named("github/fleet-diff.yml")[True]) == {"pull_request"}
    assert file[True]["workflow_run"]["workflows"] == [named("github/fleet-diff.yml")["name"]]


def test_the_number_is_the_forges_word() -> None:
    steps = job("github/fleet-comment.yml", "comment")["steps"]
    found = next(step for step in steps if step.get("name") == "Comment")
    assert found["env"]["NUMBER"] == "${{ steps.pull.outputs.number }}"
    [at] = [index for index, step in enumerate(steps) if "download-artifact" in step.get("uses", "")]
    assert any(step.get("id") == "pull" for step in steps[:at]), "it is known before the stranger's file is there"


@pytest.mark.parametrize("file", ACTIONS, ids=str)
def test_no_script_has_a_strangers_word_in_it(file: Path) -> None:
    for found in yaml.safe_load(file.read_text())["jobs"].values():
        assert not any("${{" in script for script, _ in scripts(found))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_scripts_are_scripts_and_know_their_program(file: Path) -> None:
    jobs = yaml.safe_load(file.read_text())
    known = {name for each in comment.params for name in each.opts}
    for found in jobs.get("jobs", jobs).values():
        for script, _ in scripts(found) if isinstance(found, dict) else ():
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            for line in re.findall(r"treeplane comment (.*)", script.replace("\\\n", "")):
                assert set(re.findall(r"--[a-z-]+", line)) <= known
