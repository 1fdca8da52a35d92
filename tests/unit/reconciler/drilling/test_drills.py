"""`treeplane drill`: the same comes back, or what does not is named; and what it tells of time, point and keys."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml
from click.testing import CliRunner, Result
from support.drills import drilled, recorded_files, rewritten, saying, wrong
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.statusfiles import BRANCH
from support.widgets import binding, export, schema, widget

from reconciler.__main__ import main
from reconciler.commands.failure import Failure
from reconciler.drilling.comparison import CHANGED, MADE, MISSING
from reconciler.loading.case import Case, Verdict
from reconciler.loading.judge import Judge
from reconciler.repository.write import commit_tree, move_ref
from reconciler.signatures.own import CommitKey
from reconciler.statusbranch.writer import StatusWriter

SUMMARY = f"{A}/_summary.yaml"


def run(*words: str | Path, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["drill", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def git(*words: str | Path) -> str:
    return subprocess.run(["git", *map(str, words)], check=True, capture_output=True, text=True).stdout


def touch(fleet: LoadedFleet, path: str = "root:a") -> None:
    """What a controller said."""
    fleet.update(fleet.key(path, "configmaps", "app"), lambda obj: obj.update(status={"seen": 1}))


# -- the same


def test_what_comes_back_is_the_same(fleet: LoadedFleet) -> None:
    touch(fleet)
    fleet.commit({f"{A}/app.yaml": configmap(n="1"), f"{B}/bad.yaml": "kind: ["})
    fleet.publish()
    found = drilled(fleet)
    assert found.same
    assert (found.found.workspaces, found.found.held) == (4, 1)
    assert (found.point.behind, found.point.late, found.point.left) == (0, 0, False)


def test_nothing_is_written_to_the_source_or_the_keys(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Also where a recovery would make keys: none of an export is there."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.publish()
    keys = tmp_path / "backup"
    shutil.copytree(fleet.keys, keys)
    shutil.rmtree(keys / "identities")
    (keys / "commits").write_text("")
    (keys / "commits").unlink()
    before = everything(fleet.repo.path) | everything(keys)
    assert drilled(fleet, keys).same
    assert everything(fleet.repo.path) | everything(keys) == before


def everything(top: Path) -> dict[str, tuple[int, int]]:
    found = {str(path): path.stat() for path in sorted(top.rglob("*"))}
    return {path: (each.st_size if stat.S_ISREG(each.st_mode) else 0, each.st_mtime_ns) for path, each in found.items()}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_source_that_nobody_may_write_to_can_be_drilled(fleet: LoadedFleet) -> None:
    folders = [fleet.repo.path, *(path for path in fleet.repo.path.rglob("*") if path.is_dir())]
    for each in folders:
        each.chmod(0o555)
    try:
        assert drilled(fleet).same
    finally:
        for each in folders:
            each.chmod(0o755)


def test_a_clone_counts_with_the_status_branch_that_it_tracks(
    fleet: LoadedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "--quiet", fleet.repo.path, tmp_path / "clone")
    (tmp_path / "clone" / "workspaces").joinpath("untracked.yaml").write_text("a: b")
    monkeypatch.chdir(tmp_path / "clone" / "workspaces")
    assert run().output.startswith("recovery gives what is recorded, byte for byte: 4 workspaces\n")


def test_a_url_and_a_data_directory_can_be_drilled(fleet: LoadedFleet, tmp_path: Path) -> None:
    assert run(f"file://{fleet.repo.path}").output.startswith("recovery gives what is recorded")
    shutil.copytree(fleet.repo.path, tmp_path / "data" / "repo" / "fleet.git")
    assert run(tmp_path / "data").output.startswith("recovery gives what is recorded")


# -- what is not the same


def test_a_file_that_was_edited_is_found_with_its_fields(fleet: LoadedFleet) -> None:
    touch(fleet)
    fleet.publish()
    file = f"{A}/_status/default/configmaps/app.yaml"
    data = recorded_files(fleet)[file]
    rewritten(fleet, {file: saying(data, generation=7, status={"seen": 1})})
    found = drilled(fleet)
    assert not found.same
    assert [(each.file, each.what) for each in found.found.differences] == [(file, CHANGED)]


def test_a_file_in_another_form_is_found(fleet: LoadedFleet) -> None:
    data = recorded_files(fleet)[SUMMARY]
    rewritten(fleet, {SUMMARY: data + b"# ours\n"})
    assert wrong(drilled(fleet)) == [(SUMMARY, CHANGED, ())]
    said = run(fleet.repo.path, code=1).output
    assert (
        f"  {SUMMARY} is recorded otherwise, though it says the same: it is not in the form that is written\n" in said
    )


def test_a_file_that_nobody_recorded_is_found(fleet: LoadedFleet) -> None:
    rewritten(fleet, {"README.md": b"ours\n", "fleet.yaml": saying(recorded_files(fleet)["fleet.yaml"], motto="go")})
    assert wrong(drilled(fleet)) == [("README.md", MISSING, ()), ("fleet.yaml", CHANGED, ("motto",))]


def test_a_workspace_without_its_summary_is_found(fleet: LoadedFleet) -> None:
    rewritten(fleet, {SUMMARY: None})
    assert [(each.file, each.what) for each in drilled(fleet).found.differences] == [(SUMMARY, MADE)]


def test_a_workspace_that_cannot_be_brought_back_is_told_with_the_reason(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge.judge

    def fails(self: Judge, case: Case) -> Verdict:
        if case.path == "root:b":
            raise ZeroDivisionError
        return judge(self, case)

    monkeypatch.setattr(Judge, "judge", fails)
    found = drilled(fleet)
    assert (found.same, [*found.found.lost], found.found.differences, found.found.held) == (False, ["root:b"], (), 0)
    said = run(fleet.repo.path, code=1).output
    assert re.search("  workspace root:b cannot be brought back:\n    .*was served, and cannot be brought back", said)
    assert json.loads(run(fleet.repo.path, "-o", "json", code=1).output)["notBroughtBack"][0]["workspace"] == "root:b"


def test_what_did_not_come_with_the_clone_is_told(fleet: LoadedFleet) -> None:
    """The commit that a held workspace is served at is nobody's any more."""
    served = fleet.repo.head
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    fleet.publish()
    data = recorded_files(fleet)[SUMMARY]
    assert served.encode() in data
    rewritten(fleet, {SUMMARY: data.replace(served.encode(), b"e" * 40)})
    said = run(fleet.repo.path, code=3).output
    assert f"did not come with the clone (the clone lacks the object {'e' * 40})" in said


def test_what_the_server_did_not_sign_is_told_by_its_key(fleet: LoadedFleet) -> None:
    """What is edited without a contradiction comes back as it was edited."""
    key = CommitKey.open(fleet.keys)
    touch(fleet)
    fleet.publish(StatusWriter(fleet.store, fleet.mirror, sign=key.sign))
    assert (drilled(fleet, fleet.keys).found.ours, drilled(fleet).found.ours) == (True, None)
    file = f"{A}/_status/default/configmaps/app.yaml"
    rewritten(fleet, {file: saying(recorded_files(fleet)[file], status={"seen": 2})})
    assert drilled(fleet).good
    said = run(fleet.repo.path, "--keys", fleet.keys, code=1).output
    assert "  treeplane/status is not signed by keys/commits: somebody else wrote it, or had another key\n" in said


def test_no_value_is_told(empty: LoadedFleet) -> None:
    """What waits for its finalizers is recorded whole."""
    empty.begin({f"{A}/s.yaml": configmap("s", word="do not tell")})
    empty.update(empty.key("root:a", "configmaps", "s"), lambda obj: obj["metadata"].update(finalizers=["a.io/f"]))
    empty.commit({f"{A}/s.yaml": None})
    empty.publish()
    [file] = [path for path in recorded_files(empty) if "_ending" in path]
    rewritten(empty, {file: saying(recorded_files(empty)[file], kind="Other", data={"word": "do not tell, too"})})
    for form in ("text", "json", "yaml"):
        said = run(empty.repo.path, "-o", form, code=1).output
        assert file in said
        assert "do not tell" not in said


def test_names_that_a_terminal_would_obey_are_spelled(fleet: LoadedFleet) -> None:
    rewritten(fleet, {"workspaces/root/\x1b[2J::error::.txt": b"x"})
    for form in ("text", "json", "yaml"):
        said = run(fleet.repo.path, "-o", form, code=1).output
        assert "[2J" in said
        assert "\x1b" not in said
        assert not re.search("(?m)^::", said)


# -- time, point, keys


def test_how_far_it_is_behind_is_told(fleet: LoadedFleet) -> None:
    served = fleet.repo.head
    fleet.repo.commit({f"{A}/app.yaml": configmap(n="1")})
    fleet.repo.commit({f"{A}/app.yaml": configmap(n="2")})
    said = run(fleet.repo.path).output
    assert f"recovery point: commit {served[:10]} of 2026-01-01T00:00:00Z, as treeplane/status " in said
    assert f"  2 commits up to {fleet.repo.head[:10]}, 2 min later, are not recorded\n" in said
    point = yaml.safe_load(run(fleet.repo.path, "-o", "yaml").output)["recoveryPoint"]
    assert (point["servedCommit"], point["notRecorded"], point["secondsBehind"]) == (served, 2, 120)


def test_a_branch_that_was_rewritten_is_told(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/app.yaml": configmap(n="1")})
    fleet.publish()
    fleet.repo.commit({f"{A}/app.yaml": configmap(n="2")}, parent=fleet.repo.commits[0])
    assert "which does not contain that commit: it was rewritten\n" in run(fleet.repo.path).output


def test_keys_that_a_recovery_needs_are_told_and_looked_for(empty: LoadedFleet, tmp_path: Path) -> None:
    empty.begin({f"{A}/schema.json": schema(), f"{A}/export.json": export(), f"{B}/binding.json": binding("root:a")})
    empty.publish()
    place = (
        f"keys/identities/{empty.record('root:a').cluster}:widgets: the identity key of an APIExport (root:a:widgets)"
    )
    assert f"  {place}\n" in run(empty.repo.path).output
    assert f"  {place}; there\n" in run(empty.repo.path, "--keys", empty.keys).output
    (tmp_path / "none").mkdir()
    said = run(empty.repo.path, "--keys", tmp_path / "none").output
    assert f"  {place}; missing\n" in said
    assert said.startswith("recovery gives what is recorded"), "the hash is on the status branch"
    key = next((empty.keys / "identities").glob("*widgets")).read_text().strip()
    assert key not in said


def test_whose_writes_go_to_the_store_is_told(empty: LoadedFleet) -> None:
    empty.begin({"treeplane.yaml": TREEPLANE_YAML + "spec: {writes: Store}\n"})
    empty.publish()
    assert (
        "made through the API in root, root:a, root:b, root:compute (`writes: Store`)\n" in run(empty.repo.path).output
    )


def test_secrets_of_keys_come_back_with_the_keys(empty: LoadedFleet) -> None:
    empty.begin({f"{A}/schema.json": schema(), f"{A}/export.json": export(), f"{B}/w.json": widget(size=1)})
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
    empty.keep_secret("root:a", secret)
    empty.publish()
    assert drilled(empty, empty.keys).same


# -- nothing to recover


@pytest.fixture
def unrecorded(empty: LoadedFleet) -> Iterator[LoadedFleet]:
    empty.begin()
    return empty


def test_without_a_status_branch_there_is_nothing_to_recover(unrecorded: LoadedFleet) -> None:
    said = run(unrecorded.repo.path, code=3).output
    assert "there is no status branch (treeplane/status)" in said


def test_of_several_status_branches_none_is_taken(fleet: LoadedFleet) -> None:
    other = TREEPLANE_YAML + "spec: {statusBranch: other}\n"
    fleet.repo.commit({"treeplane.yaml": other})
    repo, status = fleet.repo.repo, fleet.repo.repo.ref(BRANCH)
    assert status is not None
    head = fleet.repo.head
    message = repo.commit(status).message.replace(repo.commit(status).parents[-1], head)
    forged = commit_tree(repo, repo.commit(status).tree, [status, head], message)
    move_ref(repo, "refs/heads/other", forged, None)
    said = run(fleet.repo.path, code=3).output
    assert "several status branches, and each is one: other, treeplane/status" in said


def test_a_commit_that_names_none_is_no_status_commit(fleet: LoadedFleet) -> None:
    repo, head = fleet.repo.repo, fleet.repo.repo.ref(BRANCH)
    assert head is not None
    info = repo.commit(head)
    made = commit_tree(repo, info.tree, info.parents, info.message.replace(info.parents[-1], "e" * 40))
    move_ref(repo, BRANCH, made, head)
    assert "is no status commit" in run(fleet.repo.path, code=3).output


def test_shallow_and_partial_clones_name_what_completes_them(fleet: LoadedFleet, tmp_path: Path) -> None:
    git("clone", "-q", "--depth=1", "--no-single-branch", f"file://{fleet.repo.path}", tmp_path / "shallow")
    assert "fetch --unshallow" in run(tmp_path / "shallow", code=3).output


def test_a_branch_that_is_not_there_is_told_with_those_that_are(fleet: LoadedFleet) -> None:
    assert "main, treeplane/status" in run(f"file://{fleet.repo.path}", "--branch", "nowhere", code=3).output
    move_ref(fleet.repo.repo, "refs/heads/release", fleet.repo.head, None)
    assert "--branch main" in run(fleet.repo.path, "--branch", "release", code=2).output


class Locked(BaseHTTPRequestHandler):
    """Of a server that wants to know who asks."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=forge")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_url_that_asks_for_credentials_is_told_without_those_that_were_given() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Locked)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        for who in ("", "ann:do-not-tell@"):
            said = run(f"http://{who}127.0.0.1:{server.server_port}/fleet.git", code=4).output
            assert "does not answer" in said
            assert "give a token that may read and write there" in said
            assert "do-not-tell" not in said
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# -- signatures


def test_where_commits_have_to_be_signed_the_keys_decide_as_at_a_start(empty: LoadedFleet, tmp_path: Path) -> None:
    empty.begin({"treeplane.yaml": TREEPLANE_YAML + "spec: {verification: {mode: Head}}\n"})
    key = CommitKey.open(empty.keys)
    empty.publish(StatusWriter(empty.store, empty.mirror, sign=key.sign))
    assert drilled(empty, empty.keys).good
    assert "note: the fleet asks for signatures, which were not looked at: give --keys\n" in run(empty.repo.path).output
    (tmp_path / "others").mkdir()
    said = run(empty.repo.path, "--keys", tmp_path / "others", code=3).output
    assert "nothing would be served: main: " in said


def test_what_is_no_repository_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ([tmp_path], [tmp_path / "nowhere"], []):
        run(*words, code=2)


def test_a_treeplane_yaml_that_cannot_be_read_recovers_nothing(fleet: LoadedFleet) -> None:
    broken = fleet.repo.commit({"treeplane.yaml": "kind: ["})
    repo, head = fleet.repo.repo, fleet.repo.repo.ref(BRANCH)
    assert head is not None
    info = repo.commit(head)
    message = info.message.replace(info.parents[-1], broken)
    move_ref(repo, BRANCH, commit_tree(repo, info.tree, [head, broken], message), head)
    with pytest.raises(Failure, match=r"nothing would be served: treeplane\.yaml"):
        drilled(fleet)
