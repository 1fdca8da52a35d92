"""What only a lost server had, and comes back from a backup; and a store that is older than what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.loneserver import Link
from support.serverworlds import World, recovered

from reconciler.repository.errors import PushRejected, RepositoryUnreadable
from reconciler.saving.unpushed import UNPUSHED


def test_what_could_not_be_pushed_comes_back_from_a_backup(world: World) -> None:
    first, second, third = world.servers
    world.lost_with_a_backup("before")
    assert world.published() == {"before"}
    world.recover(second, take_over=False)
    assert world.published() == {"before", "alone"}
    assert (second.holder, second.said()) == (first.installation.writer, {"before", "alone"})
    assert second.mirror.lost_record() is None or second.lost.newest(world.head) == world.head
    assert world.chain()[-1].writer == first.installation.writer, "it is pushed as the server that made it would have"
    third.start(first.installation.writer)
    assert third.said() == {"before", "alone"}


def test_it_is_shown_while_the_source_takes_no_push_and_pushed_when_it_does(world: World) -> None:
    first, second, _ = world.servers
    backup = world.lost_with_a_backup()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Link, "push_status", refuse)
        before = world.head
        second.data.joinpath(UNPUSHED).write_bytes(backup.file.read_bytes())
        second.start()
        for _ in range(2):
            assert (second.said(), world.head) == ({"alone"}, before)
            second.tick()
    second.tick()
    assert world.published() == {"alone"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    assert second.mirror.lost_record() is None


def test_a_source_that_takes_no_push_is_taken_over_from_who_is_lost(world: World) -> None:
    """Nobody else records there either, and all that is recorded waits in the mirror."""
    first, second, _ = world.servers
    with pytest.MonkeyPatch.context() as patched:
        answers: Iterator[Exception] = iter(())
        patched.setattr(Link, "push_status", lambda *_: answer(answers))
        first.start()
        first.decide("alone")
        first.writer.flush()  # type: ignore[union-attr]
        world.back_up(first)
        first.kill()
        second.data.joinpath(UNPUSHED).write_bytes(world.backup.file.read_bytes())  # type: ignore[union-attr]
        answers = iter([PushRejected("protected"), PushRejected("protected")])
        second.start(first.installation.writer)
        assert second.holds
        assert second.said() == {"alone"}
        assert world.head is None
    second.tick()
    assert world.published() == {"alone"}


def test_it_goes_over_nothing_that_another_server_recorded_since(world: World) -> None:
    first, second, third = world.servers
    world.lost_with_a_backup("before")
    second.start(first.installation.writer)
    second.record("since")
    world.recover(third, take_over=True)
    assert third.said() == world.published() == {"before", "since"}
    assert third.mirror.lost_record() is None


def refuse(*_: Any) -> None:
    raise PushRejected("the branch is protected")


def answer(answers: Iterator[Exception]) -> None:
    raise next(answers, RepositoryUnreadable("out of reach"))


def test_a_store_from_a_backup_is_not_believed(world: World) -> None:
    """store/ alone is copied back: what was recorded since counts, as what was there then."""
    only, *_ = world.servers
    only.start()
    only.decide("t2")
    only.stop()
    world.do("keep", 0, 0)
    only.start()
    only.decide("t4")
    only.stop()
    assert world.recorded == {"t2", "t4"}
    world.do("restore", 0, 0)
    only.start()
    assert "older" in only.told
    assert only.said() == {"t2", "t4"}
    world.check()
    assert only.objects() == recovered(world)
    only.stop()
    only.start()
    assert only.told == ""
    assert only.said() == {"t2", "t4"}
