"""What is written to a tenant's repository, over a real git server: on top of what is there, once, and only what is
new."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo
from support.sourcevisits import NAME
from support.writtensources import BRANCH, WrittenTenant

from reconciler.repository import packing
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.sourcerefs import SourceCredentials
from reconciler.signatures.own import CommitKey
from reconciler.sourcing import excerptpush
from reconciler.sourcing import written as written_module
from reconciler.sourcing.excerptpush import ExcerptPush
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.settings import SourceBounds
from reconciler.sourcing.visit import within


def test_a_branch_is_begun_and_gone_on_with(written: WrittenTenant) -> None:
    main = written.repository.head
    written.push({"_summary.yaml": "one", "_status/a/b.yaml": "b"})
    assert written.files() == {"_summary.yaml": "one", "_status/a/b.yaml": "b"}
    first = written.head()
    written.push({"_summary.yaml": "two", "_status/a/b.yaml": "b"})
    assert written.files() == {"_summary.yaml": "two", "_status/a/b.yaml": "b"}
    assert written.there.commit(written.head() or "").parents == (first,)
    assert written.repository.head == main
    assert written.server.steps == ["refs to write", "push"] * 2
    assert written.checks == 2


def test_only_what_is_new_is_sent(written: WrittenTenant) -> None:
    many = {f"_status/{n % 10}/{n}.yaml": f"{n}" * 200 for n in range(300)}
    written.push({**many, "_summary.yaml": "one"})
    written.push({**many, "_summary.yaml": "two"})
    first, second = (len(asked.body) for asked in written.server.asked if asked.step == "push")
    assert second < 1500 < first
    assert written.files() == {**many, "_summary.yaml": "two"}


def test_the_same_is_written_once_and_nobody_is_asked_for_it(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one"})
    head, asked = written.head(), len(written.server.asked)
    written.push({"_summary.yaml": "one"}, version="another")
    assert (written.head(), len(written.server.asked)) == (head, asked)
    here = written.here.written()
    assert here is not None
    assert (here.version, here.branch, here.head) == ("another", BRANCH, head)


def test_what_somebody_else_put_there_is_gone_on_from(written: WrittenTenant) -> None:
    theirs = FleetRepo(written.repository.path, BRANCH)
    theirs.commit({"hello.txt": "by hand"}, "By hand")
    written.push({"_summary.yaml": "one"})
    theirs.commit({"more.txt": "by hand"}, "More")
    written.push({"_summary.yaml": "two"})
    assert written.history() == ["By hand", "Status", "More", "Status"]
    assert written.files() == {"_summary.yaml": "two"}


def test_a_branch_that_was_taken_away_is_begun_anew(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one", "a": "a"})
    written.repository.repo.references.delete(f"refs/heads/{BRANCH}")
    written.push({"_summary.yaml": "two", "a": "a"})
    assert written.history() == ["Status"]
    assert written.files() == {"_summary.yaml": "two", "a": "a"}


def test_another_branch_is_written_whole(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one"})
    written.push({"_summary.yaml": "one"}, branch="treeplane/other")
    assert written.files("treeplane/other") == written.files() == {"_summary.yaml": "one"}
    assert written.history("treeplane/other") == ["Status"]


def test_a_server_that_lost_its_disk_goes_on_from_what_is_there(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one", "a": "a"})
    written.store.remove(written.store.names().pop())
    written.push({"_summary.yaml": "two", "a": "a"})
    assert written.history() == ["Status", "Status"]
    assert written.files() == {"_summary.yaml": "two", "a": "a"}


def test_what_is_kept_here_and_damaged_is_begun_anew(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one"})
    objects = written.here.repository.git_dir / "objects"
    for path in [*objects.rglob("*")]:
        if path.is_file():
            path.unlink()
    with pytest.raises(RepositoryUnreadable):
        written.push({"_summary.yaml": "two"})
    written.push({"_summary.yaml": "two"})
    assert written.history() == ["Status", "Status"]


def test_commits_are_signed_and_git_finds_them_so(written: WrittenTenant, tmp_path: Path) -> None:
    key = CommitKey.open(tmp_path / "signing")
    written.sign = key.sign
    written.push({"_summary.yaml": "one"})
    written.push({"_summary.yaml": "two"})
    allowed = tmp_path / "allowed"
    allowed.write_text(f"treeplane@localhost {key.public}\n")
    settings = ("-c", f"gpg.ssh.allowedSignersFile={allowed}")
    for commit in (BRANCH, f"{BRANCH}~1"):
        command = ["git", "-C", str(written.repository.path), *settings, "verify-commit", commit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, "Good" in done.stderr) == (0, True), done.stderr
    fsck = ["git", "-C", str(written.repository.path), "fsck", "--strict", "--full"]
    assert subprocess.run(fsck, capture_output=True, check=False).returncode == 0


def test_more_than_may_be_written_is_refused_before_it_is_sent(
    written: WrittenTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerptpush, "MOST", 1000)
    written.push({"_summary.yaml": "one"})
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "two", "a": "a" * 2000})
    assert raised.value.reason == "TooLarge"
    assert written.server.steps == ["refs to write", "push", "refs to write"]


def test_many_of_them_leave_little_here(written: WrittenTenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_module, "_PACKS", 3)
    for number in range(15):
        written.push({"_summary.yaml": f"{number}", "_status/a/b.yaml": f"{number}"})
    found = packing.load(written.here.repository.git_dir)
    assert (found.packs <= 5, found.loose <= 10) == (True, True)
    assert len(written.history()) == 15


def test_credentials_are_those_of_the_source(written: WrittenTenant) -> None:
    written.server.password = "s3cret"
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "one"})
    assert raised.value.reason == "Unauthorized"
    assert "push that branch" in raised.value.hint
    known = SourceCredentials("u", "s3cret")
    written.push({"_summary.yaml": "one"}, credentials=known)
    assert written.files() == {"_summary.yaml": "one"}
    kept = b"".join(path.read_bytes() for path in written.folder.rglob("*") if path.is_file())
    assert b"s3cret" not in kept


def test_who_may_not_write_any_more_sends_nothing(written: WrittenTenant) -> None:
    class Over(Exception):
        pass

    def check() -> None:
        raise Over

    excerpt = written.excerpt({"_summary.yaml": "one"})
    push = ExcerptPush(NAME, excerpt, within(60.0), None, check)
    with pytest.raises(Over):
        push.make(written.store, SourceBounds())
    assert written.head() is None


def test_an_address_inside_is_connected_to_for_trusted_ones_alone(written: WrittenTenant) -> None:
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "one"}, trusted=False, remedy="an administrator may")
    assert (raised.value.reason, raised.value.hint) == ("AddressRefused", "an administrator may")
    assert written.server.asked == []
