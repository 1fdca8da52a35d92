"""docs/signatures.md: its commands do what it says, as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

from support.fleetrepo import FleetRepo
from support.signing import Gpg, SshPerson, needs_gpg, needs_ssh, run

from reconciler.layout.fleet import EVERY, parse_fleet
from reconciler.repository.desired import Desired
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import of_directory, of_tree
from reconciler.signatures.verifier import Signer, Verifier

DOCUMENT = Path(__file__).parents[4] / "docs" / "signatures.md"


def block(containing: str) -> str:
    """The one block of commands with this in it."""
    found = [b for b in re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text(), re.DOTALL) if containing in b]
    assert len(found) == 1
    return str(found[0])


def typed(commands: str, where: Path, **variables: str) -> str:
    return run("sh", "-euxc", f'cd "$1"\n{commands}', "sh", where, **variables).decode()


def vouched_for(work: Path, **variables: str) -> Signer:
    """By the next commit, for which the signers of this one count."""
    run("git", "-C", work, "commit", "-q", "--allow-empty", "-m", "Next", **variables)
    repo = Repository(work)
    head = repo.resolve("HEAD")
    assert head is not None
    return Verifier(None).signer(repo, head, of_tree(repo, repo.commit(repo.commit(head).parents[0]).tree))


@needs_ssh
def test_signing_with_ssh(tmp_path: Path) -> None:
    SshPerson(tmp_path / ".ssh", "id_ed25519")
    run("git", "init", "-q", tmp_path / "work")
    home = {"HOME": str(tmp_path)}
    typed(block("gpg.format ssh"), tmp_path / "work", **home)
    assert vouched_for(tmp_path / "work", **home).user == "alice@example.com"


@needs_gpg
def test_signing_with_openpgp(tmp_path: Path, gpg: Gpg) -> None:
    gpg.make("Alice <alice@example.com>")
    run("git", "init", "-q", tmp_path / "work")
    home = {"GNUPGHOME": str(gpg.home)}
    typed(block("gpg.format openpgp"), tmp_path / "work", **home)
    assert vouched_for(tmp_path / "work", **home).user == "alice@example.com"


@needs_ssh
def test_what_is_done_before_commits_have_to_be_signed(tmp_path: Path) -> None:
    person, work = SshPerson(tmp_path / ".ssh", "id_ed25519"), tmp_path / "work"
    run("git", "init", "-q", work)
    home = {"HOME": str(tmp_path)}
    typed(block("gpg.format ssh"), work, **home)
    said = typed(block("cp -R signers"), work, **home)
    assert [line.partition(" ")[2] for line in said.splitlines()] == ["G alice@example.com: Let Alice sign"]
    listed = of_directory(work / ".treeplane" / "keys" / "signers")
    head = Repository(work).resolve("HEAD")
    assert head is not None
    assert Verifier(None).signer(Repository(work), head, listed).user == "alice@example.com"
    assert person.public in (work / ".treeplane" / "keys" / "signers" / "allowed_signers").read_text()


def test_the_mode_that_is_shown() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert parse_fleet(text.encode()).verification == EVERY


@needs_ssh
def test_checking_the_servers_commits_with_git_alone(tmp_path: Path) -> None:
    fleet, work = FleetRepo(tmp_path / "fleet.git"), tmp_path / "work"
    fleet.commit({"a": "a"})
    run("git", "clone", "-q", fleet.path, work)
    key = CommitKey.open(work / ".treeplane" / "keys")
    mirror = Mirror(tmp_path / "data", str(fleet.path), "main", "treeplane/status")
    mirror.refresh()
    desired = Desired(mirror, sign=key.sign)
    made = desired.commit(fleet.head, {"b": b"b"}, "alice", "Write\n")
    assert made is not None
    desired.publish(made, fleet.head)
    tree = edit_tree(fleet.repo, None, {"fleet.yaml": b"x"})
    ref = "refs/heads/treeplane/status"
    commit_tree(fleet.repo, tree, [], "Record\n", None, ref, None, key.sign)
    run("git", "-C", work, "fetch", "-q")
    said = typed(block("verify-commit"), work)
    assert [line.partition(" ")[2] for line in said.splitlines()] == ["G treeplane: Record"]
    typed("git verify-commit origin/main", work)
