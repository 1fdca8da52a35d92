"""Answers about commits: which store, made once for all who wait for it; and what is told of what cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.endpoints.commitasking import KEPT, MARK, CommitFilled, CommitQuestion
from apiserver.model.errors import StatusError
from apiserver.registry import tree
from apiserver.stores import open_at
from reconciler.viewing.jobs import JobLimits
from reconciler.viewing.shelf import ShelfLimits
from reconciler.viewing.viewer import Viewer, ViewerLimits


def run(made: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(made, 60))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "data")
    made.begin()
    made.publish()
    yield made
    made.close()


def viewer(fleet: LoadedFleet, limits: ViewerLimits | None = None) -> Viewer:
    return Viewer(fleet.directory, str(fleet.repo.path), limits or ViewerLimits())


def asked(rev: str, path: str = "root:a", user: str = "ann") -> CommitQuestion:
    return CommitQuestion(rev, path, user)


def served(fleet: LoadedFleet, found: CommitFilled, path: str = "root:a") -> bool:
    store = open_at(fleet.directory / KEPT / found.directory / "store", sync=False)
    try:
        record = tree.workspace_at(store, path)
        return record is not None and record.served
    finally:
        store.close()


def test_a_store_is_made_once(fleet: LoadedFleet) -> None:
    head = fleet.repo.head

    async def scenario() -> None:
        made = viewer(fleet)
        one, two, three = await asyncio.gather(*(made.answer(asked(head, user=user)) for user in ("a", "b", "c")))
        assert one == two == three
        assert one.commit == one.recorded == head
        assert served(fleet, one)
        assert await made.answer(asked("main")) == one, "by whatever name"
        other = await made.answer(asked(head, "root:b"))
        assert other.directory != one.directory

    run(scenario())


def test_of_what_was_not_served_it_says_whose_statuses_are_shown(fleet: LoadedFleet) -> None:
    head = fleet.repo.head
    aside = fleet.repo.commit({f"{A}/app.yaml": configmap(value="aside")})

    async def scenario() -> None:
        made = viewer(fleet)
        found = await made.answer(asked(aside))
        assert (found.commit, found.recorded) == (aside, head)
        fleet.load()
        fleet.publish()
        assert (await made.answer(asked(aside, "root:b"))).recorded == aside, "the status branch is followed"

    run(scenario())


def test_what_more_is_recorded_of_a_commit_is_shown(fleet: LoadedFleet) -> None:
    head, key = fleet.repo.head, fleet.key("root:a", "configmaps", "app")

    async def scenario() -> None:
        made = viewer(fleet)
        first = await made.answer(asked(head))
        fleet.update(key, lambda obj: obj["metadata"].update(finalizers=["example.com/x"]))
        fleet.publish()
        second = await made.answer(asked(head))
        assert second.directory != first.directory
        assert not (fleet.directory / KEPT / first.directory).exists()
        store = open_at(fleet.directory / KEPT / second.directory / "store", sync=False)
        found = store.get(key)
        store.close()
        assert found is not None and b"example.com/x" in found.value
        assert await made.answer(asked(head)) == second

    run(scenario())


@pytest.mark.parametrize(
    ("rev", "path", "code"),
    [
        ("nope", "root:a", 404),
        ("-" * 40, "root:a", 400),
        ("Z" * 40, "root:a", 404),
        ("main~1", "root:a", 400),
        ("main", "root:A/..", 404),
    ],
)
def test_what_cannot_be_meant_is_told(fleet: LoadedFleet, rev: str, path: str, code: int) -> None:
    async def scenario() -> None:
        with pytest.raises(StatusError) as told:
            await viewer(fleet).answer(asked(rev, path))
        assert told.value.code == code

    run(scenario())


def test_a_workspace_that_is_not_there_is_an_answer(fleet: LoadedFleet) -> None:
    async def scenario() -> None:
        found = await viewer(fleet).answer(asked("main", "root:none"))
        assert not served(fleet, found, "root:none")

    run(scenario())


def test_who_asks_for_many_waits_and_the_others_do_not(fleet: LoadedFleet) -> None:
    async def scenario() -> None:
        made = viewer(fleet)
        many = [made.answer(asked("main", path)) for path in ("root", "root:a", "root:b")]
        found = await asyncio.gather(*many, made.answer(asked("main", "root:b", "bob")), return_exceptions=True)
        refused = [each for each in found if isinstance(each, StatusError)]
        assert [each.code for each in refused] == [429]
        assert isinstance(found[-1], CommitFilled)

    run(scenario())


def test_what_takes_too_long_leaves_nothing(fleet: LoadedFleet) -> None:
    async def scenario() -> None:
        made = viewer(fleet, ViewerLimits(jobs=JobLimits(seconds=0.0)))
        with pytest.raises(StatusError) as told:
            await made.answer(asked(fleet.repo.head))
        assert told.value.code == 503
        assert [file.name for file in (fleet.directory / KEPT).iterdir()] == ["repository"]

    run(scenario())


def test_only_so_many_commits_are_kept(fleet: LoadedFleet) -> None:
    commits = [fleet.repo.head, *(fleet.repo.commit({f"{A}/app.yaml": configmap(value=str(n))}) for n in range(3))]

    async def scenario() -> None:
        made = viewer(fleet, ViewerLimits(shelf=ShelfLimits(commits=2)))
        found = [await made.answer(asked(commit)) for commit in commits]
        there = [(fleet.directory / KEPT / each.directory / MARK).exists() for each in found]
        assert there == [False, False, True, True]
        again = await made.answer(asked(commits[0]))
        assert served(fleet, again)

    run(scenario())


def test_before_anything_was_read_it_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(StatusError) as told:
            await Viewer(tmp_path, str(tmp_path / "none")).answer(asked("main"))
        assert told.value.code == 503

    run(scenario())
