"""`treeplane mv`, and what `treeplane validate` and a push say of directories that are elsewhere."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.loadedfleet import A, LoadedFleet, configmap

from reconciler.__main__ import main
from reconciler.commands.answers import told
from reconciler.commands.failure import Failure
from reconciler.commands.mv import move
from reconciler.commands.validate import validate_revision

C = "workspaces/root/c"
COMMENTED = """\
# ours
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata:
  labels: {a: b}  # kept
"""


class Clone:
    """Of a fleet's repository, with its status branch."""

    def __init__(self, fleet: LoadedFleet, top: Path) -> None:
        fleet.publish()
        self.fleet, self.top = fleet, top
        subprocess.run(["git", "clone", "--quiet", str(fleet.repo.path), str(top)], check=True)

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.io"]
        done = subprocess.run(
            ["git", "-C", str(self.top), *who, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout

    def move(self, old: str, new: str) -> str:
        return move(self.top / old, self.top / new).render("text")

    def push(self) -> None:
        self.git("commit", "--quiet", "-m", "Move")
        self.git("push", "--quiet", "origin", "HEAD:main")
        self.fleet.load()


@pytest.fixture
def clone(fleet: LoadedFleet, tmp_path: Path) -> Clone:
    fleet.commit({f"{A}/workspace.yaml": COMMENTED, f"{A}/kid/workspace.yaml": "", f"{A}/kid/k.yaml": configmap()})
    return Clone(fleet, tmp_path / "clone")


def test_what_it_did_or_would_do_is_data(clone: Clone) -> None:
    uid = clone.fleet.workspace("root:a")["metadata"]["uid"]
    ran = CliRunner().invoke(main, ["mv", str(clone.top / A), str(clone.top / C), "--dry-run", "-o", "yaml"])
    assert ran.output == f"# {C}/workspace.yaml\n{COMMENTED}  uid: {uid}\n"
    assert clone.git("status", "--porcelain") == ""
    assert "would be" in move(clone.top / A, clone.top / C, dry=True).render("text")
    found = json.loads(move(clone.top / A, clone.top / C).render("json"))
    assert found == {"from": A, "to": C, "file": f"{C}/workspace.yaml", "uid": uid}


def test_it_moves_the_directory_and_says_which_workspace_it_is(clone: Clone) -> None:
    uid = clone.fleet.workspace("root:a")["metadata"]["uid"]
    said = clone.move(A, C)
    assert said.startswith(f"{A} is {C} from the next commit on")
    assert (clone.top / C / "workspace.yaml").read_text() == COMMENTED + f"  uid: {uid}\n"
    assert not (clone.top / A).exists()
    clone.push()
    assert clone.fleet.held() == {}
    assert clone.fleet.workspace("root:c")["metadata"]["uid"] == uid
    assert clone.fleet.data("root:c:kid") == {"a": "b"}


def test_again_it_leaves_what_is_said(clone: Clone) -> None:
    uid = clone.fleet.workspace("root:a:kid")["metadata"]["uid"]
    clone.move(f"{A}/kid", f"{C}x")
    clone.git("commit", "--quiet", "-m", "Move")
    clone.move(f"{C}x", f"{A}/group/kid2")
    clone.push()
    assert clone.fleet.workspace("root:a:kid2")["metadata"]["uid"] == uid
    clone.fleet.publish()
    clone.git("fetch", "--quiet")
    clone.move(f"{A}/group/kid2", f"{A}/kid")
    clone.push()
    assert clone.fleet.workspace("root:a:kid")["metadata"]["uid"] == uid


def test_one_in_a_workspace_that_moved_is_known_too(clone: Clone) -> None:
    clone.move(A, C)
    clone.push()
    clone.fleet.publish()
    clone.git("fetch", "--quiet")
    uid = clone.fleet.workspace("root:c:kid")["metadata"]["uid"]
    clone.move(f"{C}/kid", f"{C}/other")
    clone.push()
    assert clone.fleet.held() == {}
    assert clone.fleet.workspace("root:c:other")["metadata"]["uid"] == uid


def test_what_it_does_not_do(clone: Clone) -> None:
    with pytest.raises(Failure, match="is there already"):
        clone.move(A, "workspaces/root/b")
    with pytest.raises(Failure, match="is no workspace: those that move stand below workspaces/root/"):
        clone.move("workspaces/root", C)
    (clone.top / A / "app.yaml").write_text("a: b\n")
    with pytest.raises(Failure, match="has changes that are in no commit"):
        clone.move(A, C)
    clone.git("checkout", "--quiet", ".")
    clone.git("branch", "--quiet", "-r", "-d", "origin/treeplane/status")
    with pytest.raises(Failure, match="no status branch") as raised:
        clone.move(A, C)
    assert "git fetch" in str(raised.value)


def test_validate_tells_moves_from_renames(clone: Clone) -> None:
    clone.move(A, C)
    clone.git("commit", "--quiet", "-m", "Move")
    checked = validate_revision(clone.top, "HEAD")
    assert checked.problems == ()
    assert checked.render("text").startswith("root:a moves to root:c\n")
    assert json.loads(checked.render("json"))["moves"] == [{"from": "root:a", "to": "root:c", "moved": True}]
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.git("mv", A, C)
    clone.git("commit", "--quiet", "-m", "Rename")
    checked = validate_revision(clone.top, "HEAD")
    assert "treeplane mv" in checked.render("text")
    [found] = json.loads(checked.render("json"))["moves"]
    assert (found["from"], found["to"], found["moved"]) == ("root:a", "root:c", False)
    assert set(checked.refused) == {"root:a"}


def test_a_branch_that_is_behind_what_is_served_is_validated_without_the_uids(clone: Clone) -> None:
    clone.move(A, C)
    clone.git("commit", "--quiet", "-m", "Move")
    clone.fleet.commit({"workspaces/root/later.yaml": configmap("later")})
    clone.fleet.publish()
    clone.git("fetch", "--quiet")
    checked = validate_revision(clone.top, "HEAD")
    assert (checked.problems, checked.moves) == ((), {"root:a": "root:c"})


def test_who_pushes_is_told(clone: Clone) -> None:
    clone.move(A, C)
    clone.git("commit", "--quiet", "-m", "Move")
    clone.git("push", "--quiet", "origin", "HEAD:main")
    lines = [*told(clone.fleet.load())]
    assert "workspace root:a moved to root:c" in lines
    assert "2 moved" in lines[0]
