"""One process loads, another records, at any moment: whoever is killed, and wherever, what is recorded recovers all."""

from __future__ import annotations

import threading

import pytest
from support.happenings import PUSHES, Happening
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same

from apiserver.model.commits import own
from reconciler.repository.mirror import STATUS_REF
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.underway import UnderWayThere, forget
from reconciler.statusbranch.writer import StatusWriter


class Two:
    """The halves of one server on a fleet's store."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self.fleet = fleet
        self.writer = self.recorder()

    def recorder(self) -> StatusWriter:
        """As it is after its start."""
        return StatusWriter(self.fleet.store, self.fleet.mirror, under_way=UnderWayThere(self.fleet.store))

    def load(self) -> None:
        with UnderWayThere(self.fleet.store):
            self.fleet.load()

    def load_again(self) -> None:
        """The next one that loads has all roles, and begins."""
        forget(self.fleet.store)
        self.load()
        self.writer = self.recorder()

    def record(self) -> str:
        self.writer.flush()
        head = self.fleet.mirror.repository.ref(STATUS_REF)
        assert head is not None
        return head


def pushed(number: int) -> dict[str, str | None]:
    """What concerns every workspace, and leaves something to be recorded of each; and one that comes."""
    places = ["workspaces/root", "workspaces/root/a", "workspaces/root/b"]
    came = {f"workspaces/root/come{number}/workspace.yaml": ""}
    return {**{f"{place}/n{number}.yaml": configmap(f"n{number}") for place in places}, **came}


def assert_recovers_from(fleet: LoadedFleet, another: Another, status: str, name: str) -> None:
    """A server that has a status commit, and follows from there, has what ran on."""
    new = another(fleet, name, keys=fleet.keys)
    new.load(RecordedFleet(fleet.mirror.repository, status))
    assert_same(new, fleet, at=False)


@pytest.mark.parametrize("writes", range(1, 12))
def test_a_load_that_is_cut_off_is_recorded_as_far_as_it_came(
    fleet: LoadedFleet, another: Another, writes: int
) -> None:
    two = Two(fleet)
    first = two.record()
    happening = Happening(fleet)
    happening.push(pushed(1) | PUSHES["provide"](4))
    under_way = UnderWayThere(fleet.store)
    under_way.__enter__()
    happening.die(writes)
    cut_off = two.record()
    two.load_again()
    for name, status in (("first", first), ("cut-off", cut_off), ("whole", two.record())):
        assert_recovers_from(fleet, another, status, name)


def test_what_is_recorded_while_commits_are_loaded_without_a_pause_recovers_what_they_come_to(
    fleet: LoadedFleet, another: Another
) -> None:
    two = Two(fleet)
    recorded = [two.record()]
    commits = [fleet.repo.commit(pushed(number)) for number in range(12)]
    loading = threading.Thread(target=two.load, daemon=True)
    loading.start()
    while loading.is_alive():
        head = two.record()
        if head != recorded[-1]:
            recorded.append(head)
    loading.join()
    recorded.append(two.record())
    assert RecordedFleet(fleet.mirror.repository, recorded[-1]).source == own(commits[-1])
    for number, status in enumerate([*recorded[1:4], recorded[-1]]):
        assert_recovers_from(fleet, another, status, f"while-{number}")


@pytest.mark.parametrize("writes", range(1, 12, 2))
def test_who_records_may_be_killed_while_a_commit_is_on_its_way(
    fleet: LoadedFleet, another: Another, writes: int
) -> None:
    """The next one says again what the one before it left for later."""
    two = Two(fleet)
    two.record()
    happening = Happening(fleet)
    happening.push(pushed(1))
    with happening.after(writes, two.record):
        two.load()
    two.writer = two.recorder()
    status = two.record()
    assert two.recorder().flush() is None
    recovered = another(fleet, "recovered", keys=fleet.keys)
    recovered.load(RecordedFleet(fleet.mirror.repository, status))
    assert_same(recovered, fleet)
