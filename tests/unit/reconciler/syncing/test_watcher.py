"""What follows a target: each event told once, and no target asked or heard more often than it deserves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiserver.model.kinds import GroupResource
from reconciler.syncing.client import TargetEvent, TargetPage
from reconciler.syncing.errors import Excessive, TargetRefused, TargetUnreachable
from reconciler.syncing.live import Allowance
from reconciler.syncing.watcher import Pace, Watcher

MAPS = GroupResource("", "configmaps")


def obj(name: str = "a", revision: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": str(revision)}}


class Target:
    """Answers lists and watches from a script; waits for the test at its end."""

    def __init__(self) -> None:
        self.lists: list[list[dict[str, Any]] | Exception] = []
        self.watches: list[list[TargetEvent]] = []
        self.asked: list[str] = []
        self.closed = threading.Event()

    def list(self, where: str, selector: str = "") -> Iterator[TargetPage]:
        self.asked.append("list")
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        for number, item in enumerate(answer):
            yield TargetPage([item], 10, "" if number + 1 < len(answer) else "1")

    def watch(self, where: str, selector: str, revision: str) -> Iterator[TargetEvent]:
        self.asked.append(f"watch {revision}")
        if not self.watches:
            self.closed.wait(60)
            return
        yield from self.watches.pop(0)


def test_a_watcher_follows_and_starts_over_when_its_revision_is_too_old(eventually: Any) -> None:
    target = Target()
    gone = {"code": 410, "reason": "Expired"}
    target.lists = [TargetUnreachable("connection refused"), [obj("a", 1), obj("b", 1)], [obj("a", 7)]]
    target.watches = [
        [TargetEvent("MODIFIED", obj("a", 3)), TargetEvent("BOOKMARK", {"metadata": {"resourceVersion": "5"}})],
        [TargetEvent("DELETED", obj("b", 6)), TargetEvent("ADDED", obj("c", 6)), TargetEvent("ERROR", gone)],
    ]
    changed: list[str] = []
    watcher = Watcher(target, MAPS, "v1", "l=v", lambda _, name: changed.append(name), pace=Pace(first=0.01))
    watcher.start()
    eventually(lambda: target.asked[-1:] == ["watch 1"] and target.asked.count("list") == 3)
    watcher.stop()
    target.closed.set()
    watcher.join(10)
    assert target.asked == ["list", "list", "watch 1", "watch 5", "list", "watch 1"]
    assert changed == ["a", "b", "a", "b", "c", "c", "a"]
    assert sorted(watcher.cache.keys()) == [("n", "a")]


class Liar(Target):
    """Says the same to whatever it is asked, at once."""

    def __init__(
        self, listed: Callable[[], Iterator[TargetPage]], watched: Callable[[], Iterator[TargetEvent]]
    ) -> None:
        super().__init__()
        self._listed, self._watched = listed, watched

    def list(self, where: str, selector: str = "") -> Iterator[TargetPage]:
        self.asked.append("list")
        return self._listed()

    def watch(self, where: str, selector: str, revision: str) -> Iterator[TargetEvent]:
        self.asked.append("watch")
        return self._watched()


def nothing() -> Iterator[TargetPage]:
    yield TargetPage([], 2, "1")


def failing(error: Exception) -> Callable[[], Iterator[Any]]:
    def raising() -> Iterator[Any]:
        raise error
        yield

    return raising


def events(*found: TargetEvent) -> Callable[[], Iterator[TargetEvent]]:
    return lambda: iter(found)


MARK = TargetEvent("BOOKMARK", {"metadata": {"resourceVersion": "2"}})
LIES: dict[str, tuple[Callable[[], Iterator[TargetPage]], Callable[[], Iterator[TargetEvent]]]] = {
    "each watch is answered with 410": (nothing, events(TargetEvent("ERROR", {"code": 410}))),
    "each watch is answered with 410, with a status": (nothing, failing(TargetRefused(410, "Expired", ""))),
    "each watch says something, and then 410": (nothing, events(MARK, TargetEvent("ERROR", {"code": 410}))),
    "watches end at once": (nothing, events()),
    "watches end after an event": (nothing, events(TargetEvent("MODIFIED", obj()))),
    "lists fail": (failing(TargetUnreachable("timed out")), events()),
    "lists fail otherwise": (failing(KeyError("metadata")), events()),
    "lists are too long": (failing(Excessive("more")), events()),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_target_that_lies_is_asked_ever_more_seldom(lie: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a minute, on a clock of the test's: 1,900 times were seen."""
    target = Liar(*lie)
    watcher = Watcher(target, MAPS, "v1", "", lambda *_: None)
    waited: list[float] = []

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            waited.append(timeout)
            if sum(waited) >= 60:
                self.set()
            return self.is_set()

    monkeypatch.setattr(watcher, "_stopped", Clock())
    watcher.run()
    assert len(target.asked) <= 20
    assert waited[:4] == [0.2, 0.4, 0.8, 1.6]
    assert max(waited) == 30.0


def test_a_watch_that_lasted_is_followed_by_the_next_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    waited: list[float] = []

    def lasting() -> Iterator[TargetEvent]:
        now[0] += 300
        yield MARK

    watcher = Watcher(Liar(nothing, lasting), MAPS, "v1", "", lambda *_: None)

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waited.append(timeout or 0)
            if len(waited) == 5:
                self.set()
            return self.is_set()

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(watcher, "_stopped", Clock())
    watcher.run()
    assert waited == [0.2] * 5


def test_what_a_target_says_is_read_no_faster_than_events_happen(eventually: Any) -> None:
    """One that floods us must not take the whole process's time."""
    revision = iter(range(2, 10**9))

    def flood() -> Iterator[TargetEvent]:
        while True:
            yield TargetEvent("MODIFIED", obj(revision=next(revision)), 100)

    told: list[float] = []

    def changed(*_: str) -> None:
        told.append(time.monotonic())

    watcher = Watcher(Liar(nothing, flood), MAPS, "v1", "", changed, pace=Pace(events=50))
    watcher.start()
    eventually(lambda: len(told) >= 150)
    # Between the end of the first fifty and that of the third there is the whole second that the second ones take.
    assert told[149] - told[49] > 0.99
    watcher.stop()
    watcher.join(10)
    assert not watcher.is_alive()


def test_more_objects_than_are_kept_are_trouble_that_is_told(eventually: Any) -> None:
    def many() -> Iterator[TargetPage]:
        yield TargetPage([obj(f"a{n}") for n in range(5)], 50, "1")

    watcher = Watcher(Liar(many, events()), MAPS, "v1", "", lambda *_: None, allowance=Allowance(objects=3))
    watcher.start()
    eventually(lambda: isinstance(watcher.trouble, Excessive))
    assert not watcher.listed.is_set()
    watcher.stop()
    watcher.join(10)
