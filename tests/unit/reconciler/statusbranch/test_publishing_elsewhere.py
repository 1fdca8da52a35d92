"""The status branch at a repository of its own: pushed there, looked at there, and waiting in the mirror meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import FleetRepo
from support.statusfiles import BRANCH, DEPLOYMENT, source_files, status
from support.statusrepo import REF, StatusRepo

from apiserver.storage.protocol import Store
from reconciler.repository.errors import StatusAway
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.statusaddress import StatusAddress
from reconciler.repository.write import commit_tree, move_ref
from reconciler.statusbranch.lag import StatusLag, lag_of
from reconciler.statusbranch.publisher import Publisher, PublisherSettings
from reconciler.statusbranch.writer import StatusWriter, WriterSettings

QUICK = WriterSettings(quiet=0.01, longest=0.05, loading=0.05, retry=0.05)
SOON = PublisherSettings(retry=0.05, apart=0.0, look=0.05)


@pytest.fixture
def there(tmp_path: Path) -> StatusRepo:
    return StatusRepo(tmp_path / "status.git")


@pytest.fixture(params=["here", "a URL"])
def mirror(request: pytest.FixtureRequest, source: FleetRepo, tmp_path: Path, there: StatusRepo) -> Mirror:
    where = str(source.path) if request.param == "here" else f"file://{source.path}"
    made = Mirror(tmp_path / "data", where, "main", "treeplane/status")
    made.record_at(StatusAddress("treeplane/status", there.url))
    made.refresh()
    return made


@contextmanager
def publishing(store: Store, mirror: Mirror, is_own: Callable[[str], bool] = lambda _: False) -> Iterator[Publisher]:
    writer = StatusWriter(store, mirror, QUICK)
    publisher = Publisher(mirror, writer, is_own, SOON)
    writer.start()
    publisher.start()
    try:
        yield publisher
    finally:
        writer.stop()
        publisher.stop()


def files(there: StatusRepo) -> dict[str, str]:
    head = there.head
    if head is None:
        return {}
    repo = there.repo
    entry = repo.entry_at(repo.commit(head).tree, DEPLOYMENT)
    return {DEPLOYMENT: repo.blob(entry.id).decode()} if entry is not None else {}


def recorded(mirror: Mirror) -> str:
    return source_files(mirror, mirror.repository.ref(STATUS_REF) or "")[DEPLOYMENT]


def test_it_is_pushed_there_and_nowhere_else(
    store: Store, mirror: Mirror, source: FleetRepo, there: StatusRepo, served: Any, eventually: Any
) -> None:
    with publishing(store, mirror):
        status(served, replicas=1)
        eventually(lambda: "replicas: 1" in files(there).get(DEPLOYMENT, ""), what="the status is pushed")
        status(served, replicas=2)
        eventually(lambda: "replicas: 2" in files(there)[DEPLOYMENT], what="the change is pushed")
    assert there.head == mirror.repository.ref(STATUS_REF)
    assert there.repo.has(source.head), "what it is about is there, too"
    assert source.repo.ref(BRANCH) is None
    assert lag_of(mirror) == StatusLag()


@pytest.mark.parametrize("why", ["away", "read-only"])
def test_it_waits_and_that_is_told_once_with_since_when(
    store: Store, mirror: Mirror, there: StatusRepo, served: Any, eventually: Any, why: str
) -> None:
    told: list[str] = []
    with publishing(store, mirror) as publisher:
        publisher.told = told.append
        status(served, replicas=1)
        eventually(lambda: "replicas: 1" in files(there).get(DEPLOYMENT, ""), what="the first push")
        eventually(lambda: lag_of(mirror) == StatusLag())
        told.clear()
        (there.leaves if why == "away" else there.refuses)()
        for number in (2, 3):
            status(served, replicas=number)
            eventually(lambda number=number: f"replicas: {number}" in recorded(mirror), what="it is recorded here")
        newest = mirror.repository.ref(STATUS_REF)
        eventually(lambda: told and "waits in the mirror since" in told[-1], what="it is told")
        (there.comes_back if why == "away" else there.takes)()
        eventually(lambda: there.head == newest, what="all is there")
        eventually(lambda: told[-1] == "", what="it is over")
    words = "does not appear to be a git repository" if why == "away" else "pre-receive hook declined"
    tellings = {text for text in told if text}
    assert any(words in text and "waits in the mirror since 20" in text for text in tellings), tellings
    assert told.count("") == len(told) - len(tellings), "each trouble once"


def test_the_lag_is_what_waits_and_since_when(store: Store, mirror: Mirror, there: StatusRepo, served: Any) -> None:
    now = [1_700_000_000]
    writer = StatusWriter(store, mirror, QUICK, now=lambda: now[-1])
    publisher = Publisher(mirror, writer, settings=SOON)
    assert lag_of(mirror) == StatusLag()
    writer.flush()
    assert publisher.publish()
    for number in (1, 2):
        now.append(1_700_000_000 + 60 * number)
        status(served, replicas=number)
        writer.flush()
    assert lag_of(mirror) == StatusLag(2, 1_700_000_060)
    there.leaves()
    with pytest.raises(StatusAway):
        Publisher(mirror, writer, settings=SOON).publish()
    assert lag_of(mirror) == StatusLag(2, 1_700_000_060)
    there.comes_back()
    assert publisher.publish()
    assert lag_of(mirror) == StatusLag()


def test_one_that_was_put_back_from_a_backup_gets_what_it_lacks(
    store: Store, mirror: Mirror, there: StatusRepo, served: Any, eventually: Any
) -> None:
    with publishing(store, mirror) as publisher:
        status(served, replicas=1)
        eventually(lambda: DEPLOYMENT in files(there), what="the first push")
        old = there.head
        status(served, replicas=2)
        eventually(lambda: "replicas: 2" in files(there)[DEPLOYMENT], what="the second")
        newest = mirror.repository.ref(STATUS_REF)
        eventually(lambda: there.head == newest, what="all is pushed")
        move_ref(there.repo, REF, old, there.head)
        eventually(lambda: there.head == newest, what="it is pushed again, though nothing changed here")
        assert not publisher.lost.is_set()


def test_another_server_is_found_there_though_nothing_is_to_be_pushed(
    store: Store, mirror: Mirror, there: StatusRepo, source: FleetRepo, served: Any, eventually: Any
) -> None:
    with publishing(store, mirror) as publisher:
        status(served, replicas=1)
        eventually(lambda: "replicas: 1" in files(there).get(DEPLOYMENT, ""), what="all is pushed")
        repo, head = there.repo, str(there.head)
        message = f"Record\n\nSource-Commit: {source.head}\nWriter: 0123/1\nEpoch: 7\n"
        theirs = commit_tree(repo, repo.commit(head).tree, [head, source.head], message, 1_800_000_000, REF, head)
        eventually(publisher.lost.is_set, what="it is another's now")
        status(served, replicas=2)
    assert there.head == theirs


def test_neither_repository_is_waited_for_when_the_other_is_looked_at(
    mirror: Mirror, source: FleetRepo, there: StatusRepo
) -> None:
    there.leaves()
    head = source.commit({"README.md": "x"})
    heads = mirror.refresh_source()
    assert heads.desired == head
    assert heads.status is None
    with pytest.raises(StatusAway):
        mirror.refresh()
    there.comes_back()
    source.path.rename(source.path.with_suffix(".away"))
    assert mirror.refresh_status() is None
