"""`treeplane pin`, `suspend` and `resume`: what they write in a clone, and what they refuse."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from support.loadedfleet import A, LoadedFleet, configmap
from support.sourcedfleet import SHOP, SourcedFleet, TenantRepos, sourcing

from apiserver.model import clock
from apiserver.registry import pins as shown
from reconciler.__main__ import main
from reconciler.loading import pins

COMMENTED = """\
# ours
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata:
  labels: {a: b}  # kept
"""
C = "workspaces/root/c"


class Clone:
    """Of a fleet's repository, with its status branch."""

    def __init__(self, fleet: LoadedFleet, top: Path) -> None:
        self.fleet, self.top = fleet, top
        fleet.publish()
        subprocess.run(["git", "clone", "--quiet", str(fleet.repo.path), str(top)], check=True)
        self.git("config", "user.name", "ann")
        self.git("config", "user.email", "ann@example.io")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(self.top), *arguments], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def run(self, *words: str, code: int = 0) -> Result:
        """A command of treeplane, with its second word as a directory of the clone."""
        done = CliRunner().invoke(main, [words[0], str(self.top / words[1]), *words[2:]])
        assert done.exit_code == code, done.output
        return done

    def said(self, path: str = A) -> str:
        return (self.top / path / "workspace.yaml").read_text()

    def push(self) -> None:
        self.git("push", "--quiet", "origin", "HEAD:main")
        self.fleet.load()

    def fetch(self) -> None:
        self.fleet.publish()
        self.git("fetch", "--quiet")


@pytest.fixture
def clone(fleet: LoadedFleet, tmp_path: Path) -> Clone:
    """The first commit has `a: b` in root:a, the second `a: new`, and a comment in its workspace.yaml."""
    fleet.commit({f"{A}/workspace.yaml": COMMENTED, f"{A}/app.yaml": configmap(a="new")})
    return Clone(fleet, tmp_path / "clone")


def test_pin_is_a_commit_to_workspace_yaml_and_resume_takes_it_back(clone: Clone) -> None:
    first, before = clone.fleet.repo.commits[0], clone.git("rev-parse", "HEAD")
    done = clone.run("pin", A, "HEAD^", "--reason", "the new one fails")
    made = clone.git("rev-parse", "HEAD")
    assert done.output == (
        f"the pin of root:a is created: commit {first[:10]}\n"
        f"{A}/workspace.yaml says so in commit {made[:10]}: git push\n"
    )
    lines = f"spec:\n  serve:\n    commit: {first}\n    reason: the new one fails\n"
    assert clone.said() == COMMENTED + lines
    assert clone.git("rev-parse", "HEAD^") == before
    assert clone.git("show", "--format=%an: %B", "--name-only") == (
        f"ann: Pin root:a to {first[:10]}\n\nthe new one fails\n\n\n{A}/workspace.yaml"
    )
    clone.push()
    assert clone.fleet.data("root:a") == {"a": "b"}
    assert shown.in_short(clone.fleet.workspace("root:a")) == first[:10]
    done = clone.run("resume", A)
    assert done.output.startswith("the pin of root:a is deleted\n")
    assert clone.said() == COMMENTED
    assert clone.git("show", "--format=%s", "--no-patch") == "Resume root:a"
    clone.push()
    assert clone.fleet.data("root:a") == {"a": "new"}


def test_a_dry_run_shows_the_file_and_commits_nothing(clone: Clone) -> None:
    first, before = clone.fleet.repo.commits[0], clone.git("rev-parse", "HEAD")
    lines = f"spec:\n  serve:\n    commit: {first}\n"
    shown = clone.run("pin", A, "HEAD^", "--dry-run", "-o", "yaml").output
    assert shown == f"# {A}/workspace.yaml\n{COMMENTED}{lines}"
    assert (
        clone.run("pin", A, "HEAD^", "--dry-run").output == f"the pin of root:a would be created: commit {first[:10]}\n"
    )
    assert "would be created" in clone.run("suspend", A, "--dry-run").output
    assert "would be unchanged" in clone.run("resume", A, "--dry-run").output
    assert (clone.git("rev-parse", "HEAD"), clone.git("status", "--porcelain")) == (before, "")


def test_it_says_what_it_did_as_data(clone: Clone) -> None:
    first = clone.fleet.repo.commits[0]
    done = clone.run("pin", A, first, "--until", "2100-01-01T01:00:00+01:00", "-o", "json")
    made = clone.git("rev-parse", "HEAD")
    pin = {"commit": first, "until": "2100-01-01T00:00:00Z"}
    file = f"{A}/workspace.yaml"
    found = {"workspace": "root:a", "file": file, "change": "created", "pin": pin, "commit": made}
    assert json.loads(done.output) == found
    again = clone.run("pin", A, first, "--until", pin["until"], "-o", "yaml")
    assert yaml.safe_load(again.output) == {**found, "change": "unchanged", "commit": ""}
    assert clone.git("rev-parse", "HEAD") == made
    changed = clone.run("pin", A, first, "-o", "json")
    assert json.loads(changed.output)["change"] == "configured"
    gone = json.loads(clone.run("resume", A, "-o", "json").output)
    assert (gone["change"], gone["pin"]) == ("deleted", None)
    assert clone.run("resume", A).output == "the pin of root:a is unchanged\nnothing to commit\n"


def test_suspend_is_a_pin_to_what_is_served(clone: Clone) -> None:
    served = clone.fleet.repo.head
    clone.run("suspend", A, "--until", "2h", "--reason", "a freeze")
    said = yaml.safe_load(clone.said())["spec"]["serve"]
    assert (said["commit"], said["reason"]) == (served, "a freeze")
    assert 7100 < clock.parse(said["until"]).timestamp() - pins.now() < 7300
    assert clone.git("show", "--format=%s", "--no-patch") == f"Suspend root:a at {served[:10]}"
    clone.push()
    clone.fleet.commit({f"{A}/app.yaml": configmap(a="later")})
    assert (clone.fleet.held(), clone.fleet.data("root:a")) == ({}, {"a": "new"})


def test_of_one_that_is_held_or_pinned_that_is_the_commit_it_stays_at(clone: Clone) -> None:
    good = clone.fleet.repo.head
    clone.fleet.commit({f"{A}/app.yaml": "broken: [\n"})
    clone.fleet.commit({"workspaces/root/later.yaml": configmap("later")})
    clone.fetch()
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.run("suspend", A)
    assert yaml.safe_load(clone.said())["spec"]["serve"] == {"commit": good}
    clone.push()
    assert (clone.fleet.held(), clone.fleet.data("root:a")) == ({}, {"a": "new"})
    clone.fetch()
    clone.run("suspend", A, "--reason", "still")
    assert yaml.safe_load(clone.said())["spec"]["serve"] == {"commit": good, "reason": "still"}


def test_a_clone_that_lacks_what_is_served_has_to_have_it_first(clone: Clone) -> None:
    clone.fleet.commit({f"{A}/app.yaml": configmap(a="later")})
    clone.fetch()
    said = clone.run("suspend", A, code=1).output
    assert "which the branch never was at before this commit" in said
    assert "git pull" in said


def test_without_a_status_branch_it_is_the_head(clone: Clone) -> None:
    clone.git("branch", "--quiet", "-r", "-d", "origin/treeplane/status")
    head = clone.git("rev-parse", "HEAD")
    clone.run("suspend", A)
    assert yaml.safe_load(clone.said())["spec"]["serve"] == {"commit": head}
    clone.run("suspend", A, "--reason", "still")
    assert yaml.safe_load(clone.said())["spec"]["serve"]["commit"] == head


def test_a_workspace_is_named_by_its_path_as_well(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(clone.top)
    done = CliRunner().invoke(main, ["pin", "root:a", "HEAD"])
    assert (done.exit_code, done.output.splitlines()[0].startswith("the pin of root:a is created")) == (0, True)
    done = CliRunner().invoke(main, ["suspend", "root"])
    assert done.exit_code == 0, done.output
    assert "kind: Workspace" in clone.said("workspaces/root")
    clone.push()
    assert clone.fleet.held() == {}
    assert clone.fleet.record("root").pin["commit"]


def test_a_pin_to_what_never_was_is_refused_with_what_to_do(clone: Clone) -> None:
    for rev, said in {
        "nowhere": "nowhere names no commit, or several: git rev-parse: ",
        "--all": "names no commit",
        "origin/treeplane/status": "in which root:a was not there",
    }.items():
        done = clone.run("pin", A, "--", rev, code=1 if "status" in rev else 2)
        assert said in done.output
    assert "treeplane resume" in done.output
    clone.fleet.commit({f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap()})
    clone.fetch()
    clone.git("merge", "--quiet", "origin/main")
    done = clone.run("pin", C, "HEAD^", code=1)
    assert f"HEAD^ is {clone.git('rev-parse', 'HEAD^')[:10]}, in which root:c was not there" in done.output
    clone.fleet.delete({A: None})
    clone.fleet.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap()})
    clone.fetch()
    clone.git("merge", "--quiet", "origin/main")
    done = clone.run("pin", A, clone.fleet.repo.commits[0], code=1)
    assert "another workspace was root:a then" in done.output
    assert clone.git("status", "--porcelain") == ""


def test_what_else_is_refused(clone: Clone) -> None:
    assert "is no workspace of commit" in clone.run("pin", "workspaces", "HEAD", code=2).output
    assert "is over" in clone.run("pin", A, "HEAD", "--until", "2001-01-01T00:00:00Z", code=2).output
    for text in ("tomorrow", "2030-01-01T00:00:00", "5", "999999w"):
        assert "is no time" in clone.run("pin", A, "HEAD", "--until", text, code=2).output
    assert "one line" in clone.run("pin", A, "HEAD", "--reason", "a\nb", code=2).output
    (clone.top / A / "workspace.yaml").write_text(f"{COMMENTED}# more\n")
    assert "has changes that are in no commit" in clone.run("pin", A, "HEAD", code=2).output
    clone.git("add", ".")
    assert "has changes that are in no commit" in clone.run("resume", A, code=2).output


def test_other_changes_of_the_work_tree_are_left_alone(clone: Clone) -> None:
    (clone.top / A / "app.yaml").write_text(configmap(a="mine"))
    clone.git("add", ".")
    clone.run("pin", A, "HEAD^")
    assert clone.git("show", "--format=", "--name-only") == f"{A}/workspace.yaml"
    assert clone.git("status", "--porcelain") == f"M  {A}/app.yaml"


def test_a_pinned_workspace_is_not_moved(clone: Clone) -> None:
    clone.run("pin", A, "HEAD^")
    done = CliRunner().invoke(main, ["mv", str(clone.top / A), str(clone.top / C)])
    assert (done.exit_code, f"treeplane resume {A}" in done.output) == (2, True)


def test_validate_knows_what_is_pinned(clone: Clone) -> None:
    clone.run("pin", A, "HEAD^")
    (clone.top / A / "app.yaml").write_text("broken: [\n")
    done = CliRunner().invoke(main, ["validate", str(clone.top)])
    assert (done.exit_code, done.output) == (0, "no errors in 4 workspaces\n")
    clone.git("commit", "--quiet", "-am", "Break")
    for words in (["--rev", "HEAD"], ["--rev", "HEAD", "-w", "root:a"]):
        done = CliRunner().invoke(main, ["validate", str(clone.top), *words])
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["diff", "-C", str(clone.top)])
    assert done.exit_code == 1, done.output
    assert "root:a" in done.output
    clone.run("resume", A)
    done = CliRunner().invoke(main, ["validate", str(clone.top)])
    assert (done.exit_code, f"{A}/app.yaml:" in done.output) == (1, True)


@pytest.fixture
def sourced(tmp_path: Path) -> Iterator[tuple[SourcedFleet, Clone]]:
    """root:a comes from SHOP, and a clone of its fleet."""
    made = SourcedFleet(tmp_path / "sourced", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="shop")})
    made.source()
    yield made, Clone(made, tmp_path / "of-sourced")
    made.close()


def test_one_whose_content_comes_from_a_tenants_repository_is_suspended_at_what_is_served(
    sourced: tuple[SourcedFleet, Clone],
) -> None:
    fleet, clone = sourced
    served = fleet.tenants.at(SHOP).head
    fleet.push({"deploy/app.yaml": configmap(a="later")})
    clone.run("suspend", A)
    assert served in clone.said()
    clone.push()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "shop"})
    clone.run("resume", A)
    clone.push()
    assert fleet.data("root:a") == {"a": "later"}


def test_it_is_pinned_to_a_full_id_that_cannot_be_checked_here(sourced: tuple[SourcedFleet, Clone]) -> None:
    fleet, clone = sourced
    then = fleet.tenants.at(SHOP).head
    fleet.push({"deploy/app.yaml": configmap(a="later")})
    said = clone.run("pin", A, "HEAD", code=1).output
    assert f"the content of root:a comes from {SHOP} (branch main, deploy/), and HEAD is no full id" in said
    done = clone.run("pin", A, then)
    assert f"whether {SHOP} (branch main, deploy/) ever was at it cannot be checked here" in done.output
    assert json.loads(clone.run("pin", A, then, "-o", "json").output)["change"] == "unchanged"
    clone.push()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "shop"})


def test_what_is_served_of_it_the_status_branch_says_alone(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.commit({f"{A}/app.yaml": None, f"{A}/workspace.yaml": sourcing()})
    clone = Clone(fleet, tmp_path / "unknown")
    said = clone.run("suspend", A, code=1).output
    assert f"nothing of {SHOP} (branch main, deploy/) is served of root:a" in said
    clone.git("update-ref", "-d", "refs/remotes/origin/treeplane/status")
    assert "the status branch alone says" in clone.run("suspend", A, code=1).output
    assert clone.said() == sourcing()
