"""Whatever becomes of the status branch's own repository: what is served, what a first load finds and what a recovery
brings back are the same world."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import assert_same
from support.statusrepo import REF, TREEPLANE, Server, StatusRepo, recording_in, serve

from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import STATUS_REF
from reconciler.repository.write import move_ref
from reconciler.statusbranch.lag import StatusLag, lag_of
from reconciler.statusbranch.publisher import Publisher, PublisherSettings

STEPS = ("change", "leaves", "returns", "refuses", "takes", "older", "elsewhere", "restart", "lost")
NOW = PublisherSettings(look=0.0)


class World:
    """A fleet that goes on, whatever happens to the two repositories."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.status = StatusRepo(directory / "status.git")
        self.other = StatusRepo(directory / "other.git")
        self.fleet = serve(directory / "fleet", self.status, close=False)
        self.writer = self.fleet.writer()
        self.publisher = Publisher(self.fleet.mirror, self.writer, settings=NOW)
        self.heads = [self.status.head]
        self.away, self.number = False, 0
        self.publish()

    def publish(self) -> None:
        self.writer.flush()
        with contextlib.suppress(RepositoryError):
            if self.publisher.publish() and not self.away:
                assert self.status.head == self.fleet.mirror.repository.ref(STATUS_REF)
                self.heads.append(self.status.head)

    def step(self, name: str) -> None:
        self.number += 1
        match name:
            case "change":
                text = configmap(number=str(self.number))
                self.fleet.commit({TREEPLANE: recording_in(self.status.url), f"{A}/app.yaml": text})
                assert self.fleet.data("root:a") == {"number": str(self.number)}
            case "elsewhere":
                loaded = self.fleet.commit({TREEPLANE: recording_in(self.other.url)})
                assert loaded.problems, "it is held"
            case "leaves" if not self.away:
                self.status.leaves()
                self.away = True
            case "returns" if self.away:
                self.status.comes_back()
                self.away = False
            case "refuses" if not self.away:
                self.status.refuses()
            case "takes" if not self.away:
                self.status.takes()
            case "older" if not self.away and self.status.head is not None:
                move_ref(self.status.repo, REF, self.heads[self.number % len(self.heads)], self.status.head)
            case "restart":
                self.restarts()
            case "lost":
                self.is_lost()
        self.publish()
        assert self.other.head is None, "nothing is ever pushed where a commit that is held says"

    def restarts(self) -> None:
        """With its data directory it goes on from what it has, whether or not the repository answers."""
        here = self.fleet.mirror.repository.ref(STATUS_REF)
        server = Server(self.fleet.repo.path, self.fleet.directory)
        server.lookout._teller.status_branch = lambda _: None  # type: ignore[method-assign]
        beginning = server.begin()
        assert beginning is not None, server.troubles
        assert beginning.recorded is not None
        assert beginning.recorded.commit.id == here
        self.publisher = Publisher(self.fleet.mirror, self.writer, settings=NOW)

    def is_lost(self) -> None:
        """A server with nothing begins from what the repository has, or not at all."""
        server = Server(self.fleet.repo.path, self.directory / f"lost-{self.number}")
        beginning = server.begin()
        if self.away:
            assert beginning is None
            assert server.troubles
        else:
            assert beginning is not None, server.troubles
            assert beginning.recorded is not None
            assert beginning.recorded.commit.id == self.status.head

    def ends(self) -> None:
        """All is well again: the two agree, and a recovery is what went on running."""
        self.step("returns")
        self.step("takes")
        self.step("change")
        assert self.status.head == self.fleet.mirror.repository.ref(STATUS_REF)
        assert lag_of(self.fleet.mirror) == StatusLag()
        with recovered(self.fleet, self.directory / "recovered") as new:
            assert_same(new, self.fleet)


@contextlib.contextmanager
def recovered(fleet: LoadedFleet, directory: Path) -> Iterator[LoadedFleet]:
    server = Server(fleet.repo.path, directory)
    beginning = server.begin()
    assert beginning is not None
    new = LoadedFleet(directory, repo=fleet.repo)
    try:
        new.mirror.record_at(server.mirror.status_place)
        new.load(beginning.recorded)
        yield new
    finally:
        new.close()


@settings(max_examples=8, deadline=None)
@example(["leaves", "change", "change", "restart", "lost", "returns", "lost"])
@example(["change", "refuses", "change", "older", "lost", "takes", "older", "change"])
@example(["elsewhere", "lost", "restart", "change"])
@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=10))
def test_running_starting_and_recovering_agree(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        world = World(Path(directory))
        try:
            for name in steps:
                world.step(name)
            world.ends()
        finally:
            world.fleet.close()
