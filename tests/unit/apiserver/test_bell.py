from __future__ import annotations

from pathlib import Path
from queue import Queue
from stat import S_IMODE
from threading import Event

from apiserver import bell


def test_a_ring_says_what_it_is_about_and_outlives_a_failure(tmp_path: Path) -> None:
    heard: Queue[bytes] = Queue()

    def hear(about: bytes) -> None:
        heard.put(about)
        raise RuntimeError("once")

    stop = bell.listen(tmp_path, bell.LOOK, hear)
    try:
        assert S_IMODE((tmp_path / bell.LOOK).stat().st_mode) == 0o600, "nobody else rings"
        bell.ring(tmp_path, bell.LOOK, b"root:shop")
        bell.ring(tmp_path, bell.LOOK)
        assert [heard.get(timeout=10), heard.get(timeout=10)] == [b"root:shop", b""]
    finally:
        stop()
    assert not (tmp_path / bell.LOOK).exists()


def test_what_a_ring_is_about_is_bounded(tmp_path: Path) -> None:
    heard: Queue[bytes] = Queue()
    stop = bell.listen(tmp_path, bell.LOOK, heard.put)
    try:
        bell.ring(tmp_path, bell.LOOK, b"x" * 1_000_000)
        assert len(heard.get(timeout=10)) == bell.LONGEST
    finally:
        stop()


def test_nobody_is_kept_by_who_does_not_listen(tmp_path: Path) -> None:
    """More rings than a socket holds."""
    goes_on = Event()
    stop = bell.listen(tmp_path, bell.LOOK, lambda _: bool(goes_on.wait(60)))
    for _ in range(2000):
        bell.ring(tmp_path, bell.LOOK)
    goes_on.set()
    stop()
