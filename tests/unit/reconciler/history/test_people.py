"""Author, signer and pusher of a commit are three, and who wrote an object counts where the server says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from click import ClickException
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.histories import blamed, logged
from support.loadedfleet import A, LoadedFleet, configmap
from support.signing import Person, needs_ssh

from reconciler.history.result import ObjectWriter, SignatureState, ToldCommit
from reconciler.plan.pushedby import NOBODY, SERVER, PushedBy
from reconciler.signatures.own import CommitKey
from reconciler.statusbranch import pushers

pytestmark = needs_ssh
ALICE, BOB = Person("alice"), Person("bob")
SIGNERS = "signers/allowed_signers"
CLAIM = "Write 1 object\n\nWritten-By: root:a configmaps default/app carol\n"


@pytest.fixture
def fleet(tmp_path: Path) -> LoadedFleet:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin({SIGNERS: ALICE.line()})
    return made


def change(fleet: LoadedFleet, value: str, person: Person | CommitKey | None = None, message: str = "Change") -> str:
    files = {f"{A}/app.yaml": configmap(a=value)}
    return fleet.repo.commit(files, message, sign=person.sign if person is not None else None)


def newest(fleet: LoadedFleet, keys: Path | None = None) -> tuple[ToldCommit, ObjectWriter | None]:
    entry = logged(fleet.repo, "root:a", keys=keys).entries[0]
    return entry.commit, entry.workspaces[0].objects[0].writer


def test_whose_key_it_is_the_first_parent_says(fleet: LoadedFleet) -> None:
    change(fleet, "1", ALICE)
    commit, _ = newest(fleet)
    assert (commit.signer.state, commit.signer.user) == (SignatureState.GOOD, "alice")
    assert commit.signer.key.startswith("SSH SHA256:")
    assert commit.author.startswith("Treeplane <")
    assert commit.pusher == NOBODY
    # A commit does not vouch for its own signers.
    fleet.repo.commit({SIGNERS: BOB.line(), f"{A}/app.yaml": configmap(a="2")}, sign=BOB.sign)
    commit, _ = newest(fleet)
    assert (commit.signer.state, commit.signer.user) == (SignatureState.UNKNOWN, "")
    assert "is nobody's in signers/" in commit.signer.why
    change(fleet, "3", BOB)
    assert newest(fleet)[0].signer.user == "bob"
    change(fleet, "4")
    assert newest(fleet)[0].signer.state is SignatureState.NONE


def test_a_key_that_has_ended_and_a_forged_signature(fleet: LoadedFleet) -> None:
    fleet.repo.commit({SIGNERS: ALICE.line('valid-before="20200101Z"')})
    change(fleet, "1", ALICE)
    signer = newest(fleet)[0].signer
    assert (signer.state, signer.user) == (SignatureState.LAPSED, "")
    assert signer.why.endswith("of alice has expired")
    fleet.repo.commit({SIGNERS: ALICE.line()})
    fleet.repo.commit({f"{A}/app.yaml": configmap(a="2")}, sign=lambda payload: ALICE.sign(payload + b"x"))
    assert newest(fleet)[0].signer.state is SignatureState.BAD


def test_a_servers_own_list_counts_where_nobody_is_named(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.repo.commit({"signers": None})
    change(fleet, "1", BOB)
    assert newest(fleet)[0].signer.state is SignatureState.UNKNOWN
    (tmp_path / "keys/signers").mkdir(parents=True)
    (tmp_path / "keys/signers/allowed_signers").write_text(BOB.line())
    assert newest(fleet, tmp_path / "keys")[0].signer.user == "bob"


def test_who_wrote_an_object_counts_where_the_status_branch_says_that_the_server_made_it(fleet: LoadedFleet) -> None:
    fleet.load()
    claimed, made = change(fleet, "1", message=CLAIM), change(fleet, "2", message=CLAIM)
    fleet.load()
    pushers.note(fleet.store, {claimed: PushedBy("eve", "push"), made: PushedBy("Several users", SERVER)})
    fleet.publish()
    commit, writer = newest(fleet)
    assert (str(commit.pusher), writer) == ("Several users (through the API)", ObjectWriter("carol", True))
    [_, entry, *_] = logged(fleet.repo, "root:a").entries
    assert (str(entry.commit.pusher), entry.workspaces[0].objects[0].writer) == ("eve", ObjectWriter("carol", False))
    [(told, writer), *_] = blamed(fleet.repo, "cm/app", workspace="root:a").commits
    assert (told.id, writer) == (made, ObjectWriter("carol", True))


def test_or_where_it_has_the_servers_own_signature(fleet: LoadedFleet, tmp_path: Path) -> None:
    keys = tmp_path / "server"
    server, forged = CommitKey.open(keys), CommitKey(Ed25519PrivateKey.generate())
    change(fleet, "1", server, CLAIM)
    assert newest(fleet)[1] == ObjectWriter("carol", False)
    commit, writer = newest(fleet, keys)
    assert (commit.signer.state, commit.signer.key, writer) == (
        SignatureState.SERVER,
        server.key,
        ObjectWriter("carol", True),
    )
    (keys / "commits").unlink()
    assert newest(fleet, keys)[1] == ObjectWriter("carol", True), "the public half tells"
    change(fleet, "2", forged, CLAIM)
    assert newest(fleet, keys)[1] == ObjectWriter("carol", False)
    (keys / "commits.pub").write_text("no key")
    with pytest.raises(ClickException, match=r"commits\.pub is not a public key") as found:
        newest(fleet, keys)
    assert found.value.exit_code == 2
