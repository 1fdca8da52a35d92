"""Whatever happens to proposals: nothing is served but what the served branch says, and a proposal's branch differs
from what it stands on by its user's last writes and nothing else."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.commitfleet import a_configmap
from support.loadedfleet import A, configmap
from support.proposalfleet import WRITES_PROPOSE, ProposalFleet

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal
from apiserver.model.proposals import branch_of
from reconciler.repository.objects import Repository
from reconciler.repository.write import move_ref

USERS = ("ann", "Ann")
NAMES = ("one", "two", "app")
VALUES = ("b", "c", "d")
EVENTS = ("write", "write", "write", "delete", "again", "crash", "serve", "unserve", "elsewhere", "merge", "drop",
          "restart")  # fmt: skip
HISTORIES = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.sampled_from(USERS), st.sampled_from(NAMES), st.sampled_from(VALUES)),
    max_size=14,
)  # fmt: skip

Data = dict[str, str]


class CrashedError(BaseException):
    """The process ends."""


class History:
    """`mine`: of each user what of his was proposed and not merged, by object: its value, None where it is to go."""

    def __init__(self, fleet: ProposalFleet) -> None:
        self.fleet = fleet
        self.mine: dict[str, dict[str, str | None]] = {user: {} for user in USERS}
        self.last: dict[str, tuple[str, str, str]] = {}
        self.count = 0

    # -- what there is

    def objects(self, commit: str) -> Data:
        texts = self.fleet.repo.files(commit).items()
        found = [yaml.safe_load(text) for path, text in texts if path.startswith(f"{A}/") and "kind: Con" in text]
        return {obj["metadata"]["name"]: obj["data"]["a"] for obj in found}

    def head(self, user: str) -> str | None:
        return Repository(self.fleet.repo.path).ref(f"refs/heads/{branch_of(user, 'root:a')}")

    def check(self) -> None:
        served = self.objects(self.fleet.repo.head)
        stored = {name: self.fleet.data("root:a", name) for name in (*NAMES, "other")}
        assert {name: data["a"] for name, data in stored.items() if data} == served
        assert self.fleet.held() == {}
        for user in USERS:
            head = self.head(user)
            if head is None:
                assert self.mine[user] == {}
                continue
            base = Repository(self.fleet.repo.path).merge_base(head, self.fleet.repo.head)
            assert base is not None
            expected: dict[str, str | None] = {**self.objects(base), **self.mine[user]}
            assert self.objects(head) == {name: value for name, value in expected.items() if value is not None}

    # -- what happens

    def happens(self, event: str, user: str, name: str, value: str) -> None:
        match event:
            case "write" | "delete" | "crash":
                self.write(event, user, name, value)
            case "again":
                self.again(user)
            case "serve":
                self.served({self.file(name): configmap(name, a=value)})
            case "unserve" if name in self.objects(self.fleet.repo.head):
                self.served({self.file(name): None})
            case "elsewhere":
                self.count += 1
                self.served({f"{A}/other.yaml": configmap("other", a=str(self.count))})
            case "merge":
                self.merge(user)
            case "drop" if (head := self.head(user)) is not None:
                self.drop(user, head)
            case "restart":
                self.fleet.new_committer()  # with a loader
                self.fleet.proposals = self.fleet.new_proposals()

    def file(self, name: str) -> str:
        texts = self.fleet.repo.files(self.fleet.repo.head)
        there = (path for path, text in texts.items() if path.startswith(f"{A}/") and f"name: {name}" in text)
        return next(there, f"{A}/_objects/default/configmaps/{name}.yaml")

    def served(self, files: dict[str, str | None]) -> None:
        self.fleet.commit(files)

    def drop(self, user: str, head: str | None) -> None:
        move_ref(Repository(self.fleet.repo.path), f"refs/heads/{branch_of(user, 'root:a')}", None, head)
        self.mine[user] = {}

    def merge(self, user: str) -> None:
        """Where a forge could: the branch stands on what is served."""
        head, repo = self.head(user), Repository(self.fleet.repo.path)
        if head is not None and repo.is_ancestor(self.fleet.repo.head, head):
            self.fleet.merge(user=user)
            self.mine[user] = {}

    def again(self, user: str) -> None:
        """The same write twice makes no second commit."""
        if user in self.last:
            self.write(*self._last(user))
            before = self.head(user)
            self.write(*self._last(user))
            assert self.head(user) == before

    def _last(self, user: str) -> tuple[str, str, str, str]:
        event, name, value = self.last[user]
        return event, user, name, value

    def write(self, event: str, user: str, name: str, value: str) -> None:
        there = self.objects(self.fleet.repo.head).get(name)
        if event == "delete" and there is None:
            return
        self.last[user] = "delete" if event == "delete" else "write", name, value
        try:
            self.ask(lambda: self.asked(event, user, name, value, there), crashes=event == "crash")
        except StatusError as error:
            assert error.code == (403 if "proposed on branch" in error.message else 409), error
            if error.code == 409:  # what is served changed what is proposed: his to decide, and he drops it
                assert self.mine[user].keys() & self.objects_changed(user)
                self.drop(user, self.head(user))
                self.write("write" if event == "crash" else event, user, name, value)
                return
        self.keep(user, name, None if event == "delete" else value, there)

    def objects_changed(self, user: str) -> set[str]:
        """What is served otherwise than the branch stands on."""
        head, now = self.head(user), self.objects(self.fleet.repo.head)
        base = Repository(self.fleet.repo.path).merge_base(head or "", self.fleet.repo.head)
        before = self.objects(base or "")
        return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}

    def asked(self, event: str, user: str, name: str, value: str, there: str | None) -> Any:
        if event == "delete":
            return self.fleet.deleted("root:a", "configmaps", name, user)
        if there is None:
            return self.fleet.made("root:a", "configmaps", a_configmap(name, a=value), user)
        return self.fleet.patched("root:a", "configmaps", name, user, data={"a": value})

    def keep(self, user: str, name: str, value: str | None, there: str | None) -> None:
        if value != there:  # what is served already is asked of nobody
            self.mine[user][name] = value
            now = self.objects(self.fleet.repo.head)
            self.mine[user] = {n: v for n, v in self.mine[user].items() if v != now.get(n)}

    def ask(self, work: Callable[[], Any], *, crashes: bool) -> Any:
        """A request, and whoever serves it, who may end between a branch's move and the answer."""
        fleet, bell = self.fleet, threading.Event()
        stop = fleet.store.subscribe(bell.set)
        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(work)
            done.add_done_callback(lambda _: bell.set())
            while not done.done():
                if fleet.store.count(Internal.PROPOSED):
                    crashes = self.serve(crashes)
                else:
                    bell.wait(10)
                    bell.clear()
        stop()
        return done.result()

    def serve(self, crashes: bool) -> bool:
        def crash(*_: object) -> None:
            raise CrashedError

        if crashes:
            self.fleet.proposals._answer = crash  # type: ignore[method-assign]
        try:
            self.fleet.proposals.serve()
        except CrashedError:
            self.fleet.proposals = self.fleet.new_proposals()
        return False


@given(HISTORIES)
@example([("write", "Ann", "app", "c"), ("serve", "ann", "one", "b"), ("unserve", "ann", "app", "b"),
          ("write", "Ann", "one", "c")])  # fmt: skip
@settings(deadline=None, max_examples=25)
def test_nothing_is_served_of_it_and_nothing_else_is_proposed(events: list[tuple[str, str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        fleet = ProposalFleet(Path(directory) / "fleet")
        fleet.begin({"treeplane.yaml": WRITES_PROPOSE})
        try:
            history = History(fleet)
            for event in events:
                history.happens(*event)
                history.check()
        finally:
            fleet.close()
