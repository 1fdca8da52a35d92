"""One process loads, another records: whoever is killed, and wherever, nothing is recorded of half a commit."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.happenings import PUSHES, Happening
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same, recover

from apiserver.model.commits import own
from apiserver.model.tables import Table
from reconciler.repository.mirror import STATUS_REF
from reconciler.statusbranch.between import Beyond, Stepping, forget
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter

Eventually = Callable[..., object]


class Two:
    """The halves of one server on a fleet's store. `gone`: the one that loads was killed."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self.fleet, self.gone = fleet, False
        fleet.loader.stepping = Stepping(fleet.store)
        self.writer = self.recorder()

    def recorder(self) -> StatusWriter:
        """As it is after its start."""
        return StatusWriter(self.fleet.store, self.fleet.mirror, between=Beyond(self.fleet.store, lambda: self.gone))

    def load_again(self) -> None:
        """The next one that loads has all roles, and begins."""
        self.gone = False
        forget(self.fleet.store)
        self.fleet.loader.stepping = Stepping(self.fleet.store)
        self.fleet.load()
        self.writer = self.recorder()

    def head(self) -> str:
        head = self.fleet.mirror.repository.ref(STATUS_REF)
        assert head is not None
        return head


def pushed(number: int) -> dict[str, str | None]:
    """What concerns every workspace, and leaves something to be recorded of each."""
    places = ["workspaces/root", "workspaces/root/a", "workspaces/root/b"]
    return {f"{place}/n{number}.yaml": configmap(f"n{number}") for place in places}


def assert_of_one_commit(fleet: LoadedFleet, another: Another, status: str, name: str) -> None:
    """What is recovered from a status commit is what a server has that only ever loaded as far."""
    recorded = RecordedFleet(fleet.mirror.repository, status)
    recovered, loaded = another(fleet, f"{name}-recovered", keys=fleet.keys), another(fleet, name, keys=fleet.keys)
    recovered.loader.load(recorded.source, recorded)
    for commit in fleet.repo.commits:
        loaded.loader.load(own(commit))
        if own(commit) == recorded.source:
            break
    assert recovered.fleet().commit == loaded.fleet().commit == recorded.source
    assert_same(recovered, loaded)


@pytest.mark.parametrize("writes", range(10))
def test_a_load_that_is_cut_off_is_recorded_whole_or_not_at_all(
    fleet: LoadedFleet, another: Another, writes: int
) -> None:
    two = Two(fleet)
    two.writer.flush()
    happening = Happening(fleet)
    happening.push(pushed(1) | PUSHES["provide"](4))
    happening.die(writes)
    two.gone = True
    try:
        two.writer.flush()
    except RuntimeError as error:
        assert "in the middle of a commit" in str(error)
    assert_of_one_commit(fleet, another, two.head(), "cut-off")
    two.load_again()
    two.writer.flush()
    fleet.mirror.push_status(two.head(), fleet.mirror.refresh().status)
    assert_same(recover(fleet, another), fleet)


def test_whatever_is_recorded_while_commits_are_loaded_is_of_one(fleet: LoadedFleet, another: Another) -> None:
    """And some of it is: who loads without a pause keeps nobody from recording."""
    two = Two(fleet)
    two.writer.flush()
    commits = [fleet.repo.commit(pushed(number)) for number in range(12)]
    loading = threading.Thread(target=fleet.load, daemon=True)
    recorded = [two.head()]
    loading.start()
    while loading.is_alive():
        two.writer.flush()
        if two.head() != recorded[-1]:
            recorded.append(two.head())
    loading.join()
    two.writer.flush()
    sources = [RecordedFleet(fleet.mirror.repository, status).source for status in (*recorded, two.head())]
    assert sources[-1] == own(commits[-1])
    assert len(set(sources)) > 2
    for number, status in enumerate(recorded[1:4]):
        assert_of_one_commit(fleet, another, status, f"while-{number}")


@pytest.mark.parametrize("killed", ["before", "asked", "after"])
def test_who_records_may_be_killed_while_a_commit_is_on_its_way(
    fleet: LoadedFleet, another: Another, eventually: Eventually, killed: str
) -> None:
    two = Two(fleet)
    two.writer.flush()
    if killed == "asked":
        with fleet.loader.stepping:
            fleet.store.write().result()
            asking = threading.Thread(target=lambda: _refused(two), daemon=True)
            asking.start()
            eventually(lambda: fleet.store.get_row(Table.TENURE, "asked") is not None)
            two.gone = True
            asking.join(10)
            two.gone = False
    fleet.commit(pushed(1))
    if killed == "after":
        two.writer.flush()
    fleet.commit(pushed(2))
    two.writer = two.recorder()
    two.writer.flush()
    assert_of_one_commit(fleet, another, two.head(), "again")


def _refused(two: Two) -> None:
    with pytest.raises(RuntimeError, match="in the middle of a commit"):
        two.writer.flush()
