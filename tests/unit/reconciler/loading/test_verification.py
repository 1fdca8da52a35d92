"""Which commits have to be signed, and by whom: along histories, after losses, for whoever tries to get round it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import BEGINNING, LoadedFleet, configmap
from support.ownedfleet import MadeUpPushes
from support.signing import Person, needs_ssh

from apiserver.model.commits import own
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.vouching import Vouching
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier
from reconciler.statusbranch.writer import StatusWriter

pytestmark = needs_ssh
R = "workspaces/root"
SIGNERS = "signers/allowed_signers"


def settings(mode: str, more: str = "") -> str:
    return f"{TREEPLANE_YAML}spec: {{verification: {{mode: {mode}}}{more}}}\n"


ALICE, BOB, MALLORY = map(Person, ("alice", "bob", "mallory"))


class SignedFleet(LoadedFleet):
    """`signers` is the server's own list; `own_key` its own."""

    def __init__(self, directory: Path, like: SignedFleet | None = None, *, key: CommitKey | None = None) -> None:
        self.own_key = key or (like.own_key if like is not None else CommitKey(Ed25519PrivateKey.generate()))
        self.signers = (like.keys if like is not None else directory / "keys") / "signers"
        self.vouching = Vouching(MadeUpPushes(), Verifier(self.own_key), self.signers)
        super().__init__(directory, *((like.repo, like.keys) if like is not None else ()))

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        return super().new_loader(branch or BranchSettings(vouching=self.vouching))

    def trust(self, *people: Person, options: str = "") -> None:
        self.signers.mkdir(parents=True, exist_ok=True)
        (self.signers / "allowed_signers").write_text("".join(each.line(options) for each in people))

    def signed(self, person: Person | None, files: dict[str, str | None], message: str = "Change") -> Loaded:
        self.repo.commit(files, message, sign=person.sign if person is not None else None)
        return self.load()

    def writer(self, under_way: object = None) -> StatusWriter:
        return StatusWriter(self.store, self.mirror, sign=self.own_key.sign)

    @property
    def served(self) -> str:
        return self.fleet().commit.id


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., SignedFleet]]:
    made: list[SignedFleet] = []

    def open_one(like: SignedFleet | None = None, **options: CommitKey) -> SignedFleet:
        made.append(SignedFleet(tmp_path / f"n{len(made)}", like, **options))
        return made[-1]

    yield open_one
    for each in made:
        each.close()


@pytest.fixture
def fleet(opened: Callable[..., SignedFleet]) -> SignedFleet:
    """Every commit has to be signed; alice may."""
    made = opened()
    made.trust(ALICE)
    made.signed(ALICE, {**BEGINNING, "treeplane.yaml": settings("Every"), SIGNERS: ALICE.line()})
    assert made.fleet().error == ""
    return made


def test_the_first_commit_of_all_is_signed_by_whom_the_server_trusts(opened: Callable[..., SignedFleet]) -> None:
    """Whatever it says of itself, its own signers and mode included."""
    fleet = opened()
    fleet.trust(ALICE)
    fleet.signed(MALLORY, {**BEGINNING, SIGNERS: MALLORY.line()})
    assert not fleet.fleet().loaded
    assert "is not taken, since" in fleet.fleet().error and "keys/signers" in fleet.fleet().error
    fleet.signed(ALICE, {})
    assert fleet.fleet().loaded


def test_where_nobody_is_trusted_a_fleet_that_asks_for_signatures_is_not_served(
    opened: Callable[..., SignedFleet],
) -> None:
    fleet = opened()
    fleet.signed(ALICE, {**BEGINNING, "treeplane.yaml": settings("Head"), SIGNERS: ALICE.line()})
    assert not fleet.fleet().loaded


def test_a_list_of_signers_that_cannot_be_read_is_no_reason_to_ask_nobody(opened: Callable[..., SignedFleet]) -> None:
    fleet = opened()
    fleet.signers.mkdir(parents=True)
    (fleet.signers / "allowed_signers").write_text("nonsense\n")
    fleet.signed(None, BEGINNING)
    assert not fleet.fleet().loaded
    fleet.trust(ALICE)
    fleet.signed(ALICE, {"treeplane.yaml": settings("Every"), SIGNERS: "nonsense\n"})
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="1")})
    assert fleet.data("root") == {"a": "b"}


def test_what_is_not_signed_is_held_with_all_that_follows(fleet: SignedFleet) -> None:
    good = fleet.repo.commit({f"{R}/app.yaml": configmap(a="1")}, sign=ALICE.sign)
    bad = fleet.repo.commit({f"{R}/app.yaml": configmap(a="2")})
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="3")})
    assert fleet.served == good
    assert fleet.fleet().error.startswith(f"main: {bad:.12} is not taken, since it is not signed")
    fleet.repo.reset(good)
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="4")})
    assert fleet.fleet().error == ""
    assert fleet.data("root") == {"a": "4"}


def test_a_commit_does_not_vouch_for_its_own_signers(fleet: SignedFleet) -> None:
    before = fleet.served
    fleet.signed(MALLORY, {SIGNERS: ALICE.line() + MALLORY.line()})
    assert fleet.served == before
    fleet.repo.reset(before)
    fleet.signed(ALICE, {SIGNERS: ALICE.line() + BOB.line()})
    fleet.signed(BOB, {SIGNERS: BOB.line()})
    assert fleet.fleet().error == ""
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="late")})
    assert "is nobody's" in fleet.fleet().error


def test_a_commit_cannot_take_the_rule_away_unsigned(fleet: SignedFleet) -> None:
    before = fleet.served
    fleet.signed(None, {"treeplane.yaml": TREEPLANE_YAML})
    assert fleet.served == before
    fleet.repo.reset(before)
    fleet.signed(ALICE, {"treeplane.yaml": TREEPLANE_YAML})
    fleet.signed(None, {f"{R}/app.yaml": configmap(a="free")})
    assert fleet.data("root") == {"a": "free"}


def test_signers_that_are_gone_leave_it_to_the_servers_own(fleet: SignedFleet) -> None:
    fleet.signed(ALICE, {SIGNERS: None})
    fleet.trust(BOB)
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="1")})
    assert "is nobody's" in fleet.fleet().error
    fleet.repo.reset(fleet.served)
    fleet.signed(BOB, {f"{R}/app.yaml": configmap(a="2")})
    assert fleet.data("root") == {"a": "2"}


def test_a_key_that_has_expired_is_no_good_at_first_sight_whatever_time_the_commit_says(fleet: SignedFleet) -> None:
    """Times of commits are anybody's to choose: all of these tests' are in the past or the future."""
    fleet.signed(ALICE, {SIGNERS: ALICE.line('valid-before="20200101"') + BOB.line()})
    before = fleet.served
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="1")})
    assert fleet.served == before
    assert "expired" in fleet.fleet().error or "valid" in fleet.fleet().error


def test_what_was_good_once_is_good_when_the_branch_comes_back(
    fleet: SignedFleet, opened: Callable[..., SignedFleet]
) -> None:
    begin = fleet.served
    fleet.signed(ALICE, {SIGNERS: BOB.line()})
    far = fleet.repo.head
    fleet.repo.reset(begin)
    fleet.load()
    assert fleet.served == begin
    # Nobody remembers but the store and the status branch; alice's key is nobody's by now.
    fleet.publish()
    fleet.vouching = Vouching(MadeUpPushes(), Verifier(fleet.own_key), fleet.signers)
    fleet.loader = fleet.new_loader()
    again = opened(fleet)
    again.load(again.recorded())
    assert again.fleet().verified == fleet.fleet().verified == (own(far),)
    fleet.repo.reset(far)
    for each in (fleet, again):
        each.load()
        assert (each.served, each.fleet().error) == (far, "")


def test_what_a_good_merge_brings_along_need_not_be_signed_and_is_not_good_by_itself(fleet: SignedFleet) -> None:
    begin = fleet.served
    side = fleet.repo.commit({f"{R}/side.yaml": configmap("side")})
    fleet.repo.reset(begin)
    fleet.repo.merge({f"{R}/side.yaml": configmap("side")}, side, sign=ALICE.sign)
    fleet.load()
    merged = fleet.served
    assert fleet.data("root", "side") == {"a": "b"}
    # The branch goes to what was merged: an ancestor of what is served, which nobody looked at.
    fleet.repo.reset(side)
    fleet.load()
    assert fleet.served == merged
    assert f"{side:.12} is not taken" in fleet.fleet().error


def test_a_merge_the_other_way_round_brings_first_parents_that_have_to_be_signed(fleet: SignedFleet) -> None:
    begin = fleet.served
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="1")})
    main = fleet.served
    unsigned = fleet.repo.commit({f"{R}/side.yaml": configmap("side")}, parent=begin)
    fleet.repo.merge({f"{R}/app.yaml": configmap(a="1")}, main, sign=ALICE.sign)
    fleet.load()
    assert fleet.served == main
    assert f"{unsigned:.12} is not taken" in fleet.fleet().error


def test_where_the_head_alone_counts_what_is_served_says_who_may_sign_it(fleet: SignedFleet) -> None:
    fleet.signed(ALICE, {"treeplane.yaml": settings("Head")})
    before = fleet.served
    fleet.repo.commit({SIGNERS: MALLORY.line()})
    fleet.signed(MALLORY, {f"{R}/app.yaml": configmap(a="taken over")})
    assert fleet.served == before
    fleet.repo.reset(before)
    fleet.repo.commit({f"{R}/app.yaml": configmap(a="1")})
    fleet.signed(ALICE, {f"{R}/more.yaml": configmap("more")})
    assert (fleet.fleet().error, fleet.data("root")) == ("", {"a": "1"})


def test_after_a_loss_what_the_server_said_itself_was_served_counts(
    fleet: SignedFleet, opened: Callable[..., SignedFleet]
) -> None:
    fleet.signed(ALICE, {SIGNERS: BOB.line(), f"{R}/app.yaml": configmap(a="1")})
    fleet.publish()
    fleet.trust(BOB)
    again = opened(fleet)
    again.load(again.recorded())
    assert again.data("root") == {"a": "1"}
    # Another's status branch is anybody's: the commit that it names has to be signed by whom the server trusts.
    stranger = opened(fleet, key=CommitKey(Ed25519PrivateKey.generate()))
    stranger.load(stranger.recorded())
    assert not stranger.fleet().loaded
    assert f"{fleet.served:.12} is not taken" in stranger.fleet().error


def test_what_the_server_commits_itself_is_good(fleet: SignedFleet) -> None:
    fleet.repo.commit({f"{R}/app.yaml": configmap(a="written")}, sign=fleet.own_key.sign)
    fleet.load()
    assert fleet.data("root") == {"a": "written"}


def test_who_signed_is_asked_about_under_the_name_that_the_signers_file_gives(fleet: SignedFleet) -> None:
    from support.ownedfleet import pushers

    owners = settings("Every", ", safety: {owners: true}")
    fleet.signed(ALICE, {f"{R}/a/pushers.yaml": pushers("bob"), SIGNERS: ALICE.line() + BOB.line()})
    fleet.signed(ALICE, {"treeplane.yaml": owners})
    fleet.signed(BOB, {f"{R}/a/app.yaml": configmap(a="bob's"), f"{R}/b/app.yaml": configmap(a="not bob's")})
    assert fleet.data("root:a") == {"a": "bob's"}
    assert fleet.data("root:b") == {"a": "b"}
    assert "signed by bob: nobody gave bob" in fleet.held()["root:b"][0]


def test_who_runs_the_server_may_name_a_head_that_counts(
    fleet: SignedFleet, opened: Callable[..., SignedFleet]
) -> None:
    bad = fleet.repo.commit({f"{R}/app.yaml": configmap(a="urgent")})
    fleet.load()
    assert "treeplane up --take-head <head>" in fleet.fleet().error
    for each in (fleet, opened(fleet)):
        each.loader = each.new_loader(BranchSettings(vouching=each.vouching, take=bad[:12]))
        each.load()
        assert each.data("root") == {"a": "urgent"}
    fleet.loader = fleet.new_loader()
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="mended")})
    assert fleet.data("root") == {"a": "mended"}


def test_in_an_emergency_who_runs_the_server_takes_one_head(fleet: SignedFleet) -> None:
    fleet.signed(None, {"treeplane.yaml": TREEPLANE_YAML})
    assert "is not taken" in fleet.fleet().error
    fleet.loader = fleet.new_loader(BranchSettings(vouching=fleet.vouching, take=fleet.repo.head[:10]))
    fleet.load()
    assert (fleet.served, fleet.fleet().error) == (fleet.repo.head, "")
    fleet.signed(None, {f"{R}/app.yaml": configmap(a="free")})
    assert fleet.data("root") == {"a": "free"}


def test_of_such_a_head_the_next_one_has_to_be_signed_again(fleet: SignedFleet) -> None:
    fleet.repo.commit({SIGNERS: BOB.line()})
    fleet.loader = fleet.new_loader(BranchSettings(vouching=fleet.vouching, take=fleet.repo.head[:10]))
    fleet.load()
    taken = fleet.served
    assert taken == fleet.repo.head
    fleet.signed(ALICE, {f"{R}/app.yaml": configmap(a="1")})
    assert fleet.served == taken
    fleet.repo.reset(taken)
    fleet.signed(BOB, {f"{R}/app.yaml": configmap(a="2")})
    assert fleet.data("root") == {"a": "2"}
