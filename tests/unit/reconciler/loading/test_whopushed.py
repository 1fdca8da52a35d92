"""Who pushed is noted before a commit is served; its author makes no difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.commitfleet import WRITES_COMMIT, CommitFleet
from support.loadedfleet import A, LoadedFleet, configmap
from support.signing import Person

from apiserver.endpoints.pushhooks import PUSHED
from apiserver.model.commits import own
from apiserver.registry import tree
from reconciler.loading.vouching import Vouching
from reconciler.loading.whopushed import WhoPushed
from reconciler.plan.pushedby import NOBODY, OPERATOR, PUSH, SERVER, SEVERAL, SIGNATURE, PushedBy
from reconciler.repository.pushrecords import PushRecord, PushRecords
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier
from reconciler.statusbranch import pushers
from reconciler.statusbranch.pushtrailers import pushed_by


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[CommitFleet]:
    made = CommitFleet(tmp_path / "fleet")
    yield made
    made.close()


def pushed(fleet: LoadedFleet, old: str, new: str, user: str) -> None:
    file = fleet.repo.path / PUSHED / new
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{old}\n{{"username":"{user}"}}\n')


def known(fleet: LoadedFleet) -> list[str]:
    repo = fleet.mirror.repository
    return [str(pushers.of(fleet.store, each)) for each in repo.first_parents(None, fleet.repo.head) or ()]


def test_each_commit_is_of_who_pushed_it(fleet: CommitFleet, tmp_path: Path) -> None:
    records = PushRecords(fleet.repo.path)
    vouching = Vouching(records, Verifier(None), tmp_path / "signers")
    who = WhoPushed(fleet.store, fleet.mirror.repository, vouching)
    fleet.begin({"treeplane.yaml": WRITES_COMMIT})
    records.note(fleet.repo.head, "", {"username": "admin"})
    base = fleet.repo.head
    chain = [fleet.repo.commit({f"{A}/app.yaml": configmap(a=str(number))}) for number in range(3)]
    pushed(fleet, base, chain[1], "alice")
    fleet.mirror.refresh()
    who.ahead_of(chain[2])
    fleet.load()
    assert known(fleet) == ["nobody known", "alice", "alice", "nobody known"]
    # A fleet that begins anew asks for all, or for what it goes on from.
    fleet.store.clear()
    who.ahead_of(chain[2], recorded=base)
    assert known(fleet)[0] == "nobody known"
    who.ahead_of(chain[2])
    assert known(fleet) == ["admin (who runs the server)", "alice", "alice", "nobody known"]
    who.ahead_of("f" * 40)


def test_a_commit_of_a_write_is_of_who_wrote(fleet: CommitFleet, eventually: Callable[..., Any]) -> None:
    fleet.begin({"treeplane.yaml": WRITES_COMMIT})
    fleet.serve()
    fleet.create("root:a", "configmaps", {"metadata": {"name": "made"}}, user="Alice")
    assert pushers.of(fleet.store, fleet.repo.head) == PushedBy("Alice", SERVER)
    eventually(lambda: tree.fleet(fleet.store).commit.id == fleet.repo.head)
    made = fleet.writer().flush()
    assert made is not None
    assert pushed_by(fleet.mirror.repository, made, [fleet.repo.head]) == {fleet.repo.head: PushedBy("Alice", SERVER)}


@pytest.mark.parametrize(
    ("record", "by"),
    [(None, NOBODY), (PushRecord("", {}), NOBODY), (PushRecord("", {"username": ["x"]}), NOBODY),
     (PushRecord("", {"username": "a"}), PushedBy("a", PUSH)),
     (PushRecord("", {"username": "a"}, operator=True), PushedBy("a", OPERATOR))],
)  # fmt: skip
def test_what_a_record_comes_to(fleet: CommitFleet, tmp_path: Path, record: PushRecord | None, by: PushedBy) -> None:
    fleet.begin()
    vouching = Vouching(PushRecords(None), Verifier(None), tmp_path / "signers")
    assert vouching.voucher(fleet.repo.repo, own(fleet.repo.head), "", record).said == by


def test_what_a_pushed_commit_says_of_who_wrote_it_is_nothing(fleet: CommitFleet, tmp_path: Path) -> None:
    """Whoever pushed or signed it: only under the server's own signature it counts."""
    key = CommitKey(Ed25519PrivateKey.generate())
    vouching, alice = Vouching(PushRecords(None), Verifier(key), tmp_path / "signers"), Person("alice")
    (tmp_path / "signers").mkdir()
    (tmp_path / "signers" / "allowed_signers").write_text(alice.line())
    fleet.begin()
    said = "Mine\n\nWritten-By: root:a configmaps default/x ann\nWritten-By: root:a configmaps default/y bob\n"
    pushed = PushRecord("", {"username": "eve"})
    for sign, record, by in (
        (None, None, NOBODY),
        (None, pushed, PushedBy("eve", PUSH)),
        (alice.sign, None, PushedBy("alice", SIGNATURE)),
        (key.sign, None, PushedBy("", SEVERAL, users=("ann", "bob"))),
    ):
        commit = fleet.repo.commit({f"{A}/x.md": str(by)}, said, sign=sign)
        found = vouching.voucher(fleet.repo.repo, own(commit), "", record).said
        assert replace(found, key="") == by
