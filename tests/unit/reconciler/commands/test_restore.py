"""`treeplane restore`: which files come back, what the commit says and does, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.sourcedfleet import SHOP, sourcing

from reconciler.__main__ import main

C = "workspaces/root/c"
KID = f"{A}/kid"
PROTECTED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p, annotations: {treeplane.dev/protected: 'true'}}\n"


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

    def run(self, place: str, *words: str, code: int = 0) -> Result:
        """In the clone. `place`: a directory of it, or a workspace's path."""
        named = place if ":" in place else str(self.top / place)
        before = Path.cwd()
        os.chdir(self.top)
        try:
            done = CliRunner().invoke(main, ["restore", named, *words])
        finally:
            os.chdir(before)
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def write(self, files: dict[str, str | None]) -> None:
        for path, text in files.items():
            file = self.top / path
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)

    def commit(self, files: dict[str, str | None], message: str = "Change") -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def changed(self) -> dict[str, str]:
        """By the last commit: status letters by file."""
        said = self.git("show", "--format=", "--name-status", "--no-renames")
        return {path: letter for letter, path in (line.split("\t") for line in said.splitlines())}

    def read(self, path: str) -> str:
        return (self.top / path).read_text()

    def push(self) -> None:
        self.git("push", "--quiet", "origin", "HEAD:main")
        self.fleet.load()

    def serve(self) -> None:
        """Pushed, loaded, recorded and fetched."""
        self.push()
        self.fleet.publish()
        self.git("fetch", "--quiet")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin({f"{A}/more.yaml": configmap("more"), f"{KID}/workspace.yaml": "", f"{KID}/k.yaml": configmap("k")})
    yield made
    made.close()


@pytest.fixture
def clone(fleet: LoadedFleet, tmp_path: Path) -> Clone:
    return Clone(fleet, tmp_path / "clone")


# -- what comes back


def test_the_own_files_are_as_they_were_and_nobody_elses(clone: Clone) -> None:
    first = clone.head
    clone.commit(
        {
            f"{A}/app.yaml": configmap(a="new"),
            f"{A}/more.yaml": None,
            f"{A}/deep/new.yaml": configmap("new"),
            f"{A}/README.md": "ours\n",
            f"{KID}/k.yaml": configmap("k", a="new"),
            f"{B}/app.yaml": configmap(a="new"),
        }
    )
    clone.serve()
    done = clone.run(A, "--at", "HEAD^")
    assert clone.changed() == {f"{A}/app.yaml": "M", f"{A}/more.yaml": "A", f"{A}/deep/new.yaml": "D"}
    assert not (clone.top / A / "deep").exists()
    assert clone.git("status", "--porcelain") == ""
    assert clone.git("show", "--no-patch", "--format=%an: %B") == (
        f"ann: Restore root:a as of {first[:10]}\n\nRestored-From: {first}"
    )
    assert done.output.startswith(
        f"root:a is configured: as commit {first[:10]} has it\n"
        f"  {A}/app.yaml configured\n  {A}/deep/new.yaml deleted\n  {A}/more.yaml created\n"
    )
    assert f"  ConfigMap default/more created ({A}/more.yaml)\n" in done.output
    assert f"  ConfigMap default/new deleted ({A}/deep/new.yaml)\n" in done.output
    assert done.output.endswith(f"commit {clone.head[:10]} says so: git push\n")
    clone.push()
    assert (clone.fleet.held(), clone.fleet.data("root:a")) == ({}, {"a": "b"})
    assert clone.fleet.data("root:a:kid", "k") == {"a": "new"}


def test_what_is_as_it_was_needs_no_commit(clone: Clone) -> None:
    first = clone.commit({f"{B}/app.yaml": configmap(a="new")})
    done = clone.run("root:a", "--at", "HEAD^")
    assert (
        done.output
        == f"root:a is unchanged: as commit {clone.git('rev-parse', 'HEAD^')[:10]} has it\nnothing to commit\n"
    )
    assert clone.head == first


def test_it_is_told_as_data(clone: Clone) -> None:
    first = clone.head
    clone.commit({f"{A}/app.yaml": configmap(a="new")})
    told = json.loads(clone.run(A, "--at", first, "-o", "json").output)
    assert (told["workspace"], told["change"], told["commit"]) == ("root:a", "configured", clone.head)
    assert told["files"] == [{"file": f"{A}/app.yaml", "change": "configured"}]
    assert told["review"]["workspaces"][0]["path"] == "root:a"
    again = yaml.safe_load(clone.run(A, "--at", first, "-o", "yaml").output)
    assert (again["change"], again["commit"], again["review"]) == ("unchanged", "", None)


def test_a_dry_run_says_the_same_and_writes_nothing(clone: Clone) -> None:
    head = clone.commit({f"{A}/app.yaml": configmap(a="new")})
    done = clone.run(A, "--at", "HEAD^", "--dry-run", code=1)
    assert "root:a would be configured" in done.output
    assert "    - data.a: new\n" in done.output
    assert done.output.endswith("nothing was committed\n")
    assert (clone.head, clone.git("status", "--porcelain")) == (head, "")


def test_comments_of_workspace_yaml_come_back_with_it(clone: Clone) -> None:
    said = "# ours\napiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata:\n  labels: {a: b}  # kept\n"
    then = clone.commit({f"{A}/workspace.yaml": said})
    clone.commit({f"{A}/workspace.yaml": said.replace("a: b", "a: c").replace("ours", "theirs")})
    clone.run(A, "--at", then)
    assert clone.read(f"{A}/workspace.yaml") == said


def test_todays_pin_stays_and_one_of_then_does_not_come_back(clone: Clone) -> None:
    workspace = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata:\n  labels: {a: b}\nspec:\n  serve:\n"
    first = clone.head
    pinned = clone.commit({f"{A}/workspace.yaml": workspace + f"    commit: {first}\n"})
    clone.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="new")})
    clone.run(A, "--at", pinned)
    assert yaml.safe_load(clone.read(f"{A}/workspace.yaml")) == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"labels": {"a": "b"}},
    }
    clone.commit({f"{A}/workspace.yaml": workspace + f"    commit: {pinned}\n"})
    done = clone.run(A, "--at", first)
    assert yaml.safe_load(clone.read(f"{A}/workspace.yaml"))["spec"] == {"serve": {"commit": pinned}}
    assert f"note: it stays pinned to {pinned[:10]}" in done.output


def test_ignored_files_stay_and_do_not_come_back(clone: Clone) -> None:
    then = clone.commit({f"{A}/draft.yaml": configmap("draft")})
    ignoring = {
        f"{A}/.treeplaneignore": "draft.yaml\n",
        f"{A}/draft.yaml": "no manifest",
        f"{A}/app.yaml": configmap(n="1"),
    }
    clone.commit(ignoring)
    done = clone.run(A, "--at", then)
    assert clone.changed() == {f"{A}/app.yaml": "M"}
    assert f"{A}/draft.yaml does not come back: it is ignored by now\n" in done.output


def test_files_that_another_workspace_has_by_now_stay_its(clone: Clone) -> None:
    then = clone.commit({f"{A}/apps/web.yaml": configmap("web")})
    clone.commit({f"{A}/apps/workspace.yaml": "", f"{A}/app.yaml": configmap(n="1")})
    done = clone.run(A, "--at", then)
    assert clone.changed() == {f"{A}/app.yaml": "M"}
    assert f"{A}/apps/web.yaml does not come back: it would be root:a:apps's by now\n" in done.output


def test_modes_and_odd_names_come_back_as_they_were(clone: Clone) -> None:
    odd = f"{A}/*ä [x].yaml"
    clone.write({odd: configmap("odd"), f"{A}/run.yaml": configmap("run")})
    (clone.top / A / "run.yaml").chmod(0o755)
    then = clone.commit({})
    clone.commit({odd: None, f"{A}/run.yaml": None})
    clone.run(A, "--at", then)
    assert clone.read(odd) == configmap("odd")
    assert os.access(clone.top / A / "run.yaml", os.X_OK)
    assert clone.git("diff", "--stat", then, "HEAD") == ""


def test_a_link_of_then_is_held_as_ever(clone: Clone) -> None:
    (clone.top / A / "link.yaml").symlink_to("/etc/passwd")
    then = clone.commit({})
    head = clone.commit({f"{A}/link.yaml": None})
    assert f"{A}/link.yaml: is a symbolic link" in clone.run(A, "--at", then, code=3).output
    assert (clone.head, (clone.top / A / "link.yaml").exists()) == (head, False)


def test_another_staged_change_stays_out_of_the_commit(clone: Clone) -> None:
    clone.commit({f"{A}/app.yaml": configmap(a="new")})
    clone.write({f"{B}/app.yaml": configmap(a="staged"), f"{A}/README.md": "mine\n"})
    clone.write({f"{A}/app.yaml": clone.read(f"{A}/app.yaml")})  # touched, and not changed
    os.utime(clone.top / A / "app.yaml", (1, 1))
    clone.git("add", f"{B}/app.yaml")
    clone.run(A, "--at", "HEAD^")
    assert clone.changed() == {f"{A}/app.yaml": "M"}
    assert clone.git("status", "--porcelain").splitlines() == [f"M  {B}/app.yaml", f"?? {A}/README.md"]


# -- workspaces that moved, or went


def test_one_that_moved_gets_its_files_where_it_is(clone: Clone) -> None:
    said = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata:\n  name: a\n"
    then = clone.commit({f"{A}/app.yaml": configmap(a="then"), f"{A}/workspace.yaml": said})
    clone.serve()
    assert CliRunner().invoke(main, ["mv", str(clone.top / A), str(clone.top / C)]).exit_code == 0
    clone.commit({f"{C}/workspace.yaml": clone.read(f"{C}/workspace.yaml").replace("name: a", "name: c")}, "Move")
    clone.serve()
    assert clone.fleet.held() == {}
    uid = clone.fleet.workspace("root:c")["metadata"]["uid"]
    clone.commit({f"{C}/app.yaml": configmap(a="new"), f"{C}/more.yaml": None})
    clone.serve()
    done = clone.run(C, "--at", then)
    assert clone.changed() == {f"{C}/app.yaml": "M", f"{C}/more.yaml": "A"}
    assert f"note: it was root:a then, in {A}\n" in done.output
    clone.push()
    assert (clone.fleet.held(), clone.fleet.data("root:c")) == ({}, {"a": "then"})
    assert clone.fleet.workspace("root:c")["metadata"]["uid"] == uid
    said = clone.run("root:a", "--at", then, code=1).output
    assert "root:a moved to root:c with" in said
    assert clone.run("root:c:kid", "--at", then).output.startswith("root:c:kid is unchanged")


def test_one_that_is_gone_comes_back_as_a_new_one(clone: Clone) -> None:
    then = clone.commit({f"{B}/drafts/.treeplaneignore": "*.json\n", f"{B}/drafts/d.yaml": configmap("d")})
    clone.serve()
    before = clone.fleet.record("root:b").cluster
    files = dict.fromkeys(
        [f"{B}/workspace.yaml", f"{B}/app.yaml", f"{B}/drafts/.treeplaneignore", f"{B}/drafts/d.yaml"]
    )
    clone.commit({**files})
    clone.push()
    clone.fleet.allow()
    clone.git("pull", "--quiet")
    clone.serve()
    assert "root:b" not in clone.fleet.paths()
    done = clone.run(B, "--at", then)
    assert clone.changed() == dict.fromkeys(files, "A")
    assert done.output.startswith("root:b is created: ")
    assert "note: it is served no more, so it comes back as a new workspace" in done.output
    clone.push()
    assert (clone.fleet.held(), clone.fleet.data("root:b")) == ({}, {"a": "b"})
    assert clone.fleet.record("root:b").cluster != before


def test_one_whose_end_was_not_served_yet_never_went(clone: Clone) -> None:
    """Its removal waits to be allowed."""
    then, before = clone.head, clone.fleet.record("root:b").cluster
    clone.commit({f"{B}/workspace.yaml": None, f"{B}/app.yaml": None})
    clone.serve()
    assert clone.fleet.held() != {}
    assert "note: it is still served, as far as is recorded here" in clone.run("root:b", "--at", then).output
    clone.push()
    assert (clone.fleet.held(), clone.fleet.record("root:b").cluster) == ({}, before)


def test_one_that_stands_in_what_is_gone_waits_for_that(clone: Clone) -> None:
    then = clone.head
    clone.git("rm", "-r", "--quiet", A)
    clone.commit({})
    said = clone.run("root:a:kid", "--at", then, code=1).output
    assert f"{KID} would be root:kid now, and not root:a:kid" in said
    assert "restore the workspace that it stands in first" in said
    clone.run("root:a", "--at", then)
    clone.run("root:a:kid", "--at", then)
    assert clone.git("diff", "--stat", then, "HEAD") == ""


def test_another_workspace_of_the_path_is_no_predecessor_unless_that_is_said(clone: Clone) -> None:
    then = clone.head
    clone.commit({f"{B}/workspace.yaml": None, f"{B}/app.yaml": None})
    clone.push()
    clone.fleet.allow()
    clone.git("pull", "--quiet")
    came = clone.commit({f"{B}/workspace.yaml": "", f"{B}/other.yaml": configmap("other")})
    clone.serve()
    said = clone.run(B, "--at", then, code=1).output
    assert f"root:b was another workspace in {then[:10]}: this one appeared with {came[:10]}" in said
    clone.run(B, "--at", then, "--predecessor")
    assert clone.changed() == {f"{B}/app.yaml": "A", f"{B}/other.yaml": "D"}


def test_without_a_status_branch_one_that_was_there_all_along_is_the_same(clone: Clone) -> None:
    then = clone.head
    clone.git("update-ref", "-d", "refs/remotes/origin/treeplane/status")
    clone.commit({f"{B}/workspace.yaml": None, f"{B}/app.yaml": None})
    clone.commit({f"{B}/workspace.yaml": "", f"{A}/app.yaml": configmap(n="1")})
    clone.run(A, "--at", then)
    assert "root:b was another workspace" in clone.run(B, "--at", then, code=1).output


# -- what is refused


def test_what_would_be_held_is_not_committed(clone: Clone) -> None:
    bad = clone.commit({f"{A}/bad.yaml": "kind: ["})
    head = clone.commit({f"{A}/bad.yaml": None})
    done = clone.run(A, "--at", bad, code=3)
    assert done.output.startswith("root:a would be held")
    assert f"{A}/bad.yaml:1:8" in done.output or f"{A}/bad.yaml:" in done.output
    assert (clone.head, clone.git("status", "--porcelain")) == (head, "")


def test_deletions_have_to_be_allowed_by_their_hash(clone: Clone) -> None:
    then = clone.head
    clone.commit({f"{A}/p.yaml": PROTECTED})
    clone.serve()
    refused = json.loads(clone.run(A, "--at", then, "-o", "json", code=3).output)
    [digest] = refused["allowDelete"]
    assert refused["review"]["deletions"][0]["lines"] == ["root:a configmaps default/p"]
    assert f"to commit it with these deletions: --allow-delete {digest}\n" in clone.run(A, "--at", then, code=3).output
    clone.run(A, "--at", then, "--allow-delete", "0" * 40, code=3)
    clone.run(A, "--at", then, "--allow-delete", digest)
    assert f"Allow-Delete: {digest}" in clone.git("log", "-1", "--format=%(trailers)")
    clone.push()
    assert (clone.fleet.held(), clone.fleet.find("root:a", "configmaps", "p")) == ({}, None)
    clone.run(A, "--at", then, "--allow-delete", "nothing", code=2)


@pytest.mark.parametrize("how", ["changed", "staged", "untracked", "ignored"])
def test_files_with_changes_that_are_in_no_commit_are_named(clone: Clone, how: str) -> None:
    then = clone.head
    head = clone.commit(
        {f"{A}/more.yaml": None, f"{A}/app.yaml": configmap(a="new"), ".gitignore": "more.yaml\n" * (how == "ignored")}
    )
    file = f"{A}/app.yaml" if how in ("changed", "staged") else f"{A}/more.yaml"
    clone.write({file: configmap(a="mine")})
    if how == "staged":
        clone.git("add", file)
    said = clone.run(A, "--at", then, code=2).output
    assert f"these files have changes that are in no commit: {file}\n" in said
    assert (clone.head, clone.read(file)) == (head, configmap(a="mine"))


def test_a_commit_that_git_refuses_leaves_nothing_behind(clone: Clone) -> None:
    then = clone.head
    head = clone.commit(
        {f"{A}/more.yaml": None, f"{A}/app.yaml": configmap(a="new"), f"{A}/new.yaml": configmap("new")}
    )
    hook = clone.top / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    assert "not today" in clone.run(A, "--at", then, code=2).output
    assert (clone.head, clone.git("status", "--porcelain")) == (head, "")
    assert clone.read(f"{A}/new.yaml") == configmap("new")


def test_a_directory_in_the_way_is_named(clone: Clone) -> None:
    then = clone.head
    clone.commit({f"{A}/more.yaml": None, f"{A}/more.yaml/x.md": "x"})
    assert f"{A}/more.yaml is a tree by now" in clone.run(A, "--at", then, code=1).output


def test_what_names_no_commit_or_no_workspace_is_refused(clone: Clone) -> None:
    for revision in ("nowhere", "-x", "f" * 40):
        assert "names no commit" in clone.run(A, f"--at={revision}", code=2).output
    assert "no workspace" in clone.run("workspaces/root/nowhere", "--at", "HEAD", code=2).output
    assert "root:nowhere was not there" in clone.run("root:nowhere", "--at", "HEAD", code=1).output
    clone.commit({f"{C}/workspace.yaml": ""})
    assert "root:c was not there in" in clone.run(C, "--at", "HEAD^", code=1).output


def test_an_unsigned_commit_of_a_fleet_that_verifies_is_told(clone: Clone) -> None:
    then = clone.commit({"treeplane.yaml": TREEPLANE_YAML + "spec: {verification: {mode: Head}}\n"})
    clone.git("update-ref", "-d", "refs/remotes/origin/treeplane/status")
    clone.commit({f"{A}/app.yaml": configmap(a="new")})
    assert "note: the commit is not signed" in clone.run(A, "--at", then).output


def test_a_commit_of_another_branch_or_one_that_was_merged_in_will_do(clone: Clone) -> None:
    clone.git("switch", "--quiet", "-c", "other")
    there = clone.commit({f"{A}/app.yaml": configmap(a="there")})
    clone.git("switch", "--quiet", "main")
    clone.commit({f"{A}/app.yaml": configmap(a="here")})
    clone.run(A, "--at", "other")
    assert clone.read(f"{A}/app.yaml") == configmap(a="there")
    clone.commit({f"{A}/app.yaml": configmap(a="here")})
    clone.git("merge", "--quiet", "--strategy=ours", "-m", "Merge", "other")
    clone.run(A, "--at", there)
    assert clone.read(f"{A}/app.yaml") == configmap(a="there")


def test_a_clone_that_is_not_whole_names_what_completes_it(clone: Clone, tmp_path: Path) -> None:
    clone.commit({f"{A}/app.yaml": configmap(a="new")})
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{clone.top}", str(tmp_path / "shallow")], check=True)
    done = CliRunner().invoke(main, ["restore", str(tmp_path / "shallow" / A), "--at", "HEAD"])
    assert done.exit_code == 2
    assert "fetch --unshallow" in done.output


def test_what_comes_from_another_repository_is_reverted_there(clone: Clone) -> None:
    before = clone.fleet.repo.head
    clone.fleet.commit({f"{A}/app.yaml": None, f"{A}/workspace.yaml": sourcing()})
    clone.git("pull", "--quiet")
    said = clone.run(A, "--at", before, code=1).output
    assert f"the content of root:a comes from {SHOP} (branch main, deploy/)" in said
    clone.fleet.commit({f"{A}/app.yaml": configmap(), f"{A}/workspace.yaml": ""})
    clone.git("pull", "--quiet")
    assert "came then from" in clone.run(A, "--at", "HEAD^", code=1).output
