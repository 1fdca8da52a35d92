"""Reading signers/: of a commit and of a directory; what is beyond bounds is a problem and nothing else."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pysequoia
import pytest
from support.fleetrepo import FleetRepo

from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob
from reconciler.signatures import signers
from reconciler.signatures.signers import Signers, of_directory, of_tree
from reconciler.signatures.sshsig import string

LINE = f"alice ssh-ed25519 {base64.b64encode(string(b'ssh-ed25519') + string(bytes(32))).decode()}\n"


@pytest.fixture(scope="module")
def certificate() -> bytes:
    return bytes(pysequoia.Tsk.generate("someone").extract_certificate())


@pytest.fixture
def fleet(tmp_path: Path) -> FleetRepo:
    return FleetRepo(tmp_path / "fleet.git")


def found(fleet: FleetRepo, files: dict[str, str | bytes | Blob | None]) -> Signers:
    return of_tree(fleet.repo, fleet.repo.commit(fleet.commit(files)).tree)


def test_both_places_say_the_same(fleet: FleetRepo, tmp_path: Path, certificate: bytes) -> None:
    files = {"signers/allowed_signers": LINE, "signers/openpgp/bob.asc": certificate, "signers/README.md": "x"}
    here = found(fleet, {**files, "elsewhere/allowed_signers": LINE})
    assert here.allowed == LINE.encode()
    assert here.certificates == (("bob", certificate),)
    assert here.problems == ()
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    assert of_directory(tmp_path / "signers") == here
    assert here


def test_nobody(fleet: FleetRepo, tmp_path: Path) -> None:
    nobody = found(fleet, {"a.yaml": "a"})
    assert not nobody
    assert of_directory(tmp_path / "missing") == nobody
    assert not found(fleet, {"signers/allowed_signers": "# nobody yet\n"})


def test_a_digest_is_of_all_of_it(fleet: FleetRepo, certificate: bytes) -> None:
    one = found(fleet, {"signers/openpgp/bob.asc": certificate})
    other = found(fleet, {"signers/openpgp/bob.asc": None, "signers/openpgp/eve.asc": certificate})
    more = found(fleet, {"signers/allowed_signers": LINE})
    assert len({one.digest, other.digest, more.digest, Signers().digest}) == 4


def test_what_is_no_file_is_a_problem(fleet: FleetRepo, certificate: bytes) -> None:
    target, commit = Blob(fleet.repo.entry_at(_tree(fleet, "/etc/passwd"), "x").id, b"120000"), "1" * 40  # type: ignore[union-attr]
    here = found(
        fleet,
        {
            "signers/allowed_signers": target,
            "signers/openpgp/link.asc": target,
            "signers/openpgp/module.asc": Blob(commit, b"160000"),
            "signers/openpgp/directory.asc/x": "x",
            "signers/openpgp/executable.asc": Blob(_blob(fleet, certificate), b"100755"),
        },
    )
    assert [user for user, _ in here.certificates] == ["executable"]
    assert here.allowed == b""
    assert sorted(here.problems) == [
        "signers/allowed_signers: it is no regular file",
        "signers/openpgp/directory.asc: it is no regular file",
        "signers/openpgp/link.asc: it is no regular file",
        "signers/openpgp/module.asc: it is no regular file",
    ]
    assert found(fleet, {"signers": None}).problems == ()
    assert found(fleet, {"signers": "a file"}).problems == ("signers is no directory",)


def _tree(fleet: FleetRepo, text: str) -> str:
    return fleet.repo.commit(fleet.commit({"x": text})).tree


def _blob(fleet: FleetRepo, data: bytes) -> str:
    entry = fleet.repo.entry_at(fleet.repo.commit(fleet.commit({"x": data})).tree, "x")
    assert entry is not None
    return entry.id


def test_sizes_and_numbers(fleet: FleetRepo, certificate: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    here = found(fleet, {"signers/allowed_signers": LINE + "#" * 1024 * 1024, "signers/openpgp/a.asc": b"x" * 300_000})
    assert not here
    assert [text.partition(": ")[2] for text in here.problems] == [
        "it is larger than 1048576 bytes",
        "it is larger than 262144 bytes",
    ]
    monkeypatch.setattr(signers, "_MOST", 2)
    many = {f"signers/openpgp/{name}.pgp": certificate for name in "bcd"}
    here = found(fleet, {**many, "signers/openpgp/a.asc": None, "signers/allowed_signers": None})
    assert [user for user, _ in here.certificates] == ["b", "c"]
    assert "more than 2 certificates" in here.problems[0]
    monkeypatch.setattr(signers, "_LARGEST_TOGETHER", len(certificate))
    here = found(fleet, {"x": "y", "signers/openpgp/0.pgp": certificate})
    assert [user for user, _ in here.certificates] == ["0"]


def test_names_of_files_that_are_no_users(fleet: FleetRepo, certificate: bytes) -> None:
    names = ["*.asc", "system:admin.asc", "a\x1b[2Jb.asc", ".asc", "bob.gpg", "bad\udcff.asc", "fine@example.com.asc"]
    here = found(fleet, {f"signers/openpgp/{name}": certificate for name in names})
    assert [user for user, _ in here.certificates] == ["fine@example.com"]
    assert len(here.problems) == len(names) - 2, "a name that begins with a dot is passed over"
    assert all(text.isprintable() for text in here.problems)


def test_problems_are_told_so_far_and_no_farther(fleet: FleetRepo) -> None:
    here = found(fleet, {"signers/allowed_signers": "x\n" * 10_000 + LINE})
    assert here
    assert len(here.problems) == 101
    assert here.problems[0] == "signers/allowed_signers:1: it is not `NAME [OPTIONS] TYPE KEY`"
    assert here.problems[-1] == "signers: 9900 more cannot be read"


def test_a_tree_is_read_once(fleet: FleetRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = fleet.repo.commit(fleet.commit({"signers/allowed_signers": LINE + "# once\n"})).tree
    first = of_tree(fleet.repo, tree)
    monkeypatch.setattr(Repository, "blob", None)
    assert of_tree(fleet.repo, tree) is first


def test_links_are_followed_on_this_machine_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "keys" / "signers"
    folder.mkdir(parents=True)
    (tmp_path / "mounted").write_text(LINE)
    (folder / "allowed_signers").symlink_to(tmp_path / "mounted")
    assert of_directory(folder)
    (folder / "allowed_signers").unlink()
    os.mkfifo(folder / "allowed_signers")
    assert of_directory(folder).problems == ("keys/signers/allowed_signers: it is no regular file",)
    (tmp_path / "file").write_text("x")
    assert of_directory(tmp_path / "file").problems[0].endswith("/file: it cannot be read (Not a directory)")
