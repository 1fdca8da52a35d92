"""The server that holds its repository, from a store that is filled to its first status commit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.commits import own
from reconciler.commands.holder import Holder
from reconciler.commands.installation import Installation
from reconciler.commands.lookout import Lookout
from reconciler.commands.report import Report
from reconciler.commands.roles import Roles
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning
from reconciler.commands.station import Station
from reconciler.commands.teller import Teller
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.render import Files, Rendering

Eventually = Callable[..., object]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    yield made
    made.close()


class Run:
    """A holder on a fleet's store and mirror, whose first status commit is not rendered before `go_on` is set."""

    def __init__(self, fleet: LoadedFleet, patch: pytest.MonkeyPatch) -> None:
        self.renders, self.go_on = threading.Event(), threading.Event()
        render = Rendering.everything

        def slow(rendering: Rendering) -> Files:
            self.renders.set()
            assert self.go_on.wait(10)
            return render(rendering)

        patch.setattr(Rendering, "everything", slow)
        teller = Teller(Report())
        settings = ReconcileSettings(fleet.directory, fleet.keys, str(fleet.repo.path), "main", "u", "u")
        self.lookout = Lookout(fleet.mirror, teller)
        roles = Roles(fleet.directory)
        station = Station(settings, roles.handles(fleet.store), fleet.mirror, self.lookout, teller, roles)
        holder = Holder(station, Installation(fleet.directory))
        beginning = Beginning(fleet.mirror.refresh(), None)
        self.thread = threading.Thread(target=holder.run, args=(beginning,), daemon=True)
        self.thread.start()
        assert self.renders.wait(10)

    def end(self) -> None:
        self.lookout.stop.set()
        self.lookout.wake.set()
        self.go_on.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


def test_the_branch_is_followed_while_the_first_status_commit_is_made(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    first = fleet.repo.head
    run = Run(fleet, monkeypatch)
    try:
        fleet.repo.commit({f"{A}/app.yaml": configmap(a="pushed")})
        eventually(lambda: fleet.data("root:a") == {"a": "pushed"})
        assert fleet.mirror.status() is None
    finally:
        run.end()
    repo, last = fleet.mirror.repository, fleet.mirror.status()
    assert last is not None
    assert RecordedFleet(repo, last).source == own(fleet.repo.head)
    begun = RecordedFleet(repo, repo.commit(last).parents[0])
    assert begun.source == own(first), "the first one is of the moment in which it was begun"
