"""Where files are laid out: gone when it is over, and when the process is."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from reconciler.rendering.workplace import Workplace


def test_a_room_is_empty_private_and_gone(tmp_path: Path) -> None:
    place = Workplace(tmp_path / "work")
    with place.room() as one, place.room() as other:
        assert one != other and list(one.iterdir()) == []
        assert one.stat().st_mode & 0o777 == 0o700
        (one / "a").mkdir()
        (one / "a" / "b").write_text("x")
    assert not one.exists()
    with pytest.raises(ZeroDivisionError), place.room() as third:
        raise ZeroDivisionError
    assert not third.exists()
    place.close()
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_killed_process_left_goes_and_nobody_elses(tmp_path: Path) -> None:
    living = Workplace(tmp_path / "work")
    with living.room() as mine:
        pid = os.fork()
        if pid == 0:
            with Workplace(tmp_path / "work").room() as room:
                (room / "file").write_text("x")
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        assert len(list((tmp_path / "work").iterdir())) == 2
        new = Workplace(tmp_path / "work")
        with new.room() as other:
            assert mine.exists() and other.exists()
            assert len(list((tmp_path / "work").iterdir())) == 2
        new.close()
    living.close()
    assert list((tmp_path / "work").iterdir()) == []
