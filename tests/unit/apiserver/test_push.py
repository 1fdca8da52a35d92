"""The bell from the git endpoint to the reconciler."""

import threading
from pathlib import Path

from apiserver.push import NAME, listen_push, notify_push


def test_ringing_without_a_listener_is_nothing(tmp_path: Path) -> None:
    notify_push(tmp_path)
    notify_push(tmp_path / "absent")


def test_a_ring_is_heard_in_a_deep_directory_too(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    rung = threading.Event()
    stop = listen_push(deep, rung.set)
    notify_push(deep)
    assert rung.wait(10)
    stop()
    assert not (deep / NAME).exists()


def test_a_killed_listeners_socket_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    rung = threading.Event()
    stop = listen_push(tmp_path, rung.set)
    notify_push(tmp_path)
    assert rung.wait(10)
    stop()


def test_a_failing_callback_does_not_end_listening(tmp_path: Path) -> None:
    rung = threading.Semaphore(0)

    def callback() -> None:
        rung.release()
        raise RuntimeError("no")

    stop = listen_push(tmp_path, callback)
    for _ in range(2):
        notify_push(tmp_path)
        assert rung.acquire(timeout=10)
    stop()
