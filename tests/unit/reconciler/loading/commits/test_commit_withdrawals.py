"""Who waits withdraws: what a client that has gone asked for is not carried out, unless it was begun."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.manywriters import crash

from apiserver.admission.committing import CommitSink
from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal, Key
from apiserver.registry import deletion, rest
from apiserver.registry.intents import waiting
from apiserver.registry.rest_options import Collection, DeleteOptions, WriteOptions
from apiserver.registry.waiter import Waiter
from apiserver.storage.protocol import NEVER, Check

Object = dict[str, Any]


class Asked:
    """Creates of ConfigMaps in root:a, each by a client of its own."""

    def __init__(self, fleet: CommitFleet, threads: ThreadPoolExecutor) -> None:
        self.fleet, self._threads = fleet, threads

    def create(self, name: str, user: str = "alice") -> tuple[Waiter, Future[Object]]:
        """Returns once it waits."""
        at = self.fleet.at("root:a", "configmaps", user)
        made = self._threads.submit(lambda: rest.create(at, "default", a_configmap(name), WriteOptions("test")).obj)
        while name not in self.names():
            assert not made.done(), made.result()
        return waiter_of(at), made

    def names(self) -> set[str]:
        return {intent.key.name for intent in waiting(self.fleet.store)}


def waiter_of(at: Collection) -> Waiter:
    assert isinstance(at.sink, CommitSink)
    return at.sink.waiter


def withdrawn(made: Future[Any]) -> bool:
    with pytest.raises(StatusError) as raised:
        made.result(10)
    return raised.value.code == 499


def nothing_is_left(fleet: CommitFleet) -> bool:
    """An answer is deleted behind its reader's back: what is written next is written after that."""
    fleet.store.write(Check(Key(Internal.INTENT, "", "", "none"), NEVER)).result()
    return fleet.store.count(Internal.INTENT) == fleet.store.count(Internal.ANSWER) == 0


@pytest.fixture
def asked(idle: CommitFleet) -> Iterator[Asked]:
    with ThreadPoolExecutor(8) as threads:
        yield Asked(idle, threads)


def test_what_was_not_begun_is_never_committed(asked: Asked) -> None:
    waiter, made = asked.create("made")
    waiter.leave()
    assert withdrawn(made)
    assert asked.fleet.store.count(Internal.INTENT) == 0
    asked.fleet.committer.serve()
    assert asked.fleet.log() == []


def test_others_of_the_same_commit_are_served(asked: Asked) -> None:
    """It goes while the commit of both is judged."""
    waiter, made = asked.create("gone")
    _, other = asked.create("stays")
    propose = asked.fleet.loader.propose

    def late(*given: Any) -> Any:
        proposal = propose(*given)
        waiter.leave()
        assert withdrawn(made)
        return proposal

    asked.fleet.loader.propose = late  # type: ignore[method-assign]
    asked.fleet.committer.serve()
    assert other.result(10) == asked.fleet.get("root:a", "configmaps", "stays")
    assert asked.fleet.log() == ["alice: Create configmaps default/stays in root:a"]
    assert asked.fleet.find("root:a", "configmaps", "gone") is None


def test_what_was_begun_is_answered_to_nobody(asked: Asked) -> None:
    """It goes while the branch is moved."""
    waiter, made = asked.create("made")
    desired = asked.fleet.committer._branch.desired
    publish = desired.publish

    def late(*given: Any) -> None:
        publish(*given)
        waiter.leave()
        assert withdrawn(made)

    desired.publish = late  # type: ignore[method-assign]
    asked.fleet.committer.serve()
    assert asked.fleet.log() == ["alice: Create configmaps default/made in root:a"]
    assert asked.fleet.get("root:a", "configmaps", "made")["data"] == {"a": "b"}
    assert nothing_is_left(asked.fleet)


def test_a_secret_that_nobody_waits_for_is_not_kept(idle: CommitFleet) -> None:
    at = idle.at("root:a", "secrets")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {}}
    with ThreadPoolExecutor(1) as threads:
        made = threads.submit(rest.create, at, "default", secret, WriteOptions("test"))
        while not idle.committer.waiting():
            assert not made.done()
        [intent] = waiting(idle.store)
        waiter_of(at).leave()
        assert withdrawn(made)
    idle.committer._alone(intent)
    assert idle.find("root:a", "secrets", "s") is None
    assert not list(idle.keys.glob("secrets/**/*.yaml"))


def test_whoever_waits_for_his_turn_leaves_too(asked: Asked) -> None:
    asked.create("made")
    at = asked.fleet.at("root:a", "configmaps")
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(rest.create, at, "default", a_configmap("made"), WriteOptions("test"))
        waiter_of(at).leave()
        assert withdrawn(second)
    assert asked.names() == {"made"}
    asked.fleet.committer.serve()


def test_all_of_a_deletecollection_goes(asked: Asked) -> None:
    fleet = asked.fleet
    made = [asked.create(name)[1] for name in ("one", "two", "three")]
    fleet.committer.serve()
    assert all(each.result(10) for each in made)
    at = fleet.at("root:a", "configmaps")
    keys = [Key("configmaps", at.cluster, "default", name) for name in ("one", "two", "three")]
    with ThreadPoolExecutor(1) as threads:
        gone = threads.submit(deletion.delete_many, at, keys, DeleteOptions())
        while asked.names() != {"one", "two", "three"}:
            assert not gone.done()
        waiter_of(at).leave()
        assert withdrawn(gone)
    assert asked.names() == set()
    before = fleet.log()
    fleet.committer.serve()
    assert fleet.log() == before


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "withdraw", "serve", "crash"]), st.integers(0, 3), st.integers(0, 3)),
    max_size=8,
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_each_is_carried_out_once_or_not_at_all(steps: list[tuple[str, int, int]]) -> None:
    """Whoever withdrew before his write was begun sees it never done; all others see it done once, also after a crash
    of the reconciler between any two of its transactions."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(16) as threads:
        fleet = CommitFleet(Path(folder) / "fleet")
        fleet.begin({"treeplane.yaml": WRITES_COMMIT})
        asked = Asked(fleet, threads)
        open_: dict[str, tuple[Waiter, Future[Object]]] = {}
        left: set[str] = set()
        made: set[str] = set()
        try:
            for number, (step, who, when) in enumerate(steps):
                if step == "ask":
                    name = f"m{number}"
                    open_[name] = asked.create(name, f"user{who % 2}")
                elif step == "withdraw" and open_:
                    name = sorted(open_)[who % len(open_)]
                    waiter, answer = open_.pop(name)
                    waiter.leave()
                    (left if _ends_withdrawn(answer) else made).add(name)
                elif step == "serve":
                    fleet.committer.serve()
                    made |= _answered(open_)
                elif step == "crash":
                    crash(fleet, when)
            fleet.committer.serve()
            made |= _answered(open_)
            assert not open_
            assert nothing_is_left(fleet)
            said = "\n".join(_messages(fleet))
            assert all(said.count(f"default/{name} ") + said.count(f"default/{name}\n") == 1 for name in made)
            assert not any(f"default/{name}" in said for name in left)
            assert {n for n in made | left if fleet.find("root:a", "configmaps", n) is not None} == made
        finally:
            for waiter, _ in open_.values():
                waiter.leave()
            fleet.close()


def _ends_withdrawn(answer: Future[Object]) -> bool:
    """Otherwise it was done, by a reconciler that crashed or by the one after it."""
    try:
        return not answer.result(10)
    except StatusError as error:
        assert error.code == 499
        return True


def _answered(open_: dict[str, tuple[Waiter, Future[Object]]]) -> set[str]:
    for _, answer in open_.values():
        assert answer.result(10)
    names = set(open_)
    open_.clear()
    return names


def _messages(fleet: CommitFleet) -> list[str]:
    repo = fleet.mirror.repository
    return [repo.commit(c).message + "\n" for c in repo.first_parents(fleet.repo.commits[-1], fleet.repo.head) or []]
