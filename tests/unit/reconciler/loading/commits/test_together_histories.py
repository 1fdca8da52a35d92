"""Histories of many users' writes, bad ones among them, with withdrawals, pushes and kills: what each was answered is
what git says, under his name, and a recovery finds what the running server has."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commitfleet import CommitFleet
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.manywriters import BUILT_ON, SIX, WIDGET, ManyWriters, crash
from support.ownedfleet import MadeUpPushes, pushers
from support.recoveries import assert_same, recover

from apiserver.model.errors import StatusError
from apiserver.registry.waiter import Waiter
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader
from reconciler.loading.vouching import Vouching
from reconciler.loading.whopushed import WhoPushed
from reconciler.plan.pushedby import SERVER, SEVERAL, PushedBy
from reconciler.repository.writtenby import written_by
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier
from reconciler.statusbranch import pushers as known
from reconciler.statusbranch.underway import UnderWay
from reconciler.statusbranch.writer import StatusWriter

GUARDED = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: test}
spec: {writes: Commit, safety: {owners: true}, verification: {mode: Every}}
"""
WORKSPACES = "workspaces.tenancy.kcp.io"


class GuardedFleet(CommitFleet):
    """Every commit has to be signed, by whoever may push where it touches something; the server signs its own."""

    def __init__(self, directory: Path, like: GuardedFleet | None = None, keys: Path | None = None) -> None:
        self.own_key = like.own_key if like is not None else CommitKey(Ed25519PrivateKey.generate())
        self.sign = self.own_key.sign
        self.vouching = Vouching(MadeUpPushes(), Verifier(self.own_key), directory / "signers")
        super().__init__(directory, like.repo if like is not None else None, keys)

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        return super().new_loader(branch or BranchSettings(vouching=self.vouching))

    def writer(self, under_way: UnderWay | None = None) -> StatusWriter:
        return StatusWriter(self.store, self.mirror, under_way=under_way, sign=self.sign)

    def guarded(self) -> None:
        self.begin({f"{A}/crd.yaml": BUILT_ON, f"{A}/widget.yaml": WIDGET, f"{B}/pushers.yaml": pushers("bob")})
        self.repo.commit({"treeplane.yaml": GUARDED}, sign=self.sign)
        self.load()


@dataclass
class Told:
    """What was asked for, by name, of whom; and what came of it."""

    users: dict[str, str] = field(default_factory=dict)
    open: dict[str, tuple[Waiter | None, Future[Any]]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def close(self, name: str) -> None:
        _, answer = self.open.pop(name)
        try:
            answer.result(10)
            self.made.add(name)
        except StatusError as error:
            assert error.code in (422, 499), error
            self.refused.add(name)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(SIX), st.sampled_from(["root:a", "root:b"])),
        st.tuples(st.just("ask"), st.sampled_from(SIX), st.sampled_from(["root:a", "root:b"])),
        st.tuples(st.sampled_from(["all", "nonsense", "break"]), st.sampled_from(SIX), st.just("root:a")),
        st.tuples(st.just("withdraw"), st.integers(0, 9), st.just("")),
        st.tuples(st.sampled_from(["serve", "push"]), st.just(0), st.just("")),
        st.tuples(st.just("crash"), st.integers(0, 7), st.just("")),
    ),
    max_size=9,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_what_each_was_answered_is_what_git_says_and_a_recovery_finds(steps: list[tuple[str, Any, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(80) as threads:
        fleet, told = GuardedFleet(Path(folder) / "fleet"), Told()
        fleet.guarded()
        begin, pushed = fleet.repo.head, list[str]()
        try:
            for number, step in enumerate(steps):
                _take(ManyWriters(fleet, threads), told, pushed, f"m{number}", step)
            while fleet.committer.waiting():
                fleet.committer.serve()
            _close_all(told)
            fleet.load()
            assert fleet.held() == {}
            _assert_git_says_it(fleet, told, begin, pushed)
            _assert_recovered(fleet, Path(folder))
        finally:
            for waiter, _ in told.open.values():
                if waiter is not None:
                    waiter.leave()
            fleet.close()


def _take(writers: ManyWriters, told: Told, pushed: list[str], name: str, step: tuple[str, Any, str]) -> None:
    fleet, (what, who, where) = writers.fleet, step
    if what == "ask":
        told.users[name] = who
        told.open[name] = writers.create_for_now(where, name, who)
    elif what == "all":
        for user in SIX:
            told.users[f"{name}{user}"] = user
            told.open[f"{name}{user}"] = writers.create_for_now("root:b", f"{name}{user}", user)
    elif what == "nonsense":
        spec = {"type": {"name": "nonsense", "path": "root"}}
        kind = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
        child = {**kind, "metadata": {"name": name}, "spec": spec}
        told.open[name] = None, writers.ask(fleet.create, where, WORKSPACES, child, who)
    elif what == "break" and "break" not in told.open:
        told.open["break"] = None, writers.break_widgets(who, where)
    elif what == "withdraw" and (open_ := [n for n, (waiter, _) in told.open.items() if waiter is not None]):
        chosen = open_[who % len(open_)]
        waiter, _ = told.open[chosen]
        assert waiter is not None
        waiter.leave()
        told.close(chosen)
    elif what == "serve":
        fleet.committer.serve()
        _close_all(told)
    elif what == "push":
        pushed.append(fleet.repo.commit({f"{B}/app.yaml": configmap(a=name)}, sign=fleet.sign))
    elif what == "crash":
        crash(fleet, who)


def _close_all(told: Told) -> None:
    """A round answers all that waits."""
    for name in [*told.open]:
        told.close(name)


def _assert_git_says_it(fleet: GuardedFleet, told: Told, begin: str, pushed: list[str]) -> None:
    repo, said = fleet.mirror.repository, dict[str, str]()
    who = WhoPushed(fleet.store, repo, fleet.vouching)
    chain = [commit for commit in repo.first_parents(begin, fleet.repo.head) or () if commit not in pushed]
    for commit in chain:
        info = repo.commit(commit)
        shared = written_by(info.message)
        author = info.author.partition(" <")[0]
        if shared:
            assert author == "Treeplane"
            found = {each.name: each.user for each in shared}
        else:
            words = info.message.partition("Allow-Delete")[0].split()
            found = {word.removeprefix("default/"): author for word in words if word.startswith("default/")}
        assert not said.keys() & found.keys()
        said |= found
        by = PushedBy.server(found.values())
        assert known.of(fleet.store, commit) == by
        # A server that finds the commit when it is started again knows the same, of its own signature.
        again = who._found(repo.commit(commit).parents[0], [commit])
        assert [(each.how, each.user, each.users, each.more) for each in again.values()] == [
            (by.how, by.user, by.users, by.more)
        ]
        assert by.how in (SERVER, SEVERAL)
    assert said == {name: user for name, user in told.users.items() if name in told.made}
    assert {n for n in told.users if any(fleet.find(p, "configmaps", n) for p in ("root:a", "root:b"))} == said.keys()


def _assert_recovered(fleet: GuardedFleet, folder: Path) -> None:
    opened: list[GuardedFleet] = []

    def another(like: LoadedFleet, name: str, *, keys: Path | None = None) -> LoadedFleet:
        assert isinstance(like, GuardedFleet)
        opened.append(GuardedFleet(folder / name, like, keys))
        return opened[-1]

    fleet.publish()
    try:
        assert_same(recover(fleet, another), fleet)
    finally:
        for each in opened:
            each.close()


def test_what_a_crash_left_on_the_branch_comes_in_past_owners_and_signatures(tmp_path: Path) -> None:
    """The branch has it, the store has not: it is nobody's push, and each write of it was allowed by itself. A
    first load that knows of no status branch takes it, too."""
    with ThreadPoolExecutor(8) as threads:
        fleet = GuardedFleet(tmp_path / "fleet")
        fleet.guarded()
        answers = ManyWriters(fleet, threads).create_all(SIX)
        before = fleet.fleet().commit
        crash(fleet, 1)
        assert fleet.repo.commits[-1] == before.id
        assert fleet.fleet().commit.id == fleet.repo.head != before.id
        assert (fleet.held(), fleet.fleet().error) == ({}, "")
        assert [answer.result(10)["metadata"]["name"] for answer in answers] == [*SIX]
    WhoPushed(fleet.store, fleet.mirror.repository, fleet.vouching).ahead_of(fleet.repo.head)
    assert str(known.of(fleet.store, fleet.repo.head)) == "treeplane for ann, bob, cid and 3 more"
    fresh = GuardedFleet(tmp_path / "fresh", fleet)
    fresh.load()
    assert (fresh.held(), fresh.fleet().error) == ({}, "")
    assert all(fresh.find("root:a", "configmaps", user) for user in SIX)
    for each in (fleet, fresh):
        each.close()
