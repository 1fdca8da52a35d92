from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from reconciler.repository.watch import HeadWatcher, fingerprint, pause

Git = Callable[..., str]


class Bell:
    """Counts rings; `heard` waits for the next one."""

    def __init__(self) -> None:
        self.event = Event()
        self.count = 0

    def __call__(self) -> bool:
        self.count += 1
        self.event.set()
        return True

    def heard(self) -> bool:
        got = self.event.wait(20)
        self.event.clear()
        return got


@contextmanager
def watching(source: Path | str, bell: Bell, **bounds: float) -> Iterator[HeadWatcher]:
    watcher = HeadWatcher(str(source), bell, **bounds)
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.stop()


def test_a_commit_rings(clone: Path, git: Git) -> None:
    bell = Bell()
    with watching(clone, bell):
        for number in range(3):
            git(clone, "commit", "-q", "--allow-empty", "-m", str(number))
            assert bell.heard()
        git(clone, "pack-refs", "--all")
        assert bell.heard(), "packed-refs is replaced"
        git(clone, "branch", "deep/er/branch")
        assert bell.heard(), "in directories that were just made"
        git(clone, "switch", "-q", "deep/er/branch")
        assert bell.heard(), "HEAD is replaced"


def test_a_commit_rings_that_comes_before_the_threads_do(clone: Path, git: Git) -> None:
    bell = Bell()
    watcher = HeadWatcher(str(clone), bell)
    git(clone, "commit", "-q", "--allow-empty", "-m", "early")
    watcher.start()
    try:
        assert bell.heard()
    finally:
        watcher.stop()


def test_a_push_to_a_bare_repository_rings(clone: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(clone), "fleet.git")
    bell = Bell()
    with watching(tmp_path / "fleet.git", bell):
        git(clone, "commit", "-q", "--allow-empty", "-m", "more")
        git(clone, "push", "-q", str(tmp_path / "fleet.git"), "main")
        assert bell.heard()


def test_a_url_is_polled_and_errors_do_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    bell = Bell()

    def failing() -> bool:
        bell()
        raise RuntimeError("away")

    watcher = HeadWatcher("https://example.com/x.git", failing, every=0.01)
    watcher.start()
    assert bell.heard()
    assert bell.heard()
    watcher.stop()
    assert "could not be looked at" in caplog.text


def test_a_url_is_looked_at_every_ten_seconds_and_no_slower_than_every_sixty_while_it_fails() -> None:
    assert [round(pause(10.0, failures)) for failures in (0, 1, 2, 5, 100)] == [10, 15, 22, 60, 60]
    assert [pause(300.0, failures) for failures in (0, 5)] == [300, 300], "who asks for less is asked for less"


def test_lock_files_are_no_news(clone: Path) -> None:
    before = fingerprint(clone / ".git")
    (clone / ".git" / "refs" / "heads" / "main.lock").write_text("")
    assert fingerprint(clone / ".git") == before


def test_whoever_rings_has_a_url_looked_at_now() -> None:
    bell = Bell()
    with watching("https://example.com/x.git", bell, every=3600.0) as watcher:
        watcher.ring()
        assert bell.heard()


def test_however_often_somebody_rings_there_is_one_look_a_second() -> None:
    bell, began = Bell(), time.monotonic()
    with watching("https://example.com/x.git", bell, every=3600.0) as watcher:
        while bell.count < 3:
            watcher.ring()
            time.sleep(0.001)
    assert time.monotonic() - began >= 2.0


def test_a_ring_during_a_look_is_one_more_look() -> None:
    """That one may have begun before what the ring is about."""
    begun, goes_on, looks = Event(), Event(), []

    def look() -> bool:
        looks.append(1)
        begun.set()
        return goes_on.wait(20)

    watcher = HeadWatcher("https://example.com/x.git", look, 3600.0)
    watcher.start()
    try:
        watcher.ring()
        assert begun.wait(20)
        begun.clear()
        watcher.ring()
        goes_on.set()
        assert begun.wait(20)
    finally:
        watcher.stop()
    assert len(looks) == 2


def test_whoever_rings_has_a_repository_here_looked_at_although_nothing_moved(clone: Path) -> None:
    bell = Bell()
    with watching(clone, bell) as watcher:
        watcher.ring()
        assert bell.heard()
        watcher.ring()
        assert bell.heard(), "a second later"


def test_when_a_url_is_looked_at_next_is_told(eventually: Callable[..., object]) -> None:
    told = list[float]()
    watcher = HeadWatcher("https://example.com/x.git", Bell(), 100.0, told.append)
    watcher.start()
    eventually(lambda: told)
    watcher.stop()
    assert len(told) == 1
    assert 90 <= told[0] <= 100
